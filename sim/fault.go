package sim

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/topo"
)

// Fault is something that goes wrong on purpose. Its start and end are the
// truth that a diagnosis is scored against.
type Fault interface {
	// String says in a sentence what is broken.
	String() string
	// check says what the network lacks for it.
	check(n *Network) error
	// begin breaks it and returns what mends it. check has passed.
	begin(n *Network) (end func())
}

// Injection is a fault with its time.
type Injection struct {
	At    model.Time    // of the run
	For   time.Duration // 0: until the end
	Fault Fault
}

// Inject schedules a fault.
func (n *Network) Inject(in Injection) error {
	if err := in.Fault.check(n); err != nil {
		return fmt.Errorf("sim: fault %T: %w", in.Fault, err)
	}
	n.At(timeOf(in.At), func() {
		end := in.Fault.begin(n)
		if in.For > 0 {
			n.At(n.now+engine.Of(in.For), end)
		}
	})
	return nil
}

// LinkDown takes a link out of service in both directions. Packets on it and
// those sent to it are lost. With Up set it flaps: down for Down, up for Up.
type LinkDown struct {
	Port     model.Port
	Down, Up time.Duration
}

func (f LinkDown) String() string { return fmt.Sprintf("link of port %v down", f.Port) }

func (f LinkDown) check(n *Network) error { return n.hasPort(f.Port) }

func (f LinkDown) begin(n *Network) func() {
	p := n.Port(f.Port)
	over := false
	var ends []func()
	up := func() {
		for _, end := range ends {
			end()
		}
		ends = nil
		p.restore()
		p.peer.restore()
	}
	down := func() {
		for _, q := range []*Port{p, p.peer} {
			ends = append(ends, q.impair.add(&impairment{down: true}))
			q.cut()
		}
	}
	var turn func()
	turn = func() {
		if over {
			return
		}
		wait := f.Up
		if ends == nil {
			down()
			wait = f.Down
		} else {
			up()
		}
		if f.Up > 0 {
			n.At(n.now+engine.Of(wait), turn)
		}
	}
	turn()
	return func() { over = true; up() }
}

// Lossy makes a wire lose packets in one direction: silently, or damaged so
// that the receiver discards and counts them.
type Lossy struct {
	Port    model.Port // that sends
	Share   float64    // probability
	Damaged bool
}

func (f Lossy) String() string {
	return fmt.Sprintf("port %v loses %.3g of its packets", f.Port, f.Share)
}

func (f Lossy) check(n *Network) error {
	return errors.Join(n.hasPort(f.Port), checkShare(f.Share))
}

func (f Lossy) begin(n *Network) func() {
	p := n.Port(f.Port)
	im := &impairment{loss: f.Share, reason: DropSilent}
	if f.Damaged {
		im.reason = DropCorrupt
	}
	return p.impair.add(im)
}

// LossySwitch makes a switch lose packets in its middle, without a counter.
// Match picks which; nil is all of them.
type LossySwitch struct {
	Switch model.NodeID
	Share  float64
	Match  func(key model.FlowKey) bool
}

func (f LossySwitch) String() string {
	return fmt.Sprintf("switch %d loses %.3g of its packets", f.Switch, f.Share)
}

func (f LossySwitch) check(n *Network) error {
	return errors.Join(n.hasSwitch(f.Switch), checkShare(f.Share))
}

func (f LossySwitch) begin(n *Network) func() {
	sw := n.nodes[f.Switch].sw
	im := &impairment{loss: f.Share, reason: DropSilent}
	if f.Match != nil {
		im.match = func(p *Packet) bool { return f.Match(p.Key) }
	}
	end := sw.loss.add(im)
	sw.watch()
	return func() { end(); sw.watch() }
}

// Reroute changes what switches really do, against what is intended: entries
// for destinations, by neighbours. An entry without Via drops. Two switches
// that point at each other are a loop.
type Reroute struct{ Entries []Entry }

// Entry is one wrong route.
type Entry struct {
	Switch model.NodeID
	To     netip.Prefix
	Flow   model.FlowKey // instead of To: one flow
	Via    []model.NodeID
}

