// Package probes plays a scenario whose switches mirror packets, has hosts send
// guided probes into it, and tells what their traces say. Who asks knows mirrors
// and intended routes, nothing of the simulator's truth.
// Manual: docs/traces.md.
package probes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/control/probe"
	"github.com/weft-telemetry/weft/control/tracewatch"
	"github.com/weft-telemetry/weft/dataplane/simhost"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/scenario/traces"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/topo"
)

// Options are the questions.
type Options struct {
	At       time.Duration // when to ask; 0: when half of the run is over
	Interval time.Duration // between two probes of a question
	Count    uint32        // of probes: of each pattern of a flow, of a link, of a format

	Flows    []string // what becomes of these, as scenario.FlowsOf reads them
	Suspects int      // and of so many flows whose traces ended short before
	Inject   string   // the switch at which a flow's probes begin; empty: the first of its way
	Links    []string // round trips, "leaf0>spine1"
	Format   string   // probes of one's own, as probe.ParseFormat reads it
}

// most is how many flows are asked about at most.
const most = 16

// Check complains about what cannot be asked.
func (o *Options) Check() error {
	switch {
	case len(o.Flows) == 0 && o.Suspects == 0 && len(o.Links) == 0 && o.Format == "":
		return errors.New("nothing to ask, want a flow (--flow), suspects (--suspects), a link (--link) or a format (--format)")
	case o.Count == 0:
		return errors.New("--count 0, want 1 or more")
	case o.Interval <= 0:
		return fmt.Errorf("--interval %v, want more than 0", o.Interval)
	case o.Suspects < 0 || o.Suspects > most:
		return fmt.Errorf("--suspects %d, want 0 to %d", o.Suspects, most)
	case o.At < 0:
		return fmt.Errorf("--at %v, want 0 or later", o.At)
	}
	return nil
}

// Flow is what became of a flow's probes, and the way of one of them.
type Flow struct {
	Flow model.FlowKey
	probe.DropAnswer
	Way *trace.Trace // nil: none was seen
}

// Link is the round trip of a link; false: no probe came back.
type Link struct {
	probe.LatencyAnswer
	Measured bool
}

// Played is a run and the answers.
type Played struct {
	Result *scenario.Result
	Asked  time.Duration // when
	Flows  []Flow
	Links  []Link
	Series *probe.SeriesAnswer // of a format
}

// Fabric is what the run was played on.
func (p *Played) Fabric() *topo.Fabric { return p.Result.Intent.At(0).Fabric() }

// session is a run while questions are open.
type session struct {
	o       Options
	net     *sim.Network
	watch   *tracewatch.Watch
	desk    *probe.Desk
	short   []model.FlowKey
	drops   []*probe.Drops
	replays []*probe.Replay
	flows   []model.FlowKey // of drops
	links   []*probe.Latency
	series  *probe.Series
	failed  error
}

// settle is how long traces take to be complete after the last probe: they wait
// a millisecond, mirrors take their time, and a budget delays probes.
const settle = 5 * time.Millisecond

// Play runs a scenario whose switches mirror and asks. The run goes on until
// the answers are there, if that is later than its end.
func Play(ctx context.Context, s *scenario.Scenario, o Options, progress func(scenario.Progress)) (*Played, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	run := *s
	run.StopWhenFinished, run.Expect, run.ExpectTraces = false, nil, nil
	if o.At == 0 {
		o.At = s.Duration / 2
	}
	// Patterns of a flow are fewer than 16; a host's budget may make it three
	// times as long.
	longest := 3 * 16 * time.Duration(o.Count) * o.Interval
	if len(o.Flows) == 0 && o.Suspects == 0 {
		longest /= 16
	}
	run.Duration = max(run.Duration, o.At+longest+settle)
	x := &session{o: o}
	played, err := traces.Play(ctx, &run, traces.Options{Trace: x.take, Begin: x.begin}, progress)
	if err != nil {
		return nil, err
	}
	if x.failed != nil {
		return nil, x.failed
	}
	return x.answers(&Played{Result: played.Result, Asked: o.At}), nil
}

func (x *session) take(t *trace.Trace) {
	if !x.desk.Take(t) && (t.End == trace.Lost || t.End == trace.Looped) {
		x.short = append(x.short, t.Key)
	}
}

