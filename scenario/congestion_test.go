package scenario

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/congestion"
)

// Every congestion control of the table has an example, sends fewer pauses than
// none, and its flows carry its name.
func TestCongestionControlsFromFiles(t *testing.T) {
	race.LeaveToPlainRun(t)
	free, err := Read("../examples/congestion-dcqcn.yaml")
	if err != nil {
		t.Fatal(err)
	}
	free.Sim.Congestion = nil
	most := len(runScenario(t, free).Run.Pauses)
	for _, a := range congestion.Algorithms() {
		if a.Name == congestion.None {
			continue
		}
		s, err := Read("../examples/congestion-" + a.Name + ".yaml")
		if err != nil {
			t.Errorf("an example for each congestion control: %v", err)
			continue
		}
		r := runScenario(t, s)
		if n := len(r.Run.Pauses); n >= most {
			t.Errorf("%s: %d pauses; want fewer than %d, those without congestion control", a.Name, n, most)
		}
		for _, f := range r.Run.Flows {
			if f.Transport != a.Name || !f.Finished {
				t.Errorf("%s: flow %s > %s has transport %s, finished %v", a.Name, f.Src, f.Dst, f.Transport, f.Finished)
			}
		}
	}
}

// Constants of a file reach the simulator, and what an algorithm needs is set
// where the file does not say.
func TestCongestionConstants(t *testing.T) {
	h, ti, d, sw := congestion.DefaultHPCC(), congestion.DefaultTIMELY(), congestion.DefaultDCTCP(), congestion.DefaultSwift()
	h.Target, h.Stages, h.AI, h.MinRate, h.Fast, h.PerHop, h.Sampled, h.Multi =
		0.9, 3, 10*model.Mbps, model.Gbps, false, false, true, 2
	ti.Weight, ti.Beta, ti.Low, ti.High, ti.MinRTT, ti.AI, ti.HAI, ti.MinRate =
		0.5, 0.4, 10*time.Microsecond, 90*time.Microsecond, 5*time.Microsecond, model.Mbps, 2*model.Mbps, 3*model.Mbps
	d.Gain, d.AI, d.MinRate = 0.5, model.Mbps, 2*model.Mbps
	sw.Target, sw.PerHop, sw.AI, sw.Beta, sw.MaxCut = 9*time.Microsecond, 2*time.Microsecond, 0.5, 0.4, 0.3
	sw.FlowRange, sw.MinFlow, sw.MaxFlow, sw.MinWindow = 50*time.Microsecond, 0.2, 50, 0.01
	for text, want := range map[string]congestion.Params{
		"hpcc": congestion.DefaultHPCC(), "timely": congestion.DefaultTIMELY(), "dctcp": congestion.DefaultDCTCP(), "swift": congestion.DefaultSwift(),
		"{algorithm: swift, target: 9us, per-hop: 2us, ai: 0.5, beta: 0.4, max-cut: 0.3, flow-range: 50us, min-flow: 0.2, " +
			"max-flow: 50, min-window: 0.01}": sw,
		"DCQCN": congestion.PaperDCQCN(), "{algorithm: dcqcn, preset: hpcc}": congestion.HPCCSimDCQCN(),
		"{algorithm: hpcc, target-utilization: 0.9, stages: 3, ai: 10Mb/s, min-rate: 1Gb/s, fast-react: off, " +
			"multi-rate: off, sampled: on, int-multi: 2}": h,
		"{algorithm: timely, weight: 0.5, beta: 0.4, t-low: 10us, t-high: 90us, min-rtt: 5us, ai: 1Mb/s, " +
			"hai: 2Mb/s, min-rate: 3Mb/s}": ti,
		"{algorithm: dctcp, gain: 0.5, ai: 1Mb/s, min-rate: 2Mb/s}": d,
	} {
		s := mustParse(t, ring+"fabric: {congestion-control: "+text+"}\n")
		if diff := cmp.Diff(want, s.Sim.Congestion); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
		traits, plain := want.Traits(), sim.DefaultConfig()
		if s.Sim.Window != (traits.INTMulti > 0) || (s.Sim.CNPInterval == plain.CNPInterval) == traits.EveryMark {
			t.Errorf("%s: window %v, CNP interval %v; want what %+v needs", text, s.Sim.Window, s.Sim.CNPInterval, traits)
		}
	}
}
