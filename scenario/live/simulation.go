package live

import (
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/core"
	"github.com/weft-telemetry/weft/control/livestate"
	"github.com/weft-telemetry/weft/control/rootcause"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Simulation is a scenario in the simulator, whose reports a controller reads.
// One goroutine advances it; Time and Stages are for any goroutine.
type Simulation struct {
	Controller *control.Controller

	cfg      simulationConfig
	scenario *scenario.Scenario
	session  *scenario.Session
	net      *sim.Network
	fabric   *topo.Fabric
	devices  *devices

	collector *core.InProcessCollector
	polled    uint64 // reports that were stored at the last poll
	failed    error  // of a poll between two steps, the first

	now    atomic.Int64
	stages atomic.Pointer[[]api.Stage]
}

// simulationConfig is how a scenario is simulated.
type simulationConfig struct {
	step     time.Duration // between two polls of the controller
	maxRing  int           // reports that a list of collector memory holds at most; 0: as a service's
	maxWait  int           // reports after which collector memory is polled within a step; 0: never
	agents   agentsConfig
	traffic  func(n *sim.Network) error // adds flows before a step; nil: those of the scenario alone
	flowsFor time.Duration              // how long a finished flow is kept; 0: to the end
	// sink, if not nil, takes all datagrams: there is no collector and no controller.
	sink func(at model.Time, from model.NodeID, datagram []byte)
}

// newSimulation assembles a scenario. Nothing has happened in it yet. attach must
// follow, and close.
func newSimulation(s *scenario.Scenario, cfg simulationConfig) (_ *Simulation, err error) {
	m := &Simulation{cfg: cfg, scenario: s}
	m.stages.Store(&[]api.Stage{})
	if m.session, err = scenario.Open(s, m.receive); err != nil {
		return nil, err
	}
	m.net, m.fabric = m.session.Network, m.session.Network.Fabric()
	if cfg.sink != nil {
		m.devices, err = newDevices(m.session, cfg.agents)
		return m, err
	}
	memory := m.listPlan().Memory(maxReport)
	for i := range memory.Classes {
		if cfg.maxRing > 0 {
			memory.Classes[i].Capacity = min(memory.Classes[i].Capacity, cfg.maxRing)
		}
	}
	if len(memory.Classes) == 0 {
		memory.Classes = []list.Class{{Lists: 1, Entry: maxReport, Capacity: 1024, Sized: true}} // without telemetry
	}
	keyed, err := livestate.PlanFor(m.fabric, livestate.Sizes{})
	if err != nil {
		return nil, err
	}
	if m.collector, err = core.NewInProcessCollector(memory, keyed, cfg.step); err != nil {
		return nil, err
	}
	if m.devices, err = newDevices(m.session, cfg.agents); err != nil {
		_ = m.close()
		return nil, err
	}
	return m, nil
}

// maxReport is as long as a datagram of the management network: no report is longer.
const maxReport = 1472

// listPlan is the plan that the scenario's telemetry programs follow. Of several
// programs of one kind the first counts.
func (m *Simulation) listPlan() (plan control.ListPlan) {
	plan.Switches = m.fabric.Switches()
	for i, p := range m.scenario.Telemetry {
		n := 1
		if p.ListPerSwitch {
			n = len(m.fabric.Switches())
		} else if p.Lists > 0 {
			n = p.Lists
		}
		var r *control.ListRange
		switch p.Kind {
		case "flowset":
			r = &plan.Flowsets
		case "label":
			r = &plan.Labels
		case "mirror":
			r = &plan.Mirrors
		case "epoch":
			r = &plan.Epochs
		default:
			continue
		}
		if r.Count == 0 {
			*r = control.ListRange{First: m.scenario.FirstList(i), Count: n}
		}
	}
	return plan
}

// controllerConfig is what a controller of any simulation goes by.
func (m *Simulation) controllerConfig(epoch time.Time) control.Config {
	cfg := control.DefaultConfig(m.net.Intent())
	cfg.ListPlan, cfg.Epoch = m.listPlan(), epoch
	cfg.Traces.Analyzers = max(cfg.ListPlan.Mirrors.Count, 1)
	return cfg
}

// traceClose is how long after its last mirror a trace is complete: a packet may wait at the
// slowest port of a switch behind all that the others may put there, and is not lost. Each of
// them may have alpha times what is free of the buffer.
func (m *Simulation) traceClose() time.Duration {
	longest := time.Millisecond
	cfg := m.net.Config()
	for _, id := range m.fabric.Switches() {
		ports := m.fabric.Node(id).Ports
		alpha := float64(len(ports)-1) / float64(int(1)<<cfg.AlphaShift)
		bits := 8 * float64(cfg.Buffer) * alpha / (1 + alpha)
		for _, p := range ports {
			longest = max(longest, time.Duration(bits/float64(p.Rate)*float64(time.Second)))
		}
	}
	return longest
}

// attach connects the controller that reads the simulation's reports.
func (m *Simulation) attach(c *control.Controller) {
	m.Controller = c
	m.devices.onDetection = func(d rootcause.DiagnosisRequest) { c.RequestDiagnosis(m.Now(), d) }
	m.publishStages()
}

// receive takes a datagram of one switch.
func (m *Simulation) receive(at model.Time, from model.NodeID, datagram []byte) {
	at += m.scenario.Base
	if m.cfg.sink != nil {
		m.cfg.sink(at, from, datagram)
		return
	}
	addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, byte(from >> 8), byte(from)}), 40040)
	m.collector.Receive(at, addr, datagram)
	if m.cfg.maxWait > 0 && m.collector.Stored()-m.polled >= uint64(m.cfg.maxWait) {
		if err := m.poll(at); m.failed == nil {
			m.failed = err
		}
	}
}

