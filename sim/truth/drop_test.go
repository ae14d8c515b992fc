package truth

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
)

func TestDrops(t *testing.T) {
	wire := model.Port{Node: 4, Port: 3} // s0 to s1
	for name, tc := range map[string]struct {
		fault  sim.Fault
		reason sim.Reason
		port   model.Port
	}{
		"link down":  {sim.LinkDown{Port: wire}, sim.DropLinkDown, wire},
		"silent":     {sim.Lossy{Port: wire, Share: 1}, sim.DropSilent, wire},
		"corrupt":    {sim.Lossy{Port: wire, Share: 1, Damaged: true}, sim.DropCorrupt, wire},
		"in switch":  {sim.LossySwitch{Switch: 5, Share: 1}, sim.DropSilent, model.Port{Node: 5, Port: 3}},
		"blackhole":  {sim.CorruptTable{Switch: 4, Share: 1}, sim.DropBlackhole, model.Port{Node: 4, Port: 1}},
		"wrong host": {sim.CorruptTable{Switch: 4, Share: 1, Via: 2}, sim.DropHost, model.Port{Node: 1, Port: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			b := dumbbell(t, 2, sim.DefaultConfig(), All())
			b.add(udp(0, 2, 10*model.Gbps, 200_000))
			const at = 50 * engine.Microsecond
			b.inject(sim.Injection{At: at.Model(), Fault: tc.fault})
			b.run(5 * time.Millisecond)
			drops := b.r.Drops()
			total := b.r.Flow(0, false)
			if total.Delivered+total.Dropped != 196 || total.Delivered < 30 || int64(len(drops)) != total.Dropped {
				t.Fatalf("%+v with %d drops; want 196 packets, first delivered and then dropped", total, len(drops))
			}
			key, _ := b.FlowKey(0)
			for i, d := range drops {
				want := Drop{
					At: d.At, Port: tc.port, Reason: tc.reason, Kind: sim.KindUDP, Key: key, Flow: 0, Priority: 3,
					Seq: (total.Delivered + int64(i)) * 1024, Size: d.Size,
				}
				if d != want || d.At < at {
					t.Fatalf("drop %d = %+v; want %+v, not before %v", i, d, want, at)
				}
			}
			if got := b.r.DropTotals(); got != b.Counts.Drops || got[tc.reason] != total.Dropped {
				t.Errorf("totals %v; want the network's %v", got, b.Counts.Drops)
			}
		})
	}
}

func TestDropListIsBounded(t *testing.T) {
	o := All()
	o.MaxDrops = 7
	cfg := sim.DefaultConfig()
	cfg.LossyQueue = 10 * model.KB
	b := dumbbell(t, 3, cfg, o)
	for src := range model.NodeID(3) {
		f := udp(src, 3, 0, 500_000)
		f.Priority = 1
		b.add(f)
	}
	b.run(5 * time.Millisecond)
	totals := b.r.DropTotals()
	if totals != b.Counts.Drops || totals[sim.DropBuffer] < 100 {
		t.Errorf("totals %v; want the network's %v, with a hundred and more for the buffer", totals, b.Counts.Drops)
	}
	if got := len(b.r.Drops()); got != 7 || b.r.Unrecorded().Drops != totals[sim.DropBuffer]-7 {
		t.Errorf("%d drops kept, %d lost; want 7 and the rest of %d", got, b.r.Unrecorded().Drops, totals[sim.DropBuffer])
	}
}
