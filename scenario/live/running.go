package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/analyze/coverage"
	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/client"
	"github.com/weft-telemetry/weft/control/core"
	"github.com/weft-telemetry/weft/control/portwatch"
	"github.com/weft-telemetry/weft/dataplane/simhost"
	"github.com/weft-telemetry/weft/inhost/marker"
	"github.com/weft-telemetry/weft/inswitch/flowset"
	"github.com/weft-telemetry/weft/inswitch/label"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/scenario/labels"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/store/embedded"
)

// StartOptions are how Start runs a scenario.
type StartOptions struct {
	// Need is a kind of telemetry that the scenario must have, such as "flowset";
	// empty: none.
	Need string
	// TraceClose is how long after its last mirror a trace is complete; 0: as long as the
	// longest queue takes to drain, at least 1 ms.
	TraceClose time.Duration
	// KeepAllTraces keeps every trace, not only lost, looped, marked and protocol
	// packets.
	KeepAllTraces bool
	TraceMemory   model.Bytes // for traces; 0: 512 MiB
	// CounterPeriod is the length of a counter's period; 0: the whole run.
	CounterPeriod time.Duration
	// PortStates has all switches write the states of their ports, if the scenario does
	// not say how.
	PortStates bool
	// HostCounters has all switches count for their hosts, if the scenario does not say
	// how.
	HostCounters bool
	// Postcards has all switches send postcards of one in this number of packets of
	// every flow, if the scenario does not say how; 0: none.
	Postcards int
	// AdaptiveLabels has silent ports label more often.
	AdaptiveLabels bool
	// ProbeIdlePorts has hosts send packets over ports without traffic, to be labelled.
	ProbeIdlePorts bool
	// LabelWindow is the window of label coverage; 0: twice the labelling interval.
	LabelWindow time.Duration
	// Progress, if not nil, is called from time to time and at the end.
	Progress func(scenario.Progress)
}

// Running is a scenario that runs in the simulator under a controller with its
// API. It waits at its start until RunUntil or Wait. Clients may ask, and place
// marks, counters and probes, whenever it has stopped. One goroutine calls
// RunUntil, Wait and Close.
type Running struct {
	core   *core.Core
	sim    *Simulation
	store  *embedded.Store
	dir    string
	client *client.Client
	o      StartOptions
	load   *labels.Load // of switch ports; nil without labels

	began   time.Time
	cancel  context.CancelFunc
	ended   chan error       // of Run, when it has
	targets chan engine.Time // where to simulate to
	reached chan error       // the simulation stands there
	done    atomic.Bool      // all reports are analysed
}

