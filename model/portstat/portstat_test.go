package portstat

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"pgregory.net/rapid"
)

// anyTotals draws totals with random fields and values below 2^40.
func anyTotals(t *rapid.T, name string) (c Counters) {
	c.Has = Fields(rapid.Uint32().Draw(t, name+" fields"))
	c.DropReasons = ReasonSet(rapid.Uint16().Draw(t, name+" reasons"))
	fill(t, reflect.ValueOf(&c).Elem())
	for i := range c.Class {
		c.Class[i].Has = ClassFields(rapid.Uint32().Draw(t, name+" class fields"))
	}
	return c
}

// fill sets every number of a struct but its sets of fields.
func fill(t *rapid.T, v reflect.Value) {
	for i := range v.NumField() {
		switch f := v.Field(i); {
		case f.Kind() == reflect.Uint64:
			f.SetUint(rapid.Uint64Range(0, 1<<40).Draw(t, "total"))
		case f.Kind() == reflect.Int64:
			f.SetInt(rapid.Int64Range(0, 1<<40).Draw(t, "time"))
		case f.Kind() == reflect.Array && f.Type().Elem().Kind() == reflect.Struct:
			for j := range f.Len() {
				fill(t, f.Index(j))
			}
		case f.Kind() == reflect.Array:
			for j := range f.Len() {
				f.Index(j).SetUint(rapid.Uint64Range(0, 1<<40).Draw(t, "drops"))
			}
		}
	}
}

// add returns the sum of every number, field by field: the reference that knows
// no field's name.
func add(a, b reflect.Value) {
	for i := range a.NumField() {
		switch f, g := a.Field(i), b.Field(i); {
		case f.Kind() == reflect.Uint64:
			f.SetUint(f.Uint() + g.Uint())
		case f.Kind() == reflect.Int64:
			f.SetInt(f.Int() + g.Int())
		case f.Kind() == reflect.Array && f.Type().Elem().Kind() == reflect.Struct:
			for j := range f.Len() {
				add(f.Index(j), g.Index(j))
			}
		case f.Kind() == reflect.Array:
			for j := range f.Len() {
				f.Index(j).SetUint(f.Index(j).Uint() + g.Index(j).Uint())
			}
		}
	}
}

// TestSinceUndoesAddition: with all fields present, the difference between totals
// and the totals plus an interval is that interval; watermarks are the newer ones.
func TestSinceUndoesAddition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		older, interval := anyTotals(t, "older"), anyTotals(t, "interval")
		for _, c := range []*Counters{&older, &interval} {
			c.Has, c.DropReasons = 1<<7-1, 1<<NumReasons-1
			for i := range c.Class {
				c.Class[i].Has = 1<<12 - 1
			}
		}
		newer := older
		add(reflect.ValueOf(&newer).Elem(), reflect.ValueOf(&interval).Elem())
		want := interval
		for i := range want.Class {
			w, n := &want.Class[i], &newer.Class[i]
			w.QueueWatermark, w.PGWatermark, w.HeadroomWatermark, w.Watchdog = n.QueueWatermark, n.PGWatermark, n.HeadroomWatermark, n.Watchdog
		}
		var got Counters
		if err := got.Since(&older, &newer); err != nil || got != want {
			t.Fatalf("Since = %+v, %v; want %+v", got, err, want)
		}
	})
}

// TestSinceHasWhatBothHave: a counter that one total lacks is absent, and never
// makes a reset.
func TestSinceHasWhatBothHave(t *testing.T) {
	older := Counters{Has: HasBytes | HasPackets, RxBytes: 1000, TxBytes: 10, RxPackets: 9, TxPackets: 9}
	newer := Counters{Has: HasBytes | HasErrors, RxBytes: 1500, TxBytes: 10, RxErrors: 3}
	older.Class[3] = ClassCounters{Has: HasRxPauses, RxPauses: 7}
	newer.Class[3] = ClassCounters{Has: HasTxPauses | HasQueueWatermark, TxPauses: 3, QueueWatermark: 2 * model.KiB}
	var got Counters
	if err := got.Since(&older, &newer); err != nil {
		t.Fatal(err)
	}
	want := Counters{Has: HasBytes, RxBytes: 500}
	want.Class[3] = ClassCounters{Has: HasQueueWatermark, QueueWatermark: 2 * model.KiB}
	if got != want {
		t.Errorf("Since = %+v; want %+v", got, want)
	}
}

func TestSinceReportsResets(t *testing.T) {
	for name, change := range map[string]func(older *Counters){
		"bytes":      func(c *Counters) { c.Has, c.TxBytes = HasBytes, 1 },
		"drops":      func(c *Counters) { c.DropReasons, c.Drops[NoRoute] = ReasonSet(0).With(NoRoute), 1 },
		"pauses":     func(c *Counters) { c.Class[7] = ClassCounters{Has: HasTxPauses, TxPauses: 1} },
		"pause time": func(c *Counters) { c.Class[0] = ClassCounters{Has: HasRxPaused, RxPaused: time.Microsecond} },
		"storms":     func(c *Counters) { c.Class[3] = ClassCounters{Has: HasWatchdog, Storms: 1} },
	} {
		var older, newer, got Counters
		change(&older)
		newer.Has, newer.DropReasons = older.Has, older.DropReasons
		for i := range newer.Class {
			newer.Class[i].Has = older.Class[i].Has
		}
		if err := got.Since(&older, &newer); !errors.Is(err, ErrReset) || got != (Counters{}) {
			t.Errorf("%s: Since = %+v, %v; want no fields and ErrReset", name, got, err)
		}
	}
}

// TestExtendFollowsWraps: a 32-bit counter that grows by less than 2^32 between
// readings has an exact total.
func TestExtendFollowsWraps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, grows := rapid.Uint64Range(0, 1<<60).Draw(t, "before"), rapid.Uint32().Draw(t, "grows")
		total := before + uint64(grows)
		if got := Extend(before, uint32(total)); got != total {
			t.Fatalf("Extend(%d, %d) = %d; want %d", before, uint32(total), got, total)
		}
	})
}

func TestSinceAllocatesNothing(t *testing.T) {
	var older, newer, got Counters
	if n := testing.AllocsPerRun(100, func() { _ = got.Since(&older, &newer) }); n != 0 {
		t.Errorf("Since allocates %v times", n)
	}
}

func TestNames(t *testing.T) {
	for r := range NumReasons {
		if r.String() == "" {
			t.Errorf("reason %d has no name", r)
		}
	}
	if got := Reason(200).String(); got != "unknown" {
		t.Errorf("reason 200 is %q; want unknown", got)
	}
	if got := Source(200).String(); got != "unknown" {
		t.Errorf("source 200 is %q; want unknown", got)
	}
}
