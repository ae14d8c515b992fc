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

// TestFlowsCoverTheirRange: a list is of the whole range, whatever the filter and the
// scan budget are.
func TestFlowsCoverTheirRange(t *testing.T) {
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
	for filter, flows := range map[string]int{
		"":                   others,
		"ip.src == 10.0.0.5": 1,
		"ip.dst == 10.0.1.2 && udp.srcport==1003":  1,
		"flow.packets == 50 && ip.src==10.0.0.5":   1,
		"flow.packets == 1":                        0, // in a slot
		"ip.src == 10.0.0.5/32 || tcp":             1,
		"udp.dstport == 4791":                      others,
		"ip.src < 10.0.0.12 && flow.bytes == 50KB": 10,
	} {
		w := do(s.Handler(), "GET", Prefix+"/flows?last=10s&filter="+url.QueryEscape(filter), "")
		var p FlowPage
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
			t.Fatalf("%s: %v: %s", filter, err, w.Body)
		}
		if len(p.Items) != flows || p.Next != "" || *p.Totals.Flows != uint64(flows) || p.Totals.Slots != uint64(flows*slots) {
			t.Errorf("flows of %q: %d, totals %+v, next %q; want %d of %d slots", filter, len(p.Items), p.Totals, p.Next, flows, slots)
		}
		for _, f := range p.Items {
			if f.Slots != slots || f.Packets != slots || !f.First.Equal(now.Add(-slots*10*time.Millisecond)) || !f.Last.Equal(now) {
				t.Errorf("flow of %q = %+v; want all %d slots", filter, f, slots)
			}
		}
		if c := p.Coverage; c.Complete || len(c.Missing) != 1 || c.Missing[0].Reason != "not-stored" || !c.Missing[0].To.Equal(*c.KeptFrom) {
			t.Errorf("coverage of %q = %+v; want that the start of the range is not stored", filter, c)
		}
	}
}

// TestReducedFlowsAreMissing: what is only in the counters of reduced flows is said.
func TestReducedFlowsAreMissing(t *testing.T) {
	s, k := newServer(t)
	for i := range 3 {
		k.batch.Counters = append(k.batch.Counters, record.Counter{
			Time: epoch0.Add(-time.Duration(i+1) * time.Second), Period: time.Second, Name: "reduced flows: all", Packets: 100, Bytes: 100_000, Flows: float64(7 + i),
		})
	}
	p, err := s.listFlows(t.Context(), &FlowsQuery{Range: Range{Last: "2s"}, Paging: Paging{Limit: 10}})
	if err != nil {
		t.Fatal(err)
	}
	want := CoverageGap{
		Reason: "reduced", From: epoch0.Add(-2 * time.Second), To: epoch0, Flows: 8, Packets: 200, Bytes: 200_000,
	}
	if c := p.Coverage; c.Complete || len(c.Missing) != 1 || c.Missing[0] != want || c.KeptFrom == nil {
		t.Errorf("coverage = %+v; want %+v", c, want)
	}
	p, err = s.listFlows(t.Context(), &FlowsQuery{Range: Range{From: epoch0.Add(-100 * time.Second), To: epoch0.Add(-90 * time.Second)}, Paging: Paging{Limit: 10}})
	if err != nil || !p.Coverage.Complete {
		t.Errorf("coverage of seconds without reduced flows = %+v, %v; want it complete", p.Coverage, err)
	}
}

// TestFlowGroups: ports and racks have the names of the fabric.
func TestFlowGroups(t *testing.T) {
	s, k := newServer(t)
	sw := k.fabric.Node(k.fabric.Switches()[0])
	for by, want := range map[string]string{"rack": racks(k.fabric)["h0"], "dst_rack": racks(k.fabric)["h5"], "host": "h0", "class": "udp", "job": ""} {
		g, err := s.flowGroups(t.Context(), &FlowGroupsQuery{Range: Range{Last: "100s"}, GroupBy: by, Steps: 10})
		if err != nil || len(g.Items) != 1 || g.Items[0].Name != want || g.Items[0].Packets != 1000 || g.Items[0].Flows != 7 ||
			g.Items[0].LostPackets != 100 || len(g.Items[0].Series) != 10 || g.Series[0] != 100_000 {
			t.Errorf("groups by %s = %+v, %v; want one, %q", by, g, err, want)
		}
	}
	g, err := s.flowGroups(t.Context(), &FlowGroupsQuery{Range: Range{Last: "100s"}, GroupBy: "port", Sort: "lost"})
	if err != nil || len(g.Items) == 0 || g.Items[0].Port == nil || g.Items[0].Port.Node != sw.Name || g.Items[0].LostPackets != 100 {
		t.Errorf("groups by port = %+v, %v; want a port of %s", g, err, sw.Name)
	}
}
