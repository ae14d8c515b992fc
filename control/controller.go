package control

import (
	"errors"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/analyze/coverage"
	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/analyze/provenance/drawing"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/flowwatch"
	"github.com/weft-telemetry/weft/control/portwatch"
	"github.com/weft-telemetry/weft/control/probe"
	"github.com/weft-telemetry/weft/control/rootcause"
	"github.com/weft-telemetry/weft/control/tracewatch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/poll"
)

// Config is what a Controller goes by.
type Config struct {
	Intent *topo.Intent
	Lists  Lists
	// Epoch is the wall's time at which the fabric's clocks show 0.
	Epoch time.Time

	Flows     flowwatch.Config
	Ports     portwatch.Config
	Traces    tracewatch.Config
	Causes    rootcause.Config
	Probes    probe.Config
	Incidents incident.Config

	// Sample is how often ports are sampled for the store.
	Sample time.Duration
	// Balance is over how many slots the use of equal-cost ports is judged.
	Balance int
	// LossShare is the least part of a link's packets, and LossPackets the
	// least number in one slot, that must be lost to be worth an incident.
	LossShare   float64
	LossPackets uint64
	// Stall is the part of a slot that a port must be paused for, for packets
	// that did not arrive to be taken for waiting there.
	Stall float64
	// Deep is a queue that is worth telling of.
	Deep model.Bytes
	// Silent is after how long without any report a switch is silent.
	Silent time.Duration
	// Verdict is how long a complaint of a client waits for its verdict, of the
	// fabric's clock.
	Verdict time.Duration
	// SelfPolling says that hosts poll about their slow flows by themselves, and
	// cannot be told to: a client's complaint waits for what they cause.
	SelfPolling bool
	// LastDiagnosis is the number of the last one of an earlier controller, whose
	// numbers go on here. That of the last incident is in Incidents.
	LastDiagnosis uint64
	// Jobs run on the fabric; incidents tell which of them they hurt.
	Jobs []Job
}

// DefaultConfig suits flowsets of 10 ms.
func DefaultConfig(in *topo.Intent) Config {
	f := in.At(0).Fabric()
	return Config{
		Intent: in, Lists: DefaultLists(len(f.Nodes())),
		Flows:     flowwatch.DefaultConfig(in),
		Ports:     portwatch.Config{Board: coverage.DefaultConfig(f), Window: 10 * time.Millisecond, Keep: 100},
		Traces:    tracewatch.DefaultConfig(in),
		Causes:    rootcause.DefaultConfig(in),
		Probes:    probe.DefaultConfig(),
		Incidents: incident.DefaultConfig(),
		Sample:    time.Millisecond, Balance: 5, LossShare: 1e-3, LossPackets: 3, Stall: 0.2, Deep: 20 * model.KB,
		Silent: 100 * time.Millisecond,
		// Switches take a tenth of a second to tell what they remember.
		Verdict: 400 * time.Millisecond,
	}
}

// Devices is what the controller can ask of the fabric over its management
// network.
type Devices interface {
	portwatch.Fabric
	tracewatch.Marker
	probe.Injector
	// Ask has a flow's source poll the fabric about it. It tells whether it
	// could.
	Ask(flow model.FlowKey) bool
	// Counters appends what switch ports count of themselves, as gNMI or SNMP
	// would tell.
	Counters(list []PortCount) []PortCount
}

// PortCount is what a port has counted since it came up.
type PortCount struct {
	Port     model.Port
	Bytes    uint64        // sent
	Discards uint64        // packets for which there was no room
	Paused   time.Duration // during which PFC kept a class from sending
}

// Output takes what a controller makes. Both are called from the goroutine that
// calls the controller, and must not wait.
type Output struct {
	// Keep takes records; the batch is the controller's again afterwards.
	Keep func(b *record.Batch)
	// Incident hears of every incident that is new or has changed. It must not
	// keep it.
	Incident func(in *incident.Incident)
}

