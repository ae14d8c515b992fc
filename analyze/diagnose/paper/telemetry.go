package paper

import (
	"slices"

	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// Epochs is how many epochs a switch of the paper keeps, the current one included.
const Epochs = 2

// Telemetry returns what the paper's switches would have reported of the same
// snapshots: port, flow and port-pair counters of the last Epochs epochs. Times
// within an epoch, states, pauses and backlogs are not among them.
func Telemetry(e *provenance.Evidence) *provenance.Evidence {
	out := &provenance.Evidence{Event: e.Event, Pending: e.Pending}
	for _, r := range e.Reports {
		first := r.Number(r.Snapshot) - (Epochs - 1)
		older := func(n uint32) bool { return int32(n-first) < 0 }
		p := &provenance.Report{
			Header: r.Header, Bytes: r.Bytes, Arrived: r.Arrived, Missing: r.Missing,
			PortEpochs: slices.DeleteFunc(slices.Clone(r.PortEpochs), func(x epoch.PortEpoch) bool { return older(x.Epoch) }),
			Flows:      slices.DeleteFunc(slices.Clone(r.Flows), func(x epoch.Flow) bool { return older(x.Epoch) }),
			Meters:     slices.DeleteFunc(slices.Clone(r.Meters), func(x epoch.Meter) bool { return older(x.Epoch) }),
		}
		for i := range p.PortEpochs {
			p.PortEpochs[i].PauseFrames = 0
		}
		for i := range p.Flows {
			p.Flows[i].First, p.Flows[i].Last = 0, 0
		}
		out.Reports = append(out.Reports, p)
	}
	return out
}