// Start assembles a scenario and serves its API in process. Close must follow.
func Start(ctx context.Context, s *scenario.Scenario, o StartOptions) (_ *Running, err error) {
	has := func(kind string) bool {
		return slices.ContainsFunc(s.Telemetry, func(p scenario.Program) bool { return p.Kind == kind })
	}
	if o.Need != "" && !has(o.Need) {
		return nil, fmt.Errorf("scenario %q has no telemetry of kind %s, want \"- {kind: %s}\" under telemetry", s.Name, o.Need, o.Need)
	}
	r := &Running{
		o: o, began: time.Now(), ended: make(chan error, 1), targets: make(chan engine.Time), reached: make(chan error),
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.free())
		}
	}()
	run := *s
	// Agents report to the controller, not to the scenario's own verdicts.
	run.Agents, run.Expect, run.ExpectTraces, run.ExpectDiagnoses = nil, nil, nil, nil
	for _, one := range []struct {
		wanted bool
		kind   string
		make   func(period time.Duration) (scenario.Program, error)
	}{
		{o.PortStates, "port-state", scenario.PortStateProgram},
		{o.HostCounters, "host-counters", scenario.HostCounterProgram},
	} {
		if !one.wanted || has(one.kind) {
			continue
		}
		p, err := one.make(min(max(run.Duration/statesPerRun, minStatePeriod), 10*time.Millisecond))
		if err != nil {
			return nil, err
		}
		run.Telemetry = append(slices.Clone(run.Telemetry), p)
	}
	if o.Postcards > 0 && !has("postcard") {
		p, err := scenario.PostcardProgram(o.Postcards)
		if err != nil {
			return nil, err
		}
		run.Telemetry = append(slices.Clone(run.Telemetry), p)
	}
	if r.sim, err = newSimulation(&run, simulationConfig{
		step: stepOf(&run), maxWait: pollAfter, agents: scenarioAgents(s.Agents),
	}); err != nil {
		return nil, err
	}
	if r.dir, err = os.MkdirTemp("", "weft-scenario-"); err != nil {
		return nil, err
	}
	if r.store, err = embedded.Open(filepath.Join(r.dir, "weft.duckdb"), storeConfig()); err != nil {
		return nil, err
	}
	r.sim.devices.commands = &commandChannel{
		delay: s.Management.Delay, loss: s.Management.Loss, rng: rand.New(rand.NewPCG(s.Seed, 6)),
	}
	if has("label") {
		r.load = labels.MeasureLoad(r.sim.net)
	}
	cfg := core.DefaultConfig(r.controllerConfig())
	cfg.WriteQueue = 1 << 40 // nothing is shed: a run is short, and no real fabric waits
	a := apiConfig()
	cfg.API = &a
	if r.core, err = core.New(cfg, core.Deps{Devices: r.sim.devices, Store: r.store, Memory: r.sim.collector.Memory()}, r); err != nil {
		return nil, err
	}
	r.sim.attach(r.core.Controller)
	if r.client, err = client.New("http://127.0.0.1", "", &http.Client{Transport: handlerTransport{r.core.Handler()}}); err != nil {
		return nil, err
	}
	ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go func() { r.ended <- r.core.Run(ctx) }()
	return r, nil
}

// stepOf is the simulated time between two polls of the controller: short runs
// are polled more often, so that samples of ports show their queues.
func stepOf(s *scenario.Scenario) time.Duration {
	return min(max(s.Duration/500, 10*time.Microsecond), Step)
}

// pollAfter is after how many reports collector memory is read within a step: the
// shortest of its rings hold four times as many.
const pollAfter = 256

// controllerConfig is what the controller of a scenario goes by.
func (r *Running) controllerConfig() control.Config {
	s, o := r.sim.scenario, &r.o
	cfg := r.sim.controllerConfig(time.Unix(0, 0).UTC())
	cfg.SampleInterval, cfg.Passive = r.sim.cfg.step, true
	cfg.Traces.Trace.CloseAfter = o.TraceClose
	if o.TraceClose == 0 {
		cfg.Traces.Trace.CloseAfter = r.sim.traceClose()
	}
	cfg.Traces.Trace.RouteSettle = cfg.Traces.Trace.CloseAfter
	cfg.Traces.KeepAll, cfg.Traces.Window = o.KeepAllTraces, 0
	if cfg.Traces.Period = o.CounterPeriod; o.CounterPeriod == 0 {
		cfg.Traces.Period = time.Duration(s.Base) + 2*s.Duration + time.Second // longer than any run
	}
	cfg.Traces.Periods = int(min(s.Duration/cfg.Traces.Period+2, 1<<16))
	if cfg.Traces.Memory = o.TraceMemory; o.TraceMemory == 0 {
		cfg.Traces.Memory = 512 * model.MiB
	}
	cfg.Causes.MaxRequests = 1 << 16
	cfg.Ports.States.Skew = max(cfg.Ports.States.Skew, maxSkew(s))
	cfg.Ports.States.MaxAge += cfg.Ports.States.Skew
	cfg.Ports.KeepWindows = 1 << 20
	interval := r.sim.followPrograms(&cfg)
	if interval > 0 && o.LabelWindow > 0 {
		cfg.Ports.Window = o.LabelWindow
	}
	if interval > 0 && o.AdaptiveLabels {
		t := coverage.DefaultTunerConfig(interval)
		cfg.Ports.Tuner = &t
	}
	if interval > 0 && o.ProbeIdlePorts {
		n := r.sim.session.Network
		cfg.Ports.Probing = &portwatch.Probing{
			Routes: n.Routes(), After: interval, Port: labels.ProbePort,
			Prober: labels.NewProber(n, simhost.NewProbers(n, nil), labels.Channel{Seed: s.Seed}),
		}
	}
	return cfg
}

