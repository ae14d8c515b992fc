package scenario

import (
	"cmp"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

// idealLength estimates how long flows take: the longest chain of flows that
// wait for each other, and the host with the most to send, each at its link's
// rate. Check has accepted the flows or will: those in cycles count nothing.
func idealLength(flows []traffic.Flow, f *topo.Fabric) time.Duration {
	busy := make(map[model.NodeID]time.Duration)
	took := func(fl *traffic.Flow) time.Duration {
		if fl.IsComputation() {
			return fl.Compute
		}
		var rate model.Rate
		for _, p := range f.Node(fl.Src).Ports {
			rate += p.Rate
		}
		if rate == 0 {
			return 0
		}
		return time.Duration(float64(fl.Bytes) * 8 / float64(rate) * 1e9)
	}
	waits := make([]int, len(flows))
	followers := make([][]int, len(flows))
	var ready []int
	for i := range flows {
		if waits[i] = len(flows[i].After); waits[i] == 0 {
			ready = append(ready, i)
		}
		for _, a := range flows[i].After {
			if a >= 0 && a < len(flows) {
				followers[a] = append(followers[a], i)
			}
		}
	}
	end := make([]time.Duration, len(flows)) // of the flow; before it has run: the latest of those it waits for
	longest := time.Duration(0)
	for n := 0; n < len(ready); n++ {
		i := ready[n]
		length := took(&flows[i])
		busy[flows[i].Src] += length
		end[i] = max(end[i]+flows[i].Delay, time.Duration(flows[i].Start)) + length
		longest = max(longest, end[i])
		for _, next := range followers[i] {
			end[next] = max(end[next], end[i])
			if waits[next]--; waits[next] == 0 {
				ready = append(ready, next)
			}
		}
	}
	for _, d := range busy {
		longest = max(longest, d)
	}
	return cmp.Or(longest, time.Microsecond)
}
