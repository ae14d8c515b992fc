package flowradar

import (
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/model"
)

// Reports match the oldest drops first; one without an earlier drop is in
// excess, and drops that are never reported count as late.
func TestLossesAreMatchedWithDrops(t *testing.T) {
	ms := func(n int64) model.Time { return model.Time(n * int64(time.Millisecond)) }
	f := lossFound{drops: 4}
	open := []model.Time{ms(1), ms(2), ms(15), ms(31)}
	open = f.match(open, 2, ms(20))
	open = f.match(open, 2, ms(30)) // of which one is not lost before 31 ms
	if want := []float64{19, 18, 15}; !slices.Equal(f.delays, want) || f.excess != 1 || len(open) != 1 {
		t.Errorf("delays %v, %d in excess, %d left; want %v, 1, 1", f.delays, f.excess, len(open), want)
	}
	if got := f.within(18); got != 0.5 {
		t.Errorf("within 18 ms: %v; want 0.5 of four", got)
	}
}

func TestFlowletsEndWithASilentSlot(t *testing.T) {
	key := model.FlowKey{Src: model.Addr4(1), Dst: model.Addr4(2), Proto: model.TCP}
	var maps []*paths.Map
	for slot, seen := range []bool{true, true, false, true, false, true} {
		m := paths.NewMap(int64(slot), slotLength)
		d := &flows.Decoded{Switch: 1, Slot: uint32(slot), Start: model.Time(slot) * model.Time(slotLength), Length: slotLength}
		if seen {
			d.Records = []flows.Record{{Key: key, Packets: 1, Grade: flows.Exact}}
		}
		m.AddFlowset(d)
		maps = append(maps, m)
	}
	f := lossFound{lifetimes: flowletLifetimes(maps)}
	if want := []int{1, 2}; !slices.Equal(f.lifetimes, want) { // the last one has not ended
		t.Errorf("flowlets lasted %v slots; want %v", f.lifetimes, want)
	}
	if short, longest := f.flowlets(); short != 1 || longest != 20 {
		t.Errorf("%v of flowlets up to 30 ms, longest %d ms; want 1 and 20", short, longest)
	}
}
