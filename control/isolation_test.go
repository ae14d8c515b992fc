package control

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/epoch"
	"github.com/weft-telemetry/weft/wire/label"
	"github.com/weft-telemetry/weft/wire/mirror"
	"github.com/weft-telemetry/weft/wire/packet"
	"github.com/weft-telemetry/weft/wire/poll"
)

var today = model.TimeOf(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))

// TestUnknownSwitchCannotEndTheProcess: flowsets that can be decoded, of a switch id
// that is not in the topology and of a real switch, share their flows.
func TestUnknownSwitchCannotEndTheProcess(t *testing.T) {
	c, f := lyingBed(t, 0)
	for _, sw := range []model.NodeID{f.Switches()[0], 5000, f.Hosts()[0], f.Switches()[1]} {
		l := &liar{rand.New(rand.NewPCG(1, 1)), 0, f, &c.cfg.ListPlan, today}
		l.flowset(func(_ model.NodeID, data []byte) {
			data = withSwitch(data, sw)
			c.IngestReport(today, flowsetListFor(&c.cfg.ListPlan, sw), data)
		})
	}
	for i := range 50 {
		c.Tick(today.Add(time.Duration(i) * 10 * time.Millisecond))
	}
	c.Flush()
	if s := c.Stats(); s.Unknown[Flowset] != 4 || s.Reports[Flowset] != 8 || s.Slots == 0 {
		t.Errorf("%+v; want 4 of 8 chunks refused, and the slot analysed", s)
	}
}

// reportsAt is one report of each kind, of a time.
func reportsAt(c *Controller, at model.Time) map[Kind]struct {
	list dta.ListID
	data []byte
} {
	type report = struct {
		list dta.ListID
		data []byte
	}
	p, sw := &c.cfg.ListPlan, c.fabric.Switches()[0]
	m := mirror.Mirror{Switch: sw, Time: at, Length: 64, Frame: make([]byte, 64)}
	l := label.Export{Switch: sw, Time: at}
	e := epoch.Chunk{Header: epoch.Header{Switch: sw, Snapshot: at, EpochLength: time.Millisecond}, Total: 1}
	q := poll.Poll{Layout: poll.Weft, Event: poll.Event{Host: c.fabric.Hosts()[0]}, Origin: at}
	return map[Kind]report{
		Flowset:          {p.FlowsetList(sw), flowsetChunk(sw, at, slotLength)},
		Label:            {p.Labels.First, l.AppendWithLabel(nil, label.Item{Switch: sw, Time: at}, label.Option{NextHeader: model.UDP, MaxHop: 5})},
		Mirror:           {p.Mirrors.First, m.AppendTo(nil)},
		Epoch:            {p.Epochs.First, e.AppendTo(nil)},
		DiagnosisRequest: {p.DiagnosisRequests.First, q.AppendTo(nil)},
	}
}

// TestForgedTimesAreRefused: reports of every kind are bounded to the collector's
// clock and counted by kind, unless clocks are unrelated. A collector that lags is no
// reason to refuse.
func TestForgedTimesAreRefused(t *testing.T) {
	const window = time.Minute
	year := func(y int) model.Time { return model.TimeOf(time.Date(y, 11, 1, 0, 0, 0, 0, time.UTC)) }
	for name, tc := range map[string]struct {
		at     model.Time
		window time.Duration
		refuse bool
	}{
		"now":                 {today, window, false},
		"at the first":        {today.Add(-window), window, false},
		"at the last":         {today.Add(window), window, false},
		"before":              {today.Add(-window - 1), window, true},
		"after":               {today.Add(window + 1), window, true},
		"1678":                {year(1678), window, true},
		"2261":                {year(2261), window, true},
		"the least int64":     {-1 << 63, window, true},
		"the greatest int64":  {1<<63 - 1, window, true},
		"1678, no clocks set": {year(1678), 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := lyingBed(t, tc.window)
			for k, r := range reportsAt(c, tc.at) {
				c.SetWallClock(today)
				c.IngestReport(today.Add(-2*time.Second), r.list, r.data)
				if s := c.Stats(); (s.Untimely[k] == 1) != tc.refuse || s.Reports[k] != 1 {
					t.Errorf("%v: %d of %d untimely; want refused %v", k, s.Untimely[k], s.Reports[k], tc.refuse)
				}
			}
		})
	}
}

// TestImpossibleIntervalsAreRefused: a switch cannot have been paused twice at once.
func TestImpossibleIntervalsAreRefused(t *testing.T) {
	c, f := lyingBed(t, time.Minute)
	for i, start := range []epoch.Age{20, 21} { // the second overlaps the pause before
		v := epoch.Intervals{Port: 1, Priority: 3}
		v.Add(epoch.Interval{Start: 30, End: 20})
		v.Add(epoch.Interval{Start: start, End: 5})
		e := epoch.Chunk{
			Header: epoch.Header{Switch: f.Switches()[i], Snapshot: today, EpochLength: time.Millisecond}, Total: 1, Records: v.AppendTo(nil),
		}
		c.IngestReport(today, c.cfg.ListPlan.Epochs.First, e.AppendTo(nil))
	}
	if s := c.Stats(); s.Reports[Epoch] != 2 || s.Rejected[Epoch][Implausible] != 1 || s.Refused[Epoch] != 0 {
		t.Errorf("%d reports, rejected %v, refused %v; want 1 of 2 implausible", s.Reports[Epoch], s.Rejected[Epoch], s.Refused[Epoch])
	}
}

