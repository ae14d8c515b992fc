package flowradar

import (
	"testing"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/repro/claim"
)

// Every switch has the same number of flows, each flow is on the path that routes
// send it on, and all differ.
func TestLoadIsEven(t *testing.T) {
	for _, k := range []int{4, 8} {
		l, err := newLoad(k, 5000, claim.Rand(1, 1))
		if err != nil {
			t.Fatal(err)
		}
		if len(l.switches) != 5*k*k/4 {
			t.Errorf("k=%d has %d switches; want %d", k, len(l.switches), 5*k*k/4)
		}
		for s, flows := range l.at {
			if n := len(flows); n > 5010 || n < 4970 {
				t.Errorf("k=%d: switch %d has %d flows; want 4970 to 5010", k, s, n)
			}
		}
		seen := map[model.FlowKey]bool{}
		for _, f := range l.flows {
			if seen[f.key] {
				t.Fatalf("k=%d: flow %v is duplicated", k, f.key)
			}
			seen[f.key] = true
			for i := range hops - 1 {
				out, ok := l.routes.NextHop(l.switches[f.path[i]], f.key)
				peer := l.routes.Fabric().Node(l.switches[f.path[i]]).Port(out).Peer.Node
				if !ok || peer != l.switches[f.path[i+1]] {
					t.Fatalf("k=%d: flow %v goes to %d after switch %d of its path; want %d", k, f.key, peer, i, l.switches[f.path[i+1]])
				}
			}
		}
	}
}
