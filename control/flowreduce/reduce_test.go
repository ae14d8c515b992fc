package flowreduce

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// slotMaps makes the maps of a slot, each flow with one sighting at one switch.
func slotMaps(index int64, parts int, slot []record.FlowSlot) []*paths.Map {
	maps := make([]*paths.Map, parts)
	for i := range maps {
		d := flows.Decoded{Switch: 1, Start: model.Time(index * int64(slotLength)), Length: slotLength}
		for _, f := range slot {
			if int(f.Flow.SrcPort)%parts != i {
				continue
			}
			grade := flows.Exact
			if !f.Exact {
				grade = flows.Estimated
			}
			d.Records = append(d.Records, flows.Record{Key: f.Flow, Packets: f.Packets, Bytes: f.Bytes, Grade: grade})
		}
		maps[i] = paths.NewMap(index, slotLength)
		maps[i].AddFlowset(&d)
	}
	return maps
}

const slotLength = 300 * time.Millisecond

// testNames are those of hosts by their last byte; addresses from 200 on are outside.
func testNames(job func(*model.FlowKey) string) Names {
	return Names{
		Host: func(a model.Addr) string {
			if a.V4() >= 200 {
				return ""
			}
			return fmt.Sprint("h", a.V4())
		},
		Switch: func(id model.NodeID) string { return fmt.Sprint("e", id) },
		Job:    job,
	}
}

func noJob(*model.FlowKey) string { return "" }

// reduce has a reducer reduce a slot and returns the records that are stored.
func reduce(r *Reducer, n int64, parts int, slot []record.FlowSlot, must map[model.FlowKey]bool, counters []record.Counter) ([]record.FlowSlot, []record.Counter) {
	maps := slotMaps(n, parts, slot)
	var list []Flow
	for _, m := range maps {
		for i := range m.Flows() {
			if must[*m.Key(i)] {
				list = append(list, Flow{m, i})
			}
		}
	}
	choice, counters := r.Reduce(begin.Add(time.Duration(n)*slotLength), maps, list, counters)
	if choice.All {
		for _, m := range maps {
			for i := range m.Flows() {
				choice.Kept = append(choice.Kept, Flow{m, i})
			}
		}
	}
	var got []record.FlowSlot
	for _, f := range append(slices.Clone(choice.Kept), choice.Ended...) {
		t := f.Map.Totals(f.Number)
		got = append(got, record.FlowSlot{
			Time: begin.Add(time.Duration(f.Map.Slot) * slotLength), Flow: *f.Map.Key(f.Number),
			Packets: t.Packets, Bytes: t.Bytes, Exact: t.Exact, Partial: !choice.All,
		})
	}
	return got, counters
}

var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func key(i int) model.FlowKey {
	return model.FlowKey{Src: model.Addr4(uint32(i % 3)), Dst: model.Addr4(200), SrcPort: uint16(i), Proto: model.UDP}
}

// reference is the rule as docs/store.md states it, with maps and sorting.
type reference struct {
	cfg  Config
	last map[model.FlowKey]record.FlowSlot
	kept map[model.FlowKey]bool
}

func (r *reference) reduce(slot []record.FlowSlot, must map[model.FlowKey]bool) (kept []record.FlowSlot) {
	now := map[model.FlowKey]record.FlowSlot{}
	for _, f := range slot {
		now[f.Flow] = f
	}
	if len(slot) <= r.cfg.Keep {
		r.last = nil
		return slot
	}
	bySize := slices.SortedFunc(slices.Values(slot), largerFirst)
	chosen := map[model.FlowKey]bool{}
	for _, f := range slot {
		if must[f.Flow] {
			chosen[f.Flow] = true
		}
	}
	left := r.cfg.Keep - len(chosen)
	half := left / 2
	for _, f := range bySize {
		before, there := r.last[f.Flow]
		changed := r.last != nil && (!there || before.Bytes != f.Bytes &&
			max(before.Bytes, f.Bytes)/r.cfg.Factor >= min(before.Bytes, f.Bytes))
		if half > 0 && !chosen[f.Flow] && (changed || !f.Exact) {
			chosen[f.Flow] = true
			half--
			left--
		}
	}
	for _, f := range bySize {
		if left > 0 && !chosen[f.Flow] {
			chosen[f.Flow] = true
			left--
		}
	}
	for _, f := range slot {
		if chosen[f.Flow] {
			kept = append(kept, f)
		}
	}
	var ended []record.FlowSlot
	for k, f := range r.last {
		if _, there := now[k]; !there && !r.kept[k] {
			ended = append(ended, f)
		}
	}
	slices.SortFunc(ended, largerFirst)
	kept = append(kept, ended[:min(len(ended), r.cfg.Keep/4)]...)
	for i := range kept {
		kept[i].Partial = true
	}
	r.last, r.kept = now, chosen
	return kept
}

