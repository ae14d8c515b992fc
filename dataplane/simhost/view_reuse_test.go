package simhost

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/sim"
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
		case ev.Stage == inswitch.Dequeue && id%5 == 0 && ev.Packet.CanPushLabel(label.Params{}) == nil:
			act.PushLabel(label.Params{})
		}
	}
	for _, sw := range n.Switches() {
		var s *Switch
		observe := func(ev *inswitch.Event, _ *inswitch.Actions) {
			events++
			p, got := s.ctx.Packet, *ev.Packet
			s.fillView(p)
			if got != s.packet || ev.In != p.Ingress() || ev.Priority != p.Priority || ev.Control != p.Control {
				t.Errorf("stage %d: the program sees %+v of port %d, class %d; want %+v of port %d, class %d",
					ev.Stage, got, ev.In, ev.Priority, s.packet, p.Ingress(), p.Priority)
			}
		}
		s = attach(t, n, sw.ID, DefaultConfig(),
			at(change, inswitch.Ingress, inswitch.Enqueue, inswitch.Dequeue),
			at(observe, inswitch.Ingress, inswitch.Routed, inswitch.Enqueue, inswitch.Dequeue))
	}
	add(t, n, busy()...)
	n.Run(ms)
	if events < 10_000 {
		t.Errorf("%d events; want thousands", events)
	}
}

// idler is a program beside a Switch that does nothing: the simulator then shows
// packets to both stage by stage.
type idler struct{}

func (idler) At(sim.Stage) sim.Runner { return nil }

// TestPassingPacketsAreShownAlike writes down all that programs see, and what
// they do to packets, of a switch that is shown passing packets once and of one
// that is shown them stage by stage.
func TestPassingPacketsAreShownAlike(t *testing.T) {
	run := func(beside bool) (seen [][]string, counts sim.Counts) {
		n := fatTree(t, tight())
		for i, sw := range n.Switches() {
			seen = append(seen, nil)
			observe := func(ev *inswitch.Event, act *inswitch.Actions) {
				p := ev.Packet
				line := fmt.Sprint(ev.Stage, ev.Now, ev.In, ev.Out, p.IPID, p.TTL, p.Size, p.DSCP, p.AppendFrame(nil, 60))
				if ev.Stage != inswitch.Ingress {
					line += fmt.Sprint(ev.BypassesQueue, ev.Queue)
				}
				if ev.Stage == inswitch.Dequeue {
					line += fmt.Sprint(ev.Latency, ev.DepthAtEnqueue)
				}
				seen[i] = append(seen[i], line)
				switch {
				case ev.Stage == inswitch.Enqueue && p.IPID%7 == 0:
					act.SetDSCP(9)
				case ev.Stage == inswitch.Enqueue && p.IPID%101 == 1, ev.Stage == inswitch.Dequeue && p.IPID%101 == 2:
					act.Drop()
				}
			}
			attach(t, n, sw.ID, DefaultConfig(), at(observe, inswitch.Ingress, inswitch.Enqueue, inswitch.Dequeue))
			if beside {
				sw.Attach(idler{})
			}
		}
		add(t, n, busy()...)
		n.Run(race.Less(ms/10, ms/40))
		return seen, n.Counts
	}
	once, counts := run(false)
	stages, want := run(true)
	if counts != want || counts.Drops[sim.DropProgram] == 0 {
		t.Errorf("counts %+v; want %+v, and some packets dropped by programs", counts, want)
	}
	for i := range stages {
		if !slices.Equal(once[i], stages[i]) {
			t.Errorf("switch %d: %d events; want the same as stage by stage, %d", i, len(once[i]), len(stages[i]))
		}
	}
}
