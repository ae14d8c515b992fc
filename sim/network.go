package sim

import (
	"fmt"
	"sync"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/congestion"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

// Network is one simulation: a fabric, its hosts, and pending events.
type Network struct {
	cfg    Config
	fabric *topo.Fabric
	routes *topo.Routes

	sched schedule

	nodes    []node  // by NodeID
	ports    []*Port // by index
	switches []*Switch
	hosts    []*Host

	flows          []*flow
	lastKeyID      uint32 // KeyIDs assigned
	records        []FlowRecord
	computations   []FlowRecord // that have ended
	free           []freeID
	recyclesIDs    bool
	nextSourcePort map[[2]model.Addr]uint16
	traits         congestion.Traits             // of the congestion control
	pfcSize        int32                         // of a pause frame
	txTimes        map[model.Rate]*[]engine.Time // by size, where times are ns-3's
	largestWindow  sync.Once                     // computes the two below
	maxWindow      int64
	maxRTT         engine.Time
	tableVersion   uint16 // counts changes of forwarding tables
	services       map[model.Addr]*service
	tunnelOverhead int32        // what muxes add to the longest frame
	intent         *topo.Intent // intended routes of all times; routes are the newest
	intentVersion  uint32       // counts changes of intended routes
	polarization   hashPolarization
	Finished       int // flows

	observer      Observer
	queueObserver QueueObserver // observer, if it is one
	Counts        Counts
}

// Counts are the totals of a run.
type Counts struct {
	Hops       int64 // packets that finished crossing a link, without pause frames
	Events     int64
	Delivered  int64 // packets received by their destination host
	Originated int64 // packets that switches originated, without pause frames
	Consumed   int64 // packets that ended at a switch or its programs, or at a mux that forwards them
	Pauses     int64 // PAUSE frames sent, including refreshes
	Resumes    int64
	Marked     int64 // packets that got an ECN mark
	Trimmed    int64 // packets that lost their payload to a full buffer
	Reordered  int64 // RDMA packets that arrived before one of an earlier byte
	Duplicates int64 // RDMA packets that arrived with bytes that their receiver had; only with selective repeat
	LabelsLost int64 // labels lost when a packet was encapsulated or decapsulated
	Drops      [numReasons]int64
}

// add adds the totals of a part of the run.
func (c *Counts) add(d *Counts) {
	c.Hops += d.Hops
	c.Events += d.Events
	c.Delivered += d.Delivered
	c.Originated += d.Originated
	c.Consumed += d.Consumed
	c.Pauses += d.Pauses
	c.Resumes += d.Resumes
	c.Marked += d.Marked
	c.Trimmed += d.Trimmed
	c.Reordered += d.Reordered
	c.Duplicates += d.Duplicates
	c.LabelsLost += d.LabelsLost
	for i := range c.Drops {
		c.Drops[i] += d.Drops[i]
	}
}

// New builds a network. It runs nothing.
func New(routes *topo.Routes, cfg Config) (*Network, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	f := routes.Fabric()
	n := &Network{
		cfg: cfg, fabric: f, routes: routes,
		nodes:          make([]node, len(f.Nodes())),
		intent:         topo.NewIntent(routes),
		nextSourcePort: map[[2]model.Addr]uint16{}, services: map[model.Addr]*service{},
	}
	n.sched.workers = []*worker{newWorker(n, 0)}
	n.tunnelOverhead = tunnelOverhead(f)
	n.pfcSize, n.traits = pfcSize, congestion.TraitsOf(cfg.Congestion)
	if cfg.NS3 {
		n.pfcSize, n.txTimes = ns3PFCSize, map[model.Rate]*[]engine.Time{}
	}
	for i := range f.Nodes() {
		tn := f.Node(model.NodeID(i))
		ports := make([]*Port, len(tn.Ports))
		for j := range tn.Ports {
			ports[j] = n.newPort(tn, &tn.Ports[j])
		}
		if tn.Role.IsSwitch() {
			sw, err := newSwitch(n, tn, ports)
			if err != nil {
				return nil, err
			}
			n.nodes[i].sw = sw
			n.switches = append(n.switches, sw)
		} else {
			h := newHost(n, tn, ports)
			n.nodes[i].host = h
			n.hosts = append(n.hosts, h)
		}
	}
	for _, p := range n.ports {
		peer := f.Port(model.Port{Node: p.Node, Port: p.ID}).Peer
		p.peer = n.Port(peer)
	}
	n.start()
	return n, nil
}

// Fabric returns the network's topology.
func (n *Network) Fabric() *topo.Fabric { return n.fabric }

// Now returns the simulated time. Programs and observers that may run on several
// cores use the method of their switch or host instead.
func (n *Network) Now() engine.Time { return n.sched.workers[0].now }

// Port returns a port, or nil if there is none.
func (n *Network) Port(p model.Port) *Port {
	var ports []*Port
	switch nd := &n.nodes[p.Node]; {
	case nd.sw != nil:
		ports = nd.sw.ports
	default:
		ports = nd.host.ports
	}
	if p.Port == 0 || int(p.Port) > len(ports) {
		return nil
	}
	return ports[p.Port-1]
}

// Switch returns a switch, or nil if the node is not one.
func (n *Network) Switch(id model.NodeID) *Switch { return n.nodes[id].sw }

// Host returns a host, or nil if the node is not one.
func (n *Network) Host(id model.NodeID) *Host { return n.nodes[id].host }

// AddFlows adds a workload, before or during a run.
func (n *Network) AddFlows(list []traffic.Flow) error {
	added := make([]*flow, len(list))
	for i := range list {
		f, err := n.newFlow(&list[i])
		if err != nil {
			return fmt.Errorf("sim: flow %d: %w", i, err)
		}
		n.assignID(f)
		added[i] = f
	}
	for i, f := range added {
		if len(list[i].After) > 0 {
			f.pendingDeps = int32(len(list[i].After))
			for _, a := range list[i].After {
				added[a].dependents = append(added[a].dependents, f.id)
			}
			continue
		}
		f.src.node.addTimer(timer{at: max(n.Now(), timeOf(list[i].Start)), kind: startFlow, obj: f.id})
	}
	return nil
}

func timeOf(t model.Time) engine.Time { return engine.Time(t) * engine.Nanosecond }

// Reason is why a packet was dropped.
type Reason uint8

// Reasons.
const (
	DropBuffer    Reason = iota // buffer full: a lossy class, or headroom too small
	DropTTL                     // TTL ran out
	DropNoRoute                 // no entry for the destination
	DropBlackhole               // the entry says drop
	DropLinkDown                // the link was down
	DropSilent                  // silently, by a faulty switch, mux or link
	DropCorrupt                 // corrupted on the wire, discarded by the receiver
	DropProgram                 // by a program in the switch
	DropHost                    // not for the host that received it
	DropReset                   // in a queue that was reset
	numReasons
)

var reasonNames = [...]string{
	"buffer", "ttl", "no-route", "blackhole", "link-down", "silent", "corrupt", "program", "host", "reset",
}

// String prints the reason's name.
func (r Reason) String() string { return reasonNames[r] }

// drop drops a packet at a port.
func (n *Network) drop(p *Packet, at *Port, why Reason) {
	w := at.w
	w.counts.Drops[why]++
	at.Drops[why]++
	if at.sw != nil && at.sw.dropTap != nil && why != DropSilent && why != DropCorrupt {
		at.sw.dropTap(p, at, why)
	}
	if n.observer != nil {
		if w.defersObserver() {
			w.observed = append(w.observed, observation{kind: sawDrop, now: w.now, port: at, pkt: p, why: why})
			return
		}
		n.observer.Dropped(w.now, p, at, why)
	}
	w.pool.put(p)
}