// poll hands the controller what is in memory.
func (m *Simulation) poll(now model.Time) error {
	m.polled = m.collector.Stored()
	return m.collector.Poll(now, func(id dta.ListID, data []byte) { m.Controller.IngestReport(now, id, data) })
}

// Now is the fabric's time, for the goroutine that advances it.
func (m *Simulation) Now() model.Time { return m.net.Now().Model() + m.scenario.Base }

// elapsed is the simulated time, which faults are scheduled by.
func (m *Simulation) elapsed() model.Time { return m.net.Now().Model() }

// Time is the fabric's time, for any goroutine.
func (m *Simulation) Time() model.Time { return model.Time(m.now.Load()) }

// Advance simulates one step, and has the controller analyse what was reported.
func (m *Simulation) Advance() error { return m.advanceTo(m.net.Now() + engine.Of(m.cfg.step)) }

func (m *Simulation) advanceTo(to engine.Time) error {
	if m.cfg.traffic != nil {
		if err := m.cfg.traffic(m.net); err != nil {
			return fmt.Errorf("live: traffic: %w", err)
		}
	}
	m.net.Run(to)
	now := m.Now()
	if m.Controller != nil {
		if err := m.poll(now); err != nil {
			return err
		}
		m.Controller.Tick(now)
	}
	if m.cfg.flowsFor > 0 {
		m.net.ForgetFinished(m.net.Now() - engine.Of(m.cfg.flowsFor))
	}
	m.now.Store(int64(now))
	return m.failed
}

// finish has all reports that are in flight arrive, and takes everything for
// complete.
func (m *Simulation) finish() error {
	m.devices.Agents.Stop()
	m.session.Settle()
	now := m.Now()
	err := m.collector.Drain(now, func(id dta.ListID, data []byte) { m.Controller.IngestReport(now, id, data) })
	m.Controller.Tick(now)
	m.Controller.Flush()
	m.Controller.Tick(now)
	m.Controller.RefreshView(now)
	m.publishStages()
	if err == nil {
		err = m.failed
	}
	return err
}

// publishStages makes what Stages returns. It runs between two steps.
func (m *Simulation) publishStages() {
	list := []api.Stage{}
	if t := m.session.Telemetry(); t != nil {
		var lost uint64
		for _, n := range t.Lost {
			lost += n
		}
		list = append(list,
			api.Stage{
				Name: "switches", Title: "Switch programs", Unit: "reports", In: t.Reports, Out: t.Reports,
				Losses: []api.StageLoss{},
			},
			api.Stage{
				Name: "transport", Title: "Management network", Unit: "reports", In: t.Reports, Out: t.Delivered,
				Queued: int(t.InFlight),
				Losses: []api.StageLoss{{Reason: "lost", About: "between switch and collector", Count: lost}},
			})
	}
	list = append(list, core.PipelineStages(m.collector.Intake(), m.collector.Lost(), m.Controller.Stats())...)
	m.stages.Store(&list)
}

// Stages is part of core.Input.
func (m *Simulation) Stages() []api.Stage { return append([]api.Stage(nil), *m.stages.Load()...) }

// close frees the memory.
func (m *Simulation) close() error { return m.collector.Close() }
