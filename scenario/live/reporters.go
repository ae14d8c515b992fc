package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/dataplane/convert"
	"github.com/weft-telemetry/weft/dataplane/simhost"
	"github.com/weft-telemetry/weft/dataplane/sonic"
	"github.com/weft-telemetry/weft/inhost/agent"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/topo/file"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/poll"
)

// Reporters are the switches and hosts of a simulated fabric whose reports leave as
// datagrams, for a service or a recording. No controller is here: nothing is
// analysed, and nothing is asked of the fabric. One goroutine uses it.
type Reporters struct {
	sim      *Simulation
	director *Director // nil: a scenario, with faults of its own
	doc      *file.Document
	send     Send  // nil: switches run no program of Weft
	failed   error // of send, the first
	requests map[model.NodeID]*dta.Writer
	list     dta.ListID        // of diagnosis requests
	sonic    *sonic.Fabric     // nil: switches run Weft's programs
	export   *convert.Exporter // nil: all reports leave by DTA
}

// sentTelemetry has smaller flowsets than a demo in one process: 20 switches send
// 63,000 datagrams a second instead of 205,000. A service takes 100,000 of one
// address.
var sentTelemetry = telemetry{flows: 300, labels: 500 * time.Microsecond, states: 5 * time.Millisecond}

// Send takes a datagram that a node sent to the collector. It must not keep it.
type Send func(at model.Time, from model.NodeID, datagram []byte) error

// NewReporters makes the fabric of a demo. Clocks start at a time.
func NewReporters(cfg Config, start time.Time, send Send) (*Reporters, error) {
	s, err := demoScenario(cfg, sentTelemetry)
	if err != nil {
		return nil, err
	}
	r, err := newReporters(s, demoSimulation(cfg), start, send)
	if err != nil {
		return nil, err
	}
	r.director = NewDirector(r.sim)
	return r, nil
}

// NewScenarioReporters makes the fabric of a scenario, with its traffic and faults.
func NewScenarioReporters(s *scenario.Scenario, start time.Time, send Send) (*Reporters, error) {
	if err := NeedTelemetry(s); err != nil {
		return nil, err
	}
	run := *s
	run.Agents, run.Expect, run.ExpectTraces, run.ExpectDiagnoses = nil, nil, nil, nil
	return newReporters(&run, simulationConfig{step: stepOf(s), agents: scenarioAgents(s.Agents)}, start, send)
}

// NewSONiC makes the fabric of a demo whose switches run no program of Weft: they count,
// sample and export as SONiC switches do. No host detects anything.
func NewSONiC(cfg Config, export sonic.Config, start time.Time, out sonic.Outlets) (*Reporters, error) {
	s, err := demoScenario(cfg, sentTelemetry)
	if err != nil {
		return nil, err
	}
	s.Telemetry = nil
	sim := demoSimulation(cfg)
	sim.agents = scenarioAgents(nil)
	r, err := newReporters(s, sim, start, nil)
	if err != nil {
		return nil, err
	}
	r.director = NewDirector(r.sim)
	return r, r.speak(export, out)
}

// NewScenarioSONiC is NewSONiC for the fabric of a scenario.
func NewScenarioSONiC(s *scenario.Scenario, export sonic.Config, start time.Time, out sonic.Outlets) (*Reporters, error) {
	run := *s
	run.Telemetry, run.Agents, run.Expect, run.ExpectTraces, run.ExpectDiagnoses = nil, nil, nil, nil, nil
	r, err := newReporters(&run, simulationConfig{step: stepOf(s), agents: scenarioAgents(nil)}, start, nil)
	if err != nil {
		return nil, err
	}
	return r, r.speak(export, out)
}

func (r *Reporters) speak(export sonic.Config, out sonic.Outlets) (err error) {
	export.Start = r.sim.scenario.Base
	r.sonic, err = sonic.Speak(r.sim.net, export, out)
	return err
}

// DemoTopology is the fabric that NewReporters and NewSONiC make.
func DemoTopology(cfg Config) (*file.Document, error) {
	s, err := demoScenario(cfg, sentTelemetry)
	if err != nil {
		return nil, err
	}
	return s.Topology, nil
}

func newReporters(s *scenario.Scenario, cfg simulationConfig, start time.Time, send Send) (*Reporters, error) {
	doc := *s.Topology
	if doc.Seed == 0 {
		doc.Seed = s.Seed // routes are those of the run
	}
	plan := control.DefaultListPlan(doc.Fabric)
	r := &Reporters{doc: &doc, send: send, requests: map[model.NodeID]*dta.Writer{}, list: plan.DiagnosisRequests.First}
	s.Base, s.Lists = model.TimeOf(start), map[string]scenario.Lists{
		"flowset": scenario.Lists(plan.Flowsets), "label": scenario.Lists(plan.Labels),
		"mirror": scenario.Lists(plan.Mirrors), "epoch": scenario.Lists(plan.Epochs),
	}
	cfg.sink = r.deliver
	var err error
	if r.sim, err = newSimulation(s, cfg); err != nil {
		return nil, err
	}
	r.sim.devices.onRequest = r.requestDiagnosis
	return r, nil
}

// Topology is the fabric, as a service needs it.
func (r *Reporters) Topology() *file.Document { return r.doc }

