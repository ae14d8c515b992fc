package hawkeye

import (
	"context"
	"time"

	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/dataplane/simhost"
	"github.com/weft-telemetry/weft/inhost/agent"
	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/inswitch/epoch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/lateness"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/poll"
)

// lab is how traces are simulated: a network, and the settings of its switches
// and hosts. Combinations of a threshold and an
// epoch length are variants, numbered with the length running fastest.
type lab struct {
	network
	thresholds  []float64       // of the round-trip time, in base round-trip times
	lengths     []time.Duration // of the epoch
	skew        time.Duration   // clocks differ by up to this much
	loss        float64         // share of reports that are lost
	fullPolling bool            // poll all switches, too
	timing      timing          // of a trace
	removed     removed
}

var (
	allThresholds = []float64{2, 3, 4, 5}
	allLengths    = []time.Duration{100 * us, 200 * us, 500 * us, ms, 2 * ms}
)

// newLab returns the lab of the paper with all parameters, or what options leave
// of it.
func newLab(o claim.Options) lab {
	l := lab{network: paperNetwork(), thresholds: allThresholds, lengths: allLengths, timing: paperTiming}
	return l.without(o)
}

// withVariant returns the lab with one choice of parameters.
func (l lab) withVariant(threshold float64, length time.Duration) lab {
	l.thresholds, l.lengths = []float64{threshold}, []time.Duration{length}
	return l
}

// detection is what one host polled about one flow.
type detection struct {
	latePacket
	event      poll.Event
	fullPoll   poll.Event // under which all switches report
	variant    int
	key        model.FlowKey
	hostPaused bool // the host's NIC port was paused

	causal  []model.NodeID    // switches with a port in the closure of the wait-for relation from the flow, where all are polled
	account *lateness.Account // of the late packet; nil: no single packet was late, or it was dropped
}

// latePacket is a packet that took too long.
type latePacket struct {
	at         engine.Time   // simulated time, not that of the host's clock
	latency    time.Duration // so far
	detectedBy agent.Reason
	flow       int
}

// run is the simulation of a trace and what was recorded of it.
type run struct {
	lab    lab
	trace  trace
	net    *sim.Network
	routes *topo.Routes
	flows  map[model.FlowKey]int

	detections []detection
	fullPolls  []poll.Event            // polls of all switches
	collectors []*provenance.Collector // by variant
	bytes      model.Bytes             // of all reports
	oracle     *lateness.Oracle
	accounted  int // detections
}

// simulate draws a trace and runs it.
func (l lab) simulate(ctx context.Context, seed uint64, load float64, kinds ...kind) (*run, error) {
	routes, err := l.fabric(seed)
	if err != nil {
		return nil, err
	}
	t, err := newTrace(routes, l.network, l.timing, seed, load, kinds...)
	if err != nil {
		return nil, err
	}
	return l.simulateTrace(ctx, routes, t)
}

// simulateTrace runs a trace.
func (l lab) simulateTrace(ctx context.Context, routes *topo.Routes, t trace) (*run, error) {
	cfg := l.config(t.seed, routes.Fabric())
	// Acknowledgements usually share the class of CNPs, so that a round-trip time
	// shows the delay of the forward path.
	cfg.AckControl = !t.acksWithData
	n, err := sim.New(routes, cfg)
	if err != nil {
		return nil, err
	}
	r := &run{
		lab: l, trace: t, net: n, routes: routes, flows: map[model.FlowKey]int{},
	}
	if r.oracle, err = lateness.Watch(n, t.end+ms); err != nil {
		return nil, err
	}
	if err := r.makeCollectors(); err != nil {
		return nil, err
	}
	if err := n.AddFlows(t.flows); err != nil {
		return nil, err
	}
	for i := range n.Flows() {
		key, _ := n.FlowKey(i)
		r.flows[key] = i
	}
	if len(t.wrongRoutes) > 0 {
		if err := n.Inject(sim.Injection{Fault: sim.Reroute{Entries: t.wrongRoutes}}); err != nil {
			return nil, err
		}
	}
	for _, s := range t.storms {
		if err := n.Inject(s); err != nil {
			return nil, err
		}
	}
	r.setClocks()
	if err := r.attachTelemetry(); err != nil {
		return nil, err
	}
	if _, err := newHostAgents(r); err != nil {
		return nil, err
	}
	step := max(l.time(100*us), 100*us)
	for at := time.Duration(0); at < t.end; at += step {
		n.Run(engine.Of(min(at+step, t.end)))
		if err := r.accountDetections(); err != nil {
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	// Reports that are in flight arrive. Detections from here on do not count: the
	// samples have ended.
	count := len(r.detections)
	n.Run(engine.Of(t.end + 4*readoutTime))
	r.detections = r.detections[:count]
	return r, nil
}

// setClocks lets every device's clock deviate from simulated time.
func (r *run) setClocks() {
	if r.lab.skew == 0 {
		return
	}
	rng := claim.Rand(r.trace.seed, 2)
	for _, n := range r.net.Fabric().Nodes() {
		r.net.SetClock(n.ID, sim.Clock{Offset: time.Duration(rng.Int64N(int64(r.lab.skew) + 1))})
	}
}

// readoutTime is how long a switch CPU takes. The snapshot is taken when the
// poll arrives, so its 80 ms need not be simulated: they change nothing in it.
const readoutTime = 20 * us

// attachTelemetry attaches telemetry to all switches.
func (r *run) attachTelemetry() error {
	m := simhost.ManagementConfig{Delay: 10 * us, Loss: r.lab.loss, Seed: r.trace.seed}
	mgmt, err := simhost.NewManagement(r.net, m, r.receive)
	if err != nil {
		return err
	}
	host := simhost.DefaultConfig()
	host.Carrier = mgmt
	cfg := epoch.DefaultConfig()
	cfg.ReadoutTime, cfg.ChunkBytes = readoutTime, simhost.MaxReportData(mgmt)
	cfg.FlowSlots, cfg.MaxEvicted = 1024, 1024 // a trace has a few dozen flows; reading 4,096 slots for them takes time
	if r.lab.removed.flows {
		cfg.FlowSlots = 0
	}
	for _, id := range r.net.Fabric().Switches() {
		b, err := newMultiplexer(cfg, r.lab.lengths, len(r.lab.thresholds), simhost.Describe(r.net, id, 0), &r.fullPolls)
		if err != nil {
			return err
		}
		b.onPathOnly = r.lab.removed.tracing || r.lab.removed.ports // meters of port pairs lead polls along pauses
		if _, err := simhost.Attach(r.net, id, inswitch.NewPipeline(b), host); err != nil {
			return err
		}
	}
	return nil
}
