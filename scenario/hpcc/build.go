package hpcc

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/congestion"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/file"
)

// Options are what a user sets besides the files.
type Options struct {
	Seed uint64
	// AsDCQCN runs a congestion control that Weft does not have with DCQCN,
	// instead of an error.
	AsDCQCN bool
	// BufferUnit is the unit of BUFFER_SIZE; 0: the one that the keys say.
	BufferUnit model.Bytes
}

// ErrControl is wrapped by Build's error about a congestion control that Weft
// does not have; Options.AsDCQCN avoids it.
var ErrControl = errors.New("congestion control that Weft does not have")

// Setup is a run ready to start.
type Setup struct {
	Fabric *topo.Fabric
	Routes *topo.Routes
	Sim    sim.Config
	Flows  []traffic.Flow // by start, each with the original's source port
	Stop   model.Time

	Down *Outage // nil if no link goes down

	// Telemetry of Hawkeye's fork; Agents is empty otherwise.
	Agents    []model.NodeID
	Threshold time.Duration
	Epoch     time.Duration

	FCT, PFC string // output files, as the configuration names them

	unmarked []model.Rate // ports of these rates have no marking curve of their own

	Notes   []string // what the reader of a result must know
	Ignored []string // keys without effect
}

// Outage is a link that goes down permanently, and the routes from then on.
type Outage struct {
	At     model.Time
	Port   model.Port // one end of the link
	Routes *topo.Routes
}

// Constants of the original that no key changes.
const (
	plainHeaders = 48 // of a data packet: Ethernet 14, IP 20, UDP 8, sequence number 6
	plainAck     = 46 // Ethernet 14, IP 20, ports, flags, priority and sequence number 12
	paddedAck    = 60 // at least
	intHeader    = 42 // HPCC: five hops of 8 bytes and their count
	timeHeader   = 8  // TIMELY: when the packet was sent

	nackGap  = 500 * time.Microsecond
	firstTTL = 64

	firstPort = 10000 // source ports count up from here for each pair, modulo 2^16
)

// Build reads the files of a configuration and sets up its run.
func Build(c *Config, o Options) (*Setup, error) {
	own := *c // options may change the mode
	c = &own
	if o.BufferUnit > 0 {
		c.Buffer = model.Bytes(c.bufferSize) * o.BufferUnit
	}
	s := &Setup{
		Stop: c.Stop, Agents: c.Agents, Threshold: c.Threshold, Epoch: c.Epoch,
		FCT: c.FCT, PFC: c.PFC, Notes: slices.Clone(c.notes), Ignored: c.Ignored,
	}
	if err := s.readFabric(c); err != nil {
		return nil, err
	}
	if err := s.configure(c, o); err != nil {
		return nil, err
	}
	if err := s.readFlows(c); err != nil {
		return nil, err
	}
	s.addPFCNotes(c)
	return s, nil
}

// Network builds the simulation, with flows and fault scheduled.
func (s *Setup) Network() (*sim.Network, error) {
	n, err := sim.New(s.Routes, s.Sim)
	if err != nil {
		return nil, err
	}
	if err := n.AddFlows(s.Flows); err != nil {
		return nil, err
	}
	if d := s.Down; d != nil {
		if err := n.Inject(sim.Injection{At: d.At, Fault: sim.LinkDown{Port: d.Port}}); err != nil {
			return nil, err
		}
		n.At(engine.Time(d.At)*engine.Nanosecond, func() {
			for _, sw := range n.Switches() {
				sw.Table().SetRoutes(d.Routes)
				sw.TableChanged()
			}
		})
	}
	return n, nil
}

func (s *Setup) readFabric(c *Config) error {
	path, err := c.find("TOPOLOGY_FILE", c.Topology)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	doc, err := file.ParseAs(file.HPCC, path, data)
	if err != nil {
		return err
	}
	s.Fabric = doc.Fabric
	if err := s.checkFabric(path); err != nil {
		return err
	}
	if c.ErrorRate > 0 {
		if s.Fabric, err = withErrors(s.Fabric, c.ErrorRate); err != nil {
			return &file.Error{File: path, Msg: err.Error()}
		}
	}
	s.noteHiddenLinks()
	return s.readRoutes(c)
}

// checkFabric checks what the original needs of a topology.
func (s *Setup) checkFabric(path string) error {
	f := s.Fabric
	switch {
	case len(f.Switches()) == 0 || len(f.Hosts()) < 2:
		return &file.Error{File: path, Msg: fmt.Sprintf("%d hosts and %d switches, want at least two and one", len(f.Hosts()),
			len(f.Switches()))}
	case len(f.Node(f.Hosts()[0]).Ports) == 0:
		return &file.Error{File: path, Msg: fmt.Sprintf("%s has no link, want one: PFC thresholds depend on its rate",
			f.Node(f.Hosts()[0]).Name)}
	}
	for _, id := range f.Switches() {
		if len(f.Node(id).Ports) == 0 {
			return &file.Error{File: path, Msg: fmt.Sprintf("%s has no link, want one", f.Node(id).Name)}
		}
	}
	return nil
}

