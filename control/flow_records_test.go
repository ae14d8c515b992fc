package control

import (
	"runtime"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
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
	if c.reducer, err = flowreduce.New(c.cfg.Reduction, c.jobOf); err != nil {
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
	const flows = 20
	c.now = model.Time(time.Second)
	c.noteTraced(key(3))
	c.correlator.AddEvidence(incident.Evidence{
		At: c.now, From: c.now, Source: anomaly.Flowsets, Cause: anomaly.Loss, Confirmed: true,
		Location: c.portNamed(t, "tor2", "leaf2"), Flows: []model.FlowKey{key(2)},
	})
	s := &flowwatch.Slot{Losses: []loss.Event{{Flow: key(0)}}, Paths: []paths.Finding{{Flows: []model.FlowKey{key(1)}}}}
	slot := func() map[int]bool {
		c.batch.Reset()
		c.batch.Flows = append(c.batch.Flows, record.FlowSlot{}) // of another slot
		var list []record.FlowSlot
		hops := make([]record.FlowHop, flows)
		for i := range flows {
			hops[i].Packets = uint64(i)
			list = append(list, record.FlowSlot{
				Time: c.wallTime(c.now), Flow: key(i), Src: "h1", Dst: "h2", Bytes: uint64(100 + i), Exact: true, Path: hops[i : i+1],
			})
		}
		c.storeFlows(s, list)
		clear(hops) // their memory is used again
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
	if got := slot(); len(got) != 5 || !got[0] || !got[1] || !got[2] || !got[3] || !got[flows-1] {
		t.Errorf("stored flows %v; want 0 (lost), 1 (finding), 2 (incident), 3 (traced) and the largest", got)
	}
	if got, want := c.reducer.Counts(), (flowreduce.Counts{Kept: 5, Reduced: flows - 5}); got != want {
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

// TestRecordsOfASlotTakeTheirMemory: what is held between two slots that are reduced
// is within the row of the memory table, which allows 580 bytes for a flow at a switch.
func TestRecordsOfASlotTakeTheirMemory(t *testing.T) {
	c := evidenceBed(t)
	c.cfg.Reduction.Keep = 100
	var err error
	if c.reducer, err = flowreduce.New(c.cfg.Reduction, c.jobOf); err != nil {
		t.Fatal(err)
	}
	const flows = 100_000
	live := func() uint64 {
		c.batch = record.Batch{}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := live()
	for n := range 3 {
		m := &c.slotRecords
		m.hops, m.last = m.last[:0], m.hops
		m.list = m.list[:0]
		for i := range flows {
			m.hops = append(m.hops, record.FlowHop{Switch: "tor0", Packets: 1})
			m.list = append(m.list, record.FlowSlot{
				Time: c.wallTime(model.Time(n)), Flow: model.FlowKey{Src: model.Addr4(uint32(i)), Proto: model.UDP},
				Src: "h0", Dst: "h1", Bytes: uint64(i), Path: m.hops[i : i+1 : i+1],
			})
		}
		c.storeFlows(&flowwatch.Slot{}, m.list)
	}
	if each := float64(live()-before) / flows; each > 580 || each < 100 {
		t.Errorf("%.0f bytes for each flow of a slot; want at most 580, and no fewer than its record", each)
	}
	runtime.KeepAlive(c)
}
