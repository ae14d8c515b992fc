package livestate

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/keyed"
)

// TestCountersOfPortStates: counters that switches write are read once each, with the
// switch's time; while nobody writes, few ports are read at a time.
func TestCountersOfPortStates(t *testing.T) {
	f := fatTree(t, 4)
	r := newRig(t, f, Sizes{}, nil)
	d, err := NewDevices(f, r.mem)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.ports) != 80 {
		t.Fatalf("%d ports, want the 80 of 20 switches", len(d.ports))
	}
	if list := d.Counters(nil); len(list) != 0 {
		t.Fatalf("%d counters before any was written", len(list))
	}
	write := func(at model.Time, p model.Port, n uint64) {
		key := keyed.PortKey{Port: p}.AppendTo(nil)
		state := keyed.PortState{Time: at, Bytes: 1000 * n, Discards: n, PausedTime: time.Duration(n)}
		r.put(t, at, dta.Report{Primitive: dta.KeyWrite, Redundancy: keyed.Copies, Key: key, Data: state.AppendTo(nil)})
	}
	one := d.ports[79]
	write(5, one, 1)
	calls := 1
	list := d.Counters(nil)
	for ; len(list) == 0 && calls < 80; calls++ {
		list = d.Counters(nil)
	}
	if len(list) != 1 || list[0].Port != one || list[0].At != 5 || list[0].Bytes != 1000 || list[0].Discards != 1 || list[0].Paused != 1 {
		t.Fatalf("counters %+v, want those written for %v", list, one)
	}
	if calls != 3 {
		t.Errorf("found after %d calls, want 3 of %d ports each", calls, quietReads)
	}
	for i, p := range d.ports {
		write(model.Time(10+i), p, 2)
	}
	if list = d.Counters(list[:0]); len(list) != 80 {
		t.Errorf("%d counters, want those of all 80 ports at once while switches write", len(list))
	}
	if list = d.Counters(list[:0]); len(list) != 0 {
		t.Errorf("counters %+v, want none: no state is another", list)
	}
	for _, at := range []model.Time{1 << 60, 100} { // a time that nobody has, and the next report
		write(at, one, 3)
		list = list[:0]
		for range 80 {
			list = d.Counters(list)
		}
		if len(list) != 1 || list[0].At != at {
			t.Errorf("counters %+v, want those of %d", list, at)
		}
	}
}
