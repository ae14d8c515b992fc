package simhost

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/wire/dta"
)

// ticker reports a number that counts up, every microsecond.
type ticker struct {
	count uint64
	data  []byte
	size  int // owner the data; the first 8 bytes are the number
}

func (p *ticker) Stages() inswitch.Stages { return inswitch.StageSet(inswitch.Timer) }

func (p *ticker) Observe(ev *inswitch.Event, act *inswitch.Actions) {
	act.SetTimer(time.Microsecond, 1)
	if ev.Timer == inswitch.StartTimer {
		p.data = make([]byte, p.size)
		return
	}
	binary.BigEndian.PutUint64(p.data, p.count)
	p.count++
	act.Report(dta.Report{Primitive: dta.Append, List: 7, Data: p.data})
}

// inbox is a sink that reads what it is given.
type inbox struct {
	t       *testing.T
	numbers map[model.NodeID][]uint64
	times   []model.Time
	grams   int
	largest int
}

func newInbox(t *testing.T) *inbox {
	return &inbox{t: t, numbers: map[model.NodeID][]uint64{}}
}

func (b *inbox) take(at model.Time, from model.NodeID, datagram []byte) {
	b.grams++
	b.largest = max(b.largest, len(datagram))
	b.times = append(b.times, at)
	var r dta.Reader
	var rep dta.Report
	for _ = r.Reset(datagram); r.Next(&rep); {
		b.numbers[from] = append(b.numbers[from], binary.BigEndian.Uint64(rep.Data))
	}
	if r.Err() != nil || r.Header().Reporter != from {
		b.t.Errorf("datagram %x from %d: %v, reporter %d", datagram, from, r.Err(), r.Header().Reporter)
	}
}

// balance checks that the account of a switch adds up.
func balance(t *testing.T, s *Switch) Stats {
	t.Helper()
	st := s.Stats()
	sum := st.Delivered + st.Pending + st.InFlight
	for _, n := range st.Lost {
		sum += n
	}
	if sum != st.Reports {
		t.Errorf("stats %+v: %d reports in all; want %d", st, sum, st.Reports)
	}
	return st
}

func TestReportsOverTheManagementNetwork(t *testing.T) {
	type outcome struct {
		lost, order bool // some lost; what arrives is in order
	}
	for name, tc := range map[string]struct {
		m    ManagementConfig
		want outcome
	}{
		"perfect":   {ManagementConfig{Delay: 50 * time.Microsecond}, outcome{false, true}},
		"jitter":    {ManagementConfig{Delay: 50 * time.Microsecond, Jitter: 40 * time.Microsecond}, outcome{false, true}},
		"reorder":   {ManagementConfig{Delay: 50 * time.Microsecond, Jitter: 40 * time.Microsecond, Reorder: true}, outcome{false, false}},
		"loss":      {ManagementConfig{Delay: 50 * time.Microsecond, Loss: 0.2}, outcome{true, true}},
		"both":      {ManagementConfig{Jitter: 90 * time.Microsecond, Loss: 0.2, Reorder: true}, outcome{true, false}},
		"all lost":  {ManagementConfig{Loss: 1}, outcome{true, true}},
		"immediate": {ManagementConfig{}, outcome{false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			n := dumbbell(t, sim.DefaultConfig())
			in := newInbox(t)
			m, err := NewManagement(n, tc.m, in.take)
			if err != nil {
				t.Fatal(err)
			}
			cfg := Config{Linger: 5 * time.Microsecond, Carrier: m}
			a := attach(t, n, 4, cfg, &ticker{size: 20})
			b := attach(t, n, 5, cfg, &ticker{size: 20})
			n.Run(10 * ms)
			balance(t, a)
			balance(t, b)
			n.Run(10*ms + 200*µs) // the clock ticks on, so take the numbers of before
			for _, s := range []*Switch{a, b} {
				st := balance(t, s)
				got := in.numbers[s.sw.ID]
				if uint64(len(got)) != st.Delivered {
					t.Errorf("%d reports arrived; want %d, as the switch counts", len(got), st.Delivered)
				}
				if (st.Lost[ManagementLoss] > 0) != tc.want.lost || st.Reports < 10_000 {
					t.Errorf("stats %+v; want losses %v of 10,000 reports and more", st, tc.want.lost)
				}
				if share := float64(st.Lost[ManagementLoss]) / float64(st.Reports); share < tc.m.Loss-0.05 || share > tc.m.Loss+0.05 {
					t.Errorf("%.3f of the reports lost; want %v", share, tc.m.Loss)
				}
				if slices.IsSorted(got) != tc.want.order {
					t.Errorf("reports arrive in order: %v; want %v", slices.IsSorted(got), tc.want.order)
				}
				slices.Sort(got)
				if len(slices.Compact(got)) != int(st.Delivered) {
					t.Errorf("some reports arrived twice")
				}
			}
			if !slices.IsSorted(in.times) {
				t.Errorf("the sink got times out of order")
			}
		})
	}
}