// Start is what clocks show at the beginning.
func (r *Reporters) Start() time.Time { return time.Unix(0, int64(r.sim.scenario.Base)).UTC() }

// Elapsed is the simulated time.
func (r *Reporters) Elapsed() time.Duration { return time.Duration(r.sim.elapsed()) }

func (r *Reporters) deliver(at model.Time, from model.NodeID, datagram []byte) {
	send := r.send
	if r.export != nil {
		send = r.export.Datagram
	}
	if err := send(at, from, datagram); r.failed == nil {
		r.failed = err
	}
}

// Convert has switches send labels as INT reports, mirrors as ERSPAN packets, or both,
// to send. Other reports still leave by DTA.
func (r *Reporters) Convert(labels, mirrors bool, send convert.Send) {
	plan, cfg := control.DefaultListPlan(r.doc.Fabric), convert.Config{}
	if labels {
		cfg.Labels = convert.Lists(plan.Labels)
	}
	if mirrors {
		cfg.Mirrors = convert.Lists(plan.Mirrors)
	}
	r.export = convert.NewExporter(cfg, func(f convert.Format, at model.Time, from model.NodeID, packet []byte) error {
		if f == convert.DTA {
			return r.send(at, from, packet)
		}
		return send(f, at, from, packet)
	})
}

// requestDiagnosis sends a host's request about a slow flow, from the host itself.
func (r *Reporters) requestDiagnosis(at model.Time, req agent.DiagnosisRequest) {
	from := req.Poll.Event.Host
	w := r.requests[from]
	if w == nil {
		n := dta.NewWriter(from, 1)
		w = &n
		r.requests[from] = w
	}
	w.Begin(make([]byte, maxReport))
	src, known := r.sim.fabric.ByAddr(req.Poll.Flow.Src)
	data := poll.Request{
		Poll: req.Poll, Measured: req.Measured, OfFlow: !req.Reason.OfPacket(), InFlight: req.Reason == agent.Age,
		HostPaused: known && simhost.FlowPortPaused(r.sim.net.Host(src), req.Poll.Flow),
	}
	if err := w.AddReport(&dta.Report{Primitive: dta.Append, List: r.list, Data: data.AppendTo(nil)}); err != nil {
		panic(fmt.Sprintf("live: a poll does not fit into a datagram: %v", err)) // it has 100 bytes
	}
	r.deliver(at, from, w.Finish())
}

// Record simulates as fast as possible: a demo injects every fault once, a scenario
// runs to its end. injected is called after each fault of a demo.
func (r *Reporters) Record(ctx context.Context, injected func(*Injected)) error {
	if r.director != nil {
		_, err := r.director.RunProgramme(ctx, injected)
		return errors.Join(err, r.settle())
	}
	end := engine.Of(r.sim.scenario.Duration)
	for r.sim.net.Now() < end && r.failed == nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.sim.advanceTo(min(r.sim.net.Now()+engine.Of(r.sim.cfg.step), end)); err != nil {
			return err
		}
	}
	return r.settle()
}

// settle has all reports in flight arrive.
func (r *Reporters) settle() error {
	r.sim.devices.Agents.Stop()
	r.sim.session.Settle()
	if r.sonic != nil {
		r.failed = errors.Join(r.failed, r.sonic.Flush(r.sim.Now()))
	}
	return r.failed
}

// RealTime is how a fabric runs by the wall clock.
type RealTime struct {
	Every    time.Duration // between two faults of a demo; 0: none
	For      time.Duration // that a fault lasts
	Injected func(*Injected)
	// Behind, if not nil, is called when the simulation is a second behind the wall
	// clock, and each time when that has doubled.
	Behind func(by time.Duration)
}

// MaxBehind is how far a simulation may fall behind the wall clock. Services refuse
// reports that are a minute old.
const MaxBehind = 30 * time.Second

// RunRealTime simulates by the wall clock, from Start on, until ctx ends or a
// scenario does.
func (r *Reporters) RunRealTime(ctx context.Context, o RealTime) error {
	step, end := engine.Of(r.sim.cfg.step), engine.Forever
	if r.director == nil {
		end = engine.Of(r.sim.scenario.Duration)
	} else {
		r.director.onInject = o.Injected
	}
	next, kind, behind := o.Every/6, 0, time.Second
	for r.sim.net.Now() < end && r.failed == nil && ctx.Err() == nil {
		if r.sonic != nil {
			if err := r.sonic.Err(); err != nil {
				return err
			}
		}
		if err := r.sim.advanceTo(min(r.sim.net.Now()+step, end)); err != nil {
			return err
		}
		if r.director != nil && o.Every > 0 && r.Elapsed() >= next {
			if _, err := r.director.Inject(FaultKinds()[kind%len(FaultKinds())].Name, Anywhere, o.For); err != nil {
				return err
			}
			next, kind = next+o.Every, kind+1
		}
		late := time.Since(r.Start()) - r.Elapsed()
		switch {
		case late > MaxBehind:
			return fmt.Errorf("the simulation is %s behind the wall clock, and its reports are soon refused; want a lower rate or load",
				late.Round(time.Second))
		case late > behind:
			behind = 2 * late
			if o.Behind != nil {
				o.Behind(late)
			}
		case -late > time.Millisecond:
			sleep(ctx, -late)
		}
	}
	return r.failed
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
