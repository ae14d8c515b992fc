package api

import (
	"cmp"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model/record"
)

// FuzzRequest: no path, query or body causes a server error or exceeds the scan
// budget.
func FuzzRequest(f *testing.F) {
	s, k := newServer(f)
	for _, c := range calls(k) {
		path, query, _ := strings.Cut(c.path, "?")
		f.Add(c.method, Prefix+path, query, c.body)
	}
	f.Add("GET", "/%2e%2e/%00", "a=%zz;&&", "\xff")
	f.Add("PUT", Prefix+"/clock", "", `{"pace":1e999}`)
	f.Add("POST", Prefix+"/probes", "", `{"kind":"link","link":{"node":"tor0","port":-1}}`)
	f.Add("POST", Prefix+"/marks", "", `{"host":"h0","duration_ms":1.5}`)
	f.Add("GET", Prefix+"/ports/heatmap", "from=2026-01-02T15:04:04.999999999Z&to=2026-01-02T15:04:05Z&steps=600", "")
	f.Fuzz(func(t *testing.T, method, path, query, body string) {
		r, err := http.NewRequest(method, "http://localhost/", strings.NewReader(body))
		if err != nil || !strings.HasPrefix(path, "/") || path == Prefix+"/events" {
			return
		}
		if r.URL.Path, err = url.PathUnescape(path); err != nil {
			r.URL.Path = path
		}
		r.URL.RawPath, r.URL.RawQuery = path, query
		r.Header.Set("Content-Type", "application/json")
		k.mu.Lock()
		k.queries = 0
		k.probes, k.marks, k.faults, k.counters = nil, nil, nil, k.counters[:1]
		clear(k.requests)
		k.mu.Unlock()
		s.access.Load().callers[0].diagnosisRequests.tokens = diagnosisRequestBurst
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Errorf("%s %s?%s %s = %d %s", method, path, query, body, w.Code, w.Body)
		}
		if w.Code >= 400 && method != "HEAD" && !json.Valid(w.Body.Bytes()) && strings.HasPrefix(path, Prefix) {
			t.Errorf("%s %s?%s %s = %d, and no problem: %s", method, path, query, body, w.Code, w.Body)
		}
		k.mu.Lock() // a verification goes on after the response
		queries := k.queries
		k.mu.Unlock()
		if queries > 30 {
			t.Errorf("%s %s?%s: %d queries", method, path, query, queries)
		}
	})
}

// TestPages: a list read page by page equals the filtered whole.
func TestPages(t *testing.T) {
	s, k := newServer(t)
	rapid.Check(t, func(rt *rapid.T) {
		s.cfg.ScanBudget = rapid.IntRange(1, 300).Draw(rt, "budget")
		limit := rapid.IntRange(1, 300).Draw(rt, "limit")
		k.passed = 0
		keep := rapid.SliceOfN(rapid.Bool(), len(k.batch.Traces), len(k.batch.Traces)).Draw(rt, "keep")
		var want []uint64
		for i := range k.batch.Traces {
			if keep[i] {
				want = append(want, k.batch.Traces[i].ID)
			}
		}
		var got []uint64
		in := Paging{Limit: limit}
		for pages := 0; ; pages++ {
			q, err := s.query(Range{}, in)
			if err != nil {
				rt.Fatal(err)
			}
			k.advance(time.Second)
			p, err := scanPage(t.Context(), s, k.Traces, q, func(r *record.Trace) (uint64, bool) { return r.ID, keep[r.ID-1] })
			if err != nil || len(p.Items) > limit || p.Scanned > s.cfg.ScanBudget || pages > len(keep) {
				rt.Fatalf("page %d: %d items, %d scanned, %v", pages, len(p.Items), p.Scanned, err)
			}
			got = append(got, p.Items...)
			if in.After = p.Next; p.Next == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			rt.Fatalf("pages of %d have %v; want %v", limit, got, want)
		}
	})
}

