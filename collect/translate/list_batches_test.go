package translate

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

func TestAppendsAreBatched(t *testing.T) {
	tr, out := fixture(t, 4)
	tr.Put(0, []dta.Report{entry(0, "a0"), entry(1, "b0"), entry(0, "a1")})
	out.want(t, "Put")
	tr.Put(1, []dta.Report{entry(0, "a2"), entry(0, "a3")})
	out.want(t, "a third entry", "list 0 a0a1a2 false")
	wait := DefaultConfig().ListWait
	tr.Tick(model.Time(0).Add(wait))
	out.want(t, "Tick when the first has waited", "list 1 b0 false")
	tr.Tick(model.Time(1).Add(wait))
	out.want(t, "Tick when the second has waited", "list 0 a3 false")
	tr.Tick(model.Time(time.Hour))
	out.want(t, "Tick with nothing left")

	now := entry(1, "b2")
	now.Immediate = true
	tr.Put(0, []dta.Report{entry(1, "b1"), now})
	out.want(t, "an immediate entry", "list 1 b1b2 true")
	tr.Put(0, []dta.Report{entry(1, "b3")})
	tr.Drain(0)
	out.want(t, "Drain", "list 1 b3 false")
	if st := tr.Stats(); st.Appends != 8 || st.Batches != 5 {
		t.Errorf("stats %+v; want 8 appends in 5 batches", st)
	}
}

// TestRunsOfEntriesEqualEntries: runs and single reports make the same batches at
// the same times, for entries of all kinds.
func TestRunsOfEntriesEqualEntries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		layout, classes := list.Weft, []list.Class{
			{Lists: 2, Entry: 4, Capacity: 100}, {Lists: 1, Entry: 4, Capacity: 100, Sized: true}, {Lists: 1, Entry: 7, Capacity: 100},
		}
		if rapid.Bool().Draw(t, "prototype") {
			layout, classes = list.Prototype, []list.Class{{Lists: 1, Entry: 4, Capacity: 128}}
		}
		s, err := list.NewScheme(list.Config{Layout: layout, Batch: rapid.SampledFrom([]int{1, 4}).Draw(t, "batch"), Classes: classes})
		if err != nil {
			t.Fatal(err)
		}
		var outs [2]recorder
		var trs [2]*Translator
		for i := range trs {
			if trs[i], err = New(DefaultConfig(), &Plan{Lists: []*list.Scheme{s}}, &outs[i]); err != nil {
				t.Fatal(err)
			}
		}
		var now model.Time
		for range rapid.IntRange(1, 8).Draw(t, "runs") {
			now = now.Add(time.Duration(rapid.IntRange(0, 12).Draw(t, "pause")) * time.Millisecond)
			id := uint32(rapid.IntRange(0, int(s.Lists())-1).Draw(t, "list"))
			class, err := s.Class(id)
			if err != nil {
				t.Fatal(err)
			}
			size := rapid.IntRange(1, class.Entry).Draw(t, "size")
			if layout == list.Prototype {
				size = class.Entry
			}
			var run []byte
			var reports []dta.Report
			for range rapid.IntRange(1, 12).Draw(t, "reports") {
				r := entry(dta.ListID(id), string(rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, "data")))
				run, reports = r.AppendTo(run), append(reports, r)
			}
			trs[0].Put(now, reports)
			trs[1].PutRun(now, &reports[0], run, len(reports))
			for i := range trs {
				trs[i].Tick(now)
			}
		}
		for i := range trs {
			trs[i].Drain(now)
		}
		if got, want := outs[1].take(), outs[0].take(); !slices.Equal(got, want) {
			t.Fatalf("runs left\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if got, want := trs[1].Stats(), trs[0].Stats(); got != want {
			t.Fatalf("after runs %+v; want %+v", got, want)
		}
	})
}

func TestListsKeepOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := DefaultConfig()
		cfg.Rows, cfg.ListWait = 1, 5
		var classes []list.Class
		for i := range rapid.IntRange(1, 5).Draw(t, "lists") {
			classes = append(classes, list.Class{Lists: 1 + i, Entry: 1 + i, Capacity: 100})
		}
		batch := rapid.IntRange(1, 6).Draw(t, "batch")
		var p Plan // two memories of lists, numbered through
		for range 2 {
			s, err := list.NewScheme(list.Config{Layout: list.Weft, Batch: batch, Classes: classes})
			if err != nil {
				t.Fatal(err)
			}
			p.Lists = append(p.Lists, s)
		}
		out := &sheets{got: map[dta.ListID][]byte{}}
		tr, err := New(cfg, &p, out)
		if err != nil {
			t.Fatal(err)
		}
		half := int(p.Lists[0].Lists())
		want := map[dta.ListID][]byte{}
		var now model.Time
		for i := range rapid.IntRange(0, 100).Draw(t, "entries") {
			id := rapid.IntRange(0, 2*half-1).Draw(t, "list")
			class, err := p.Lists[0].Class(uint32(id % half))
			if err != nil {
				t.Fatal(err)
			}
			data := bytes.Repeat([]byte{byte(i)}, class.Entry)
			want[dta.ListID(id)] = append(want[dta.ListID(id)], data...)
			tr.Put(now, []dta.Report{{Primitive: dta.Append, List: dta.ListID(id), Data: data}})
			now += model.Time(rapid.IntRange(0, 3).Draw(t, "pause"))
			tr.Tick(now)
			for l := tr.lists.head; l >= 0; l = tr.lists.all[l].next {
				if age := now.Sub(tr.lists.all[l].since); age >= 5 {
					t.Fatalf("an entry waits since %d ns", age)
				}
			}
		}
		tr.Drain(now)
		for id := range want {
			if !bytes.Equal(out.got[id], want[id]) {
				t.Fatalf("list %d has %x; want %x", id, out.got[id], want[id])
			}
		}
	})
}

type sheets struct {
	recorder
	got map[dta.ListID][]byte
}

func (s *sheets) Append(l dta.ListID, e []byte, _ bool) { s.got[l] = append(s.got[l], e...) }