func largerFirst(a, b record.FlowSlot) int {
	return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), a.Flow.Compare(b.Flow))
}

func sorted(list []record.FlowSlot) []record.FlowSlot {
	return slices.SortedFunc(slices.Values(list), func(a, b record.FlowSlot) int {
		return cmp.Or(a.Time.Compare(b.Time), a.Flow.Compare(b.Flow))
	})
}

// TestReduceEqualsReference compares slots of few flows with the rule; every flow that
// is not kept is in the sums, and every flow that must be kept is kept.
func TestReduceEqualsReference(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := Config{Keep: rapid.IntRange(1, 12).Draw(rt, "keep"), Factor: 4}
		parts := rapid.IntRange(1, 4).Draw(rt, "parts")
		r, err := New(cfg, testNames(func(k *model.FlowKey) string { return fmt.Sprint(k.SrcPort % 2) }))
		if err != nil {
			rt.Fatal(err)
		}
		twin := reference{cfg: cfg}
		var counters []record.Counter
		var seen, kept, late uint64
		bytes := map[string]uint64{}
		for n := range rapid.IntRange(1, 6).Draw(rt, "slots") {
			at := begin.Add(time.Duration(n) * slotLength)
			var slot []record.FlowSlot
			must := map[model.FlowKey]bool{}
			for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(0, 30), 0, 25, rapid.ID).Draw(rt, "flows") {
				f := record.FlowSlot{
					Time: at, Flow: key(i), Packets: 1, Bytes: uint64(rapid.IntRange(0, 40).Draw(rt, "bytes")),
					Exact: rapid.IntRange(0, 9).Draw(rt, "exact") > 0,
				}
				must[f.Flow] = rapid.IntRange(0, 9).Draw(rt, "must") == 0
				slot = append(slot, f)
			}
			seen += uint64(len(slot))
			all := slices.Clone(slot)
			want := twin.reduce(slices.Clone(slot), must)
			var got []record.FlowSlot
			got, counters = reduce(r, int64(n), parts, slot, must, counters)
			if d := gocmp.Diff(sorted(want), sorted(got)); d != "" {
				rt.Fatalf("slot %d of %d flows (- want, + got):\n%s", n, len(all), d)
			}
			now := map[model.FlowKey]bool{}
			for _, f := range got {
				if !f.Time.Equal(at) {
					late++
					continue
				}
				kept++
				now[f.Flow] = true
			}
			for _, f := range all {
				if must[f.Flow] && !now[f.Flow] {
					rt.Fatalf("%v must be kept and is not", f.Flow)
				}
				if !now[f.Flow] {
					bytes[All] += f.Bytes
					bytes[fmt.Sprint(From, "h", f.Flow.SrcPort%3)] += f.Bytes
					bytes[To+"outside"] += f.Bytes
					bytes[OfJob+fmt.Sprint(f.Flow.SrcPort%2)] += f.Bytes
					bytes[OnPath+"e1"] += f.Bytes
				}
			}
		}
		if c := r.Counts(); c.Kept != kept || c.Kept+c.Reduced != seen {
			rt.Fatalf("%+v of %d flows; want %d kept, and all of them", c, seen, kept)
		}
		// The sums of the last second follow when it has ended.
		_, counters = reduce(r, int64(time.Hour/slotLength), parts, []record.FlowSlot{{Flow: key(1)}}, nil, counters)
		got := map[string]uint64{}
		for _, c := range counters {
			if c.Period != time.Second || !c.Time.Equal(c.Time.Truncate(time.Second)) {
				rt.Fatalf("%+v is not of a second", c)
			}
			got[c.Name] += c.Bytes
		}
		for name, n := range bytes {
			if got[name] != n {
				rt.Fatalf("%q has %d bytes; want %d", name, got[name], n)
			}
		}
	})
}

