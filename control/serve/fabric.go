package serve

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/core"
	"github.com/weft-telemetry/weft/ingest/erspan"
	"github.com/weft-telemetry/weft/ingest/intreport"
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
	byAddr map[model.Addr]model.NodeID
	byINT  map[uint32]model.NodeID
	pads   map[model.Addr]int
	// portless says that some mirrors do not tell the port by which a packet
	// left, as ERSPAN does not.
	portless bool
}

// readFabric reads the topology and joins what the configuration adds.
func readFabric(c *Config) (*fabric, error) {
	doc, err := file.Read(c.Topology)
	if err != nil {
		return nil, err
	}
	routes, err := doc.Routes()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Topology, err)
	}
	f := &fabric{
		doc: doc, routes: routes, lists: control.DefaultListPlan(len(doc.Fabric.Nodes())),
		byAddr: map[model.Addr]model.NodeID{}, byINT: map[uint32]model.NodeID{}, pads: map[model.Addr]int{},
		portless: c.ERSPAN.Listen.IsValid(),
	}
	if err := control.CheckJobs(doc.Fabric, c.Jobs); err != nil {
		return nil, err
	}
	named := map[model.NodeID]bool{}
	for i := range c.Switches {
		s := &c.Switches[i]
		id, ok := doc.Fabric.ByName(s.Name)
		if !ok || !doc.Fabric.Node(id).Role.IsSwitch() {
			return nil, fmt.Errorf("switches: %q is no switch of %s", s.Name, c.Topology)
		}
		addr := doc.Fabric.Node(id).IPv4
		if s.Address.IsValid() {
			addr = model.AddrOf(s.Address.Unmap())
			f.byAddr[addr] = id
		}
		if s.Pad != nil {
			f.pads[addr] = *s.Pad
		}
		if s.INT != nil {
			if other, taken := f.byINT[*s.INT]; taken && other != id {
				return nil, fmt.Errorf("switches: %s and %s have number %d in INT reports, want one each", doc.Fabric.Node(other).Name, s.Name, *s.INT)
			}
			f.byINT[*s.INT], named[id] = id, true
		}
	}
	for _, n := range doc.Fabric.Nodes() {
		if _, taken := f.byINT[uint32(n.ID)]; n.Role.IsSwitch() && !named[n.ID] && !taken {
			f.byINT[uint32(n.ID)] = n.ID
		}
	}
	return f, nil
}

// sender tells which switch sends mirrors from an address.
func (f *fabric) sender(a model.Addr) (model.NodeID, bool) {
	if id, ok := f.byAddr[a]; ok {
		return id, true
	}
	id, ok := f.doc.Fabric.ByAddr(a)
	return id, ok && f.doc.Fabric.Node(id).Role.IsSwitch()
}

func (f *fabric) numbered(n uint32) (model.NodeID, bool) {
	id, ok := f.byINT[n]
	return id, ok
}

// memory is the lists of the plan.
func (f *fabric) memory() list.Config { return f.lists.Memory(MaxReport) }

// controllerConfig is for a fabric whose clocks show the wall's time.
func (f *fabric) controllerConfig(c *Config, last core.LastIDs) control.Config {
	cfg := control.DefaultConfig(topo.NewIntent(f.routes))
	cfg.ListPlan, cfg.Epoch = f.lists, time.Unix(0, 0)
	cfg.Flows.Slot, cfg.Flows.Skew = c.Controller.Slot, c.Controller.Slot
	cfg.Incidents.LastID, cfg.LastDiagnosis = last.Incident, last.Diagnosis
	cfg.Jobs = c.Jobs
	cfg.SelfPolling, cfg.VerdictTimeout = true, 5*time.Second
	// Reports of a real fabric are underway for milliseconds, and its ports are
	// sampled for months: both are coarser than in a simulation.
	patience := c.Controller.Patience
	cfg.Traces.Trace.CloseAfter, cfg.Traces.Trace.RouteSettle = patience, time.Second
	cfg.Flows.Wait, cfg.Flows.Assembler.Timeout = int(max(patience/c.Controller.Slot, 3)), 2*patience
	cfg.Traces.Trace.OutPorts = !f.portless
	cfg.Traces.Period, cfg.Traces.Window = 100*time.Millisecond, 2
	cfg.SampleInterval, cfg.SilentAfter = 100*time.Millisecond, c.Controller.Silent
	return cfg
}

// decoders make Weft's own reports of those of other makers, and hand them to
// take with the list that they would have come in.
type decoders struct {
	erspan *erspan.Decoder
	ints   *intreport.Decoder
}

func (f *fabric) decoders(c *Config, own bool, take func(at model.Time, list dta.ListID, data []byte)) (*decoders, error) {
	d := &decoders{}
	var err error
	if d.erspan, err = erspan.NewDecoder(erspan.Config{Switch: f.sender, Pads: f.pads, Debug: uint8(c.ERSPAN.Debug), WeftReports: own}); err != nil {
		return nil, err
	}
	cfg := intreport.Config{Switch: f.numbered, Tick: c.INT.Tick, Cell: c.INT.Cell, FullUtilization: uint32(c.INT.Full)}
	d.ints, err = intreport.NewDecoder(cfg, intreport.Output{
		Label: func(at model.Time, export []byte) { take(at, f.lists.Labels.First, export) },
		Mirror: func(at model.Time, m *mirror.Mirror) {
			take(at, f.lists.Mirrors.First, m.AppendTo(nil))
		},
	})
	return d, err
}
