package flowreduce

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func key(i int) model.FlowKey {
	return model.FlowKey{Src: model.Addr4(1), Dst: model.Addr4(2), SrcPort: uint16(i), Proto: model.UDP}
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
		r, err := New(cfg, func(k *model.FlowKey) string { return fmt.Sprint(k.SrcPort % 2) })
		if err != nil {
			rt.Fatal(err)
		}
		twin := reference{cfg: cfg}
		var counters []record.Counter
		var seen, kept, late uint64
		bytes := map[string]uint64{}
		for n := range rapid.IntRange(1, 6).Draw(rt, "slots") {
			at := begin.Add(time.Duration(n) * 300 * time.Millisecond)
			var slot []record.FlowSlot
			must := map[model.FlowKey]bool{}
			for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(0, 30), 0, 25, rapid.ID).Draw(rt, "flows") {
				f := record.FlowSlot{
					Time: at, Flow: key(i), Src: fmt.Sprint("h", i%3), Packets: 1, Bytes: uint64(rapid.IntRange(0, 40).Draw(rt, "bytes")),
					Exact: rapid.IntRange(0, 9).Draw(rt, "exact") > 0, Path: []record.FlowHop{{Switch: "e1"}},
				}
				must[f.Flow] = rapid.IntRange(0, 9).Draw(rt, "must") == 0
				slot = append(slot, f)
			}
			seen += uint64(len(slot))
			all := slices.Clone(slot)
			want := twin.reduce(slices.Clone(slot), must)
			var got []record.FlowSlot
			got, counters = r.Reduce(slot, counters, func(f *record.FlowSlot) bool { return must[f.Flow] })
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
					bytes[From+f.Src] += f.Bytes
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
		_, counters = r.Reduce([]record.FlowSlot{{Time: begin.Add(time.Hour)}}, counters, func(*record.FlowSlot) bool { return false })
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

// TestSumsAreBounded: a second has a bounded number of counters, and nothing is lost.
func TestSumsAreBounded(t *testing.T) {
	r, err := New(Config{Keep: 1, Factor: 2}, func(*model.FlowKey) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	var slot []record.FlowSlot
	for i := range maxSums + 100 {
		slot = append(slot, record.FlowSlot{Time: begin, Flow: key(i), Src: fmt.Sprint("h", i), Dst: "d", Bytes: 1, Exact: true})
	}
	_, counters := r.Reduce(slot, nil, func(*record.FlowSlot) bool { return false })
	_, counters = r.Reduce([]record.FlowSlot{{Time: begin.Add(time.Minute)}}, counters, nil)
	if len(counters) > maxSums+1 {
		t.Errorf("%d counters; want at most %d", len(counters), maxSums+1)
	}
	of := map[string]uint64{}
	var from uint64
	for _, c := range counters {
		of[c.Name] = c.Bytes
		if len(c.Name) > len(From) && c.Name[:len(From)] == From {
			from += c.Bytes
		}
	}
	if n := uint64(maxSums + 99); of[All] != n || from+of[Further] != n {
		t.Errorf("all %d, by source %d and further %d; want %d in both", of[All], from, of[Further], n)
	}
}

// TestSmallSlotsStayAsTheyAre: nothing is reduced, marked or added up where a slot has
// no more flows than are kept, and nothing is allocated for it.
func TestSmallSlotsStayAsTheyAre(t *testing.T) {
	r, err := New(DefaultConfig(), func(*model.FlowKey) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	slot := make([]record.FlowSlot, 100)
	for i := range slot {
		slot[i] = record.FlowSlot{Time: begin, Flow: key(i)}
	}
	want := slices.Clone(slot)
	got, counters := r.Reduce(slot, nil, nil)
	if d := gocmp.Diff(want, got); d != "" || len(counters) != 0 {
		t.Errorf("%d counters, flows (- want, + got):\n%s", len(counters), d)
	}
	if n := testing.AllocsPerRun(100, func() { r.Reduce(slot, nil, nil) }); n != 0 {
		t.Errorf("Reduce of a small slot allocates %v times", n)
	}
}
