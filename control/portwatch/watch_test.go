package portwatch

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/coverage"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/label"
)

// testFabric is a fabric whose ports are active as the test says. It keeps the last
// sendCommands of each port and loses those that the test names.
type testFabric struct {
	active []model.Port
	shift  map[model.Port]uint8
	lose   int // next commands
	refuse bool
}

func (d *testFabric) Active(list []model.Port) []model.Port { return append(list, d.active...) }

func (d *testFabric) SetShift(p model.Port, s uint8) error {
	switch {
	case d.refuse:
		return errors.New("no connection")
	case d.lose > 0:
		d.lose--
	default:
		d.shift[p] = s
	}
	return nil
}

const ms = time.Millisecond

func newWatch(t *testing.T, d *testFabric) (*Watch, *topo.Fabric) {
	t.Helper()
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	tuner := coverage.DefaultTunerConfig(50 * ms)
	w, err := New(Config{States: coverage.DefaultConfig(f), Window: 100 * ms, KeepWindows: 3, Tuner: &tuner}, d)
	if err != nil {
		t.Fatal(err)
	}
	return w, f
}

// export is what the last switch reports of one label.
func export(p model.Port, at model.Time, depth model.Bytes) []byte {
	e := label.Export{Switch: p.Node, Time: at}
	var err error
	if e.Key, err = model.ParseFlowKey("udp 10.0.0.2:1 > 10.1.0.2:2"); err != nil {
		panic(err)
	}
	it := label.Item{Switch: p.Node, Ingress: 1, Egress: p.Port, Time: at, EnqueueDepth: depth}
	return e.AppendWithLabel(nil, it, label.Option{NextHeader: model.UDP, MaxHop: 5})
}

func at(d time.Duration) model.Time { return model.Time(d) }

// TestWindowsAndCommands plays a port that is heard of and one that is not, with
// the first commands lost.
func TestWindowsAndCommands(t *testing.T) {
	d := &testFabric{shift: map[model.Port]uint8{}, lose: 1}
	w, f := newWatch(t, d)
	sw := f.Switches()[0]
	heard, silent := model.Port{Node: sw, Port: 1}, model.Port{Node: sw, Port: 2}
	d.active = []model.Port{heard, silent}
	w.Tick(0)
	now := time.Duration(0)
	window := func(both bool) {
		for range 2 {
			now += 50 * ms
			add := []model.Port{heard}
			if both {
				add = append(add, silent)
			}
			for _, p := range add {
				if err := w.IngestReport(at(now-ms), export(p, at(now-2*ms), 5)); err != nil {
					t.Fatal(err)
				}
			}
			w.Tick(at(now))
		}
	}
	for i := range 4 {
		window(false)
		got := w.Windows()[len(w.Windows())-1]
		if got.Labelled != 1 || got.Active != 2 || !slices.Equal(got.Silent, []model.Port{silent}) || got.To.Sub(got.From) != 100*ms {
			t.Errorf("window %d: %+v; want one of two heard of, %v silent", i, got, silent)
		}
	}
	if d.shift[silent] < 2 || d.shift[heard] != 0 {
		t.Errorf("shifts %v; want that of %v to rise in spite of a lost command, and no other", d.shift, silent)
	}
	for range 40 {
		window(true)
	}
	if d.shift[silent] != 0 {
		t.Errorf("shift of a port that is fresh again is %d; want 0", d.shift[silent])
	}
	if c := w.Coverage(); c.Coverage() != 1 || len(w.Windows()) != 3 {
		t.Errorf("coverage %+v of %d windows; want all, of the newest 3", c, len(w.Windows()))
	}
	s := w.Stats()
	if s.Windows != 44 || s.Commands == 0 || s.Unsent != 0 {
		t.Errorf("%+v; want 44 windows, some commands, none unsent", s)
	}
	d.refuse = true
	for range 3 {
		window(false)
	}
	if s := w.Stats(); s.Unsent == 0 {
		t.Errorf("%+v; want commands that could not be sent counted", s)
	}
}

// TestHostileLabels: what cannot be true is refused, counted by reason, and moves
// nothing.
func TestHostileLabels(t *testing.T) {
	w, f := newWatch(t, &testFabric{shift: map[model.Port]uint8{}})
	p := model.Port{Node: f.Switches()[3], Port: 2}
	now := at(5 * time.Second)
	good := export(p, now-1000, 777)
	if err := w.IngestReport(now, good); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		data  []byte
		count func(Stats) uint64
	}{
		"absurd port":    {export(model.Port{Node: p.Node, Port: 999}, now-900, 1), func(s Stats) uint64 { return s.Unknown }},
		"absurd switch":  {export(model.Port{Node: 999, Port: 1}, now-900, 1), func(s Stats) uint64 { return s.Unknown }},
		"replay":         {good, func(s Stats) uint64 { return s.Repeated }},
		"future":         {export(p, now+at(time.Minute), 1), func(s Stats) uint64 { return s.Future }},
		"past":           {export(p, now-at(time.Minute), 1), func(s Stats) uint64 { return s.Stale }},
		"older":          {export(p, now-2000, 1), func(s Stats) uint64 { return s.Older }},
		"cut":            {good[:len(good)-1], func(s Stats) uint64 { return s.Malformed }},
		"more behind it": {append(slices.Clone(good), 0), func(s Stats) uint64 { return s.Malformed }},
	} {
		before := w.Stats()
		err := w.IngestReport(now, tc.data)
		if bad := strings.HasPrefix(name, "cut") || strings.HasPrefix(name, "more"); (err != nil) != bad {
			t.Errorf("%s: Add = %v", name, err)
		}
		if after := w.Stats(); tc.count(after) != tc.count(before)+1 || after.Accepted != before.Accepted {
			t.Errorf("%s: counts %+v, before %+v; want one more of its reason, none accepted", name, after, before)
		}
		if s, ok := w.States().Newest(p); !ok || s.Time != now-1000 || s.EnqueueDepth != 777 {
			t.Errorf("%s: newest %+v, %v; want what was there", name, s, ok)
		}
	}
}

func TestNewRejectsBadConfig(t *testing.T) {
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	good := Config{States: coverage.DefaultConfig(f), Window: ms, KeepWindows: 1}
	for name, tc := range map[string]struct {
		change func(*Config)
		fabric Fabric
	}{
		"no fabric": {func(*Config) {}, nil},
		"no window": {func(c *Config) { c.Window = 0 }, &testFabric{}},
		"keep none": {func(c *Config) { c.KeepWindows = 0 }, &testFabric{}},
		"no board":  {func(c *Config) { c.States.Fabric = nil }, &testFabric{}},
		"bad tuner": {func(c *Config) { c.Tuner = &coverage.TunerConfig{} }, &testFabric{}},
	} {
		cfg := good
		tc.change(&cfg)
		if _, err := New(cfg, tc.fabric); err == nil || !strings.HasPrefix(err.Error(), "portwatch: ") {
			t.Errorf("%s: New = %v; want a complaint", name, err)
		}
	}
	if _, err := New(good, &testFabric{}); err != nil {
		t.Error(err)
	}
}