// TestManagementDoesNotDependOnHowTheRunIsCut simulates the same run in one piece
// and in many: the sink gets the same datagrams in the same order.
func TestManagementDoesNotDependOnHowTheRunIsCut(t *testing.T) {
	run := func(step engine.Time) (log []string) {
		n := fatTree(t, tight())
		add(t, n, busy()...)
		m, err := NewManagement(n, ManagementConfig{Delay: 500 * time.Nanosecond, Jitter: 3 * time.Microsecond, Loss: 0.1, Reorder: true, Seed: 7}, func(at model.Time, from model.NodeID, datagram []byte) {
			log = append(log, fmt.Sprintf("%v %d %x", at, from, datagram))
		})
		if err != nil {
			t.Fatal(err)
		}
		data := make([]byte, 8)
		for _, id := range n.Fabric().Switches() {
			attach(t, n, id, Config{Carrier: m}, at(func(ev *inswitch.Event, act *inswitch.Actions) {
				binary.BigEndian.PutUint64(data, ev.Packet.Key.Hash(1))
				act.Report(dta.Report{Primitive: dta.Append, Data: data})
			}, inswitch.Enqueue))
		}
		for at := step; at <= 50*µs; at += step {
			n.Run(at)
		}
		return log
	}
	whole := run(50 * µs)
	if len(whole) < 1000 {
		t.Fatalf("%d datagrams; want 1,000 and more", len(whole))
	}
	for _, step := range []engine.Time{µs / 4, 10 * µs} {
		if cut := run(step); !slices.Equal(whole, cut) {
			t.Errorf("in steps of %v the sink got others (-whole +steps):\n%.2000s", step, cmp.Diff(whole, cut))
		}
	}
}

// TestDatagramsOfOneInstantComeBySwitch has all switches report at the same
// instants.
func TestDatagramsOfOneInstantComeBySwitch(t *testing.T) {
	n := fatTree(t, sim.DefaultConfig())
	var got []model.NodeID
	m, err := NewManagement(n, ManagementConfig{Delay: 5 * time.Microsecond}, func(_ model.Time, from model.NodeID, _ []byte) { got = append(got, from) })
	if err != nil {
		t.Fatal(err)
	}
	switches := slices.Clone(n.Fabric().Switches())
	for _, id := range slices.Backward(switches) {
		attach(t, n, id, Config{Carrier: m}, &ticker{size: 20})
	}
	n.Run(10 * µs)
	if len(got) != 5*len(switches) {
		t.Fatalf("%d datagrams; want 5 of %d switches", len(got), len(switches))
	}
	for i := 0; i < len(got); i += len(switches) {
		if instant := got[i : i+len(switches)]; !slices.Equal(instant, switches) {
			t.Errorf("datagrams of one instant come from %v; want %v", instant, switches)
		}
	}
}

