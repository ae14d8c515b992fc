package simhost

import (
	"testing"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/wire/label"
)

// TestViewIsFreshAtEveryStage holds views that were not filled again, because
// the packet had just been shown, against ones that are. Packets change in
// between.
func TestViewIsFreshAtEveryStage(t *testing.T) {
	n := fatTree(t, tight())
	var events int
	change := func(ev *inswitch.Event, act *inswitch.Actions) {
		switch id := ev.Packet.IPID; {
		case ev.Stage != inswitch.Dequeue && id%3 == 0:
			act.SetDSCP(ev.Packet.DSCP + 1)
		case ev.Stage == inswitch.Dequeue && id%5 == 0 && ev.Packet.MayLabel(label.Params{}) == nil:
			act.Push(label.Params{})
		}
	}
	for _, sw := range n.Switches() {
		var s *Switch
		look := func(ev *inswitch.Event, _ *inswitch.Actions) {
			events++
			p, got := s.ctx.Packet, *ev.Packet
			s.show(p)
			if got != s.packet || ev.In != p.Ingress() || ev.Priority != p.Priority || ev.Control != p.Control {
				t.Errorf("stage %d: the program sees %+v of port %d, class %d; want %+v of port %d, class %d",
					ev.Stage, got, ev.In, ev.Priority, s.packet, p.Ingress(), p.Priority)
			}
		}
		s = attach(t, n, sw.ID, DefaultConfig(),
			at(change, inswitch.Ingress, inswitch.Enqueue, inswitch.Dequeue),
			at(look, inswitch.Ingress, inswitch.Routed, inswitch.Enqueue, inswitch.Dequeue))
	}
	add(t, n, busy()...)
	n.Run(ms)
	if events < 10_000 {
		t.Errorf("%d events; want thousands", events)
	}
}
