package control

import (
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/epoch"
	"github.com/weft-telemetry/weft/wire/label"
	"github.com/weft-telemetry/weft/wire/mirror"
)

// TestEveryReportIsHeard: whatever a switch reports shows that it is there, and
// nothing that a report says makes a switch of something else.
func TestEveryReportIsHeard(t *testing.T) {
	f, err := topo.FatTree(2, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(DefaultConfig(intentOf(t, f)), NoDevices{}, Output{})
	if err != nil {
		t.Fatal(err)
	}
	h, plan := &c.liveness, &c.cfg.ListPlan
	sw := f.Switches()
	const second = model.Time(time.Second)
	m := mirror.Mirror{Switch: sw[1], Length: 64, Frame: make([]byte, 64)}
	l := label.Export{Switch: sw[2]}
	e := epoch.Chunk{Header: epoch.Header{Switch: sw[3], EpochLength: time.Millisecond}, Total: 1}
	c.IngestReport(second, plan.FlowsetList(sw[0]), flowsetChunk(sw[0], 0, 10*time.Millisecond))
	c.IngestReport(2*second, plan.Mirrors.First, m.AppendTo(nil))
	c.IngestReport(3*second, plan.Labels.First, l.AppendWithLabel(nil, label.Item{Switch: sw[2]}, label.Option{NextHeader: model.UDP, MaxHop: label.DefaultMaxHop}))
	c.IngestReport(4*second, plan.Epochs.First, e.AppendTo(nil))
	m.Switch = f.Hosts()[0]
	c.IngestReport(4*second, plan.Mirrors.First, m.AppendTo(nil))
	m.Switch = 60000
	c.IngestReport(4*second, plan.Mirrors.First, m.AppendTo(nil))
	c.IngestReport(4*second, plan.Mirrors.First, []byte{1})
	c.IngestReport(4*second, plan.Labels.First, nil)
	c.IngestReport(4*second, plan.Epochs.First, nil)
	c.IngestReport(4*second, plan.FlowsetList(sw[1]), flowsetChunk(sw[0], 0, 10*time.Millisecond))
	name := func(i int) string { return f.Node(sw[i]).Name }
	want := []api.ReportAge{
		{Switch: name(0), Source: "flowset", Reports: 1, AgeMs: 4000},
		{Switch: name(1), Source: "mirror", Reports: 1, AgeMs: 3000},
		{Switch: name(2), Source: "label", Reports: 1, AgeMs: 2000},
		{Switch: name(3), Source: "epoch", Reports: 1, AgeMs: 1000},
	}
	got := h.snapshot(5 * second)
	for _, one := range want {
		if !slices.Contains(got, one) {
			t.Errorf("%+v is not among %+v", one, got)
		}
	}
	if len(got) != len(want) {
		t.Errorf("heard %+v; want %+v", got, want)
	}

	v := newView(f, 2500*time.Millisecond)
	v.last.Store(&snapshot{liveness: got})
	health := api.Health{State: "ok"}
	v.AddLiveness(&health)
	silent := []string{name(0), name(1)}
	slices.Sort(silent)
	if health.State != "degraded" || !slices.Equal(health.Silent, silent) || len(health.Alerts) != 1 {
		t.Errorf("health %+v; want %v silent, and an alert", health, silent)
	}
	for _, one := range health.ReportAges {
		if one.Silent != slices.Contains(silent, one.Switch) {
			t.Errorf("%+v; want silence of %v", one, silent)
		}
	}
	for _, s := range health.Sources {
		if s.Source == "mirror" && s != (api.SourceHealth{Source: "mirror", Switches: 1, Silent: 1, AgeMs: 3000}) {
			t.Errorf("mirrors: %+v", s)
		}
	}
}