func TestDatagramsFillAndLinger(t *testing.T) {
	for name, tc := range map[string]struct {
		cfg            Config
		size           int
		grams, largest int
	}{
		// A report has 8 bytes of head, the datagram 12.
		"at once":           {Config{}, 20, 100, 12 + 28},
		"five to a gram":    {Config{Linger: 4500 * time.Nanosecond}, 20, 20, 12 + 5*28},
		"three fit":         {Config{Linger: time.Second, Datagram: 12 + 3*28}, 20, 33, 12 + 3*28},
		"what Ethernet has": {Config{Linger: time.Second, Datagram: 9000}, 352, 24, 12 + 4*360}, // full only when the next comes
	} {
		t.Run(name, func(t *testing.T) {
			n := dumbbell(t, sim.DefaultConfig())
			in := newInbox(t)
			m, err := NewManagement(n, ManagementConfig{Delay: 2 * time.Microsecond}, in.take)
			if err != nil {
				t.Fatal(err)
			}
			tc.cfg.Carrier = m
			tick := &ticker{size: tc.size}
			s := attach(t, n, 4, tc.cfg, tick)
			n.Run(100*µs + 500*engine.Nanosecond)
			// What waits is sent only by Flush; the ticker continues, so
			// compare with what was sent before.
			n.Run(102*µs + 900*engine.Nanosecond)
			st := balance(t, s)
			if in.grams != tc.grams || in.largest != tc.largest {
				t.Errorf("%d datagrams, the largest of %d bytes; want %d, %d", in.grams, in.largest, tc.grams, tc.largest)
			}
			s.Flush()
			if got := s.Stats(); got.Pending != 0 || got.InFlight != st.InFlight+st.Pending {
				t.Errorf("after Flush %+v; want nothing waiting", got)
			}
		})
	}
}

func TestBadReportsAreCounted(t *testing.T) {
	n := dumbbell(t, sim.DefaultConfig())
	in := newInbox(t)
	m, err := NewManagement(n, ManagementConfig{}, in.take)
	if err != nil {
		t.Fatal(err)
	}
	report := at(func(_ *inswitch.Event, act *inswitch.Actions) {
		act.Report(dta.Report{Primitive: dta.KeyWrite, Data: []byte("a key is missing")})
		act.Report(dta.Report{Primitive: dta.Append, Data: make([]byte, 100)})
		act.Report(dta.Report{Primitive: dta.Append, Data: make([]byte, 2000)})
		act.Report(dta.Report{Primitive: dta.Append, Data: make([]byte, 100), Immediate: true})
		act.Report(dta.Report{Primitive: dta.Append, Data: make([]byte, 100)})
	}, inswitch.Timer)
	s := attach(t, n, 4, Config{Carrier: m, Linger: time.Second}, report)
	bare := attach(t, n, 5, Config{}, report)
	n.Run(1 * ms)
	want := Stats{
		Reports: 5, Delivered: 2, Pending: 1, Datagrams: 2, Bytes: 2 * (12 + 108),
		Lost: map[LossReason]uint64{Malformed: 1, TooLarge: 1}, Refused: map[Refusal]uint64{},
	}
	if diff := cmp.Diff(want, balance(t, s)); diff != "" {
		t.Errorf("stats (-want +got):\n%s", diff)
	}
	if st := balance(t, bare); st.Lost[Unconnected] != 5 {
		t.Errorf("without a carrier %+v; want 5 reports lost for that", st)
	}
	bare.Flush() // does nothing
}

func TestSettingsAreChecked(t *testing.T) {
	n := dumbbell(t, sim.DefaultConfig())
	pl := func() *inswitch.Pipeline { return inswitch.NewPipeline() }
	sink := func(model.Time, model.NodeID, []byte) {}
	m, err := NewManagement(n, DefaultManagementConfig(), sink)
	if err != nil {
		t.Fatal(err)
	}
	for name, make := range map[string]func() error{
		"a host":            func() error { _, err := Attach(n, 0, pl(), Config{}); return err },
		"no node":           func() error { _, err := Attach(n, 99, pl(), Config{}); return err },
		"MTU":               func() error { _, err := Attach(n, 4, pl(), Config{MTU: -1}); return err },
		"linger":            func() error { _, err := Attach(n, 4, pl(), Config{Linger: -1}); return err },
		"datagram":          func() error { _, err := Attach(n, 4, pl(), Config{Datagram: 5, Carrier: m}); return err },
		"delay":             func() error { _, err := NewManagement(n, ManagementConfig{Delay: -1}, sink); return err },
		"loss":              func() error { _, err := NewManagement(n, ManagementConfig{Loss: 1.5}, sink); return err },
		"collector":         func() error { _, err := NewInBand(n, InBandConfig{Collector: 4}, sink); return err },
		"in-band priority":  func() error { _, err := NewInBand(n, InBandConfig{Priority: 8}, sink); return err },
		"collector no node": func() error { _, err := NewInBand(n, InBandConfig{Collector: 99}, sink); return err },
	} {
		if make() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
