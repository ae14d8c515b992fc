package core

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
)

// TestInboxReadsEveryList writes to all lists of a plan as a translator does,
// and laps one of them.
func TestInboxReadsEveryList(t *testing.T) {
	fabric, err := topo.LeafSpine(3, 2, 1, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	plan := control.DefaultListPlan(fabric)
	rings, err := list.Open("", plan.Memory(64))
	if err != nil {
		t.Fatal(err)
	}
	defer rings.Region().Close()
	mem := &translate.Memory{Lists: []*list.Table{rings}}
	local, err := translate.NewLocalWriter(mem, 0, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := translate.New(translate.DefaultConfig(), local.Plan, local)
	if err != nil {
		t.Fatal(err)
	}
	in, err := NewInbox(mem)
	if err != nil {
		t.Fatal(err)
	}
	if want := uint32(5 + 4); rings.Lists() != want {
		t.Fatalf("%d lists, want %d", rings.Lists(), want)
	}
	put := func(id dta.ListID, n int) {
		for range n {
			tr.Put(0, []dta.Report{{Primitive: dta.Append, List: id, Data: []byte{byte(id), 1, 2}}})
		}
		tr.Drain(0)
	}
	for id := range dta.ListID(9) {
		put(id, int(id)+1)
	}
	got := map[dta.ListID]int{}
	take := func(id dta.ListID, data []byte) {
		if len(data) != 3 || data[0] != byte(id) {
			t.Errorf("list %d has %v", id, data)
		}
		got[id]++
	}
	n, err := in.Poll(take)
	if err != nil || n != 45 {
		t.Fatalf("%d entries, %v; want 45", n, err)
	}
	for id := range dta.ListID(9) {
		if got[id] != int(id)+1 {
			t.Errorf("list %d gave %d entries, want %d", id, got[id], id+1)
		}
	}
	if n, err := in.Poll(take); n != 0 || err != nil {
		t.Errorf("%d entries once more, %v; want none", n, err)
	}
	put(0, 3000)
	if n, err = in.Poll(take); err != nil || uint64(n)+in.Lost() != 3000 || in.Lost() == 0 {
		t.Errorf("%d entries read and %d lost, %v; want 3000 in all, and some lost", n, in.Lost(), err)
	}
}

// TestInboxEqualsAskingEveryList compares an inbox with cursors that ask each list
// in every step, over appends, overwrites and resets.
func TestInboxEqualsAskingEveryList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := list.Config{Layout: list.Weft, Batch: 2, Classes: []list.Class{
			{Lists: rapid.IntRange(1, 9).Draw(t, "sized"), Entry: 5, Capacity: 8, Sized: true},
			{Lists: rapid.IntRange(1, 9).Draw(t, "plain"), Entry: 3, Capacity: 300},
		}}
		rings, err := list.Open("", cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer rings.Region().Close()
		w := rings.Writer(0)
		in, err := NewInbox(&translate.Memory{Lists: []*list.Table{rings}})
		if err != nil {
			t.Fatal(err)
		}
		cursors := make([]list.Cursor, rings.Lists())
		noted := make([]uint64, rings.Lists())
		for i := range cursors {
			cursors[i].List = uint32(i)
		}
		type entry struct {
			list dta.ListID
			data string
		}
		for step := range rapid.IntRange(1, 20).Draw(t, "steps") {
			if rapid.IntRange(0, 7).Draw(t, "reset") == 0 {
				rings.Region().Reset()
			}
			for range rapid.IntRange(0, 4).Draw(t, "lists that change") {
				id := rapid.Uint32Range(0, rings.Lists()-1).Draw(t, "list")
				for n := range rapid.OneOf(rapid.IntRange(1, 3), rapid.IntRange(6, 600)).Draw(t, "entries") {
					one, err := rings.AppendEntry(nil, id, []byte{byte(step), byte(n), byte(id)})
					if err == nil {
						err = w.Append(id, one)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			var want, got []entry
			for i := range cursors {
				class, _ := rings.Class(uint32(i))
				raw, err := rings.Read(nil, &cursors[i], class.Capacity)
				if err != nil {
					t.Fatal(err)
				}
				for data := range class.Entries(raw) {
					want = append(want, entry{dta.ListID(i), string(data)})
				}
			}
			n, err := in.Poll(func(id dta.ListID, data []byte) { got = append(got, entry{id, string(data)}) })
			if err != nil || n != len(got) || !slices.Equal(got, want) {
				t.Fatalf("step %d: Poll = %d entries %v, %v; want %v", step, n, got, err, want)
			}
			lost := uint64(0)
			for i := range cursors {
				lost += cursors[i].Lost
			}
			if rapid.Bool().Draw(t, "take") {
				in.TakeOverwritten(func(id dta.ListID, n uint64) { noted[id] += n })
				for i := range cursors {
					if noted[i] != cursors[i].Lost {
						t.Fatalf("step %d: %d entries of list %d noted as overwritten; want %d", step, noted[i], i, cursors[i].Lost)
					}
				}
			}
			if in.Lost() != lost {
				t.Fatalf("step %d: %d entries lost; want %d", step, in.Lost(), lost)
			}
		}
	})
}

// TestIdlePollAllocatesNothing, of as many lists as a fat-tree of k=32 has.
func TestIdlePollAllocatesNothing(t *testing.T) {
	rings, err := list.Open("", list.DefaultConfig(1284, 32))
	if err != nil {
		t.Fatal(err)
	}
	defer rings.Region().Close()
	in, err := NewInbox(&translate.Memory{Lists: []*list.Table{rings}})
	if err != nil {
		t.Fatal(err)
	}
	w, one, read := rings.Writer(0), make([]byte, 4), 0
	take := func(dta.ListID, []byte) { read++ }
	if n := testing.AllocsPerRun(100, func() {
		_ = w.Append(7, one)
		_, _ = in.Poll(take)
	}); n > 1 || read != 101 {
		t.Errorf("Poll allocates %v times and read %d entries; want at most 1, of a list that changed, and 101", n, read)
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = in.Poll(take) }); n != 0 {
		t.Errorf("Poll of idle lists allocates %v times", n)
	}
}

// BenchmarkPollIdle is a step of an inbox in which nothing has arrived.
func BenchmarkPollIdle(b *testing.B) {
	for _, lists := range []int{24, 324, 1284} {
		b.Run(fmt.Sprintf("lists=%d", lists), func(b *testing.B) {
			rings, err := list.Open("", list.DefaultConfig(lists, 32))
			if err != nil {
				b.Fatal(err)
			}
			defer rings.Region().Close()
			in, err := NewInbox(&translate.Memory{Lists: []*list.Table{rings}})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				_, _ = in.Poll(func(dta.ListID, []byte) {})
			}
		})
	}
}
