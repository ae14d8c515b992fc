package serve

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/core"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/ingest/sources"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/file"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/mirror"
)

// MaxReport is the data of the longest report: as long as a datagram.
const MaxReport = 1472

// fabric is what the configuration and its topology say of the fabric.
type fabric struct {
	doc    *file.Document
	routes *topo.Routes
	lists  control.ListPlan
	source source.Fabric
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
	f := &fabric{doc: doc, routes: routes, lists: control.DefaultListPlan(len(doc.Fabric.Nodes()))}
	if err := control.CheckJobs(doc.Fabric, c.Jobs); err != nil {
		return nil, err
	}
	values := map[model.NodeID]map[string]string{}
	for i := range c.Switches {
		s := &c.Switches[i]
		id, ok := doc.Fabric.ByName(s.Name)
		if !ok || !doc.Fabric.Node(id).Role.IsSwitch() {
			return nil, fmt.Errorf("switches: %q is not a switch of %s", s.Name, c.Topology)
		}
		if _, twice := values[id]; twice {
			return nil, fmt.Errorf("switches: %q is listed twice, want one entry with all its keys", s.Name)
		}
		values[id] = s.Values
	}
	for _, n := range doc.Fabric.Nodes() {
		if n.Role.IsSwitch() {
			f.source.Switches = append(f.source.Switches, source.Switch{
				ID: n.ID, Name: n.Name, Addr: n.IPv4, Values: values[n.ID],
				Port: func(text string) (model.PortID, bool) {
					p, err := doc.Fabric.FindPort(n.Name + ":" + text)
					return p.Port, err == nil
				},
			})
		}
	}
	f.source.ByAddr = func(a model.Addr) (model.NodeID, bool) {
		id, ok := doc.Fabric.ByAddr(a)
		return id, ok && doc.Fabric.Node(id).Role.IsSwitch()
	}
	for _, src := range sources.All() {
		f.noOutPort = f.noOutPort || src.NoOutPort && c.Sources[src.Kind].Address() != ""
	}
	return f, nil
}

// memory is the lists of the plan.
func (f *fabric) memory() list.Config { return f.lists.Memory(MaxReport) }

// controllerConfig is for a fabric whose clocks show the wall's time.
func (f *fabric) controllerConfig(c *Config, last core.LastIDs) control.Config {
	cfg := control.DefaultConfig(topo.NewIntent(f.routes))
	cfg.ListPlan, cfg.Epoch = f.lists, time.Unix(0, 0)
	cfg.Flows.Slot, cfg.Flows.MaxSkew = c.Controller.Slot, c.Controller.Slot
	cfg.Incidents.LastID, cfg.LastDiagnosis = last.Incident, last.Diagnosis
	cfg.Jobs = c.Jobs
	cfg.SelfPolling, cfg.VerdictTimeout = true, 5*time.Second
	// Reports of a real fabric are in flight for milliseconds, and its ports are
	// sampled for months: both are coarser than in a simulation.
	timeout := c.Controller.ReportTimeout
	cfg.Traces.Trace.CloseAfter, cfg.Traces.Trace.RouteSettle = timeout, time.Second
	cfg.Flows.WaitSlots, cfg.Flows.Assembler.Timeout = int(max(timeout/c.Controller.Slot, 3)), 2*timeout
	cfg.Traces.Trace.OutPorts = !f.noOutPort
	cfg.Traces.Period, cfg.Traces.Window = 100*time.Millisecond, 2
	cfg.SampleInterval, cfg.SilentAfter = 100*time.Millisecond, c.Controller.SilentAfter
	return cfg
}

// decoders convert the reports of other sources to Weft's, and hand them to ingest
// with the list that they would have been appended to. DTA has none.
func (f *fabric) decoders(c *Config, ingest func(at model.Time, list dta.ListID, data []byte)) (map[source.Kind]source.Decoder, error) {
	list := map[source.Kind]source.Decoder{}
	for _, src := range sources.All() {
		a, ok := c.Sources[src.Kind].(source.Adapter)
		if !ok {
			continue
		}
		var mirrored []byte
		d, err := a.NewDecoder(&f.source, source.Output{
			Label: func(at model.Time, export []byte) { ingest(at, f.lists.Labels.First, export) },
			Mirror: func(at model.Time, m *mirror.Mirror) {
				mirrored = m.AppendTo(mirrored[:0])
				ingest(at, f.lists.Mirrors.First, mirrored)
			},
		})
		if err != nil {
			return nil, err
		}
		list[src.Kind] = d
	}
	return list, nil
}
