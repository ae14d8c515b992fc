package control

import (
	"runtime"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/analyze/loss"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/control/flowreduce"
	"github.com/weft-telemetry/weft/control/flowwatch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// TestReferredFlowsAreStored: of a slot with too many flows, the smallest are stored
// if a finding or an incident refers to them, or if someone asked for them; the
// others are in the sums.
func TestReferredFlowsAreStored(t *testing.T) {
	c := evidenceBed(t)
	c.cfg.Reduction.Keep, c.cfg.Jobs = 5, []Job{{Name: "training", Hosts: []string{"h1", "h2"}}}
	var err error
	if c.reducer, err = flowreduce.New(c.cfg.Reduction, c.flowNames()); err != nil {
		t.Fatal(err)
	}
	addr := func(name string) model.Addr {
		id, ok := c.fabric.ByName(name)
		if !ok {
			t.Fatalf("no host %s", name)
		}
		return c.fabric.Node(id).IPv4
	}
	key := func(i int) model.FlowKey {
		return model.FlowKey{Src: addr("h1"), Dst: addr("h2"), SrcPort: uint16(i), Proto: model.UDP}
	}
	const flowCount = 20
	c.now = model.Time(time.Second)
	c.noteTraced(key(3))
	c.correlator.AddEvidence(incident.Evidence{
		At: c.now, From: c.now, Source: anomaly.Flowsets, Cause: anomaly.Loss, Confirmed: true,
		Location: c.portNamed(t, "tor2", "leaf2"), Flows: []model.FlowKey{key(2)},
	})
	slot := func() map[int]bool {
		c.batch.Reset()
		c.batch.Flows = append(c.batch.Flows, record.FlowSlot{}) // of another slot
		d := flows.Decoded{Switch: 1, Start: c.now, Length: 10 * time.Millisecond}
		for i := range flowCount {
			d.Records = append(d.Records, flows.Record{Key: key(i), Packets: uint64(i), Bytes: uint64(100 + i), Grade: flows.Exact})
		}
		m := paths.NewMap(int64(c.now)/int64(d.Length), d.Length)
		m.AddFlowset(&d)
		s := flowwatch.NewSlot(m.Slot, m.Length, m)
		s.Losses, s.Paths = []loss.Event{{Flow: key(0)}}, []paths.Finding{{Flows: []model.FlowKey{key(1)}}}
		c.flowRecords(s)
		stored := map[int]bool{}
		for _, r := range c.batch.Flows[1:] {
			stored[int(r.Flow.SrcPort)] = true
			if len(r.Path) != 1 || r.Path[0].Packets != uint64(r.Flow.SrcPort) {
				t.Errorf("flow %d is stored with path %v; want its own", r.Flow.SrcPort, r.Path)
			}
			if !r.Partial {
				t.Errorf("flow %d of a slot that is not complete does not say so", r.Flow.SrcPort)
			}
		}
		return stored
	}
	if got := slot(); len(got) != 5 || !got[0] || !got[1] || !got[2] || !got[3] || !got[flowCount-1] {
		t.Errorf("stored flows %v; want 0 (lost), 1 (finding), 2 (incident), 3 (traced) and the largest", got)
	}
	if got, want := c.reducer.Counts(), (flowreduce.Counts{Kept: 5, Reduced: flowCount - 5}); got != want {
		t.Errorf("counts %+v; want %+v", got, want)
	}
	c.now = c.now.Add(tracedFor)
	if got := slot(); got[3] || !got[2] {
		t.Errorf("stored flows %v a second later; want no longer 3, which was traced", got)
	}
	want := map[string]bool{flowreduce.All: true, flowreduce.From + "h1": true, flowreduce.To + "h2": true, flowreduce.OfJob + "training": true}
	for _, r := range c.batch.Counters {
		delete(want, r.Name)
	}
	if len(want) != 0 {
		t.Errorf("the sums of the first second are %+v; %v are missing", c.batch.Counters, want)
	}
}

// TestReducedSlotTakesItsMemory: what is held between two slots that are reduced is
// within the row of the memory table, which counts as much for a flow as decoding does.
func TestReducedSlotTakesItsMemory(t *testing.T) {
	c := evidenceBed(t)
	c.cfg.Reduction.Keep = 100
	var err error
	if c.reducer, err = flowreduce.New(c.cfg.Reduction, c.flowNames()); err != nil {
		t.Fatal(err)
	}
	const flowCount = 100_000
	var slots []*flowwatch.Slot
	for n := range 3 {
		// The worst case: every flow has hosts of its own, outside the fabric.
		d := flows.Decoded{Switch: 1, Start: model.Time(n) * model.Time(time.Second), Length: time.Second}
		for i := range flowCount {
			d.Records = append(d.Records, flows.Record{
				Key:   model.FlowKey{Src: model.Addr4(uint32(i)), Dst: model.Addr4(uint32(i + flowCount)), Proto: model.UDP},
				Bytes: uint64(i), Grade: flows.Exact,
			})
		}
		m := paths.NewMap(int64(n), time.Second)
		m.AddFlowset(&d)
		m.Sightings(0) // records are joined
		slots = append(slots, flowwatch.NewSlot(m.Slot, m.Length, m))
	}
	live := func() uint64 {
		c.batch = record.Batch{}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := live()
	for _, s := range slots {
		c.flowRecords(s)
	}
	if each := float64(live()-before) / flowCount; each > 320 || each < 50 {
		t.Errorf("%.0f bytes for each flow of a slot; want at most 320, and no fewer than its totals", each)
	}
	runtime.KeepAlive(c)
	runtime.KeepAlive(slots)
}
