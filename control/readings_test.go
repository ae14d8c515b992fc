package control

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/topo"
)

// TestCountersOpenAnIncident: readings of one port, a second apart, show a storm. Its
// incident stays open between readings, far longer than the quiet period, and is closed
// two intervals after the last that shows it.
func TestCountersOpenAnIncident(t *testing.T) {
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(DefaultConfig(intentOf(t, f)), NoDevices{}, Output{})
	if err != nil {
		t.Fatal(err)
	}
	port := c.portNamed(t, "tor6", "h12")
	host := c.fabric.Port(port).Peer.Node
	const interval = time.Second
	read := func(second int, paused time.Duration) {
		r := portstat.Reading{
			Port: port, From: model.Time(second-1) * model.Time(interval), To: model.Time(second) * model.Time(interval), Source: portstat.GNMI,
		}
		r.Has = portstat.HasBytes
		r.Class[3] = portstat.ClassCounters{Has: portstat.HasRxPaused, RxPaused: paused}
		c.IngestReading(r.To, &r)
	}
	pass := func(second int) {
		for now := model.Time(second) * model.Time(interval); now < model.Time(second+1)*model.Time(interval); now += model.Time(50 * time.Millisecond) {
			c.now = now
			c.concludeCounters(now)
			c.correlator.CloseQuiet(now)
		}
	}
	for second := 1; second <= 8; second++ {
		paused := interval
		if second > 5 {
			paused = 0
		}
		read(second, paused)
		pass(second)
		open := c.correlator.OpenIncidents()
		switch {
		case second == 1 || second >= 7:
			if len(open) != 0 {
				t.Errorf("second %d: %d incidents; want none", second, len(open))
			}
		case len(open) != 1 || open[0].ID != 1 || open[0].Cause != anomaly.Storm || open[0].Location.Node != host || open[0].Sources[anomaly.Counters] == 0:
			t.Fatalf("second %d: incidents %+v; want one storm at h12, by counters", second, open)
		}
	}
}

// TestReadingsShowPauses: packets behind a port are late while a reading says that PFC paused
// it, unless the reading's interval is longer than the slots that are remembered.
func TestReadingsShowPauses(t *testing.T) {
	c := evidenceBed(t)
	port := c.portNamed(t, "tor2", "leaf2")
	remembered := slotLength * time.Duration(len(c.meter.slots))
	for _, interval := range []time.Duration{4 * slotLength, remembered + slotLength} {
		c.meter = newPortMeter(slotLength, len(c.meter.slots))
		r := portstat.Reading{Port: port, To: model.Time(remembered * 2), Source: portstat.GNMI}
		r.From = r.To.Add(-interval)
		r.Class[3] = portstat.ClassCounters{Has: portstat.HasRxPaused, RxPaused: interval / 2}
		c.recordReading(&r)
		want := 0.0
		if interval < remembered {
			want = 0.5
		}
		last := int64(r.To)/int64(slotLength) - 1
		for _, slot := range []int64{last - 3, last} {
			if got := c.meter.pausedIn(port, slot, slot); got != want {
				t.Errorf("readings each %v: slot %d paused for %v of it, want %v", interval, slot, got, want)
			}
		}
	}
}
