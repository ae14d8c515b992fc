package control

import (
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/analyze/audit"
	"github.com/weft-telemetry/weft/analyze/collectives"
	"github.com/weft-telemetry/weft/analyze/commodity"
	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/analyze/provenance/drawing"
	"github.com/weft-telemetry/weft/analyze/routeview"
	"github.com/weft-telemetry/weft/analyze/sampled"
	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/flowfindings"
	"github.com/weft-telemetry/weft/control/flowreduce"
	"github.com/weft-telemetry/weft/control/flowwatch"
	"github.com/weft-telemetry/weft/control/portwatch"
	"github.com/weft-telemetry/weft/control/probe"
	"github.com/weft-telemetry/weft/control/rootcause"
	"github.com/weft-telemetry/weft/control/tracewatch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Controller turns reports into incidents. One goroutine calls it; others use
// Backend and View.
type Controller struct {
	cfg     Config
	fabric  *topo.Fabric
	devices Devices
	out     Output

	flows      *flowwatch.Watch
	windows    flowWindows // of flows, or of partitions in other processes
	ports      *portwatch.Watch
	traces     *tracewatch.Watch
	correlator *incident.Correlator
	findings   *flowfindings.Log
	prober     *probe.Scheduler
	diagnoser  *rootcause.Diagnoser
	counters   *commodity.Analyzer
	auditor    *audit.Auditor // of the sources themselves; nil: none
	polled     pollTime
	counted    model.Time // when counters were judged
	sampled    *sampled.Estimator
	// sampledFrom is the first sample of the window; 0: none.
	sampledFrom model.Time
	exporters   *sampled.Exporters
	routes      routeMonitor
	collectives collectiveMonitor

	now           model.Time
	wall          model.Time // by SetWallClock
	clocks        clockVotes
	balanceWindow balanceWindow
	suspects      suspects
	stuck         stuckPackets
	uneven        []model.NodeID // switches whose ECMP was out of balance in the last window, unexplained
	meter         portMeter
	batch         record.Batch
	stats         Stats
	// flowsetsJudged is how many flowsets there were at the last slot.
	flowsetsJudged uint64
	flowsBase      flowwatch.Stats // of the watches before Rebase
	causesBase     rootcause.Stats // likewise
	view           *View
	excerpts       excerptCache
	verdicts       uint64
	lastVerdict    map[verdictKind]recordedVerdict
	// lastVerdictBytes is what their bodies take.
	lastVerdictBytes int
	onVerdict        func(v *diagnose.Verdict, r *record.Diagnosis) // called for each; may be nil
	// onMarkedTrace, if not nil, gets every trace of a packet with a debug mark.
	onMarkedTrace func(*trace.Trace)
	markedTraces  []*trace.Trace // that onMarkedTrace has not got yet
	recentLosses  recentLosses
	reducer       *flowreduce.Reducer
	recordHops    hopBlock
	tracedFlows   map[model.FlowKey]model.Time // when a packet of theirs was traced
	jobAddrs      map[model.Addr][]int         // jobs that own an address, by index
	jobRecords    atomic.Pointer[[]record.Job] // jobs, for queries
	liveness      livenessTable

	timers    []timer
	requested map[evidenceRequest]model.Time
	actions   map[uint64][]api.Action // by incident
	closed    []uint64                // incidents whose requests and actions are still kept; oldest first

	verifications []*verification // that are running
}

// Stats account for reports by kind.
type Stats struct {
	Reports [numListKinds]uint64
	Refused [numListKinds]uint64 // malformed
	Unknown [numListKinds]uint64 // from a node that is not in the fabric, or not the list's
	// Rejected are well-formed ones that an analysis did not use.
	Rejected    [numListKinds][NumRejections]uint64
	Untimely    [numListKinds]uint64 // further than TimeWindow from the collector's clock
	Panicked    [numListKinds]uint64 // analysis panicked
	Counters    CounterStats         // of switches on sale
	UnknownList uint64               // to lists that are not in the plan
	Flowsets    flowwatch.Stats      // of assembled flowsets
	Epochs      provenance.Stats     // of collected snapshots

	Flows flowreduce.Counts // records of flows, stored and only in sums

	ForeignProbes uint64 // traces of packets that are marked and stamped like probes, and that the controller did not have sent
	EvictedTraces uint64 // closed before their time, to keep to the memory limit
	// UnprovenTraces end before their destination, and prove no loss: mirrors were lost or may have
	// been read too late.
	UnprovenTraces uint64

	Slots           uint64 // analysed
	FlowsetsWaiting uint64 // flowsets since the last of those slots, whose own are due
	PanickedSteps   uint64 // of Tick, without a report
	Rebased         uint64 // changes of the fabric's clock
}

// New makes a controller without reports.
func New(cfg Config, devices Devices, out Output) (*Controller, error) {
	if cfg.Intent == nil {
		return nil, errors.New("control: no intended routes, want a topo.Intent")
	}
	if devices == nil {
		return nil, errors.New("control: no devices, want at least a stub")
	}
	if want := max(cfg.ListPlan.Mirrors.Count, 1); cfg.Traces.Analyzers != want {
		return nil, fmt.Errorf("control: %d trace analyzers, want %d: one per list of mirrors", cfg.Traces.Analyzers, want)
	}
	if cfg.SampleInterval <= 0 || cfg.BalanceSlots < 1 || cfg.SilentAfter <= 0 {
		return nil, fmt.Errorf("control: sample interval %v, balance over %d slots, silent after %v; want above 0, at least 1, and above 0",
			cfg.SampleInterval, cfg.BalanceSlots, cfg.SilentAfter)
	}
	c := &Controller{cfg: cfg, fabric: cfg.Intent.At(0).Fabric(), devices: devices, out: out}
	var err, e error
	err = CheckJobs(c.fabric, cfg.Jobs)
	cfg.Traces.Trace.Pauses = c.meter.pausesOf
	c.traces, e = tracewatch.New(cfg.Traces, devices, c.traceOutput())
	err = errors.Join(err, e)
	c.cfg.Causes.OnGraph = func(e *provenance.Evidence, g *provenance.Graph) {
		x := &graphExcerpt{drawing: drawing.New(g, c.fabric, drawing.DefaultOptions())}
		x.meters, x.omitted = g.FlowMeters(e, c.fabric, maxMeters)
		c.excerpts.add(e.Event, x)
	}
	c.cfg.Causes.Repoll = func(_ model.Time, who diagnose.Detection) { devices.PollFlow(who.Victim) }
	err = errors.Join(err, c.newAnalyses())
	c.prober, e = probe.NewScheduler(cfg.Probes, cfg.Intent, devices)
	err = errors.Join(err, e)
	c.correlator, e = incident.New(cfg.Incidents)
	err = errors.Join(err, e)
	c.findings, e = flowfindings.New(cfg.Findings)
	err = errors.Join(err, e)
	c.reducer, e = flowreduce.New(cfg.Reduction, c.flowNames())
	err = errors.Join(err, e)
	c.routes.view, c.routes.board = routeview.New(cfg.Routes, c.fabric), routeview.NewBoard(c.fabric)
	c.verdicts = cfg.LastDiagnosis
	c.meter = newPortMeter(cfg.Flows.Slot, meterSlots(&cfg))
	c.view, c.liveness = newView(c.fabric, cfg.SilentAfter), newLivenessTable(c.fabric)
	c.jobRecords.Store(newJobRecords(cfg.Jobs))
	c.collectives.recent, c.collectives.configured = collectives.NewRecent(collectives.DefaultRecentConfig()), cfg.Jobs
	c.lastVerdict = map[verdictKind]recordedVerdict{}
	c.requested, c.actions = map[evidenceRequest]model.Time{}, map[uint64][]api.Action{}
	return c, err
}

// IngestReport analyses the data of one report, which was read from a list at a
// time of the collector's clock. It refuses reports that cannot be true, and a panic
// costs no more than the report.
func (c *Controller) IngestReport(now model.Time, list dta.ListID, data []byte) {
	c.now = max(c.now, now)
	kind, known := c.cfg.ListPlan.kindOf(list)
	if !known {
		c.stats.UnknownList++
		return
	}
	c.stats.Reports[kind]++
	reporter, ok := c.admitReport(now, kind, list, data)
	if !ok {
		return
	}
	defer c.recoverReport(kind, list, data)
	if err := c.analyseReport(now, kind, list, data); err != nil {
		c.countRefusal(kind, err)
		return
	}
	c.liveness.markAlive(now, kind, reporter)
}

// analyseReport hands a report to the analyses of its kind.
func (c *Controller) analyseReport(now model.Time, k Kind, list dta.ListID, data []byte) error {
	if c.cfg.Forward != nil {
		return c.forwardReport(now, k, list, data)
	}
	switch k {
	case Flowset:
		err := c.flows.IngestReport(now, data)
		c.processSlots(c.flows.Complete())
		return err
	case Label:
		return c.ports.IngestReport(now, data)
	case Mirror:
		return c.traces.Partition(int(list-c.cfg.ListPlan.Mirrors.First)).IngestReport(now, data)
	case Epoch:
		verdicts, err := c.diagnoser.AddReport(now, data)
		c.recordVerdicts(verdicts)
		return err
	default:
		return c.ingestPoll(now, data)
	}
}

// SetWallClock sets the collector's clock, where the times of IngestReport and Tick
// lag because of overload.
func (c *Controller) SetWallClock(now model.Time) {
	c.wall = now
	c.flows.SetWallClock(now)
}

// Tick lets time pass: windows end, incidents close, records go out. Call it about
// once per millisecond of the collector's clock, after all pending reports.
func (c *Controller) Tick(now model.Time) {
	c.now = max(c.now, now)
	if c.cfg.Forward != nil {
		c.forwardTick(now)
		return
	}
	c.protect("flow analyses", func() { c.processSlots(c.flows.Tick(now)) })
	c.protect("port windows", func() { c.ports.Tick(now) })
	c.protect("port samples", func() { c.samplePorts(now) })
	c.protect("traces", func() { c.traces.Advance(now) })
	c.runTimers(now)
	c.protect("counters", func() { c.concludeCounters(now) })
	c.protect("sampled flows", func() { c.concludeSampledFlows(now) })
	c.protect("routes", func() { c.concludeRoutes(now) })
	c.protect("jobs", func() { c.learnJobs(now) })
	c.protect("diagnoses", func() { c.recordVerdicts(c.diagnoser.Tick(now)) })
	c.protect("incidents", func() { c.correlator.CloseQuiet(now) })
	c.publishChanges()
	c.protect("state", func() { c.publishView(now) })
}

// Flush analyses incomplete data, at the end.
func (c *Controller) Flush() {
	if c.cfg.Forward != nil {
		c.forwardFlush()
		return
	}
	c.protect("flow analyses", func() { c.processSlots(c.flows.Flush(c.now)) })
	if c.balanceWindow.slots > 0 {
		c.protect("flow analyses", func() { c.endWindow() }) // too short for evidence
	}
	if c.sampledFrom != 0 {
		c.protect("sampled flows", func() { c.recordSampledFlows(c.now) })
	}
	c.protect("traces", c.traces.Finish)
	c.protect("diagnoses", func() { c.recordVerdicts(c.diagnoser.Flush()) })
	c.publishChanges()
}

// processSlots analyses slots; one that panics is dropped.
func (c *Controller) processSlots(slots iter.Seq[*flowwatch.Slot]) {
	for s := range slots {
		c.protect("port samples", func() { c.readNewestCounters(c.now) }) // which explain losses of the slot
		c.stats.Slots++
		c.flowsetsJudged = emitted(c.flowStats())
		c.protect("flow analyses", func() { c.processSlot(s) })
		if c.batch.Len() > maxBatch {
			c.publishRecords() // of many slots they would take much memory
		}
	}
}

const (
	maxBatch  = 4096    // records that wait for the end of a step
	keepBatch = 1 << 15 // records that memory is kept for
)

// emitted is how many flowsets the assembler has handed on and that were of use.
func emitted(s flowwatch.Stats) uint64 {
	n := s.Complete + s.TimedOut + s.Evicted + s.Flushed
	return n - min(n, s.Late+s.Inconsistent)
}

// publishChanges hands incidents and records to Output.
func (c *Controller) publishChanges() {
	c.protect("marked traces", c.publishMarkedTraces)
	for _, in := range c.correlator.TakeChanged() {
		c.protect("incidents", func() { c.publishIncident(in) })
	}
	c.publishRecords()
}

// publishRecords hands the records to Output.
func (c *Controller) publishRecords() {
	n := c.batch.Len()
	if n == 0 {
		return
	}
	if c.out.Records != nil {
		c.protect("records", func() { c.out.Records(&c.batch) })
	}
	if c.batch.Reset(); n > keepBatch {
		c.batch = record.Batch{}
	}
}

func (c *Controller) publishIncident(in *incident.Incident) {
	c.batch.Incidents = append(c.batch.Incidents, c.incidentRecord(in))
	if c.out.Incident != nil {
		c.out.Incident(in)
	}
	if c.requestEvidence(in); in.Closed {
		c.forgetClosed(in.ID)
	}
}

// wallTime converts an instant of the fabric's clocks to wall-clock time.
func (c *Controller) wallTime(t model.Time) time.Time { return c.cfg.Epoch.Add(time.Duration(t)) }

func (c *Controller) nodeName(id model.NodeID) string {
	if c.fabric.HasNode(id) {
		return c.fabric.Node(id).Name
	}
	return fmt.Sprintf("node %d", id)
}

// SetRoutes sets the intended routes of the same fabric from an instant on, and
// forgets old ones.
func (c *Controller) SetRoutes(from model.Time, r *topo.Routes) error {
	if err := c.cfg.Intent.Set(from, r); err != nil {
		return err
	}
	c.cfg.Intent.Forget(from.Add(-routeHistory))
	return nil
}

// routeHistory is how long former routes are kept: longer than any report is in
// flight.
const routeHistory = time.Minute

// Stats returns the present counts.
func (c *Controller) Stats() Stats {
	s := c.stats
	s.Flowsets, s.Epochs = c.flowStats(), c.causeStats().Stats
	s.EvictedTraces, s.UnprovenTraces = c.traces.WithoutVerdict()
	s.Flows = c.reducer.Counts()
	s.ForeignProbes = c.prober.Foreign
	s.FlowsetsWaiting = emitted(s.Flowsets) - min(emitted(s.Flowsets), c.flowsetsJudged)
	s.FlowsetsWaiting -= c.flows.NotDue(s.FlowsetsWaiting)
	return s
}
