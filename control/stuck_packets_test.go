package control

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/analyze/loss"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/control/flowwatch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/roce"
)

// TestLossBehindAPause: PFC pauses a port for three slots. Packets that are missing after it
// are stuck until then; those that do not arrive when the port is open were lost.
func TestLossBehindAPause(t *testing.T) {
	for name, tc := range map[string]struct {
		arrive  uint64 // of 120 packets, in the slot after the pause
		again   bool   // the port is paused for good
		inexact bool   // a counter of that slot is not proven
		moved   bool   // in that slot the flow's route changed: packets arrive elsewhere
		want    uint64 // lost
	}{
		"all arrive":             {arrive: 120},
		"some were lost":         {arrive: 113, want: 7},
		"all were lost":          {arrive: 0, want: 120},
		"the pause does not end": {arrive: 0, again: true},
		"a counter is a guess":   {arrive: 113, inexact: true},
		"the route changed":      {arrive: 113, moved: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := evidenceBed(t)
			c.cfg.LossPackets, c.cfg.LossShare = 3, 1e-3
			from := c.portNamed(t, "tor2", "leaf2")
			to := c.fabric.Port(from).Peer
			other := c.fabric.Port(c.portNamed(t, "tor2", "leaf3")).Peer
			source, _ := c.fabric.ByName("h4")
			target, _ := c.fabric.ByName("h12")
			key := model.FlowKey{
				Src: c.fabric.Node(source).IPv4, Dst: c.fabric.Node(target).IPv4, SrcPort: 9, DstPort: roce.Port, Proto: model.UDP,
			}
			for slot := int64(10); slot < 20; slot++ {
				at := model.Time(slot) * model.Time(slotLength)
				if slot <= 12 || tc.again {
					c.meter.addCounters(at, at.Add(slotLength), from, 8*time.Millisecond, 0)
				}
				c.now = at.Add(slotLength)
				var sent, arrived uint64
				switch slot {
				case 10:
					sent = 100 // and there were 20 in the slot before
				case 13:
					arrived = tc.arrive
				}
				grade := flows.Exact
				if tc.inexact && slot == 13 {
					grade = flows.Estimated
				}
				m := paths.NewMap(slot, slotLength)
				elsewhere := uint64(0)
				if tc.moved && slot == 13 {
					elsewhere = 7
				}
				for _, one := range []struct {
					sw      model.NodeID
					packets uint64
					in, out model.PortID
				}{{from.Node, sent, 0, from.Port}, {to.Node, arrived, to.Port, 0}, {other.Node, elsewhere, other.Port, 0}} {
					d := flows.Decoded{Switch: one.sw, Start: at, Length: slotLength, MayContain: func(model.FlowKey) bool { return false }}
					if one.packets > 0 {
						d.Records = []flows.Record{{Key: key, Packets: one.packets, In: one.in, Out: one.out, Grade: grade}}
					}
					m.AddFlowset(&d)
				}
				s := flowwatch.NewSlot(slot, slotLength, m)
				if slot == 10 {
					s.Losses = []loss.Event{{
						Flow: key, Segment: loss.Segment{From: from, To: to}, Packets: 20, Sent: 120, FirstSlot: 9, LastSlot: 9, FoundSlot: 10,
					}}
				}
				c.addPauseEvidence([]model.Port{from}, at)
				c.addLossEvidence(s)
			}
			var lost uint64
			for _, in := range c.correlator.OpenIncidents() {
				if in.Cause == anomaly.Loss {
					lost += in.LostPackets
					if in.Location != from || in.NextHop != to.Node {
						t.Errorf("loss at %v before %d, want %v before %d", in.Location, in.NextHop, from, to.Node)
					}
				}
			}
			if lost != tc.want {
				t.Errorf("%d packets lost, want %d", lost, tc.want)
			}
			if kept := len(c.stuck.flows); kept > 0 != tc.again || kept != len(c.stuck.order) {
				t.Errorf("%d accounts are open, %d in order; want %v", kept, len(c.stuck.order), tc.again)
			}
		})
	}
}

// TestStuckFlowsAreBounded: the oldest accounts make room.
func TestStuckFlowsAreBounded(t *testing.T) {
	c := evidenceBed(t)
	from := c.portNamed(t, "tor2", "leaf2")
	to := c.fabric.Port(from).Peer
	m := paths.NewMap(10, slotLength)
	for _, sw := range []model.NodeID{from.Node, to.Node} {
		m.AddFlowset(&flows.Decoded{Switch: sw, Start: 10 * model.Time(slotLength), Length: slotLength, MayContain: func(model.FlowKey) bool { return false }})
	}
	s := flowwatch.NewSlot(10, slotLength, m)
	for n := range maxStuckFlows + 10 {
		c.stuck.add(c.fabric, &loss.Event{Flow: model.FlowKey{SrcPort: uint16(n), Proto: model.UDP}, Segment: loss.Segment{From: from, To: to}, Packets: 1, Sent: 1}, s)
	}
	if n := len(c.stuck.flows); n != maxStuckFlows || len(c.stuck.order) != n || c.stuck.order[0].flow.SrcPort != 10 {
		t.Errorf("%d accounts, the oldest of flow %d; want %d from flow 10 on", n, c.stuck.order[0].flow.SrcPort, maxStuckFlows)
	}
}