func (f Reroute) String() string {
	return fmt.Sprintf("%d wrong routes, the first at switch %d", len(f.Entries), f.Entries[0].Switch)
}

func (f Reroute) check(n *Network) error {
	if len(f.Entries) == 0 {
		return errors.New("no entries, want at least one")
	}
	for _, e := range f.Entries {
		if err := n.hasSwitch(e.Switch); err != nil {
			return err
		}
		if e.Flow.IsZero() && !e.To.IsValid() {
			return fmt.Errorf("entry of switch %d has neither a destination nor a flow", e.Switch)
		}
		for _, via := range e.Via {
			if len(n.fabric.Node(e.Switch).PortsTo(via)) == 0 {
				return fmt.Errorf("switch %d has no link to node %d", e.Switch, via)
			}
		}
	}
	return nil
}

func (f Reroute) begin(n *Network) func() {
	var ends []func()
	for i := range f.Entries {
		ends = append(ends, n.nodes[f.Entries[i].Switch].sw.divert(&f.Entries[i]))
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

// divert puts a wrong route in force and returns what ends it. Of several for
// the same packets the newest counts.
func (sw *Switch) divert(e *Entry) (end func()) {
	sw.diverted = append(sw.diverted, e)
	sw.write(e)
	return func() {
		sw.diverted = slices.DeleteFunc(sw.diverted, func(other *Entry) bool { return other == e })
		for _, other := range slices.Backward(sw.diverted) {
			if other.To == e.To && other.Flow == e.Flow {
				sw.write(other)
				return
			}
		}
		if e.Flow.IsZero() {
			sw.table.RemovePrefix(e.To)
		} else {
			sw.table.RemoveFlow(e.Flow)
		}
		sw.Rerouted()
	}
}

// write enters a wrong route into the table.
func (sw *Switch) write(e *Entry) {
	var ports []model.PortID
	for _, via := range e.Via {
		ports = append(ports, sw.net.fabric.Node(sw.ID).PortsTo(via)...)
	}
	var err error
	if e.Flow.IsZero() {
		err = sw.table.SetPrefix(e.To, ports...)
	} else {
		err = sw.table.SetFlow(e.Flow, ports...)
	}
	if err != nil {
		panic(err) // ports and prefix were checked
	}
	sw.Rerouted()
}

// BadTable makes a forwarding table hit a share of flows wrongly, as a flipped
// bit does: those flows leave by Via, or are dropped where Via is zero.
type BadTable struct {
	Switch model.NodeID
	Share  float64
	Via    model.PortID
	Seed   uint64
}

func (f BadTable) String() string {
	return fmt.Sprintf("table of switch %d wrong for %.3g of flows", f.Switch, f.Share)
}

func (f BadTable) check(n *Network) error {
	err := errors.Join(n.hasSwitch(f.Switch), checkShare(f.Share))
	if f.Via != 0 {
		err = errors.Join(err, n.hasPort(model.Port{Node: f.Switch, Port: f.Via}))
	}
	return err
}

func (f BadTable) begin(n *Network) func() {
	sw := n.nodes[f.Switch].sw
	end := sw.misroute.add(diversion[model.PortID]{f.Seed, f.Share, f.Via})
	sw.Rerouted()
	return func() { end(); sw.Rerouted() }
}

// Storm makes a host send PAUSE frames: without end, or On and Off in turn.
type Storm struct {
	Host     model.NodeID
	Priority model.Priority
	On, Off  time.Duration // Off 0: continuous
}

func (f Storm) String() string {
	return fmt.Sprintf("host %d sends PAUSE for priority %d", f.Host, f.Priority)
}

func (f Storm) check(n *Network) error {
	if err := n.hasHost(f.Host); err != nil {
		return err
	}
	if f.Priority >= numPriorities {
		return fmt.Errorf("priority %d, want 0 to 7", f.Priority)
	}
	return nil
}

func (f Storm) begin(n *Network) func() {
	h := n.nodes[f.Host].host
	over, on := false, false
	var turn func()
	turn = func() {
		if over {
			return
		}
		on = !on
		h.pause(f.Priority, on)
		if f.Off > 0 {
			wait := f.Off
			if on {
				wait = f.On
			}
			n.At(n.now+engine.Of(wait), turn)
		}
	}
	turn()
	return func() {
		over = true
		if on {
			h.pause(f.Priority, false)
		}
	}
}

// pause has a host tell its switches to stop sending a priority, or takes that
// back. They may go on when nothing is left that wants them to stop.
func (h *Host) pause(prio model.Priority, stop bool) {
	before := h.pausing[prio]
	if stop {
		h.pausing[prio]++
	} else {
		h.pausing[prio]--
	}
	if before == 0 || h.pausing[prio] == 0 {
		for _, p := range h.ports {
			p.sendPause(prio, stop)
		}
	}
}

// Polarise makes every switch hash alike, so that later tiers use only some of
// their links.
type Polarise struct{}

func (Polarise) String() string { return "all switches hash alike" }

func (Polarise) check(*Network) error { return nil }

func (Polarise) begin(n *Network) func() {
	set := func(step int) {
		n.alike.faults += step
		for _, sw := range n.switches {
			sw.follow(sw.intended)
		}
	}
	set(1)
	return func() { set(-1) }
}

// alike is whether all switches have one hash, whatever routes they follow.
type alike struct {
	faults         int
	routes, hashed *topo.Routes // the last ones asked for, and those with one hash
}

// of returns routes in which all switches hash alike.
func (a *alike) of(routes *topo.Routes) *topo.Routes {
	if a.routes == routes {
		return a.hashed
	}
	cfg := routes.Config()
	before := cfg.Hash
	if before == nil {
		before = func(key model.FlowKey, _ model.NodeID, seed uint64) uint64 { return key.Hash(seed) }
	}
	cfg.Hash = func(key model.FlowKey, _ model.NodeID, _ uint64) uint64 { return before(key, 0, cfg.Seed) }
	hashed, err := topo.NewRoutes(routes.Fabric(), cfg)
	if err != nil {
		panic(err) // the same routes were computed before
	}
	a.routes, a.hashed = routes, hashed
	return hashed
}

// follow has the switch's table go by intended routes.
func (sw *Switch) follow(routes *topo.Routes) {
	sw.intended = routes
	if a := &sw.net.alike; a.faults > 0 {
		routes = a.of(routes)
	}
	sw.table.Follow(routes)
	sw.Rerouted()
}

func (n *Network) hasPort(p model.Port) error {
	if !n.fabric.Has(p.Node) || n.fabric.Port(p) == nil {
		return fmt.Errorf("there is no port %v", p)
	}
	return nil
}

func (n *Network) hasSwitch(id model.NodeID) error {
	if !n.fabric.Has(id) || n.nodes[id].sw == nil {
		return fmt.Errorf("node %d is no switch", id)
	}
	return nil
}

func (n *Network) hasHost(id model.NodeID) error {
	if !n.fabric.Has(id) || n.nodes[id].host == nil {
		return fmt.Errorf("node %d is no host", id)
	}
	return nil
}

func checkShare(share float64) error {
	if share <= 0 || share > 1 {
		return fmt.Errorf("share %v, want above 0 and at most 1", share)
	}
	return nil
}

// cut loses what is on the wire to the port, and the pauses that its ends have
// asked of each other: a link that comes back starts afresh.
func (p *Port) cut() {
	n := p.net
	for p.inbox.head != nil {
		n.drop(p.inbox.pop(), p.peer, DropLinkDown)
	}
	*p.due = min(p.txAt, p.wakeAt)
	p.pfcDue = 0
	for prio := range model.Priority(numPriorities) {
		p.refreshGen[prio]++
		p.pauseGen[prio]++
		p.setPaused(prio, false)
		if p.sw != nil {
			p.sw.buffer.SetPaused(p.ID, prio, false)
		}
	}
	p.pfcStop = 0
}

// restore has a host that wants its switch to stop say so again on a link that
// came back. A switch finds out for itself when its buffer fills.
func (p *Port) restore() {
	if p.host == nil || len(p.impair) > 0 && slices.ContainsFunc(p.impair, func(im *impairment) bool { return im.down }) {
		return
	}
	for prio, wishes := range p.host.pausing {
		if wishes > 0 {
			p.sendPause(model.Priority(prio), true)
		}
	}
}