func (x *session) begin(n *sim.Network, w *tracewatch.Watch) error {
	x.net, x.watch = n, w
	cfg := probe.DefaultConfig()
	cfg.Interval = x.o.Interval
	var err error
	if x.desk, err = probe.NewDesk(cfg, n.Intent(), simhost.NewProbers(n, nil)); err != nil {
		return err
	}
	// What can be known to be wrong before the run is said before it.
	for _, name := range x.o.Flows {
		if _, err := scenario.FlowsOf(n, name); err != nil {
			return err
		}
	}
	if _, err := x.node(x.o.Inject); err != nil {
		return err
	}
	for _, name := range x.o.Links {
		if _, err := x.latency(name); err != nil {
			return err
		}
	}
	if x.o.Format != "" {
		if _, err := probe.ParseFormat(x.o.Format, x.address); err != nil {
			return err
		}
	}
	n.At(engine.Of(x.o.At), func() { x.failed = x.ask() })
	x.tick()
	return nil
}

// tick tells analyzers the time, so that traces close when nothing comes.
func (x *session) tick() {
	x.watch.Advance(x.net.Now().Model())
	x.net.At(x.net.Now()+engine.Millisecond/2, x.tick)
}

// node looks up a switch; of no name there is none.
func (x *session) node(name string) (*model.NodeID, error) {
	if name == "" {
		return nil, nil
	}
	id, ok := x.net.Fabric().ByName(name)
	if !ok || !x.net.Fabric().Node(id).Role.IsSwitch() {
		return nil, fmt.Errorf("no switch %q in the scenario, want one of its topology", name)
	}
	return &id, nil
}

func (x *session) address(name string) (model.Addr, bool) {
	id, ok := x.net.Fabric().ByName(name)
	if !ok {
		return model.Addr{}, false
	}
	return x.net.Fabric().Node(id).IPv4, true
}

// latency makes the question about "leaf0>spine1".
func (x *session) latency(name string) (*probe.Latency, error) {
	a, b, _ := strings.Cut(name, ">")
	near, err := x.node(strings.TrimSpace(a))
	if err != nil {
		return nil, err
	}
	far, err := x.node(strings.TrimSpace(b))
	if err != nil {
		return nil, err
	}
	if near == nil || far == nil {
		return nil, fmt.Errorf("link %q, want two switches such as leaf0>spine1", name)
	}
	return x.desk.Latency(x.net.Now().Model(), *near, *far, true, x.o.Count)
}

// ask asks everything at once.
func (x *session) ask() error {
	now := x.net.Now().Model()
	at, _ := x.node(x.o.Inject) // checked at the beginning
	for _, key := range x.suspects() {
		q, err := x.desk.Drops(now, key, at, x.o.Count)
		if err != nil {
			return err
		}
		again, err := x.desk.Replay(now, key, 5)
		if err != nil {
			return err
		}
		x.flows, x.drops, x.replays = append(x.flows, key), append(x.drops, q), append(x.replays, again)
		for _, q := range []probe.Question{q, again} {
			if _, err := x.desk.Ask(q); err != nil {
				return err
			}
		}
	}
	for _, name := range x.o.Links {
		q, err := x.latency(name)
		if err != nil {
			return err
		}
		if _, err := x.desk.Ask(q); err != nil {
			return err
		}
		x.links = append(x.links, q)
	}
	if x.o.Format != "" {
		var err error
		x.series, _, err = x.desk.Probe(now, x.o.Format, x.o.Interval, x.o.Count)
		return err
	}
	return nil
}

// suspects are the flows to ask about, each once.
func (x *session) suspects() (keys []model.FlowKey) {
	for _, name := range x.o.Flows {
		list, _ := scenario.FlowsOf(x.net, name) // checked at the beginning
		keys = append(keys, list...)
	}
	more := x.o.Suspects
	for _, k := range x.short {
		if more > 0 && !slices.Contains(keys, k) {
			keys = append(keys, k)
			more--
		}
	}
	return keys[:min(len(keys), most)]
}

func (x *session) answers(p *Played) *Played {
	for i, q := range x.drops {
		way, _ := x.replays[i].Answer()
		p.Flows = append(p.Flows, Flow{Flow: x.flows[i], DropAnswer: q.Answer(), Way: way})
	}
	for _, q := range x.links {
		a, ok := q.Answer()
		p.Links = append(p.Links, Link{a, ok})
	}
	if x.series != nil {
		a := x.series.Answer()
		p.Series = &a
	}
	return p
}
