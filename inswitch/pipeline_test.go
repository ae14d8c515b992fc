package inswitch

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/label"
)

// scripted does at every event what its test says.
type scripted struct {
	stages Stages
	do     func(ev *Event, act *Actions)
}

func (p scripted) Stages() Stages                  { return p.stages }
func (p scripted) Observe(ev *Event, act *Actions) { p.do(ev, act) }

// transcript is a host that writes down what it is asked to do, and does the
// one thing that later programs can see.
type transcript []string

func (h *transcript) Execute(program int, ev *Event, act *Actions) {
	line := fmt.Sprintf("program %d:", program)
	for _, r := range act.Reports {
		line += fmt.Sprintf(" report %s;", r.Data)
	}
	for _, c := range act.Clones {
		line += fmt.Sprintf(" clone to %v cut to %d;", c.Ports, c.Limit)
	}
	for _, s := range act.Sends {
		line += fmt.Sprintf(" send %s to %v;", s.Content, s.Ports)
	}
	if act.Changes.Has(ChangeDSCP) {
		ev.Packet.DSCP = act.DSCP
		line += fmt.Sprintf(" dscp %d;", act.DSCP)
	}
	for _, t := range act.Timers {
		line += fmt.Sprintf(" timer %d after %v;", t.Timer, t.Delay)
	}
	*h = append(*h, line)
}

