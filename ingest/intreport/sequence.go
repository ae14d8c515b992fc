package intreport

import (
	"net/netip"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/intreport"
)

// sequenceKey is a sender with separate sequence numbers. Only switches of the
// fabric have some, so that their number is bounded.
type sequenceKey struct {
	node     uint32
	hardware uint8
}

// sequence tracks the numbers of one sender from one address.
type sequence struct {
	from netip.Addr
	last model.Time // when a datagram came from it
	next uint32
}

const (
	// window is the longest gap that counts as loss, and how late a datagram may be.
	// Numbers further off are those of a switch that has restarted.
	window = 8192
	// rebindAfter is how long the address of a sequence must have been silent before
	// another may continue it. Until then the other's numbers are not looked at: a
	// stranger cannot move those of a switch.
	rebindAfter = 10 * time.Second
)

// trackSequence counts missing datagrams.
func (d *Decoder) trackSequence(at model.Time, from netip.Addr, g intreport.Group) {
	key := sequenceKey{g.Node, g.Hardware}
	after := (g.Seq + 1) % intreport.SeqModulus
	s := d.next[key]
	switch {
	case s == nil:
		d.next[key] = &sequence{from, at, after}
		return
	case s.from != from && at.Sub(s.last) < rebindAfter:
		return
	case s.from != from:
		*s = sequence{from, at, after}
		return
	}
	s.last = at
	switch ahead := (g.Seq - s.next) % intreport.SeqModulus; {
	case ahead < window:
		d.stats.Missing += uint64(ahead)
		s.next = after
	case ahead >= intreport.SeqModulus-window: // late
	default:
		d.stats.Restarts++
		s.next = after
	}
}
