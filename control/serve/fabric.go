package serve

import (
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/core"
	"github.com/weft-telemetry/weft/control/livestate"
	"github.com/weft-telemetry/weft/ingest/bmp"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/ingest/sources"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/bgproute"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/file"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/label"
	"github.com/weft-telemetry/weft/wire/mirror"
	"github.com/weft-telemetry/weft/wire/nccl"
)

// MaxReport is the data of the longest report: as long as a datagram.
const MaxReport = 1472

// fabric is what the configuration and its topology say of the fabric.
type fabric struct {
	doc    *file.Document
	routes *topo.Routes
	lists  control.ListPlan
	keyed  livestate.Plan
	source source.Fabric
	// prefixes are where the reports of each node come from; none: not known.
	prefixes [][]netip.Prefix
	machine  model.Bytes // memory of this one; 0: not known
	// noOutPort says that some mirrors do not contain the port by which a packet
	// left, as ERSPAN does not.
	noOutPort bool
}

// readFabric reads the topology and adds what the configuration says of it.
func readFabric(c *Config) (*fabric, error) {
	doc, err := file.Read(c.Topology)
	if err != nil {
		return nil, err
	}
	routes, err := doc.Routes()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Topology, err)
	}
	f := &fabric{doc: doc, routes: routes, lists: control.DefaultListPlan(doc.Fabric), machine: machineMemory()}
	if f.keyed, err = livestate.PlanFor(doc.Fabric, livestate.Sizes{Ports: c.DTA().PortMemory, Counters: c.DTA().CounterMemory, Cards: c.DTA().PostcardMemory}); err != nil {
		return nil, bad("dta", "%v", err)
	}
	if err := f.lists.PlanFlowsets(c.Controller.Flows); err != nil {
		return nil, bad("controller.flows", "%v", err)
	}
	if err := control.CheckJobs(doc.Fabric, c.Jobs); err != nil {
		return nil, err
	}
	values, err := nodeValues(c, doc.Fabric)
	if err != nil {
		return nil, err
	}
	f.prefixes = make([][]netip.Prefix, len(doc.Fabric.Nodes()))
	for i := range doc.Fabric.Nodes() {
		n := doc.Fabric.Node(model.NodeID(i))
		f.prefixes[i], _ = source.ParsePrefixes(values[n.ID][source.AddressKey.Key]) // checked when it was set
		if n.Role.IsSwitch() {
			f.source.Switches = append(f.source.Switches, source.Switch{
				ID: n.ID, Name: n.Name, Addr: n.IPv4, Ports: len(n.Ports), Values: values[n.ID], Prefixes: f.prefixes[i],
				Port: portLookup(n), PortName: portNames(n), Rate: portRates(n),
			})
		}
	}
	f.source.ByAddr = func(a model.Addr) (model.NodeID, bool) {
		id, ok := doc.Fabric.ByAddr(a)
		return id, ok && doc.Fabric.Node(id).Role.IsSwitch()
	}
	if f.source.Identity, err = f.identities(); err != nil {
		return nil, err
	}
	for _, src := range sources.All() {
		f.noOutPort = f.noOutPort || src.NoOutPort && c.Sources[src.Kind].Address() != ""
	}
	return f, nil
}

// nodeValues is what the configuration says of nodes.
func nodeValues(c *Config, f *topo.Fabric) (map[model.NodeID]map[string]string, error) {
	values := map[model.NodeID]map[string]string{}
	for i := range c.Switches {
		s := &c.Switches[i]
		id, ok := f.ByName(s.Name)
		if !ok {
			return nil, fmt.Errorf("switches: %q is not a switch or host of %s", s.Name, c.Topology)
		}
		if _, addressed := s.Values[source.AddressKey.Key]; !f.Node(id).Role.IsSwitch() && (!addressed || len(s.Values) > 1) {
			return nil, fmt.Errorf("switches: %q is a host of %s, want its %s alone", s.Name, c.Topology, source.AddressKey.Key)
		}
		if _, twice := values[id]; twice {
			return nil, fmt.Errorf("switches: %q is listed twice, want one entry with all its keys", s.Name)
		}
		values[id] = s.Values
	}
	return values, nil
}

// portLookup finds a switch's ports by name and by number; a name that is a number
// wins.
func portLookup(n *topo.Node) func(text string) (model.PortID, bool) {
	ports := make(map[string]model.PortID, 2*len(n.Ports))
	for i := range n.Ports {
		ports[strconv.Itoa(int(n.Ports[i].ID))] = n.Ports[i].ID
	}
	for i := range n.Ports {
		ports[n.Ports[i].Name] = n.Ports[i].ID
	}
	return func(text string) (model.PortID, bool) {
		p, ok := ports[text]
		return p, ok
	}
}

// memory is the lists of the plan.
func (f *fabric) memory() list.Config { return f.lists.Memory(MaxReport) }