// TestSumsAreBounded: a second has a bounded number of counters, nothing is lost, and
// the number of parts changes nothing.
func TestSumsAreBounded(t *testing.T) {
	var before []record.Counter
	for _, parts := range []int{1, 3} {
		names := testNames(noJob)
		names.Host = func(a model.Addr) string { return fmt.Sprint("h", a.V4()) }
		r, err := New(Config{Keep: 1, Factor: 2}, names)
		if err != nil {
			t.Fatal(err)
		}
		// The first map has the flows with the first places in every case, as in a slot
		// whose records are shared out.
		maps := make([]*paths.Map, parts)
		decoded := flows.Decoded{Switch: 1, Length: slotLength}
		hashes := make([]uint64, maxSums+100)
		shares := make([]paths.Records, parts)
		for i := range hashes {
			k := model.FlowKey{Src: model.Addr4(uint32(i) * 7919 % 10007), Dst: model.Addr4(1), SrcPort: uint16(i), Proto: model.UDP}
			decoded.Records = append(decoded.Records, flows.Record{Key: k, Bytes: 1, Grade: flows.Exact})
			hashes[i] = paths.Hash(&k)
			p := &shares[i*i%parts]
			p.Keys, p.Hashes, p.Places = append(p.Keys, k), append(p.Hashes, hashes[i]), append(p.Places, uint32(i))
			p.Seen = append(p.Seen, paths.MakeSighting(decoded.Switch, &decoded.Records[i]))
		}
		reports := paths.NewReports(0, slotLength)
		reports.Add(&decoded)
		for i := range maps {
			maps[i] = paths.NewPart(reports, &paths.Workspace{})
			maps[i].AddRecords(&decoded, &shares[i], 0)
			maps[i].Find(&decoded.Records[0].Key, hashes[0]) // records are joined
		}
		_, counters := r.Reduce(begin, maps, nil, nil)
		_, counters = reduce(r, 1000, parts, []record.FlowSlot{{Flow: key(1)}}, nil, counters)
		if len(counters) > maxSums+1 {
			t.Errorf("%d counters; want at most %d", len(counters), maxSums+1)
		}
		var all, others, further uint64
		for _, c := range counters {
			switch c.Name {
			case All:
				all = c.Bytes
			case Further:
				further = c.Bytes
				fallthrough
			default:
				others += c.Bytes
			}
		}
		// Each flow is added to its source, its destination and its path.
		if n := uint64(len(hashes) - 1); all != n || others != 3*n || further == 0 {
			t.Errorf("%d bytes in all, %d in others, of these %d further; want %d, %d and some", all, others, further, n, 3*n)
		}
		if d := gocmp.Diff(before, counters); parts > 1 && d != "" {
			t.Errorf("%d parts change the counters (- 1 part, + %d):\n%s", parts, parts, d)
		}
		before = counters
	}
}

// TestSmallSlotsStayAsTheyAre: nothing is reduced or added up where a slot has no more
// flows than are kept, and nothing is allocated for it.
func TestSmallSlotsStayAsTheyAre(t *testing.T) {
	r, err := New(DefaultConfig(), testNames(noJob))
	if err != nil {
		t.Fatal(err)
	}
	slot := make([]record.FlowSlot, 100)
	for i := range slot {
		slot[i] = record.FlowSlot{Time: begin, Flow: key(i)}
	}
	maps := slotMaps(0, 2, slot)
	choice, counters := r.Reduce(begin, maps, nil, nil)
	if !choice.All || len(choice.Kept)+len(choice.Ended)+len(counters) != 0 {
		t.Errorf("%+v, %d counters; want all flows, and none", choice, len(counters))
	}
	if n := testing.AllocsPerRun(100, func() { r.Reduce(begin, maps, nil, nil) }); n != 0 {
		t.Errorf("Reduce of a small slot allocates %v times", n)
	}
}

// TestLargeSlotsAllocateNothing: slot after slot is reduced in the same memory.
func TestLargeSlotsAllocateNothing(t *testing.T) {
	r, err := New(Config{Keep: 100, Factor: 4}, Names{
		Host: func(model.Addr) string { return "h" }, Switch: func(model.NodeID) string { return "e" }, Job: noJob,
	})
	if err != nil {
		t.Fatal(err)
	}
	slot := make([]record.FlowSlot, 3000)
	for i := range slot {
		slot[i] = record.FlowSlot{Flow: key(i), Bytes: uint64(i), Exact: true}
	}
	slots := [][]*paths.Map{slotMaps(0, 2, slot), slotMaps(1, 2, slot), slotMaps(2, 2, slot)}
	n := 0
	next := func() { r.Reduce(begin, slots[n%3], nil, nil); n++ }
	for range 4 {
		next()
	}
	if n := testing.AllocsPerRun(20, next); n != 0 {
		t.Errorf("Reduce of a large slot allocates %v times", n)
	}
	if c := r.Counts(); c.Kept != uint64(n*100) || c.Reduced != uint64(n*2900) {
		t.Errorf("%d slots of 3000 flows: %+v; want 100 of each kept", n, c)
	}
}
