package scenario

import (
	"cmp"
	"fmt"
	"runtime"
	"time"

	"github.com/weft-telemetry/weft/dataplane/simhost"
	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/sim/truth"
	"github.com/weft-telemetry/weft/topo"
)

// session is a scenario that is being simulated.
type session struct {
	s           *Scenario
	fabric      *topo.Fabric
	routes      *topo.Routes
	net         *sim.Network
	recorder    *runRecorder
	parts       []part // by Scenario.Traffic
	flows       int
	offeredLoad []string          // offered load of each traffic item
	hosts       []*simhost.Switch // of telemetry programs
	programs    map[model.NodeID][]inswitch.Program
	mgmt        *simhost.Management // nil: reports travel in-band
	captures    []*capture
	collector   *traceCollector // nil: the scenario expects nothing of traces
	diagnosis   *diagnosis      // nil: the scenario has no agents
	repeats     *repeats        // nil: the run goes on when a job repeats itself
}

// part is the flows of one traffic item, as indexes in the network.
type part struct{ first, end int }

// assemble builds the network and everything in it. Nothing has run yet.
func assemble(s *Scenario, o Options) (*session, error) {
	x := &session{s: s, fabric: s.fabric()}
	if s.Duration <= 0 || s.Duration > MaxDuration {
		return nil, fmt.Errorf("duration %v, want above 0 and at most %v", s.Duration, MaxDuration)
	}
	if len(x.fabric.Switches()) == 0 || len(x.fabric.Hosts()) < 2 {
		return nil, wrap(s.fabricPos, "topology", fmt.Errorf("%d hosts and %d switches, want at least two and one",
			len(x.fabric.Hosts()), len(x.fabric.Switches())))
	}
	for _, step := range []func(Options) error{
		x.buildNetwork, x.recordTruth, x.addServices, x.addTraffic,
		x.scheduleMigrations, x.injectFaults, x.scheduleRouteChanges, x.startBGP, x.setClocks, x.startAgents,
		x.attachPrograms, x.startCaptures, x.watchRepeats, x.callBegin,
	} {
		if err := step(o); err != nil {
			return nil, err
		}
	}
	return x, nil
}

func (x *session) callBegin(o Options) error {
	if o.Begin == nil {
		return nil
	}
	return o.Begin(x.net, x.programs)
}

func (x *session) setClocks(Options) error {
	if base := time.Duration(x.s.Base); base != 0 {
		for id := range x.fabric.Nodes() {
			x.net.SetClock(model.NodeID(id), sim.Clock{Offset: base})
		}
	}
	for _, c := range x.s.Clocks {
		c.Offset += time.Duration(x.s.Base)
		x.net.SetClock(c.Node, c.Clock)
	}
	return nil
}

// wrap adds the position of the file item that caused an error.
func wrap(at Position, what string, err error) error {
	if at.File == "" {
		return fmt.Errorf("%s: %w", what, err)
	}
	return at.Errorf("%s: %s", what, trimPackageNames(err))
}

func (x *session) buildNetwork(o Options) (err error) {
	if x.routes, err = x.s.IntendedRoutes(); err != nil {
		return wrap(x.s.fabricPos, "topology", err)
	}
	cfg := x.s.Sim
	cfg.Seed = x.s.Seed
	if x.net, err = sim.New(x.routes, cfg); err != nil {
		return wrap(x.s.fabricPos, "fabric", err)
	}
	switch {
	case o.unrecorded: // the rest of the process has work, too
		return nil
	case o.Cores == 0 && len(x.routes.Fabric().Nodes()) < parallelNodes:
		return nil
	case o.Cores == 0:
		return x.net.SetCores(min(runtime.GOMAXPROCS(0), sim.MaxCores))
	}
	return x.net.SetCores(o.Cores)
}

// parallelNodes is from how many nodes on several cores are faster than one: below, cores
// wait for each other for longer than they work.
const parallelNodes = 1000

// IntendedRoutes computes the routes at the start of a run. The topology's seed of
// ECMP takes precedence over the scenario's.
func (s *Scenario) IntendedRoutes() (*topo.Routes, error) {
	if s.Routes != nil {
		return s.Routes, nil
	}
	c := topo.RouteConfig{Seed: s.Topology.Seed, Overrides: s.Topology.Overrides}
	if c.Seed == 0 {
		c.Seed = s.Seed
	}
	return topo.NewRoutes(s.Topology.Fabric, c)
}

// Bounds of what a run keeps.
const (
	maxDrops   = 1 << 16
	maxPauses  = 1 << 18
	maxSamples = 1 << 20
	rows       = 1000 // samples of a port, unless a scenario says otherwise
)

func (x *session) recordTruth(o Options) error {
	if o.unrecorded {
		return nil
	}
	t := o.Truth
	if t == (truth.Options{}) {
		t = truth.Options{
			Flows: true, Drops: true, MaxDrops: maxDrops, Pauses: true, MaxPauses: maxPauses, Depths: true,
			Sample: x.s.Output.Sample, MaxSamples: maxSamples, Deadlock: x.s.Output.DeadlockAfter,
		}
	}
	if t.Sample == 0 {
		t.Sample = max(x.s.Duration/rows, time.Nanosecond)
	}
	t.Until = engine.Of(x.s.Duration)
	r, err := truth.Record(x.net, t)
	if err != nil {
		return err
	}
	x.recorder = &runRecorder{Recorder: r, lossless: x.lossless()}
	x.net.Observe(x.recorder)
	return nil
}

