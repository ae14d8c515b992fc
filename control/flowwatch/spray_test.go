package flowwatch

import (
	"testing"

	"github.com/weft-telemetry/weft/analyze/load"
	"github.com/weft-telemetry/weft/inswitch/flowset"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/wire/roce"
)

// newSprayingLab is newLab with RDMA flows whose packets take every path.
func newSprayingLab(t *testing.T, seed uint64, by sim.LoadBalancing) *lab {
	sizing, err := flowset.Plan(400, 0.999, flowset.Single)
	check(t, err)
	cfg := sim.DefaultConfig()
	cfg.LoadBalancing, cfg.Selective = by, true
	return newLabOf(t, seed, cfg, traffic.Flow{Priority: 3}, &sizing, nil)
}

// A flow on several paths is no loop, no black hole, no wrong route and no loss, and its
// switches are in balance, whatever it sends.
func TestSprayedFlowsShowNothing(t *testing.T) {
	for _, by := range []sim.LoadBalancing{sim.Spray, sim.Adaptive} {
		for seed := range race.Less(uint64(3), 1) {
			l := newSprayingLab(t, seed, by)
			f := l.net.Fabric()
			check(t, l.net.AddFlows([]traffic.Flow{{Src: 0, Dst: 15, Stop: model.Time(80 * ms), Rate: race.Less(2*model.Gbps, 200*model.Mbps), Priority: 3}}))
			several := 0
			l.each = func(s *Slot) {
				for _, m := range s.Parts() {
					for i := range m.Flows() {
						if m.OnSeveralPaths(i) {
							several++
						}
					}
				}
				for _, im := range l.watch.TakeImbalances() {
					if im.Cause == load.Burst && im.Heavy[0].DstPort == roce.Port && im.Heavy[0].SrcPort < 2000 {
						t.Errorf("%v, seed %d: %s; want sprayed flows in balance", by, seed, im.Describe(f))
					}
				}
				for _, e := range s.Paths {
					t.Errorf("%v, seed %d: %s; want nothing found", by, seed, e.Describe(f))
				}
				for _, e := range s.Losses {
					t.Errorf("%v, seed %d: %s; want nothing lost", by, seed, e.Describe(f))
				}
			}
			l.run(race.Less(260*ms, 100*ms))
			if several < 100 {
				t.Errorf("%v, seed %d: flows are %d times on several paths; want most of the time", by, seed, several)
			}
		}
	}
}

// Lost packets of sprayed flows are counted exactly, over the whole path: no link is
// accused. Acknowledgements have one path, and their losses a link.
func TestLossesOfSprayedFlowsAreCounted(t *testing.T) {
	race.LeaveToPlainRun(t)
	for seed := range uint64(3) {
		l := newSprayingLab(t, seed, sim.Spray)
		bad := model.Port{Node: l.node("leaf0"), Port: l.net.Fabric().Node(l.node("leaf0")).PortsTo(l.node("spine0"))[0]}
		l.inject(50*ms, 100*ms, sim.Lossy{Port: bad, Share: 0.1})
		l.run(300 * ms)
		found, real := l.lost()
		var data, foundData uint64
		for key, n := range real {
			if key.DstPort == roce.Port && key.SrcPort < 2000 {
				data += n
			}
			if found[key] > n {
				t.Errorf("seed %d, %v: %d lost packets reported, %d were; want no more", seed, key, found[key], n)
			}
		}
		for key, n := range found {
			if real[key] == 0 {
				t.Errorf("seed %d, %v: %d lost packets reported; want none", seed, key, n)
			}
			if key.SrcPort < 2000 {
				foundData += n
			}
		}
		if data < 20 || foundData != data {
			t.Errorf("seed %d: %d lost packets of sprayed flows found; want %d, and 20 or more", seed, foundData, data)
		}
		for _, s := range l.slots {
			for _, e := range s.Losses {
				if e.WholePath == (e.From == bad) {
					t.Errorf("seed %d: %s; want the whole path of a sprayed flow, or the link from leaf0 to spine0", seed, e.Describe(l.net.Fabric()))
				}
			}
		}
	}
}
