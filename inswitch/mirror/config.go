package mirror

import (
	"fmt"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/erspan"
)

// Config is which packets are mirrored and where mirrors go. All switches of a
// fabric must have the same Seed, SampleOneIn and rules, or they select
// different packets.
type Config struct {
	TCPFlags    bool   // TCP packets with SYN, FIN or RST
	SampleOneIn uint32 // sample one in this many packets; 0: no sample
	DebugMask   uint8  // bits of the DSCP field that mark a packet; 0: none
	Protocol    bool   // BGP, PFC, and RDMA's connection management, CNPs and NAKs
	Rules       []Rule

	Seed     uint64 // of the sample
	Truncate int    // bytes of the frame to keep, labels not counted

	// Rate and Burst limit what a switch mirrors, in bytes of reports or
	// packets. A zero Rate is no limit.
	Rate  model.Rate
	Burst model.Bytes

	// Mirrors are Append reports to Lists lists from List on, or, if there are
	// Collectors, ERSPAN packets of this Kind to these addresses.
	List       dta.ListID
	Lists      uint32
	Collectors []model.Addr
	Kind       erspan.Kind
	Session    uint16 // of ERSPAN: 10 bits
}

// SONiC's values in the header of mirrors.
const (
	mirrorTTL  = 255
	mirrorDSCP = 8
)

// DefaultConfig mirrors TCP packets that open or close connections, marked
// packets, and control protocols; no sample. The debug mark is the lowest bit
// of the DSCP field: code points with this bit are for local use (RFC 2474,
// section 6). 128 bytes hold a tunnel, both headers, and the start of the
// payload.
func DefaultConfig() Config {
	return Config{
		TCPFlags: true, DebugMask: 1, Protocol: true, Truncate: 128,
		Rate: 10 * model.Gbps, Burst: 4 * model.MiB, Lists: 1, Kind: erspan.TypeII,
	}
}

// minTruncate holds the headers that a trace needs: Ethernet, an IPv4 tunnel,
// IPv4 and TCP.
const minTruncate = 14 + 20 + 20 + 20

// Check returns an error for the first invalid field.
func (c *Config) Check() error {
	switch {
	case c.DebugMask > 63:
		return fmt.Errorf("mirror: debug mark %#x, want bits of the DSCP field, at most 0x3f", c.DebugMask)
	case c.Truncate < minTruncate || c.Truncate > 9216:
		return fmt.Errorf("mirror: %d bytes of a frame, want %d to 9216", c.Truncate, minTruncate)
	case c.Rate < 0:
		return fmt.Errorf("mirror: rate %v, want 0 or more", c.Rate)
	case c.Rate > 0 && c.Burst < model.Bytes(c.Truncate)*8:
		return fmt.Errorf("mirror: burst %v, want at least eight mirrors, %v", c.Burst, model.Bytes(c.Truncate)*8)
	case len(c.Collectors) == 0 && c.Lists == 0:
		return fmt.Errorf("mirror: no list and no collector, want at least one")
	case c.Kind == erspan.Padded || c.Kind > erspan.Mellanox:
		return fmt.Errorf("mirror: ERSPAN of kind %d, want I, II, III or Mellanox", c.Kind)
	case c.Session > 1<<10-1:
		return fmt.Errorf("mirror: session %d, want at most 1023", c.Session)
	}
	_, err := newRuleTable(c.Rules, 1<<16-1)
	return err
}