// brokenDevices panic when they are asked for counters.
type brokenDevices struct {
	NoDevices
	broken *bool
}

func (d brokenDevices) Counters(list []PortCounters) []PortCounters {
	if *d.broken {
		panic("a bug of ours")
	}
	return list
}

// TestPanicCostsOneReport: a panic while a report is analysed is counted and
// described, and the analyses of the others go on.
func TestPanicCostsOneReport(t *testing.T) {
	c, f := lyingBed(t, 0)
	var seen []*Panic
	c.out.Panic = func(p *Panic) { seen = append(seen, p) }
	intact := c.ports
	c.ports = nil // the analysis of labels is broken
	all := reportsAt(c, today)
	long := append(all[Label].data, make([]byte, 1000)...)
	c.IngestReport(today, all[Label].list, long)
	c.ports = intact
	for _, r := range all {
		c.IngestReport(today, r.list, r.data)
	}
	c.Tick(today)
	s := c.Stats()
	if s.Panicked[Label] != 1 || s.Reports[Label] != 2 || len(seen) != 1 || s.PanickedSteps != 0 {
		t.Fatalf("%+v, %d described; want one panic of a label", s, len(seen))
	}
	if p := seen[0]; p.Where != "label" || p.List != all[Label].list || len(p.Data) != maxPanicData || !strings.Contains(string(p.Stack), "control") {
		t.Errorf("described as %s of list %d with %d bytes", p.Where, p.List, len(p.Data))
	}
	if c.liveness.lastReport(f.Switches()[0]) != today {
		t.Error("the reports after it were not analysed")
	}
}

