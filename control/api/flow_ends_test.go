package api

import (
	"encoding/json"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store/embedded"
)

// TestFilteredFlowsCoverTheirRange: with a filter on an address or port, the scan
// budget is spent on matching records only. Without one, the newest records of
// other flows use it up.
func TestFilteredFlowsCoverTheirRange(t *testing.T) {
	st, err := embedded.Open(filepath.Join(t.TempDir(), "weft.duckdb"), embedded.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	s, k := newServer(t, func(c *Config, d *Deps) { c.ScanBudget, d.Records = 100, st })
	now := k.Clock().Now
	const slots, others = 50, 40
	var b record.Batch
	for slot := range slots {
		for i := range others {
			b.Flows = append(b.Flows, record.FlowSlot{
				Time: now.Add(time.Duration(slot-slots) * 10 * time.Millisecond), Slot: 10 * time.Millisecond,
				Flow: model.FlowKey{
					Src: model.Addr4(0x0a000002 + uint32(i)), Dst: model.Addr4(0x0a000102),
					SrcPort: uint16(1000 + i), DstPort: 4791, Proto: model.UDP,
				},
				Packets: 1, Bytes: 1000,
			})
		}
	}
	if err := st.Append(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	for filter, covered := range map[string]bool{
		"ip.src == 10.0.0.5":                      true,
		"ip.dst == 10.0.1.2 && udp.srcport==1003": true,
		"flow.packets == 1 && ip.src==10.0.0.5":   true,
		"ip.src == 10.0.0.5/32 || tcp":            false,
		"udp.dstport == 4791":                     false, // all of them
	} {
		w := do(s.Handler(), "GET", Prefix+"/flows?last=10s&filter="+url.QueryEscape(filter), "")
		var p FlowPage
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
			t.Fatalf("%s: %v: %s", filter, err, w.Body)
		}
		all := len(p.Items) == 1 && p.Items[0].Slots == slots && p.Next == ""
		if all != covered || len(p.Items) == 0 {
			t.Errorf("flows of %q: %d, %d records read, next %q; want one of all slots: %v", filter, len(p.Items), p.Scanned,
				p.Next, covered)
		}
	}
}