// lossless returns the priorities that must not drop packets when the buffer
// fills, one bit each.
func (x *session) lossless() uint8 {
	switch c := &x.s.Sim; {
	case c.NoPFC:
		return 0
	case c.HPCC:
		return 0xfe
	default:
		return c.Lossless
	}
}

// addServices adds the services to their muxes.
func (x *session) addServices(Options) error {
	for i := range x.s.Services {
		if err := x.net.AddService(x.s.Services[i].Service); err != nil {
			return wrap(x.s.Services[i].Position, "services", err)
		}
	}
	return nil
}

// startBGP starts BGP.
func (x *session) startBGP(Options) error {
	if x.s.Keepalive == 0 {
		return nil
	}
	return x.net.EnableBGP(x.s.Keepalive)
}

// addTraffic makes the flows. Each item is drawn as if it were alone at its
// index, so that its flows are known to be its own.
func (x *session) addTraffic(Options) error {
	hosts := traffic.HostsOf(x.fabric)
	end := model.Time(x.s.Duration)
	var before []traffic.Generator
	for i := range x.s.Traffic {
		t := &x.s.Traffic[i]
		list, err := traffic.Generate(x.s.Seed, hosts, append(before, untilEnd(t.Generator, end))...)
		if err == nil && x.flows+len(list) > traffic.MaxFlows {
			err = fmt.Errorf("%d flows with those above, want at most %d", x.flows+len(list), traffic.MaxFlows)
		}
		if err == nil {
			err = x.net.AddFlows(list)
		}
		if err != nil {
			return wrap(t.Position, "traffic "+t.Name, err)
		}
		p := part{x.flows, x.flows + len(list)}
		x.parts, x.flows = append(x.parts, p), p.end
		x.offeredLoad = append(x.offeredLoad, fmt.Sprintf("traffic %s offers %v", t.Name,
			traffic.Summarize(list, hosts, x.s.Duration)))
		x.recordCause(t, p)
		before = append(before, traffic.List{})
	}
	return nil
}

// recordCause records traffic that is meant to congest as a cause.
func (x *session) recordCause(t *Traffic, p part) {
	if x.recorder == nil {
		return
	}
	var kind string
	switch t.Generator.(type) {
	case traffic.Incast:
		kind = "incast"
	case traffic.Shrew:
		kind = "shrew"
	default:
		return
	}
	c := truth.Cause{Kind: kind, Text: fmt.Sprintf("%d flows of %s", p.end-p.first, t.Name), End: engine.Forever}
	for id := p.first; id < p.end; id++ {
		_, spec := x.net.FlowKey(id)
		if at := timeOf(spec.Start); id == p.first || at < c.Begin {
			c.Begin = at
		}
		c.Flows = append(c.Flows, id)
	}
	x.recorder.AddCause(c)
}

func timeOf(t model.Time) engine.Time { return engine.Time(t) * engine.Nanosecond }

// injectFaults schedules the faults.
func (x *session) injectFaults(Options) error {
	for i := range x.s.Faults {
		f := x.s.Faults[i]
		switch b := f.Fault.(type) {
		case sim.CorruptTable:
			b.Seed = cmp.Or(b.Seed, x.s.Seed)
			f.Fault = b
		case sim.MisdirectingMux:
			b.Seed = cmp.Or(b.Seed, x.s.Seed)
			f.Fault = b
		}
		if err := x.injectFault(f.Injection); err != nil {
			return wrap(f.Position, "fault "+f.Kind, err)
		}
	}
	return nil
}

// injectFault schedules a fault, and records it as a cause.
func (x *session) injectFault(in sim.Injection) error {
	if x.recorder == nil {
		return x.net.Inject(in)
	}
	return x.recorder.Inject(in)
}

// runRecorder observes the run: ground truth, and what truth does not keep.
type runRecorder struct {
	*truth.Recorder
	lossless uint8

	frames        []frame // pause frames, the first ones
	framesLost    int64
	toHosts       int64 // PAUSE frames that hosts received
	byHosts       int64 // PAUSE frames that hosts sent
	losslessDrops int64
}

// frame is a pause frame, at its receiver.
type frame struct {
	at   engine.Time
	port *sim.Port
	prio model.Priority
	stop bool
}

// maxFrames bounds the list of pause frames.
const maxFrames = 1 << 20

// PauseReceived is part of sim.Observer.
func (w *runRecorder) PauseReceived(now engine.Time, at *sim.Port, prio model.Priority, stop bool) {
	if stop && at.Host() != nil {
		w.toHosts++
	}
	if stop && at.Peer().Host() != nil {
		w.byHosts++
	}
	if len(w.frames) < maxFrames {
		w.frames = append(w.frames, frame{now, at, prio, stop})
	} else {
		w.framesLost++
	}
	w.Recorder.PauseReceived(now, at, prio, stop)
}

// Dropped is part of sim.Observer.
func (w *runRecorder) Dropped(now engine.Time, p *sim.Packet, at *sim.Port, why sim.Reason) {
	if why == sim.DropBuffer && w.lossless>>p.Priority&1 != 0 {
		w.losslessDrops++
	}
	w.Recorder.Dropped(now, p, at, why)
}