// TestPanicInAStepLeavesTheOthers: windows, traces, incidents and records go on, and
// no lock stays held, whatever step panics again and again.
func TestPanicInAStepLeavesTheOthers(t *testing.T) {
	broken := true
	_, f := lyingBed(t, 0)
	var panics, published int
	var kept []record.Incident
	c, err := New(DefaultConfig(intentOf(t, f)), brokenDevices{broken: &broken}, Output{
		Panic: func(*Panic) { panics++ },
		Records: func(b *record.Batch) {
			kept = append(kept, b.Incidents...)
			if published++; published == 2 {
				panic("a bug of the receiver")
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		at := today.Add(time.Duration(i) * 100 * time.Millisecond)
		c.correlator.AddEvidence(incident.Evidence{At: at, From: at, Cause: anomaly.Loss, Confirmed: true, Location: model.Port{Node: f.Switches()[i]}})
		for _, r := range reportsAt(c, at) {
			c.IngestReport(at, r.list, r.data)
		}
		c.Tick(at)
	}
	if panics != 11 || c.Stats().PanickedSteps != 11 || published != 10 || len(kept) < 10 {
		t.Errorf("%d panics, %d batches, %d states of incidents; want 10 of the devices and 1 of the receiver, and all batches", panics, published, len(kept))
	}
	done := make(chan struct{})
	go func() { // as a query does
		defer close(done)
		c.traces.Stats()
		c.View().State()
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("a lock stayed held")
	}
}

// TestSilentFabricHasNothingToDo: flowsets whose slots another switch has not reported
// wait, when the fabric falls silent, for its next ones, and not for the analyses.
func TestSilentFabricHasNothingToDo(t *testing.T) {
	c, _ := lyingBed(t, time.Minute)
	at := today
	for i := range 30 {
		at = today.Add(time.Duration(i) * slotLength)
		switches := c.fabric.Switches()
		if i >= 28 {
			switches = switches[1:] // this one is first to fall silent
		}
		for _, sw := range switches {
			for _, data := range emptyFlowset(flowsetHeader(sw, at-at%model.Time(slotLength), slotLength)) {
				c.IngestReport(at, c.cfg.ListPlan.FlowsetList(sw), data)
			}
		}
		c.Tick(at)
	}
	for range 100 {
		at = at.Add(slotLength)
		c.Tick(at)
	}
	if s := c.Stats(); s.Slots < 25 || s.FlowsetsWaiting != 0 {
		t.Errorf("%d slots analysed, %d flowsets wait; want at least 25, and none", s.Slots, s.FlowsetsWaiting)
	}
}

// TestRebaseStartsAgain: after a step of hours, back or forth, the analyses go on at
// the new time, find nothing that is not there, and keep their counts.
func TestRebaseStartsAgain(t *testing.T) {
	for _, step := range []time.Duration{5 * time.Hour, -5 * time.Hour} {
		c, _ := lyingBed(t, time.Minute)
		found := 0
		c.out.Incident = func(*incident.Incident) { found++ }
		ended := false
		c.now = today
		c.scheduleAfter(50*time.Millisecond, func() { ended = true })
		run := func(from model.Time) {
			for i := range 30 {
				at := from.Add(time.Duration(i) * slotLength)
				for _, sw := range c.fabric.Switches() {
					for _, data := range emptyFlowset(flowsetHeader(sw, at-at%model.Time(slotLength), slotLength)) {
						c.IngestReport(at, c.cfg.ListPlan.FlowsetList(sw), data)
					}
				}
				c.SetWallClock(at)
				c.Tick(at)
			}
		}
		run(today)
		before := c.Stats()
		if before.Slots < 20 {
			t.Fatalf("%d slots; want nearly 30", before.Slots)
		}
		routes, err := topo.NewRoutes(c.fabric, topo.RouteConfig{})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.SetRoutes(c.now, routes); err != nil {
			t.Fatal(err)
		}
		if err := c.Rebase(today.Add(step)); err != nil {
			t.Fatal(err)
		}
		if c.cfg.Intent.At(c.now) != routes || c.SetRoutes(c.now, routes) != nil {
			t.Errorf("step of %v: routes from before it do not hold, or cannot be replaced", step)
		}
		run(today.Add(step))
		after := c.Stats()
		if after.Slots < before.Slots+20 || after.Flowsets.Chunks != 2*before.Flowsets.Chunks || after.Rebased != 1 || found != 0 || !ended {
			t.Errorf("step of %v: %d slots and %d chunks, then %d and %d; %d incidents; timer ran %v; want twice as many of both and no incident",
				step, before.Slots, before.Flowsets.Chunks, after.Slots, after.Flowsets.Chunks, found, ended)
		}
	}
}

// TestOverwrittenReportsAreNotSilence: a switch whose reports were overwritten has
// reported.
func TestOverwrittenReportsAreNotSilence(t *testing.T) {
	c, f := lyingBed(t, 0)
	sw := f.Switches()[3]
	c.NoteOverwritten(today, c.cfg.ListPlan.FlowsetList(sw))
	c.NoteOverwritten(today, c.cfg.ListPlan.Labels.First)
	if !c.isReporting(sw, today.Add(c.cfg.SilentAfter)) {
		t.Error("the switch is taken for silent")
	}
}

// TestLostReportsAreNoLostPackets: a packet whose trace ends early while mirrors of its
// list were overwritten, or any reports were dropped, is not taken for lost.
func TestLostReportsAreNoLostPackets(t *testing.T) {
	for name, tc := range map[string]struct {
		note     func(c *Controller)
		unproven uint64
	}{
		"nothing lost":             {func(*Controller) {}, 0},
		"mirrors overwritten":      {func(c *Controller) { c.NoteOverwritten(today, c.cfg.ListPlan.Mirrors.First) }, 1},
		"other lists overwritten":  {func(c *Controller) { c.NoteOverwritten(today, c.cfg.ListPlan.Labels.First) }, 0},
		"dropped before the lists": {func(c *Controller) { c.NoteDropped(today) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c, f := lyingBed(t, 0)
			src, dst := f.Node(f.Hosts()[0]), f.Node(f.Hosts()[15])
			ip := packet.IPv4{Length: 60, ID: 1, TTL: 63, Proto: model.UDP, Src: src.IPv4.V4(), Dst: dst.IPv4.V4()}
			ip.Checksum = ip.Sum()
			frame := packet.UDP{SrcPort: 1, DstPort: 2, Length: 40}.AppendTo(ip.AppendTo(packet.Ethernet{Type: packet.TypeIPv4}.AppendTo(nil)))
			frame = append(frame, make([]byte, 32)...)
			tor := src.Ports[0].Peer
			m := mirror.Mirror{Reasons: mirror.Sample, Switch: tor.Node, In: tor.Port, Time: today, Length: uint16(len(frame)), Frame: frame}
			c.IngestReport(today, c.cfg.ListPlan.Mirrors.First, m.AppendTo(nil))
			tc.note(c)
			c.Tick(today.Add(time.Minute))
			if s := c.traces.Stats(); s.Closed != 1 || s.Unproven != tc.unproven {
				t.Errorf("%d traces closed, %d of them prove nothing; want 1, %d", s.Closed, s.Unproven, tc.unproven)
			}
		})
	}
}

// TestRefusalAllocatesNothing: a flood of refused reports costs no memory.
func TestRefusalAllocatesNothing(t *testing.T) {
	c, _ := lyingBed(t, time.Minute)
	for k, r := range reportsAt(c, today.Add(-time.Hour)) {
		if n := testing.AllocsPerRun(100, func() { c.IngestReport(today, r.list, r.data) }); n != 0 {
			t.Errorf("a refused %v allocates %v times", k, n)
		}
	}
}
