package dta

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"

	"github.com/weft-telemetry/weft/model"
)

// MACSize is the length of a MAC.
const MACSize = 16

// MAC makes and verifies the MACs of one key. It keeps its state, so that it
// allocates nothing; only one goroutine may use it.
type MAC struct {
	id   uint8
	cmac *cmac
}

// macPurpose is hashed with the secret into the key of the MACs, so that no other
// protocol with the same secret ever makes one of them.
const macPurpose = "Weft DTA version 2, AES-128-CMAC"

// NewMAC returns a MAC with the key id that its datagrams carry.
func NewMAC(id uint8, secret []byte) *MAC {
	derive := hmac.New(sha256.New, secret)
	derive.Write([]byte(macPurpose))
	return &MAC{id: id, cmac: newCMAC([16]byte(derive.Sum(nil)))}
}

// ID returns the key id.
func (m *MAC) ID() uint8 { return m.id }

// AppendMAC appends the MAC of message to b, which may be the message itself.
func (m *MAC) AppendMAC(b, message []byte) []byte {
	return append(b, m.cmac.sum(message)...)
}

// Verify reports whether a datagram ends with the MAC of all bytes before it.
// The time it takes depends only on the length.
func (m *MAC) Verify(datagram []byte) bool {
	if len(datagram) < MACSize {
		return false
	}
	end := len(datagram) - MACSize
	return subtle.ConstantTimeCompare(m.cmac.sum(datagram[:end]), datagram[end:]) == 1
}

// AppendSigned appends a datagram of version 1 or 2 to b as one of version 2 with
// this key and these times, for a host that sends what another program has packed
// or recorded. It returns b and an error if the datagram has no header.
func (m *MAC) AppendSigned(b, datagram []byte, start, sent model.Time) ([]byte, error) {
	var r Reader
	if err := r.Reset(datagram); err != nil {
		return b, err
	}
	r.head.Signed, r.head.KeyID, r.head.Start, r.head.Sent = true, m.id, start, sent
	from := len(b)
	b = append(r.head.AppendTo(b), r.rest...)
	return m.AppendMAC(b, b[from:]), nil
}

// SignedOverhead is how much longer a datagram of version 2 is than one of
// version 1 with the same reports.
const SignedOverhead = SignedHeaderSize + MACSize - HeaderSize