// followPrograms has a controller expect the slots and labels that the scenario's
// programs make. It returns the interval of labels; 0: there are none.
func (m *Simulation) followPrograms(cfg *control.Config) (interval time.Duration) {
	for _, all := range m.session.Programs {
		for _, p := range all {
			switch p := p.(type) {
			case *label.Program:
				interval = p.Interval()
				cfg.Ports.Window = 2 * interval
			case *flowset.Program:
				cfg.Flows.Slot = p.Slot()
			}
		}
	}
	return interval
}

// statesPerRun is how often a switch writes its ports' states and evicts its hosts'
// counters in a run, unless the scenario says it.
const (
	statesPerRun   = 50
	minStatePeriod = 10 * time.Microsecond
)

// maxSkew is how far the scenario sets its clocks apart.
func maxSkew(s *scenario.Scenario) (skew time.Duration) {
	for _, c := range s.Clocks {
		drift := time.Duration(c.Drift * float64(s.Duration))
		skew = max(skew, c.Offset+drift.Abs(), -c.Offset+drift.Abs())
	}
	return skew
}

// Client asks the scenario's API, in process.
func (r *Running) Client() *client.Client { return r.client }

// Start is the fabric's time when the run begins, as the API shows it.
func (r *Running) Start() time.Time { return time.Unix(0, int64(r.sim.scenario.Base)).UTC() }

// Duration is how long the scenario runs by itself.
func (r *Running) Duration() time.Duration { return r.sim.scenario.Duration }

// MarkStats counts the packets of hosts that set debug marks. It may be called while
// the run has stopped.
func (r *Running) MarkStats() marker.Stats { return r.sim.devices.Markers.Stats() }

// RunUntil simulates up to a time since the start of the run, which may be later
// than its end, and stops there.
func (r *Running) RunUntil(ctx context.Context, t time.Duration) error {
	if r.done.Load() {
		return errors.New("live: the scenario has ended")
	}
	stopped := func() error {
		r.cancel()
		return fmt.Errorf("stopped at %v of %v: %w", time.Duration(r.sim.Time()), r.Duration(), ctx.Err())
	}
	if ctx.Err() != nil { // a short run may end before it notices
		return stopped()
	}
	select {
	case r.targets <- engine.Of(t):
	case err := <-r.ended:
		r.ended <- err
		return errors.Join(errors.New("live: the scenario was stopped"), err)
	}
	select {
	case err := <-r.reached:
		return errors.Join(err, r.publish(context.WithoutCancel(ctx)))
	case <-ctx.Done():
		return errors.Join(stopped(), <-r.reached)
	}
}

// Wait simulates to the end of the scenario, and returns when all reports are
// analysed and every record can be queried.
func (r *Running) Wait(ctx context.Context) error {
	if r.done.Load() {
		return nil
	}
	if err := r.RunUntil(ctx, r.Duration()); err != nil {
		return err
	}
	var err error
	if called := r.core.Loop.Call(ctx, func() { err = r.sim.finish() }); called != nil {
		return called
	}
	r.done.Store(true)
	return errors.Join(err, r.publish(ctx))
}

// publish has every record so far in the answers from now on.
func (r *Running) publish(ctx context.Context) error {
	err := r.core.Writer.Flush(ctx)
	r.core.ForgetAnswers()
	return err
}

