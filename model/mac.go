package model

import (
	"fmt"
	"net"
)

// MAC is a 48-bit Ethernet address.
type MAC [6]byte

// String prints "02:00:00:01:00:03".
func (m MAC) String() string { return net.HardwareAddr(m[:]).String() }

// MarshalText writes String's form.
func (m MAC) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads what ParseMAC reads.
func (m *MAC) UnmarshalText(b []byte) (err error) {
	*m, err = ParseMAC(string(b))
	return err
}

// ParseMAC reads a 48-bit address in colon, dash or dot form.
func ParseMAC(s string) (m MAC, err error) {
	hw, err := net.ParseMAC(s)
	if err != nil || len(hw) != len(m) {
		return MAC{}, fmt.Errorf("MAC %q, want six bytes such as 02:00:00:01:00:03", s)
	}
	return MAC(hw), nil
}