// Controller turns reports into incidents. One goroutine calls it; what others
// may ask is behind Backend.
type Controller struct {
	cfg     Config
	fabric  *topo.Fabric
	devices Devices
	out     Output

	flows  *flowwatch.Watch
	ports  *portwatch.Watch
	traces *tracewatch.Watch
	joiner *incident.Joiner
	desk   *probe.Desk
	causes *rootcause.Watch

	now         model.Time
	balance     balance
	meter       meter
	batch       record.Batch
	stats       Stats
	view        *View
	drawings    drawings
	verdicts    uint64
	lastVerdict map[verdictKind]verdictSaid
	verdict     func(v *diagnose.Verdict, r *record.Diagnosis) // hears of each; nil: nobody
	lost        lostLately
	shown       model.Time // when the last snapshot was made
	hearing     hearing

	later   []later
	asked   map[question]model.Time
	actions map[uint64][]api.Action // by incident
	closed  []uint64                // incidents that are, and have an account still; oldest first
}

// Stats account for reports by kind.
type Stats struct {
	Reports   [numKinds]uint64
	Refused   [numKinds]uint64 // no use could be made of them
	Unplanned uint64           // to lists that are nobody's
	Flowsets  flowwatch.Stats  // what became of those that chunks make up
}

// Kind is a kind of report.
type Kind uint8

// Kinds of reports.
const (
	Flowset Kind = iota
	Label
	Mirror
	Epoch
	Complaint
	numKinds
)

var kindNames = [numKinds]string{"flowset", "label", "mirror", "epoch", "complaint"}

// String prints the kind's name.
func (k Kind) String() string { return kindNames[k] }

// New makes a controller that knows nothing yet.
func New(cfg Config, devices Devices, out Output) (*Controller, error) {
	if cfg.Intent == nil {
		return nil, errors.New("control: no intended routes, want a topo.Intent")
	}
	if devices == nil {
		return nil, errors.New("control: no devices, want at least some that do nothing")
	}
	if want := max(cfg.Lists.Mirrors.Count, 1); cfg.Traces.Analyzers != want {
		return nil, fmt.Errorf("control: %d analyzers of traces, want %d: one for each list of mirrors", cfg.Traces.Analyzers, want)
	}
	if cfg.Sample <= 0 || cfg.Balance < 1 || cfg.Silent <= 0 {
		return nil, fmt.Errorf("control: ports sampled every %v, balance over %d slots, switches silent after %v; want above 0, at least 1, and above 0", cfg.Sample, cfg.Balance, cfg.Silent)
	}
	c := &Controller{cfg: cfg, fabric: cfg.Intent.At(0).Fabric(), devices: devices, out: out}
	var err, e error
	err = CheckJobs(c.fabric, cfg.Jobs)
	c.flows, e = flowwatch.New(cfg.Flows)
	err = errors.Join(err, e)
	c.ports, e = portwatch.New(cfg.Ports, devices)
	err = errors.Join(err, e)
	c.traces, e = tracewatch.New(cfg.Traces, devices, c.traceOutput())
	err = errors.Join(err, e)
	cfg.Causes.Drawn = func(ev poll.Event, g *provenance.Graph) {
		c.drawings.add(ev, drawing.New(g, c.fabric, drawing.DefaultOptions()))
	}
	cfg.Causes.Ask = func(_ model.Time, who diagnose.Complaint) { devices.Ask(who.Victim) }
	c.causes, e = rootcause.New(cfg.Causes)
	err = errors.Join(err, e)
	c.desk, e = probe.NewDesk(cfg.Probes, cfg.Intent, devices)
	err = errors.Join(err, e)
	c.joiner, e = incident.New(cfg.Incidents)
	err = errors.Join(err, e)
	c.verdicts = cfg.LastDiagnosis
	c.meter = newMeter(cfg.Flows.Slot)
	c.view, c.hearing = newView(c.fabric, cfg.Silent), newHearing(c.fabric)
	c.lastVerdict = map[verdictKind]verdictSaid{}
	c.asked, c.actions = map[question]model.Time{}, map[uint64][]api.Action{}
	return c, err
}

