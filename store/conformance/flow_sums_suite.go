package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/analyze/filter/flowfields"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// someJobs own hosts by name, and addresses.
var someJobs = []record.Job{
	{Name: "training", Hosts: []string{"h1", "é", "o'hara\"; --"}},
	{Name: "o'job", Owns: func(a model.Addr) bool { return a.Is4() }},
}

var flowSchema = flowfields.Schema(flowfields.Names{
	Job: func(s *record.FlowSum) string {
		for i := range someJobs {
			if j := &someJobs[i]; j.Has(s.Src, s.Flow.Src) && j.Has(s.Dst, s.Flow.Dst) {
				return j.Name
			}
		}
		return ""
	},
})

// flowTests are tests of every field.
var flowTests = []string{
	"ip", "ipv6", "tcp", "udp", "ip.src == 10.0.0.2", "ip.src == 10.0.0.0/16", "ip.dst != 10.0.1.0/24", "ip.addr != 10.0.0.2",
	"ip.src < 10.0.1.0", "ip.dst >= 10.0.1.2", "ip.addr in {10.0.0.1..10.0.0.9, 10.3.0.0/16}", "ipv6.src == 2001:db8::1",
	"ipv6.addr == ::/0", "ip.proto == tcp", "ipv6.nxt != udp", "tcp.port == 80", "tcp.dstport > 80", "tcp.srcport in {1, 40000..40001}",
	"flow.packets > 1000", "flow.packets == 9223372036854775807", "flow.bytes <= 1MB", "flow.bytes > 9223372036854775806B", "flow.lost > 0", "flow.lost == 0", "flow.lost in {1..100000}",
	"flow.lost_share > 0", "flow.lost_share >= 0.5", "flow.lost_share < 100%", "flow.rate > 1Mb/s", "flow.rate == 0b/s", "flow.duration > 1s", "flow.duration < -1ns", "flow.slots > 1", "flow.exact", "!flow.exact", "flow.exact == false",
	"flow.hops > 2", "flow.hops == 0", "flow.paths > 1", "flow.src == h1", "flow.src != h1", `flow.dst == "o'hara\"; --"`, "flow.host contains 1", "flow.host != H1", "flow.src", "flow.dst in {e1, a1}",
	"flow.job", "flow.job == training", "flow.job != training", "flow.job contains job", "!flow.job",
	"hop.switch", "hop.switch == e1", "hop.switch != e1", "hop.switch contains e", "hop.switch in {a1, é}", "!(hop.switch == e2)", "hop.switch == nowhere",
}

var flowFilters = rapid.Custom(func(t *rapid.T) string {
	test := rapid.SampledFrom(flowTests)
	switch rapid.IntRange(0, 4).Draw(t, "filter") {
	case 0:
		return ""
	case 1:
		return test.Draw(t, "test")
	case 2:
		return test.Draw(t, "a") + " && " + test.Draw(t, "b")
	case 3:
		return test.Draw(t, "a") + " || " + test.Draw(t, "b")
	}
	return fmt.Sprintf("%s && !(%s || %s)", test.Draw(t, "a"), test.Draw(t, "b"), test.Draw(t, "c"))
})

func parsed(t *rapid.T, text string) record.FlowFilter {
	f, err := flowSchema.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return record.FlowFilter{Text: f.String(), Where: f.Condition(), Match: f.Match, Jobs: someJobs}
}

// testFlowSums compares lists of flows and groups with the reference.
func testFlowSums(t *testing.T, open Open) {
	rapid.Check(t, func(rt *rapid.T) {
		s := open(t, nil)
		defer closed(t, s)
		reference := &Reference{}
		for range rapid.IntRange(1, 4).Draw(rt, "batches") {
			b := &record.Batch{
				Flows:  rapid.SliceOfN(flowSlots, 0, 30).Draw(rt, "flows"),
				Losses: rapid.SliceOfN(losses, 0, 12).Draw(rt, "losses"),
			}
			spread(reference, b)
			mustAppend(t, s, b)
			mustAppend(t, reference, b)
		}
		for range 4 {
			compareSums(rt, s, reference, sumQuery(rt), nil)
			compareGroups(rt, s, reference)
		}
	})
}

// testFlowSumsOfSeconds compares lists of many records in a few seconds, with ranges that
// begin and end within them, while records arrive.
func testFlowSumsOfSeconds(t *testing.T, open Open) {
	within := rapid.Custom(func(t *rapid.T) time.Time {
		return base.Add(time.Duration(rapid.IntRange(0, 4000).Draw(t, "ms")) * time.Millisecond)
	})
	rapid.Check(t, func(rt *rapid.T) {
		s := open(t, nil)
		defer closed(t, s)
		reference := &Reference{}
		draw := func() *record.Batch {
			b := &record.Batch{
				Flows:  rapid.SliceOfN(flowSlots, 1, 60).Draw(rt, "flows"),
				Losses: rapid.SliceOfN(losses, 0, 12).Draw(rt, "losses"),
			}
			for i := range b.Flows {
				b.Flows[i].Time = within.Draw(rt, "time")
			}
			for i := range b.Losses {
				b.Losses[i].Time = within.Draw(rt, "time")
			}
			spread(reference, b)
			return b
		}
		for range rapid.IntRange(1, 3).Draw(rt, "batches") {
			b := draw()
			mustAppend(t, s, b)
			mustAppend(t, reference, b)
		}
		for range 3 {
			q := sumQuery(rt)
			q.From, q.To = within.Draw(rt, "from"), within.Draw(rt, "to")
			// What arrives while the pages are read is on none of them.
			b := draw()
			compareSums(rt, s, reference, q, b)
			mustAppend(t, reference, b)
		}
	})
}