// controllerConfig is for a fabric whose clocks show the wall's time.
func (f *fabric) controllerConfig(c *Config, last core.LastIDs) control.Config {
	cfg := control.DefaultConfig(topo.NewIntent(f.routes))
	cfg.ListPlan, cfg.Epoch = f.lists, time.Unix(0, 0)
	cfg.Traces.Analyzers = f.lists.Mirrors.Count
	cfg.Flows.Slot, cfg.Flows.MaxSkew = c.Controller.Slot, c.Controller.Slot
	cfg.Incidents.LastID, cfg.LastDiagnosis = last.Incident, last.Diagnosis
	cfg.Jobs = c.Jobs
	cfg.SelfPolling, cfg.VerdictTimeout = true, 5*time.Second
	// Reports of a real fabric are in flight for milliseconds, and its ports are
	// sampled for months: both are coarser than in a simulation.
	timeout := c.Controller.ReportTimeout
	cfg.Traces.Trace.CloseAfter, cfg.Traces.Trace.RouteSettle = timeout, time.Second
	cfg.Flows.WaitSlots, cfg.Flows.Assembler.Timeout = int(max(timeout/c.Controller.Slot, 3)), 2*timeout
	// A fault that lasts gives evidence in every slot, as late as reports may be.
	cfg.Incidents.QuietPeriod = max(cfg.Incidents.QuietPeriod, 15*c.Controller.Slot) + timeout
	cfg.Incidents.TimeTolerance = max(cfg.Incidents.TimeTolerance, 5*c.Controller.Slot)
	cfg.Traces.Trace.OutPorts = !f.noOutPort
	cfg.Traces.Period, cfg.Traces.Window = 100*time.Millisecond, 2
	cfg.TimeWindow = c.Controller.TimeWindow
	cfg.Flows.Memory, cfg.Flows.Assembler.MaxCells = c.Controller.FlowMemory, uint32(c.Controller.FlowCells)
	flows := f.maxFlows(c)
	cfg.Flows.Partitions, cfg.Reduction.Keep = c.Controller.Partitions, c.Controller.KeepFlows
	cfg.Flows.MaxFlows, cfg.Flows.Loss.MaxFlows, cfg.Flows.Balance.MaxFlows = flows, flows, flows
	// Half of the memory is for open traces, a quarter for kept ones; the rest is for
	// counters and what is judged.
	cfg.Traces.Trace.Memory = c.Controller.TraceMemory / 2 / model.Bytes(max(cfg.Traces.Analyzers, 1))
	cfg.Traces.Memory, cfg.Traces.Judge.MaxFlows = c.Controller.TraceMemory/4, int(c.Controller.TraceMemory/4/judgedSize)
	cfg.Causes.Memory = c.Controller.DiagnosisMemory
	cfg.Routes.Settle = c.Sources[bmp.Source.Kind].(*bmp.Config).Settle
	cfg.SampleInterval, cfg.SilentAfter = 100*time.Millisecond, c.Controller.SilentAfter
	return cfg
}

// judgedSize is the memory of a flow that traces judge, in all periods of the window.
const judgedSize = 12 * model.KiB

// recordSink takes what decoders make: reports in Weft's formats with the list that they
// would have been appended to, readings of counters, samples of packets and records of flows.
type recordSink struct {
	report  func(at model.Time, list dta.ListID, data []byte)
	reading func(r *portstat.Reading)
	sample  func(s *portstat.Sample)
	flow    func(r *portstat.FlowRecord)
	route   func(u *bgproute.Update)
	// collectives takes records of NCCL; nil: nothing follows jobs.
	collectives func(d *nccl.Dump) (unknown int)
}

// decoders convert the reports of other sources to Weft's. DTA has none. The input,
// if not nil, counts what they refuse, and has their clock.
func (f *fabric) decoders(c *Config, in *socketInput, to recordSink) (map[source.Kind]source.Decoder, error) {
	list := map[source.Kind]source.Decoder{}
	for _, src := range sources.All() {
		a, ok := c.Sources[src.Kind].(source.Adapter)
		if !ok {
			continue
		}
		var mirrored []byte
		out := source.Output{
			Label: func(at model.Time, export []byte) {
				sw, _, _ := label.PeekExport(export) // ours
				to.report(at, f.lists.LabelList(sw), export)
			},
			Mirror: func(at model.Time, m *mirror.Mirror) {
				mirrored = m.AppendTo(mirrored[:0])
				to.report(at, f.lists.MirrorList(m), mirrored)
			},
			Reading: to.reading, Sample: to.sample, Flow: to.flow, Route: to.route, Collectives: to.collectives,
		}
		if in != nil {
			out.Refused, out.Now, out.Panic = in.door.guards[src.Kind].Refused, in.clock.Now, in.onPanic(src.Kind)
			out.Keyed = in.collector.NewWriter().Put
		}
		d, err := a.NewDecoder(&f.source, out)
		if err != nil {
			return nil, err
		}
		list[src.Kind] = source.Protect(d, &out)
	}
	return list, nil
}
