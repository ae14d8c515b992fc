package traces

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/control/tracewatch"
	"github.com/weft-telemetry/weft/dataplane/simhost"
	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Options are how a scenario is traced.
type Options struct {
	Close    time.Duration // after which a trace is complete; 0: a millisecond
	Period   time.Duration // of counters; 0: one for the whole run
	All      bool          // keep every trace
	Memory   model.Bytes   // of kept traces; 0: as tracewatch has it
	Counters []Counter     // to add
	Debug    []tracewatch.Mark

	// Trace, if not nil, takes every trace that is kept, as it is complete.
	Trace func(t *trace.Trace)
	// Begin, if not nil, is called when everything is assembled, with the Watch
	// in place.
	Begin func(n *sim.Network, w *tracewatch.Watch) error

	// Check is called with the Watch before anything runs, and may end the run
	// with an error: for questions that will be asked afterwards.
	Check func(w *tracewatch.Watch) error
}

// Counter is one to add.
type Counter struct{ Name, Filter string }

// Played is a run and what its traces say.
type Played struct {
	*tracewatch.Watch
	Result  *scenario.Result
	Markers *simhost.Markers // nil without Debug

	first, end dta.ListID
}

// Fabric is what the run was played on.
func (p *Played) Fabric() *topo.Fabric { return p.Result.Intent.At(0).Fabric() }

// Play runs a scenario whose switches mirror.
func Play(ctx context.Context, s *scenario.Scenario, o Options, progress func(scenario.Progress)) (*Played, error) {
	at := slices.IndexFunc(s.Telemetry, func(p scenario.Program) bool { return p.Kind == "mirror" })
	if at < 0 {
		return nil, fmt.Errorf("scenario %q has no mirrors, want \"- {kind: mirror}\" under telemetry", s.Name)
	}
	out := &Played{first: s.FirstList(at), end: s.FirstList(at + 1)}
	var err error
	out.Result, err = scenario.Run(ctx, s, scenario.Options{
		Begin: func(n *sim.Network, _ map[model.NodeID][]inswitch.Program) error { return out.begin(n, s, &o) },
		Sink:  out.take,
	}, progress)
	if err != nil {
		return nil, err
	}
	out.Advance(out.Result.Run.End)
	out.Finish()
	return out, nil
}

func (p *Played) begin(n *sim.Network, s *scenario.Scenario, o *Options) error {
	cfg := tracewatch.DefaultConfig(n.Intent())
	cfg.Analyzers = int(p.end - p.first)
	cfg.Trace.CloseAfter = o.Close
	if o.Close == 0 {
		cfg.Trace.CloseAfter = time.Millisecond
	}
	cfg.Trace.RouteSettle = cfg.Trace.CloseAfter
	cfg.Period, cfg.Window, cfg.All = o.Period, 0, o.All
	if o.Period == 0 {
		cfg.Period = time.Duration(s.Base) + 2*s.Duration + time.Second // longer than any run
	}
	cfg.Periods = int(min(s.Duration/cfg.Period+2, 1<<16))
	if o.Memory > 0 {
		cfg.Memory = o.Memory
	}
	var marker tracewatch.Marker
	if len(o.Debug) > 0 {
		p.Markers = simhost.NewMarkers(n)
		marker = p.Markers
	}
	var err error
	if p.Watch, err = tracewatch.New(cfg, marker, tracewatch.Output{Trace: o.Trace}); err != nil {
		return err
	}
	for _, c := range o.Counters {
		if err := p.AddCounter(c.Name, c.Filter); err != nil {
			return err
		}
	}
	for _, d := range o.Debug {
		if err := p.EnableDbg(d.Servers, d.Filter); err != nil {
			return err
		}
	}
	if o.Check != nil {
		if err := o.Check(p.Watch); err != nil {
			return err
		}
	}
	if o.Begin == nil {
		return nil
	}
	return o.Begin(n, p.Watch)
}

// take is a simhost.Sink: it gives each mirror to the analyzer of its list.
func (p *Played) take(at model.Time, _ model.NodeID, datagram []byte) {
	var r dta.Reader
	if r.Reset(datagram) != nil {
		return // the carrier makes no such thing, and counts what it loses
	}
	for rep := (dta.Report{}); r.Next(&rep); {
		if rep.Primitive == dta.Append && rep.List >= p.first && rep.List < p.end {
			_ = p.Feed(int(rep.List-p.first)).Report(at, rep.Data) // counted there
		}
	}
}
