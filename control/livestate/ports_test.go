package livestate

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/keyed"
)

// rig is a memory of a plan, its writer and its reader.
type rig struct {
	*Memory
	tr  *translate.Translator
	mem *translate.Memory
}

func fatTree(t testing.TB, k int) *topo.Fabric {
	t.Helper()
	f, err := topo.FatTree(k, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// tb is what testing.T and rapid.T have in common.
type tb interface {
	rapid.TB
	Cleanup(func())
}

func newRig(t tb, f *topo.Fabric, sizes Sizes, change func(*Plan)) *rig {
	t.Helper()
	plan, err := PlanFor(f, sizes)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&plan)
	}
	r := &rig{mem: &translate.Memory{}}
	if err := plan.Open(r.mem); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, one := range r.mem.Regions() {
			_ = one.Close()
		}
	})
	out, err := translate.NewLocalWriter(r.mem, 0, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.tr, err = translate.New(translate.DefaultConfig(), out.Plan, out); err != nil {
		t.Fatal(err)
	}
	if r.Memory, err = New(f, time.Unix(0, 0), r.mem); err != nil {
		t.Fatal(err)
	}
	return r
}

// put stores reports, which must have memory.
func (r *rig) put(t rapid.TB, now model.Time, reports ...dta.Report) {
	t.Helper()
	for i := range reports {
		if v := r.tr.Admit(&reports[i]); v != dta.Stored {
			t.Fatalf("Admit(%+v) = %v; want it stored", reports[i], v)
		}
	}
	r.tr.Put(now, reports)
}

func allPorts(f *topo.Fabric) (list []model.Port) {
	for _, id := range f.Switches() {
		for i := range f.Node(id).Ports {
			list = append(list, model.Port{Node: id, Port: f.Node(id).Ports[i].ID})
		}
	}
	return list
}

func writeState(p model.Port, s keyed.PortState) dta.Report {
	return dta.Report{Primitive: dta.KeyWrite, Redundancy: keyed.Copies, Key: keyed.PortKey{Port: p}.AppendTo(nil), Data: s.AppendTo(nil)}
}

// TestStateIsTheNewestOrNone compares memory with a map, in tables from ample ones to
// one that holds a tenth of the ports: a state may be missing, and is never another's
// or an older one.
func TestStateIsTheNewestOrNone(t *testing.T) {
	f := fatTree(t, 4)
	ports := allPorts(f)
	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.SampledFrom([]uint64{8, 80, 5000}).Draw(t, "slots")
		r := newRig(t, f, Sizes{}, func(p *Plan) { p.Ports.Slots = slots })
		want := map[model.Port]keyed.PortState{}
		for i := range rapid.IntRange(0, 300).Draw(t, "writes") {
			p := rapid.SampledFrom(ports).Draw(t, "port")
			want[p] = keyed.PortState{Time: model.Time(i), Queue: model.Bytes(rapid.IntRange(0, 1<<20).Draw(t, "queue"))}
			r.put(t, 0, writeState(p, want[p]))
		}
		found := 0
		for _, p := range ports {
			got, ok, err := r.PortState(p)
			if err != nil {
				t.Fatal(err)
			}
			if written, any := want[p]; ok && (!any || got != written) {
				t.Fatalf("state of %v is %+v; want %+v, or none", p, got, written)
			}
			if ok {
				found++
			}
		}
		if slots == 5000 && found != len(want) {
			t.Fatalf("%d states found of %d, in an ample memory", found, len(want))
		}
	})
}

// TestPlanHoldsEveryPort: in the memory that a fabric gets, all states are found when
// all switches have written all of them.
func TestPlanHoldsEveryPort(t *testing.T) {
	for _, k := range []int{4, 8, 16} {
		f := fatTree(t, k)
		r := newRig(t, f, Sizes{}, nil)
		ports := allPorts(f)
		for i, p := range ports {
			r.put(t, 0, writeState(p, keyed.PortState{Time: model.Time(i)}))
		}
		missing := 0
		for i, p := range ports {
			s, ok, err := r.PortState(p)
			if err != nil || ok && s.Time != model.Time(i) {
				t.Fatalf("state of %v is of time %d, %v; want %d", p, s.Time, err, i)
			}
			if !ok {
				missing++
			}
		}
		if missing > len(ports)/1000 {
			t.Errorf("k=%d: %d of %d states are not found; want at most one in a thousand", k, missing, len(ports))
		}
	}
}

func TestSizesOutOfRange(t *testing.T) {
	if _, err := PlanFor(fatTree(t, 4), Sizes{Ports: 1000}); err == nil {
		t.Error("PlanFor with 1000 bytes = nil; want an error")
	}
}

func TestReadAllocatesNothing(t *testing.T) {
	f := fatTree(t, 4)
	r := newRig(t, f, Sizes{}, nil)
	p := allPorts(f)[5]
	r.put(t, 0, writeState(p, keyed.PortState{Time: 1}))
	if n := testing.AllocsPerRun(100, func() {
		if _, ok, err := r.PortState(p); !ok || err != nil {
			t.Fatal("no state")
		}
	}); n > 1 { // region.Guard's function
		t.Errorf("PortState allocates %v times; want at most 1", n)
	}
}