// TestFlowSums: the pages of flows have every flow once, in order, and add up to the
// records and the totals, while the clock advances.
func TestFlowSums(t *testing.T) {
	s, k := newServer(t)
	rapid.Check(t, func(rt *rapid.T) {
		s.cfg.ScanBudget = rapid.IntRange(1, 300).Draw(rt, "budget")
		k.passed = 0
		in := &FlowsQuery{
			Range: Range{Last: "120s"}, Paging: Paging{Limit: rapid.IntRange(1, 10).Draw(rt, "limit")}, Filter: "flow.lost > 0",
			Sort: rapid.SampledFrom([]string{"bytes", "packets", "lost", "newest"}).Draw(rt, "sort"),
		}
		type sum struct{ slots, packets, bytes, lost uint64 }
		got, want := map[string]sum{}, map[string]sum{}
		var order []float64
		var all sum
		for {
			p, err := s.listFlows(t.Context(), in)
			if err != nil {
				rt.Fatal(err)
			}
			if !p.CoveredFrom.Equal(epoch0.Add(-120*time.Second)) || !p.CoveredTo.Equal(epoch0) || len(p.Items) > in.Limit {
				rt.Fatalf("page of %d flows from %v to %v", len(p.Items), p.CoveredFrom, p.CoveredTo)
			}
			k.advance(time.Second)
			for _, f := range p.Items {
				if _, twice := got[f.Flow.String()]; twice {
					rt.Fatalf("flow %v is on two pages", f.Flow)
				}
				got[f.Flow.String()] = sum{uint64(f.Slots), f.Packets, f.Bytes, f.LostPackets}
				order = append(order, map[string]float64{
					"bytes": float64(f.Bytes), "packets": float64(f.Packets), "lost": float64(f.LostPackets), "newest": float64(f.Last.UnixNano()),
				}[in.Sort])
			}
			all = sum{p.Totals.Slots, p.Totals.Packets, p.Totals.Bytes, p.Totals.LostPackets}
			if in.After = p.Next; p.Next == "" {
				break
			}
		}
		var total sum
		for i := range k.batch.Flows {
			if r := &k.batch.Flows[i]; !r.Time.Before(epoch0.Add(-120 * time.Second)) {
				x := want[r.Flow.String()]
				want[r.Flow.String()] = sum{x.slots + 1, x.packets + r.Packets, x.bytes + r.Bytes, x.lost + 1}
				total = sum{total.slots + 1, total.packets + r.Packets, total.bytes + r.Bytes, total.lost + 1}
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) || all != total {
			rt.Fatalf("pages sum up to %v, %v; want %v, %v", got, all, want, total)
		}
		if !slices.IsSortedFunc(order, func(a, b float64) int { return cmp.Compare(b, a) }) {
			rt.Fatalf("flows by %s: %v", in.Sort, order)
		}
	})
}

// TestFlowAnswer compares one flow's response with its records, counted by hand.
func TestFlowAnswer(t *testing.T) {
	s, k := newServer(t)
	in := &flowInput{Range: Range{Last: "100s"}, Key: k.flow(3).String()}
	d, err := s.getFlow(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	// Every 7th record is of this flow: the 4th, 11th, …, of which 14 are in the
	// range; each has 10 packets and lost 1 after the first switch.
	if d.Slots != 14 || d.Packets != 140 || d.LostPackets != 14 || len(d.Hops) != 2 || d.Hops[0].Packets != 140 ||
		d.Hops[1].Packets != 126 || d.Hops[0].LostPackets != 14 || !d.Complete {
		t.Errorf("flow = %+v", d)
	}
	if d.Hops[0].Out == nil || d.Hops[0].QueueBytes == nil || len(d.Losses) != 14 || len(d.Traces) != 14 ||
		len(d.Series) != 14 || !d.Series[0].Time.Before(d.Series[1].Time) {
		t.Errorf("flow's hops and events = %+v", d)
	}
	if len(d.Diagnoses) != 0 {
		t.Errorf("diagnoses from outside of the range: %v", d.Diagnoses)
	}
	// A flow without records is not an error.
	in.Key = "tcp 9.9.9.9:1 > 8.8.8.8:2"
	none, err := s.getFlow(t.Context(), in)
	if err != nil || none.Flow.Flow.String() != in.Key || none.Slots != 0 || none.Packets != 0 ||
		len(none.Hops)+len(none.Series)+len(none.Traces) != 0 || !none.Complete || !none.First.Before(none.Last) {
		t.Errorf("flow without records = %+v, %v; want an empty answer", none, err)
	}
}

// TestHeatmapAnswer compares a heat map with its records, counted by hand.
func TestHeatmapAnswer(t *testing.T) {
	s, _ := newServer(t)
	m, err := s.heatmap(t.Context(), &HeatmapQuery{Range: Range{Last: "100s"}, Metric: "queue_bytes", Steps: 10, Top: 3})
	if err != nil {
		t.Fatal(err)
	}
	// Record i is i+1 seconds old, of port i%4+1, with a queue of 100·i: the maximum
	// is record 99, of port 4, in the first step, together with record 95.
	if len(m.Ports) != 3 || m.Ports[0].Port != 4 || m.Ports[1].Port != 3 || m.Max != 9900 || m.Complete ||
		*m.Values[0][0] != 9900 || *m.Values[0][9] != 700 {
		t.Errorf("heat map = %+v", m)
	}
	if m.OmittedPorts != 1 || !m.CoveredFrom.Equal(m.From) {
		t.Errorf("heat map omits %d ports and is covered from %v; want 1 port and %v", m.OmittedPorts, m.CoveredFrom, m.From)
	}
	s.cfg.ScanBudget = 1 // times 4 for samples
	cut, err := s.heatmap(t.Context(), &HeatmapQuery{Range: Range{Last: "9s"}, Metric: "queue_bytes", Steps: 10, Top: 100})
	if err != nil || cut.Complete || !cut.CoveredFrom.Equal(epoch0.Add(-4*time.Second)) {
		t.Errorf("heat map of the 4 newest samples is covered from %v, complete %t, %v; want %v", cut.CoveredFrom,
			cut.Complete, err, epoch0.Add(-4*time.Second))
	}
	s.cfg.ScanBudget = DefaultConfig().ScanBudget
	quiet, err := s.heatmap(t.Context(), &HeatmapQuery{Range: Range{
		From: epoch0.Add(-500 * time.Second),
		To:   epoch0.Add(-400 * time.Second),
	}, Steps: 10, Top: 3})
	if err != nil || len(quiet.Ports) != 0 || !quiet.Complete {
		t.Errorf("heat map of a time without records = %+v, %v", quiet, err)
	}
}

// recordedSteps records the steps of port queries.
type recordedSteps struct {
	Records
	steps []time.Duration
}

func (r *recordedSteps) Ports(ctx context.Context, q record.Query) (record.Page[record.PortSample], error) {
	r.steps = append(r.steps, q.Step)
	return r.Records.Ports(ctx, q)
}

// TestHeatmapSteps: steps finer than the rollups of the store are made of raw
// samples; otherwise a whole second would be in one column.
func TestHeatmapSteps(t *testing.T) {
	for last, want := range map[string]time.Duration{"9s": 0, "10s": time.Second, "100s": 10 * time.Second} {
		s, _ := newServer(t)
		asked := &recordedSteps{Records: s.deps.Records}
		s.deps.Records = asked
		m, err := s.heatmap(t.Context(), &HeatmapQuery{Range: Range{Last: last}, Metric: "queue_bytes", Steps: 10, Top: 3})
		if err != nil || asked.steps[0] != want || m.StepNs <= 0 {
			t.Errorf("heat map of %s in 10 steps queries steps of %v and shows %v, %v; want %v", last, asked.steps,
				time.Duration(m.StepNs), err, want)
		}
	}
}

// TestDrawings: every graph is drawn completely, as well-formed XML and as dot with
// balanced quotes.
func TestDrawings(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.StringMatching(`[a-z<>&"\\\n]{1,40}`)
		g := Graph{}
		for i := range rapid.IntRange(0, 6).Draw(rt, "ports") {
			g.Ports = append(g.Ports, GraphPort{
				ID:    fmt.Sprint("p", i, name.Draw(rt, "port")),
				Level: rapid.IntRange(-3, 1<<30).Draw(rt, "level"), Initial: i == 0 &&
					rapid.Bool().Draw(rt, "initial"), InCycle: rapid.Bool().Draw(rt, "cycle"),
			})
		}
		for i := range rapid.IntRange(0, 6).Draw(rt, "flows") {
			g.Flows = append(g.Flows, GraphFlow{
				ID:   fmt.Sprint("f", i, name.Draw(rt, "flow")),
				Role: rapid.SampledFrom([]string{"victim", "culprit", "other"}).Draw(rt, "role"),
			})
		}
		for range rapid.IntRange(0, 12).Draw(rt, "edges") {
			if len(g.Ports) == 0 {
				break
			}
			p, q := rapid.SampledFrom(g.Ports).Draw(rt, "from").ID, rapid.SampledFrom(g.Ports).Draw(rt, "to").ID
			g.Edges = append(g.Edges, GraphEdge{
				From: p, To: q, Kind: "port-port",
				Weight: rapid.Float64Range(-9, 9).Draw(rt, "weight"),
			})
		}
		svg := g.drawing().SVG()
		rects, lines := 0, 0
		for d := xml.NewDecoder(strings.NewReader(svg)); ; {
			tok, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				rt.Fatalf("%v in %s", err, svg)
			}
			if e, ok := tok.(xml.StartElement); ok {
				for _, a := range e.Attr {
					switch {
					case a.Name.Local == "class" && strings.HasPrefix(a.Value, "box"):
						rects++
					case a.Name.Local == "marker-end": // not of the legend
						lines++
					}
				}
			}
		}
		if rects != len(g.Ports)+len(g.Flows) || lines != len(g.Edges) {
			rt.Fatalf("%d boxes and %d lines of %+v", rects, lines, g)
		}
		dot := g.drawing().Dot()
		quotes := strings.Count(dot, `"`) - strings.Count(strings.ReplaceAll(dot, `\\`, ""), `\"`)
		if quotes%2 != 0 || strings.Count(dot, "->") < len(g.Edges) {
			rt.Fatalf("dot: %s", dot)
		}
	})
}
