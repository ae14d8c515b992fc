package simhost

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/label"
)

// Config is how a switch hosts its programs.
type Config struct {
	// MTU is the longest IP packet of the fabric's links, in bytes. 0 adds five
	// labels to the longest packet that hosts send.
	MTU int
	// Datagram is the longest payload of a datagram of reports, at most the
	// carrier's limit. 0 means that limit.
	Datagram int
	// Linger is how long a report waits for others to share its datagram; 0
	// sends the reports of one action together and at once. Reports with the
	// immediate flag never wait.
	Linger time.Duration
	// Carrier takes the datagrams. Without one every report counts as lost.
	Carrier Carrier
	// Isolated says that the programs of a switch share nothing with those of
	// others: the simulator may then run switches on several cores.
	Isolated bool
	// Key returns the key that authenticates a switch's datagrams, each of its
	// own; nil where it has none. Without Key no switch has one.
	Key func(model.NodeID) *dta.MAC
}

// DefaultConfig fills datagrams for at most 20 µs, well below any export period
// of programs.
func DefaultConfig() Config { return Config{Linger: 20 * time.Microsecond} }

// Switch hosts the programs of one simulated switch. It implements sim.Program.
type Switch struct {
	outbox

	net      *sim.Network
	sw       *sim.Switch
	pipeline *inswitch.Pipeline
	mtu      int32
	payload  int64 // of a full packet
	isolated bool

	ctx    *sim.Context // of the current event
	packet inswitch.Packet
	event  inswitch.Event // for packets
	timer  inswitch.Event // for timers, without a packet
	act    inswitch.Actions
	first  firstSteps
}

// Describe returns the device description for the programs of a switch. A zero
// mtu means the same as in Config.
func Describe(n *sim.Network, id model.NodeID, mtu int) inswitch.Device {
	node := n.Fabric().Node(id)
	if mtu == 0 {
		mtu = defaultMTU(n)
	}
	d := inswitch.Device{ID: id, IPv4: node.IPv4, IPv6: node.IPv6, MTU: mtu, Buffer: n.Config().Buffer}
	for _, p := range n.Switch(id).Ports() {
		d.Ports = append(d.Ports, inswitch.Port{Rate: p.Rate(), FacesHost: p.Peer().Host() != nil})
	}
	if c := n.Config(); !c.HPCC && c.Xoff > 0 {
		d.Xoff, d.Xon = c.Xoff, c.Xon
	}
	return d
}

// defaultMTU is the longest IP packet of a host, which is IPv6 with RoCEv2
// headers, plus five labels.
func defaultMTU(n *sim.Network) int {
	const headers = 40 + 8 + 12 + 16 + 4
	return max(int(n.Config().MTU)+headers, int(n.Config().MTU+n.Config().Overhead)) +
		label.FirstGrowth + (label.DefaultMaxHop-1)*label.ItemSize
}

// Attach makes a switch run programs from now on. A pipeline serves one switch.
func Attach(n *sim.Network, id model.NodeID, pl *inswitch.Pipeline, cfg Config) (*Switch, error) {
	if !n.Fabric().HasNode(id) || n.Switch(id) == nil {
		return nil, fmt.Errorf("simhost: node %d is not a switch", id)
	}
	if cfg.MTU < 0 || cfg.Datagram < 0 || cfg.Linger < 0 {
		return nil, fmt.Errorf("simhost: MTU %d, datagram %d, linger %v, want at least 0", cfg.MTU, cfg.Datagram, cfg.Linger)
	}
	if cfg.MTU == 0 {
		cfg.MTU = defaultMTU(n)
	}
	s := &Switch{net: n, sw: n.Switch(id), pipeline: pl, mtu: int32(cfg.MTU), payload: int64(n.Config().MTU), isolated: cfg.Isolated}
	if err := s.outbox.init(s, cfg); err != nil {
		return nil, err
	}
	s.first = firstOf(pl)
	s.packet.Source = packetSource{s}
	s.event = inswitch.Event{Packet: &s.packet, Switch: switchInfo{s}}
	s.timer = inswitch.Event{Stage: inswitch.Timer, Switch: switchInfo{s}}
	s.sw.Attach(s)
	for i, p := range pl.Programs() {
		if p.Stages().Has(inswitch.Timer) {
			s.sw.Start((*atTimer)(s), timerOf(i, inswitch.StartTimer))
		}
	}
	return s, nil
}

// NodeLocal reports whether the switch may run while others do. The simulator
// calls it.
func (s *Switch) NodeLocal() bool { return s.isolated }

// switchInfo implements inswitch.Switch, to keep its methods out of Switch's
// API.
type switchInfo struct{ *Switch }

// Route returns the actual forwarding state, faults included: where the flow's
// packets go.
func (a switchInfo) Route(key *model.FlowKey) (model.PortID, bool) {
	out, ok := a.sw.NextHop(*key)
	if !ok {
		return 0, false
	}
	return out.ID, true
}

func (a switchInfo) Queue(out model.PortID, class model.Priority) inswitch.Queue {
	p := a.port(out)
	if p == nil {
		return inswitch.Queue{}
	}
	return queueOf(p, class&7, false)
}

// Counters is part of inswitch.CountingSwitch. What a faulty switch loses silently is
// in no counter of it.
func (a switchInfo) Counters(out model.PortID) (c inswitch.PortCounters) {
	p := a.port(out)
	if p == nil {
		return c
	}
	c.Bytes, c.Discards = p.Sent()[sim.TxBytes], uint64(p.Drops[sim.DropBuffer])
	for class := range model.Priority(8) {
		c.Paused = max(c.Paused, p.PausedTime(class).Duration())
	}
	return c
}

// port returns a port by number, or nil if there is none.
func (s *Switch) port(id model.PortID) *sim.Port {
	if ports := s.sw.Ports(); id != 0 && int(id) <= len(ports) {
		return ports[id-1]
	}
	return nil
}
