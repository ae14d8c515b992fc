package sim

import (
	"fmt"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/congestion"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

// Network is one simulation: a fabric, its hosts, and the events to come.
type Network struct {
	cfg    Config
	fabric *topo.Fabric
	routes *topo.Routes

	sched schedule
	now   engine.Time // of the node whose events are played
	pool  pool

	nodes    []node  // by NodeID
	ports    []*Port // by index
	switches []*Switch
	hosts    []*Host

	flows          []*flow
	lastKeyID           uint32 // KeyIDs given
	records        []FlowRecord
	free           []freeID
	recyclesIDs      bool
	nextSourcePort map[[2]model.Addr]uint16
	traits         congestion.Traits            // of the congestion control
	pfcSize        int32                        // of a pause frame
	txTimes        map[model.Rate][]engine.Time // by size, where times are ns-3's
	maxWindow      int64
	maxRTT         engine.Time
	tableVersion        uint16 // counts changes of forwarding tables
	services       map[model.Addr]*service
	tunnelOverhead         int32        // what muxes add to the longest frame
	intent         *topo.Intent // the routes of all times; routes are the newest
	intentVersion       uint32       // counts changes of intended routes
	polarization          hashPolarization
	timerSeq       uint64
	Finished       int // flows

	observer Observer
	Counts   Counts
}

// Counts are totals of a run.
type Counts struct {
	Hops      int64 // packets that finished crossing a link, pause frames left out
	Events    int64
	Delivered int64 // packets received by the host they were for
	Originated      int64 // packets that switches sent of their own, pause frames left out
	Consumed     int64 // packets that ended at a switch or its programs, or at a mux that sends them on
	Pauses    int64 // PAUSE frames sent, refreshes included
	Resumes   int64
	Marked    int64 // packets that got a congestion mark
	LabelsLost    int64 // labels lost with a header, or where a packet was wrapped
	Drops     [numReasons]int64
}

// New builds a network. It starts nothing.
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
	n.tunnelOverhead = tunnelOverhead(f)
	n.pfcSize, n.traits = pfcSize, congestion.TraitsOf(cfg.Congestion)
	if cfg.NS3 {
		n.pfcSize, n.txTimes = ns3PFCSize, map[model.Rate][]engine.Time{}
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

// Fabric returns what the network is made of.
func (n *Network) Fabric() *topo.Fabric { return n.fabric }

// Now is the present in the run.
func (n *Network) Now() engine.Time { return n.now }

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

// Switch returns a switch, or nil if the node is none.
func (n *Network) Switch(id model.NodeID) *Switch { return n.nodes[id].sw }

// Host returns a host, or nil if the node is none.
func (n *Network) Host(id model.NodeID) *Host { return n.nodes[id].host }

// AddFlows takes a workload. It may be called before or during a run.
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
		f.src.node.addTimer(n, timer{at: max(n.now, timeOf(list[i].Start)), kind: startFlow, obj: f.id})
	}
	return nil
}

func timeOf(t model.Time) engine.Time { return engine.Time(t) * engine.Nanosecond }

// Reason says why a packet was lost.
type Reason uint8

// Reasons.
const (
	DropBuffer    Reason = iota // no room: a lossy class, or headroom too small
	DropTTL                     // TTL ran out
	DropNoRoute                 // no entry for the destination
	DropBlackhole               // an entry that says drop
	DropLinkDown                // the link was down
	DropSilent                  // lost by a faulty switch, mux or link without a counter of its own
	DropCorrupt                 // damaged on the wire, discarded by the receiver
	DropProgram                 // by a program in the switch
	DropHost                    // a host that does not want it
	DropReset                   // it waited in a queue that was reset
	numReasons
)

var reasonNames = [...]string{
	"buffer", "ttl", "no-route", "blackhole", "link-down", "silent", "corrupt", "program", "host", "reset",
}

// String prints the reason's name.
func (r Reason) String() string { return reasonNames[r] }

// drop ends a packet's life at a place.
func (n *Network) drop(p *Packet, at *Port, why Reason) {
	n.Counts.Drops[why]++
	at.Drops[why]++
	if n.observer != nil {
		n.observer.Dropped(n.now, p, at, why)
	}
	n.pool.put(p)
}
