package translate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/wire/dta"
)

// TestClaimSlowFlowsAreReportedInTransit is the standing query of section 7:
// flow and path, where the latencies of the hops sum up to more than T.
func TestClaimSlowFlowsAreReportedInTransit(t *testing.T) {
	const hops, bound = 3, 1000
	cfg := DefaultConfig()
	// The low 16 bits are the latency, the high 16 the switch.
	cfg.Queries = []Query{{Bits: 16, Above: bound, List: 2}}
	out := &recorder{}
	tr, err := New(cfg, plan(t, list.Class{Lists: 2, Entry: 4, Capacity: 16}, list.Class{Lists: 1, Entry: MatchSize(hops), Capacity: 16}), out)
	if err != nil {
		t.Fatal(err)
	}
	matches := map[string]uint64{}
	truth := map[string]uint64{}
	for i := range 200 {
		key := fmt.Sprintf("flow %d", i)
		sum := uint64(0)
		path := uint8(1 + i%hops)
		for hop := range path {
			latency := uint32(i * int(hop+1) % 700)
			sum += uint64(latency)
			tr.Put(0, []dta.Report{card(key, hop, path, uint32(hop+1)<<16|latency)})
		}
		if sum > bound {
			truth[key] = sum
		}
	}
	tr.Put(0, []dta.Report{card("half", 0, 0, 1<<16|5000)}) // incomplete: no sum
	tr.Drain(0)
	for _, line := range out.take() {
		body, ok := strings.CutPrefix(line, "list 2 ")
		if !ok {
			continue
		}
		m, err := ParseMatch([]byte(strings.TrimSuffix(body, " true")))
		if err != nil {
			t.Fatal(err)
		}
		for hop, v := range m.Path {
			if v>>16 != uint32(hop+1) {
				t.Errorf("%s has switch %d at hop %d", m.Key, v>>16, hop)
			}
		}
		matches[string(m.Key)] = m.Sum
	}
	if len(truth) == 0 || fmt.Sprint(matches) != fmt.Sprint(truth) {
		t.Errorf("reported %v; want %v", matches, truth)
	}
}
