package live

import (
	_ "embed"
	"strconv"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/topo"
)

//go:embed demo.yaml
var demoYAML string

// Config is the fabric of a demo.
type Config struct {
	Seed uint64
	K    int        // of the fat-tree
	Rate model.Rate // of its links
	Load float64    // background traffic, as a share of the hosts' link rate

	TraceMemory model.Bytes // for traces that are kept whole
}

// DefaultConfig is a small fabric of 100 Gb/s links with light traffic.
func DefaultConfig() Config {
	return Config{Seed: 1, K: 4, Rate: 100 * model.Gbps, Load: 0.06, TraceMemory: 8 * model.MiB}
}

// Step is the simulated time between two polls of the controller.
const Step = time.Millisecond

// NewDemo makes a demo fabric under a controller of its own, without store and
// API. Nothing has happened in it yet.
func NewDemo(cfg Config, out control.Output) (*Simulation, error) {
	m, err := newDemoSimulation(cfg)
	if err != nil {
		return nil, err
	}
	c, err := control.New(m.demoController(cfg, time.Unix(0, 0).UTC()), m.devices, out)
	if err != nil {
		_ = m.close()
		return nil, err
	}
	m.attach(c)
	return m, nil
}

// Close frees the memory.
func (m *Simulation) Close() error { return m.close() }

func newDemoSimulation(cfg Config) (*Simulation, error) {
	s, err := demoScenario(cfg, demoTelemetry)
	if err != nil {
		return nil, err
	}
	return newSimulation(s, demoSimulation(cfg))
}

// telemetry is how much switches report.
type telemetry struct {
	flows  int           // that a flowset is planned for
	labels time.Duration // interval of a port's labels
	states time.Duration // interval of the states of ports
}

var demoTelemetry = telemetry{flows: 3000, labels: 200 * time.Microsecond, states: 2 * time.Millisecond}

// demoScenario is the demo's fabric and telemetry. Its traffic has no end, and is
// made while it runs.
func demoScenario(cfg Config, t telemetry) (*scenario.Scenario, error) {
	size := func(bytes float64) string { return model.Bytes(bytes * scaleOf(cfg.Rate)).String() }
	text := strings.NewReplacer(
		"@K@", strconv.Itoa(cfg.K), "@RATE@", cfg.Rate.String(),
		"@FLOWS@", strconv.Itoa(t.flows), "@LABELS@", t.labels.String(), "@STATES@", t.states.String(),
		"@BUFFER@", size(16e6), "@KMIN@", size(100e3), "@KMAX@", size(400e3),
	).Replace(demoYAML)
	s, err := scenario.Parse("demo.yaml", []byte(text))
	if err != nil {
		return nil, err
	}
	s.Seed = cfg.Seed
	return s, nil
}

func demoSimulation(cfg Config) simulationConfig {
	b := &background{seed: cfg.Seed, load: cfg.Load, scale: scaleOf(cfg.Rate)}
	return simulationConfig{step: Step, maxRing: maxRing, agents: demoAgents(), traffic: b.addFlows, flowsFor: flowsFor}
}

// maxRing is in reports. Rings are shorter than a service's, which may not read
// them for seconds: here all are read after every Step. At 100 Gb/s all switches
// together send some 130 reports in a Step, and a few times as many while every
// fault is active; each kind has a separate list.
const maxRing = 2048

// flowsFor is how long a finished flow is kept: longer than its last packets,
// which may be stuck in a deadlock, are in flight.
const flowsFor = 100 * time.Millisecond

// scaleOf is how much smaller a slow fabric's buffers, ECN thresholds and flows are
// than those of 10 Gb/s. So times stay the same. A buffer of 16 MB holds
// 128 ms of 1 Gb/s: packets that waited in it for more than a slot were taken for
// lost. And flows of full size would be too few in a slot to show hash
// polarization.
func scaleOf(rate model.Rate) float64 { return min(1, float64(rate)/float64(10*model.Gbps)) }

// demoController is what the demo's controller goes by. Simulated time is short:
// so are the timeouts.
func (m *Simulation) demoController(demo Config, epoch time.Time) control.Config {
	cfg := m.controllerConfig(epoch)
	cfg.Jobs = demoJobs(m.fabric)
	cfg.Traces.Trace.CloseAfter, cfg.Traces.Trace.RouteSettle = 3*time.Millisecond, 5*time.Millisecond
	cfg.Traces.Trace.MaxTraces, cfg.Traces.Trace.FrameBytes = 1<<14, 128
	cfg.Traces.Period, cfg.Traces.Window = 10*time.Millisecond, 2
	cfg.Traces.Memory, cfg.Ports.States.History = demo.TraceMemory, 512
	cfg.Causes.SettleTime, cfg.Causes.ReportTimeout, cfg.Causes.MaxRequests = 2*time.Millisecond, 40*time.Millisecond, 256
	return cfg
}

// demoJobs are two jobs that share the fabric: one has the hosts of its first
// half, one those of the second. Traffic between the halves belongs to no job.
func demoJobs(f *topo.Fabric) []control.Job {
	hosts := f.Hosts()
	list := []control.Job{{Name: "training"}, {Name: "analytics"}}
	for i, id := range hosts {
		j := &list[i*len(list)/len(hosts)]
		j.Hosts = append(j.Hosts, f.Node(id).Name)
	}
	return list
}
