package core

import (
	"testing"

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
