package translate

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/collect/postcard"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

func TestPathsAreGathered(t *testing.T) {
	tr, out := fixture(t, 4)
	tr.Put(0, []dta.Report{card("f", 2, 0, 30), card("f", 0, 0, 10), card("f", 0, 0, 10), card("f", 1, 0, 20)})
	out.want(t, "a full path", "path f: 10 20 30 ×2")
	tr.Put(0, []dta.Report{card("f", 0, 0, 1), card("f", 1, 2, 2)})
	out.want(t, "a path of the reported length", "path f: 1 2 - ×2")
	tr.Put(0, []dta.Report{card("f", 0, 0, 1), card("f", 0, 0, 7)})
	out.want(t, "another value for a hop", "path f: 1 - - ×2")
	wait := DefaultConfig().PathWait
	tr.Tick(model.Time(0).Add(wait))
	out.want(t, "Tick", "path f: 7 - - ×2")
	tr.Put(0, []dta.Report{card("f", 1, 0, 3)})
	tr.Drain(0)
	out.want(t, "Drain", "path f: - 3 - ×2")
	want := PostcardStats{Postcards: 9, Emitted: 8, Duplicate: 1, Complete: 2, Superseded: 1, Expired: 2}
	if st := tr.Stats().Postcards; st != want {
		t.Errorf("stats %+v; want %+v", st, want)
	}
}

// TestEvictedPathKeepsItsKey: the prototype writes the evicted row to the slot of
// the key that evicted it.
func TestEvictedPathKeepsItsKey(t *testing.T) {
	tr, out := fixture(t, 1)
	tr.Put(0, []dta.Report{card("old", 0, 0, 1), card("new", 0, 0, 2)})
	out.want(t, "a collision", "path old: 1 - - ×2")
	tr.Drain(0)
	out.want(t, "Drain", "path new: 2 - - ×2")
}

// TestCacheLosesNothing compares with a reference that never evicts: whatever the
// cache's size, each postcard leaves exactly once, under its own key and hop.
func TestCacheLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hops := rapid.IntRange(1, 6).Draw(t, "hops")
		c, err := newCache(1<<rapid.IntRange(0, 4).Draw(t, "rows"), hops, time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		var in, out []string
		emit := func(_ model.Time, p *Path) {
			for i, v := range p.Values {
				if p.Seen>>i&1 != 0 {
					out = append(out, fmt.Sprint(string(p.Key), i, " ", v))
				} else if v != 0 {
					t.Fatalf("hop %d has %d without being seen", i, v)
				}
			}
		}
		var now model.Time
		for i := range rapid.IntRange(0, 200).Draw(t, "postcards") {
			hop := uint8(rapid.IntRange(0, hops-1).Draw(t, "hop"))
			path := uint8(rapid.IntRange(0, hops+2).Draw(t, "path"))
			key := string(rune('a' + rapid.IntRange(0, 20).Draw(t, "key")))
			r := card(key, hop, path, uint32(i+1))
			c.add(now, &r, c.rowOf(r.Key), emit)
			in = append(in, fmt.Sprint(key, hop, " ", i+1))
			if rapid.IntRange(0, 20).Draw(t, "tick") == 0 {
				now = now.Add(time.Millisecond)
				c.emitExpired(now, emit)
			}
		}
		c.emitAll(now, emit)
		slices.Sort(in)
		slices.Sort(out)
		if !slices.Equal(in, out) {
			t.Fatalf("out %v; want %v", out, in)
		}
		if st := c.stats; st.Postcards != st.Emitted+st.Duplicate || c.filled != 0 {
			t.Fatalf("counts do not add up: %+v, %d filled", st, c.filled)
		}
	})
}

// TestRunsOfPostcardsEqualPostcards: runs and single reports emit the same paths
// in the same order, and a run is refused whole if one of its reports would be.
func TestRunsOfPostcardsEqualPostcards(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pc, err := postcard.NewScheme(postcard.Config{Layout: postcard.Sealed, Chunks: 64, Hops: 3, Bits: 32})
		if err != nil {
			t.Fatal(err)
		}
		cfg := DefaultConfig()
		cfg.Rows = 4
		var outs [2]recorder
		var trs [2]*Translator
		for i := range trs {
			if trs[i], err = New(cfg, &Plan{Postcards: pc}, &outs[i]); err != nil {
				t.Fatal(err)
			}
		}
		keyLen := rapid.SampledFrom([]int{1, 7, 8, 13, 16, 17, dta.MaxKey}).Draw(t, "key length")
		for range rapid.IntRange(1, 4).Draw(t, "runs") {
			var run []byte
			var reports []dta.Report
			served := true
			for range rapid.SampledFrom([]int{1, 2, 3, 5, 9, 70}).Draw(t, "reports") {
				key := bytes.Repeat([]byte{'k'}, keyLen)
				key[rapid.IntRange(0, keyLen-1).Draw(t, "where")] = byte(rapid.IntRange('a', 'c').Draw(t, "what"))
				r := card(string(key), uint8(rapid.IntRange(0, 2).Draw(t, "hop")), uint8(rapid.SampledFrom([]int{0, 3}).Draw(t, "path")), uint32(rapid.IntRange(0, 1).Draw(t, "value")))
				switch rapid.IntRange(0, 300).Draw(t, "fault") {
				case 0:
					r.Hop = 3
				case 1:
					r.Hop, r.Path = 2, 2
				case 2:
					r.Data = []byte{255, 255, 255, 255}
				}
				served = served && trs[0].Admit(&r) == dta.Stored
				run, reports = r.AppendTo(run), append(reports, r)
			}
			if got := trs[1].AdmitRun(&reports[0], run, len(reports)) == dta.Stored; got != served {
				t.Fatalf("a run is served: %v; want %v as its reports", got, served)
			}
			if served {
				trs[0].Put(0, reports)
				trs[1].PutRun(0, &reports[0], run, len(reports))
			}
		}
		for i := range trs {
			trs[i].Drain(0)
		}
		if got, want := outs[1].take(), outs[0].take(); !slices.Equal(got, want) {
			t.Fatalf("runs left\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if got, want := trs[1].Stats(), trs[0].Stats(); got != want {
			t.Fatalf("after runs %+v; want %+v", got, want)
		}
	})
}
