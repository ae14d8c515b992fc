package intreport

import (
	"net/netip"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/intreport"
	"github.com/weft-telemetry/weft/wire/mirror"
)

var stranger = netip.MustParseAddr("192.0.2.66")

func nothing() Output {
	return Output{Label: func(model.Time, []byte) {}, Mirror: func(model.Time, *mirror.Mirror) {}}
}

// TestMissingIsBounded: a datagram accounts for at most a window of missing ones,
// whatever number it has, and a switch that restarted is followed.
func TestMissingIsBounded(t *testing.T) {
	d := decoder(t, nothing())
	at := model.TimeOf(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	const jumps = 1000
	seq := uint32(0)
	for i := range uint32(jumps) {
		d.HandleDatagram(at, sender, datagram(102, seq))
		seq = (seq + intreport.SeqModulus/2 - 1 - i) % intreport.SeqModulus
	}
	if s := d.Stats(); s.Missing != 0 || s.Restarts != jumps-1 {
		t.Errorf("%d missing, %d restarts after %d jumps by half of all numbers; want 0 and %d", s.Missing, s.Restarts, jumps, jumps-1)
	}
	d.HandleDatagram(at, sender, datagram(102, 5))
	d.HandleDatagram(at, sender, datagram(102, 5+window))
	if s := d.Stats(); s.Missing != window-1 {
		t.Errorf("%d missing; want those before the end of the window, %d", s.Missing, window-1)
	}
	d.HandleDatagram(at, sender, datagram(102, 17))
	d.HandleDatagram(at, sender, datagram(102, 6+window))
	if s := d.Stats(); s.Missing != window-1 {
		t.Errorf("%d missing after a late one; want %d still", s.Missing, window-1)
	}
}

// TestStrangerCannotMoveSequence: datagrams of another address do not move a
// switch's numbers while it reports, and unknown nodes have none.
func TestStrangerCannotMoveSequence(t *testing.T) {
	d := decoder(t, nothing())
	at := model.TimeOf(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	for i := range uint32(1000) {
		d.HandleDatagram(at, sender, datagram(102, i))
		d.HandleDatagram(at, stranger, datagram(102, i*7919))
		d.HandleDatagram(at, stranger, datagram(1_000_000+i, i*7919))
		at = at.Add(time.Millisecond)
	}
	if s := d.Stats(); s.Missing != 0 || s.Restarts != 0 || len(d.next) != 1 {
		t.Errorf("%+v, %d sequences; want none missing, no restart, and one sequence", s, len(d.next))
	}
	at = at.Add(rebindAfter) // a switch with another address
	d.HandleDatagram(at, stranger, datagram(102, 5000))
	d.HandleDatagram(at, stranger, datagram(102, 5002))
	if s := d.Stats(); s.Missing != 1 {
		t.Errorf("%d missing after the switch changed its address; want 1", s.Missing)
	}
}

// TestReportsOfUnknownPlacesAreRefused: ports that a switch has not, nodes that are
// no switches, and addresses that are not the switch's.
func TestReportsOfUnknownPlacesAreRefused(t *testing.T) {
	refused := map[translate.Refusal]int{}
	emitted := 0
	out := Output{
		Label:   func(model.Time, []byte) { emitted++ },
		Mirror:  func(model.Time, *mirror.Mirror) { emitted++ },
		Refused: func(from netip.Addr, why translate.Refusal, _ int) { refused[why]++ },
	}
	d := decoder(t, out)
	d.cfg.HasPort = func(_ model.NodeID, p model.PortID) bool { return p <= 4 }
	d.cfg.Sends = func(_ model.NodeID, from netip.Addr) bool { return from == sender }
	at := model.TimeOf(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	absurd := sample(at)
	absurd.Egress = 5
	d.HandleDatagram(at, sender, datagram(102, 0, absurd))
	d.HandleDatagram(at, sender, datagram(7, 0, sample(at)))
	d.HandleDatagram(at, stranger, datagram(102, 9, sample(at)))
	s := d.Stats()
	if emitted != 0 || s.UnknownPort != 1 || s.Unknown != 1 || s.Denied != 1 || s.Missing != 0 ||
		refused[translate.UnknownPlace] != 1 || refused[translate.UnknownReporter] != 1 || refused[translate.AddressNotAllowed] != 1 {
		t.Errorf("%d emitted, %+v, told %v; want none, and one refusal of each kind", emitted, s, refused)
	}
	d.HandleDatagram(at, sender, datagram(102, 1, sample(at)))
	if emitted != 2 {
		t.Errorf("%d emitted of an honest report; want a label and a mirror", emitted)
	}
}