func (s *Setup) noteHiddenLinks() {
	if n := len(hiddenPorts(s.Fabric)); n > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("%d links carry nothing: the original uses the last one of parallel links", n))
	}
}

// withErrors returns the fabric with an error rate on links that have none.
func withErrors(f *topo.Fabric, rate float64) (*topo.Fabric, error) {
	b := topo.NewBuilder(f.Name())
	for _, n := range f.Nodes() {
		b.AddNode(topo.NodeSpec{Name: n.Name, Role: n.Role, Pod: n.Pod, IPv4: n.IPv4.Netip(), IPv6: n.IPv6.Netip()})
	}
	for _, l := range f.Links() {
		if l.ErrorRate == 0 {
			l.ErrorRate = rate
		}
		b.Connect(l.A.Node, l.B.Node, l.LinkSpec)
	}
	return b.Build()
}

func (s *Setup) readRoutes(c *Config) error {
	var overrides []topo.Override
	if c.Routes != "" {
		path, err := c.find("ROUTE_FILE", c.Routes)
		if err != nil {
			return err
		}
		if overrides, err = file.ReadHPCCRoutes(path, s.Fabric); err != nil {
			return err
		}
	}
	var err error
	if s.Routes, err = routesOf(s.Fabric, overrides); err != nil {
		return c.errorf("TOPOLOGY_FILE", "%v", err)
	}
	if c.Down.After == 0 {
		return nil
	}
	link, ok := s.lastLink(c.Down.A, c.Down.B)
	if !ok {
		return c.errorf("LINK_DOWN", "LINK_DOWN: no link between nodes %d and %d, want one", c.Down.A, c.Down.B)
	}
	after, err := routesOf(s.Fabric, overrides, link)
	if err != nil {
		return c.errorf("LINK_DOWN", "%v", err)
	}
	s.Down = &Outage{At: linkDownBase.Add(c.Down.After), Port: s.Fabric.Links()[link].A, Routes: after}
	return nil
}

// lastLink returns the link between two nodes that the original uses.
func (s *Setup) lastLink(a, b model.NodeID) (int, bool) {
	if !s.Fabric.HasNode(a) || !s.Fabric.HasNode(b) {
		return 0, false
	}
	at := s.Fabric.Node(a)
	ports := at.PortsTo(b)
	if len(ports) == 0 {
		return 0, false
	}
	return at.Port(ports[len(ports)-1]).Link, true
}

func (s *Setup) readFlows(c *Config) error {
	path, err := c.find("FLOW_FILE", c.Flows)
	if err != nil {
		return err
	}
	hosts := traffic.HostsOf(s.Fabric)
	if s.Flows, err = traffic.ReadFlows(path, hosts); err != nil {
		return err
	}
	byStart := func(a, b traffic.Flow) int { return cmp.Compare(a.Start, b.Start) }
	if !slices.IsSortedFunc(s.Flows, byStart) {
		s.Notes = append(s.Notes, fmt.Sprintf("%s does not ascend by start; the original cannot read it", path))
		slices.SortStableFunc(s.Flows, byStart)
	}
	free := make([]bool, len(s.Fabric.Nodes())) // of congestion control
	for _, id := range c.NoCC {
		if !s.isHost(id) {
			return c.errorf("NO_CC_NODE", "NO_CC_NODE %d is not a host of %s, want one", id, c.Topology)
		}
		free[id] = true
	}
	for _, id := range c.Agents {
		if !s.isHost(id) {
			return c.errorf("AGENT_NODE", "AGENT_NODE %d is not a host of %s, want one", id, c.Topology)
		}
	}
	late, far := 0, 0
	made := make(map[[2]model.NodeID]int)
	for i := range s.Flows {
		f := &s.Flows[i]
		pair := [2]model.NodeID{f.Src, f.Dst}
		f.SrcPort = uint16(firstPort + made[pair])
		made[pair]++
		f.NoCC = free[f.Src]
		if hops, ok := s.Routes.Distance(f.Src,
			s.Fabric.Node(f.Dst).IPv4); ok && hops-1 > congestion.MaxHops && c.Mode == HPCC {
			far++
		}
		// The time is a double there, truncated to nanoseconds.
		f.Start = engine.OfNS3(float64(f.Start) / 1e9).Model()
		if f.Start > s.Stop {
			late++
		}
	}
	if far > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("%d of %d flows pass more than %d switches: HPCC's header cannot hold them, so their rates never change", far, len(s.Flows), congestion.MaxHops))
	}
	if late > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("%d of %d flows start after the end of the run at %v (SIMULATOR_STOP_TIME)",
			late, len(s.Flows), s.Stop))
	}
	return nil
}

func (s *Setup) isHost(id model.NodeID) bool {
	return s.Fabric.HasNode(id) && !s.Fabric.Node(id).Role.IsSwitch()
}
