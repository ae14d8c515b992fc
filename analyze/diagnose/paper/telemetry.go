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
			x := &p.PortEpochs[i]
			x.PauseFrames = 0
			x.Depth, x.PausedDepth = wholeMean(x.Depth, x.Packets-x.Paused), wholeMean(x.PausedDepth, x.Paused)
		}
		for i := range p.Flows {
			x := &p.Flows[i]
			x.First, x.Last = 0, 0
			x.Depth, x.PausedDepth = wholeMean(x.Depth, x.Packets-x.Paused), wholeMean(x.PausedDepth, x.Paused)
		}
		out.Reports = append(out.Reports, p)
	}
	return out
}

// wholeMean returns a sum of depths whose mean is rounded down to whole packets,
// as the authors' analyzer does: a queue of less than a packet is no contention.
func wholeMean(sum uint64, packets uint32) uint64 {
	if packets == 0 {
		return 0
	}
	return sum / uint64(packets) * uint64(packets)
}