// Take hands over the data of one report, found in a list at a time of the
// collector's clock.
func (c *Controller) Take(now model.Time, list dta.ListID, data []byte) {
	c.now = max(c.now, now)
	switch l := &c.cfg.Lists; {
	case l.Flowsets.has(list):
		c.hearing.note(now, Flowset, model.NodeID(list-l.Flowsets.First))
		slots, err := c.flows.Add(now, data)
		c.count(Flowset, err)
		for _, s := range slots {
			c.slot(s)
		}
	case l.Labels.has(list):
		c.use(now, Label, data, c.ports.Add(now, data))
	case l.Mirrors.has(list):
		c.use(now, Mirror, data, c.traces.Feed(int(list-l.Mirrors.First)).Report(now, data))
	case l.Epochs.has(list):
		verdicts, err := c.causes.Add(now, data)
		c.use(now, Epoch, data, err)
		c.diagnosed(verdicts)
	case l.Complaints.has(list):
		c.count(Complaint, c.polled(now, data))
	default:
		c.stats.Unplanned++
	}
}

// Wall tells what the collector's clock shows, where the times of Take and Tick
// are behind it because there is more to do than can be done at once.
func (c *Controller) Wall(now model.Time) { c.flows.Wall(now) }

// use counts a report and hears who sent it.
func (c *Controller) use(now model.Time, k Kind, data []byte, err error) {
	if c.count(k, err); err == nil {
		c.hearing.report(now, k, data)
	}
}

func (c *Controller) count(k Kind, err error) {
	c.stats.Reports[k]++
	if err != nil {
		c.stats.Refused[k]++
	}
}

// Tick lets time pass: windows end, incidents close, records go out. It is to
// be called every millisecond or so of the collector's clock, when all reports
// that were there have been taken.
func (c *Controller) Tick(now model.Time) {
	c.now = max(c.now, now)
	for _, s := range c.flows.Tick(now) {
		c.slot(s)
	}
	c.ports.Tick(now)
	c.sample(now)
	c.traces.Advance(now)
	c.due(now)
	c.diagnosed(c.causes.Tick(now))
	c.joiner.Advance(now)
	c.publish()
	c.show(now)
}

// Flush takes everything for complete, at the end.
func (c *Controller) Flush() {
	for _, s := range c.flows.Flush(c.now) {
		c.slot(s)
	}
	c.traces.Finish()
	c.diagnosed(c.causes.Flush())
	c.publish()
}

// publish gives away what has changed.
func (c *Controller) publish() {
	for _, in := range c.joiner.Changed() {
		c.batch.Incidents = append(c.batch.Incidents, c.incidentRecord(in))
		if c.out.Incident != nil {
			c.out.Incident(in)
		}
		if c.seek(in); in.Closed {
			c.forget(in.ID)
		}
	}
	if c.batch.Len() > 0 {
		if c.out.Keep != nil {
			c.out.Keep(&c.batch)
		}
		c.batch.Reset()
	}
}

// time is an instant of the fabric's clocks on the wall.
func (c *Controller) time(t model.Time) time.Time { return c.cfg.Epoch.Add(time.Duration(t)) }

func (c *Controller) name(id model.NodeID) string {
	if c.fabric.Has(id) {
		return c.fabric.Node(id).Name
	}
	return fmt.Sprintf("node %d", id)
}

// SetRoutes says that other routes of the same fabric are intended from an
// instant on. Those of long ago are forgotten.
func (c *Controller) SetRoutes(from model.Time, r *topo.Routes) error {
	if err := c.cfg.Intent.Set(from, r); err != nil {
		return err
	}
	c.cfg.Intent.Forget(from.Add(-routesFor))
	return nil
}

// routesFor is how long routes are remembered that are no more: longer than any
// report is underway.
const routesFor = time.Minute

// Stats returns the present counts.
func (c *Controller) Stats() Stats {
	s := c.stats
	s.Flowsets = c.flows.Stats()
	return s
}