// Run is part of core.Input.
func (r *Running) Run(ctx context.Context) error {
	defer r.core.Loop.Close()
	for {
		var to engine.Time
		requested := false
		next := make(chan struct{})
		go func() {
			defer close(next)
			select {
			case to = <-r.targets:
				requested = true
			case <-ctx.Done():
			}
		}()
		r.core.Loop.RunUntil(ctx, next)
		<-next
		if !requested {
			return nil
		}
		r.reached <- r.simulate(ctx, to) // RunUntil waits for it, even if ctx has ended
	}
}

// simulate advances to an instant, or until ctx ends.
func (r *Running) simulate(ctx context.Context, to engine.Time) error {
	net, s := r.sim.net, r.sim.scenario
	last, hops := time.Now(), net.Counts.Hops
	report := func(now time.Time) {
		p := scenario.Progress{
			Now: net.Now().Duration(), End: s.Duration, Hops: net.Counts.Hops,
			Wall: now.Sub(r.began), Flows: net.Flows(), Finished: net.Finished,
		}
		if d := now.Sub(last); d > 0 {
			p.PerWall = float64(net.Counts.Hops-hops) / d.Seconds()
		}
		if net.Now() > 0 {
			p.Left = time.Duration(float64(p.Wall) * float64(max(to-net.Now(), 0)) / float64(net.Now()))
		}
		last, hops = now, net.Counts.Hops
		r.o.Progress(p)
	}
	step := engine.Of(r.sim.cfg.step)
	for net.Now() < to && ctx.Err() == nil {
		r.core.Loop.RunPending()
		if err := r.sim.advanceTo(min(net.Now()+step, to)); err != nil {
			return err
		}
		if s.StopWhenFinished && net.Finished == net.Flows() && to <= engine.Of(s.Duration) {
			break
		}
		if now := time.Now(); r.o.Progress != nil && now.Sub(last) >= progressInterval {
			report(now)
			r.sim.publishStages()
		}
	}
	r.sim.publishStages()
	if r.o.Progress != nil {
		report(time.Now())
	}
	return nil
}

// progressInterval is the least time between two calls of Progress.
const progressInterval = 100 * time.Millisecond

// Clock is part of core.Input.
func (r *Running) Clock() api.Clock {
	return api.Clock{Now: time.Unix(0, int64(r.sim.Time())).UTC(), Wall: time.Now(), Mode: "replay", Pace: 1}
}

// Ready is part of core.Input.
func (r *Running) Ready() error { return nil }

// Stages is part of core.Input.
func (r *Running) Stages() []api.Stage { return r.sim.Stages() }

// Close ends the run and frees everything.
func (r *Running) Close() error {
	r.cancel()
	return errors.Join(<-r.ended, r.free())
}

func (r *Running) free() error {
	var errs []error
	if r.sim != nil {
		errs = append(errs, r.sim.close())
	}
	if r.store != nil {
		errs = append(errs, r.store.Close())
	}
	if r.dir != "" {
		errs = append(errs, os.RemoveAll(r.dir))
	}
	return errors.Join(errs...)
}

// handlerTransport answers requests in process.
type handlerTransport struct{ handler http.Handler }

func (t handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	r.RequestURI = r.URL.RequestURI()
	r.RemoteAddr = "127.0.0.1:0"
	if r.Host == "" {
		r.Host = r.URL.Host
	}
	w := &responseBuffer{header: http.Header{}, status: http.StatusOK}
	t.handler.ServeHTTP(w, r)
	return &http.Response{
		StatusCode: w.status, Status: http.StatusText(w.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
	}, nil
}

// responseBuffer holds an answer. Streams of events do not end, so it is not for
// them.
type responseBuffer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *responseBuffer) Header() http.Header         { return w.header }
func (w *responseBuffer) WriteHeader(status int)      { w.status = status }
func (w *responseBuffer) Write(b []byte) (int, error) { return w.body.Write(b) }
