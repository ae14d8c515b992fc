package sim

import (
	"testing"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/traffic"
)

// TestShortPacedFlows: flows of less than a packet, and of little more than
// one, have an ideal time as others do.
func TestShortPacedFlows(t *testing.T) {
	n := yard(t, nil)
	var list []traffic.Flow
	for i, kind := range []traffic.Transport{traffic.RDMA, traffic.TCP, traffic.UDP} {
		for j, bytes := range []model.Bytes{1, 60, 999, 1001, 5000} {
			list = append(list, traffic.Flow{Src: 0, Dst: 4, Bytes: bytes, Rate: model.Gbps, Priority: 3, Transport: kind, Start: model.Time((5*i + j) * 100_000)})
		}
	}
	if err := n.AddFlows(list); err != nil {
		t.Fatal(err)
	}
	n.Run(10_000_000_000)
	if n.Finished != len(list) {
		t.Errorf("%d of %d flows finished", n.Finished, len(list))
	}
	for _, r := range n.Records() {
		_, spec := n.FlowKey(r.ID)
		early := spec.Transport != traffic.UDP && r.Finish-r.Start < r.Ideal*99/100 // UDP's end is when all is sent
		if r.Ideal <= 0 || early {
			t.Errorf("flow %d of %d bytes took %v, ideal %v", r.ID, r.Sent, (r.Finish - r.Start).Duration(), r.Ideal.Duration())
		}
	}
}