func TestProgramsRunInOrderAndSeeEarlierChanges(t *testing.T) {
	var seen []string
	observe := func(name string) func(*Event, *Actions) {
		return func(ev *Event, act *Actions) {
			seen = append(seen, fmt.Sprintf("%s sees dscp %d", name, ev.Packet.DSCP))
		}
	}
	pl := NewPipeline(
		scripted{StageSet(Ingress, Dequeue), observe("first")},
		scripted{StageSet(Ingress), func(ev *Event, act *Actions) {
			act.SetDSCP(12)
			act.Report(dta.Report{Data: []byte("r")})
			act.Clone(Clone{Ports: []model.PortID{2, 3}, Limit: 64})
			act.Send(Send{Ports: []model.PortID{1}, Content: []byte("s")})
			act.SetTimer(time.Second, 5)
		}},
		scripted{StageSet(Ingress, Timer), observe("third")},
	)
	if want := StageSet(Ingress, Dequeue, Timer); pl.Stages() != want {
		t.Errorf("Stages() = %b; want %b", pl.Stages(), want)
	}
	var host transcript
	ev := Event{Stage: Ingress, Packet: &Packet{}}
	if v := pl.Run(&ev, &host); v != Pass {
		t.Errorf("Run = %v; want Pass", v)
	}
	if diff := cmp.Diff([]string{"first sees dscp 0", "third sees dscp 12"}, seen); diff != "" {
		t.Errorf("programs saw (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(transcript{"program 1: report r; clone to [2 3] cut to 64; send s to [1]; dscp 12; timer 5 after 1s;"}, host); diff != "" {
		t.Errorf("the host was asked (-want +got):\n%s", diff)
	}

	// A second event starts from empty actions.
	seen, host = nil, nil
	ev = Event{Stage: Dequeue, Packet: &Packet{}}
	pl.Run(&ev, &host)
	if len(seen) != 1 || len(host) != 0 {
		t.Errorf("at Dequeue programs saw %q and the host was asked %q; want one line and none", seen, host)
	}
}

// TestPartsOfStages shows packets of all sorts to programs that want a part of
// a stage, all of it, or nothing of it.
func TestPartsOfStages(t *testing.T) {
	var seen string
	program := func(name string, stages Stages) Program {
		return scripted{stages, func(*Event, *Actions) { seen += name }}
	}
	pl := NewPipeline(
		program("s", NonIPIngress), program("i", StageSet(Ingress)), program("w", QueuedDequeue), program("d", StageSet(Dequeue)), program("e", StageSet(Enqueue)),
	)
	if want := StageSet(Ingress, Enqueue, Dequeue); pl.Stages() != want {
		t.Errorf("Stages() = %b; want %b", pl.Stages(), want)
	}
	for name, tc := range map[string]struct {
		ev   Event
		want string
	}{
		"IPv4":    {Event{Stage: Ingress, Packet: &Packet{EtherType: 0x0800}}, "i"},
		"IPv6":    {Event{Stage: Ingress, Packet: &Packet{EtherType: 0x86dd}}, "i"},
		"poll":    {Event{Stage: Ingress, Packet: &Packet{EtherType: 0x88b5}}, "si"},
		"waited":  {Event{Stage: Dequeue, Packet: &Packet{}}, "wd"},
		"passes":  {Event{Stage: Dequeue, BypassesQueue: true, Packet: &Packet{}}, "d"},
		"enqueue": {Event{Stage: Enqueue, BypassesQueue: true, Packet: &Packet{}}, "e"},
	} {
		seen = ""
		if pl.Run(&tc.ev, nothing{}); seen != tc.want {
			t.Errorf("%s: seen by %q; want %q", name, seen, tc.want)
		}
	}
}

func TestVerdictEndsThePacketButNotAPauseFrame(t *testing.T) {
	for name, tc := range map[string]struct {
		stage Stage
		do    func(*Actions)
		want  Verdict
		seen  int // events that the later program sees
	}{
		"drop":        {Enqueue, (*Actions).Drop, Drop, 0},
		"take":        {Enqueue, (*Actions).Consume, Consumed, 0},
		"pass":        {Enqueue, func(*Actions) {}, Pass, 1},
		"pause frame": {PFC, (*Actions).Drop, Pass, 1},
	} {
		t.Run(name, func(t *testing.T) {
			seen := 0
			pl := NewPipeline(
				scripted{StageSet(tc.stage), func(_ *Event, act *Actions) { tc.do(act) }},
				scripted{StageSet(tc.stage), func(*Event, *Actions) { seen++ }},
			)
			var host transcript
			if got := pl.Run(&Event{Stage: tc.stage, Packet: &Packet{}}, &host); got != tc.want || seen != tc.seen {
				t.Errorf("Run = %v with %d later events; want %v with %d", got, seen, tc.want, tc.seen)
			}
		})
	}
}

func TestWakeReachesOneProgram(t *testing.T) {
	var woken []string
	program := func(name string) Program {
		return scripted{StageSet(Timer), func(ev *Event, act *Actions) {
			woken = append(woken, fmt.Sprintf("%s by %d", name, ev.Timer))
			act.SetTimer(time.Millisecond, ev.Timer+1)
		}}
	}
	pl := NewPipeline(program("a"), program("b"))
	var host transcript
	pl.RunTimer(1, &Event{Stage: Timer, Timer: StartTimer}, &host)
	if diff := cmp.Diff([]string{"b by 0"}, woken); diff != "" {
		t.Errorf("woken (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(transcript{"program 1: timer 1 after 1ms;"}, host); diff != "" {
		t.Errorf("the host was asked (-want +got):\n%s", diff)
	}
}

func TestViewAndDevice(t *testing.T) {
	p := Packet{Size: 1000}
	if p.UnlabeledSize() != 1000 {
		t.Errorf("Bare() of a packet without labels = %d; want 1000", p.UnlabeledSize())
	}
	p.Size, p.LabelCount = 1000+label.FirstGrowth+label.ItemSize, 2
	if p.UnlabeledSize() != 1000 {
		t.Errorf("Bare() of a packet with 2 labels = %d; want 1000", p.UnlabeledSize())
	}
	d := Device{Ports: []Port{{Rate: model.Gbps}, {FacesHost: true}}}
	if d.Port(1).Rate != model.Gbps || !d.Port(2).FacesHost || d.Port(0) != (Port{}) || d.Port(3) != (Port{}) {
		t.Errorf("ports 0 to 3 = %v %v %v %v; want none, 1Gb/s, host, none", d.Port(0), d.Port(1), d.Port(2), d.Port(3))
	}
	pause := Pause{Classes: 1 << 3}
	pause.Time[3] = time.Microsecond
	if d, ok := pause.ForClass(3); d != time.Microsecond || !ok {
		t.Errorf("Of(3) = %v, %v; want 1µs, true", d, ok)
	}
	if d, ok := pause.ForClass(4); ok {
		t.Errorf("Of(4) = %v, true; want nothing said", d)
	}
}

type nothing struct{}

func (nothing) Execute(int, *Event, *Actions) {}

func TestRunAllocatesNothing(t *testing.T) {
	data, ports := []byte("data"), []model.PortID{1}
	pl := NewPipeline(
		scripted{StageSet(Enqueue), func(*Event, *Actions) {}},
		scripted{StageSet(Enqueue), func(_ *Event, act *Actions) {
			act.Report(dta.Report{Primitive: dta.Append, Data: data})
			act.Clone(Clone{Ports: ports})
			act.Send(Send{Ports: ports, Content: data})
			act.PushLabel(label.Params{})
			act.SetTimer(1, 1)
		}},
	)
	ev := &Event{Stage: Enqueue, Packet: &Packet{}}
	if n := testing.AllocsPerRun(100, func() { pl.Run(ev, nothing{}) }); n != 0 {
		t.Errorf("Run allocates %v times; want 0", n)
	}
}

// BenchmarkRun is what a pipeline costs beside its programs.
func BenchmarkRun(b *testing.B) {
	for programs := range 5 {
		b.Run(fmt.Sprintf("programs=%d", programs), func(b *testing.B) {
			var list []Program
			for range programs {
				list = append(list, &counter{})
			}
			pl := NewPipeline(list...)
			ev := &Event{Stage: Enqueue, Packet: &Packet{Size: 1000}}
			for b.Loop() {
				pl.Run(ev, nothing{})
			}
		})
	}
}

type counter struct{ bytes int64 }

func (c *counter) Stages() Stages                  { return StageSet(Enqueue) }
func (c *counter) Observe(ev *Event, act *Actions) { c.bytes += int64(ev.Packet.Size) }