// spread gives the records of a flow different times, so that one is the newest.
func spread(r *Reference, b *record.Batch) {
	seen := map[string]bool{}
	for _, f := range r.flows {
		seen[fmt.Sprint(f.Flow, f.Time)] = true
	}
	for i := range b.Flows {
		f := &b.Flows[i]
		for seen[fmt.Sprint(f.Flow, f.Time)] {
			f.Time = f.Time.Add(time.Millisecond)
		}
		seen[fmt.Sprint(f.Flow, f.Time)] = true
	}
}

func sumQuery(t *rapid.T) record.FlowSumQuery {
	from := queries(t, true, false, false, false, nil)
	return record.FlowSumQuery{
		From: from.From, To: from.To, Node: from.Node, Filter: parsed(t, flowFilters.Draw(t, "filter")),
		Sort: rapid.SampledFrom([]record.FlowSort{
			record.ByBytes, record.ByPackets, record.ByLost, record.ByLostShare, record.ByRate, record.ByDuration, record.ByNewest,
		}).Draw(t, "sort"),
	}
}

// compareSums compares the pages of a list with the reference. It appends a batch, if
// there is one, after the first page.
func compareSums(t *rapid.T, s Store, reference *Reference, q record.FlowSumQuery, late *record.Batch) {
	want, err := reference.FlowSums(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	q.Limit = rapid.SampledFrom([]int{0, 1, 2, 3, 10}).Draw(t, "limit")
	var got []record.FlowSum
	for pages := 0; ; pages++ {
		page, err := s.FlowSums(context.Background(), q)
		if err != nil {
			t.Fatalf("flow sums of %+v %q: %v", q, q.Filter.Text, err)
		}
		if late != nil && pages == 0 {
			if err := s.Append(context.Background(), late); err != nil {
				t.Fatal(err)
			}
		}
		if late != nil { // they are of the whole store
			page.KeptFrom, page.KeptTo = want.KeptFrom, want.KeptTo
		}
		if !page.Totals.FlowsKnown {
			page.Totals.Flows, page.Totals.FlowsKnown = want.Totals.Flows, want.Totals.FlowsKnown
		}
		page.Items, got = nil, append(got, page.Items...)
		if d := cmp.Diff(record.FlowSums{Totals: want.Totals, Partial: want.Partial, KeptFrom: want.KeptFrom, KeptTo: want.KeptTo}, page,
			cmpopts.EquateEmpty(), cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Next" }, cmp.Ignore())); d != "" {
			t.Fatalf("totals of %q by %s (- want, + got):\n%s", q.Filter.Text, q.Sort, d)
		}
		if q.After = page.Next; page.Next == "" {
			break
		}
	}
	// The order of equal sums is the store's own.
	order := flowOrders[q.Sort]
	if !slices.IsSortedFunc(got, func(a, b record.FlowSum) int { return order(&b, &a) }) {
		t.Fatalf("flows of %q are not in the order of %s: %+v", q.Filter.Text, q.Sort, got)
	}
	byName := func(a, b record.FlowSum) int { return strings.Compare(flowName(&a), flowName(&b)) }
	slices.SortFunc(got, byName)
	slices.SortFunc(want.Items, byName)
	for _, list := range [][]record.FlowSum{got, want.Items} {
		for i := range list {
			slices.Sort(list[i].Switches)
			list[i].Path = nil // the newest, but for late packets
		}
	}
	if d := cmp.Diff(want.Items, got, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("flows of %q by %s (- want, + got):\n%s", q.Filter.Text, q.Sort, d)
	}
}

func flowName(s *record.FlowSum) string { return fmt.Sprintf("%v %s %s", s.Flow, s.Src, s.Dst) }

func compareGroups(t *rapid.T, s Store, reference *Reference) {
	from := times.Draw(t, "from")
	q := record.FlowGroupQuery{
		From: from, To: from.Add(time.Duration(rapid.IntRange(1, 900_000).Draw(t, "ms")) * time.Millisecond),
		Filter: parsed(t, flowFilters.Draw(t, "filter")), Sort: rapid.SampledFrom([]record.FlowSort{record.ByBytes, record.ByPackets, record.ByLost}).Draw(t, "sort"),
		GroupBy: rapid.SampledFrom([]record.FlowGrouping{
			record.GroupByHost, record.GroupByDstHost, record.GroupByJob, record.GroupByLink, record.GroupByPath, record.GroupByClass,
		}).Draw(t, "group by"),
		Limit: rapid.SampledFrom([]int{1, 3, 100}).Draw(t, "limit"),
	}
	if rapid.IntRange(0, 2).Draw(t, "node") == 0 {
		q.Node = names.Draw(t, "node")
	}
	if q.GroupBy == record.GroupByHost && rapid.Bool().Draw(t, "merge") {
		q.Merge = map[string]string{"h1": "r1", "H1": "r1", "e1": "o'r2"}
	}
	if rapid.Bool().Draw(t, "series") {
		q.Step = q.To.Sub(q.From)/7 + 1
	}
	want, err := reference.FlowGroups(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.FlowGroups(context.Background(), q)
	if err != nil {
		t.Fatalf("groups of %+v: %v", q, err)
	}
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("groups of %q by %s, %s from %v to %v (- want, + got):\n%s", q.Filter.Text, q.GroupBy, q.Sort, q.From, q.To, d)
	}
}
