package flowwatch

import (
	"runtime"
	"slices"
	"testing"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
)

// TestDecodedFlowTakesItsSize measures what a flow at a switch takes from its record to
// the maps of the slots that are kept: in a fabric where each flow passes five switches,
// and where each is at one switch, which is the most.
func TestDecodedFlowTakesItsSize(t *testing.T) {
	race.LeaveToPlainRun(t) // it changes sizes
	// With one more flow than half of its slots in each of eight partitions, a table has
	// just grown.
	const perSwitch = 3300
	s := newSteady(t, perSwitch)
	single := &steady{intent: s.intent, decoded: make([]flows.Decoded, len(s.decoded))}
	for i := range single.decoded {
		single.decoded[i] = flows.Decoded{Switch: s.decoded[i].Switch, Length: s.decoded[i].Length, MayContain: func(model.FlowKey) bool { return true }}
		for k := range perSwitch {
			r := s.decoded[i].Records[k%len(s.decoded[i].Records)]
			r.Key.SrcPort, r.Key.DstPort = uint16(k), uint16(i)
			single.decoded[i].Records = append(single.decoded[i].Records, r)
			single.hops++
		}
	}
	for _, fabric := range []struct {
		name  string
		slots *steady
		least float64 // share of the estimate that is used
	}{{"five switches", s, 0.5}, {"one switch", single, 0.85}} {
		s := fabric.slots
		before := liveHeap()
		a, err := newAnalyses(s.config(8))
		check(t, err)
		var records [][]flows.Record
		for n := range keptSlots + 1 {
			slot := s.slot(n)
			at := n % keptSlots
			a.reports[at].Reset(slot.Index, slot.Length)
			a.shuffled = make([]shuffle, len(slot.Decoded))
			records = records[:0]
			for i := range slot.Decoded {
				a.reports[at].Add(&slot.Decoded[i])
				a.shuffled[i].sort(&slot.Decoded[i], 64, len(a.parts))
				records = append(records, slices.Clip(slices.Clone(slot.Decoded[i].Records)))
			}
			for i, p := range a.parts {
				p.join(at, a.reports[at], slot.Decoded, a.shuffled, i)
				p.find(p.maps[at], a.ports)
			}
		}
		each := float64(liveHeap()-before) / float64(s.hops)
		if most := float64(flows.DecodedFlow); each > most || each < fabric.least*most {
			t.Errorf("flows at %s: %.0f bytes for each at a switch; want at most %.0f, and at least %.0f %% of it", fabric.name, each, most, 100*fabric.least)
		}
		runtime.KeepAlive(a)
		runtime.KeepAlive(records)
	}
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
