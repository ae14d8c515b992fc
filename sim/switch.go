package sim

import (
	"fmt"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/mmu"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/fib"
	"github.com/weft-telemetry/weft/wire/label"
)

// Switch forwards packets: shared buffer, one queue per priority and port,
// PFC towards the sender, ECN marks towards the receiver.
type Switch struct {
	ID   model.NodeID
	Name string

	net    *Network
	node   *node
	ports  []*Port
	buffer *mmu.Buffer
	table  *fib.Table
	loss   impairments // a faulty switch drops in its middle

	intended *topo.Routes // that the table follows, and which of them it is
	follows  uint32

	// misroute overrides the table for flows that a faulty one gets wrong;
	// port 0 drops them.
	misroute diversions[model.PortID]
	diverted []*Entry // wrong routes in force

	bgp      *speaker // nil usually
	programs programs
	watched  bool // programs or faults want to see every packet
}

// watch notes whether the quick way through the switch is open.
func (sw *Switch) watch() {
	sw.watched = len(sw.loss) > 0
	for s := range numStages {
		sw.watched = sw.watched || sw.programs.any(s)
	}
}

func newSwitch(n *Network, tn *topo.Node, ports []*Port) (*Switch, error) {
	sw := &Switch{ID: tn.ID, Name: tn.Name, net: n, ports: ports, table: fib.New(n.routes, tn.ID), intended: n.routes}
	buffer, err := mmu.New(n.bufferConfig(ports))
	if err != nil {
		return nil, fmt.Errorf("sim: %s: %w", tn.Name, err)
	}
	sw.buffer = buffer
	for _, p := range ports {
		p.sw = sw
	}
	return sw, nil
}

// Table is the switch's actual forwarding state. Call Rerouted after a change.
func (sw *Switch) Table() *fib.Table { return sw.table }

// Rerouted forgets the ways of flows that were found in an earlier state of
// Table.
func (sw *Switch) Rerouted() { sw.net.routing++ }

// receive takes a packet from the wire of port in and sends it on.
func (sw *Switch) receive(in *Port, p *Packet) {
	p.ingress = in.ID
	if sw.watched {
		sw.receiveWatched(in, p)
		return
	}
	if p.TTL <= 1 {
		sw.net.drop(p, in, DropTTL)
		return
	}
	p.TTL--
	out := sw.route(p)
	if out == nil {
		return
	}
	if out.idle(p) && sw.buffer.Passes(in.ID, p.Priority, model.Bytes(p.Size)) && sw.net.observer == nil {
		// The packet leaves at the instant it came: it waits in no queue, takes
		// no room and meets no threshold. It still had its turn.
		if !p.Control {
			out.next = (uint8(p.Priority) + 1) & (numPriorities - 1)
		}
		out.send(p)
		return
	}
	sw.enqueue(out, p)
}

// receiveWatched is receive with the programs and the faults of the switch.
func (sw *Switch) receiveWatched(in *Port, p *Packet) {
	n, ps := sw.net, &sw.programs
	sw.meet(p)
	if ps.any(StageIngress) {
		if ps.run(StageIngress, nil); !ps.goesOn() {
			return
		}
	}
	if p.TTL <= 1 {
		n.drop(p, in, DropTTL)
		return
	}
	p.TTL--
	out := sw.route(p)
	if out == nil {
		return
	}
	if len(sw.loss) > 0 && !sw.loss.pass(in, p) {
		return
	}
	if ps.any(StageRouted) {
		if ps.run(StageRouted, out); !ps.goesOn() {
			return
		}
	}
	passes := out.idle(p) && !p.Control && sw.buffer.Passes(in.ID, p.Priority, model.Bytes(p.Size)) && n.observer == nil
	switch {
	case !passes:
		if ps.any(StageEnqueue) {
			if ps.run(StageEnqueue, out); !ps.goesOn() {
				return
			}
		}
		if ps.any(StageDequeue) {
			p.join(out)
		}
		sw.enqueue(out, p)
		return
	case ps.through != nil:
		p.Joined, p.Ahead = n.now, 0
		c := &ps.ctx
		c.Stage, c.Out, c.Passes = StageEnqueue, out, true
		if ps.through.Run(c); !ps.goesOn() {
			return
		}
	case !sw.pass(p, out):
		return
	}
	out.next = (uint8(p.Priority) + 1) & (numPriorities - 1)
	out.send(p)
}

// pass shows a packet that passes to the programs stage by stage, and tells
// whether it goes on.
func (sw *Switch) pass(p *Packet, out *Port) bool {
	ps := &sw.programs
	ps.ctx.Passes = true
	if ps.any(StageEnqueue) {
		if ps.run(StageEnqueue, out); !ps.goesOn() {
			return false
		}
	}
	if ps.any(StageDequeue) {
		p.Joined, p.Ahead = sw.net.now, 0
		ps.run(StageDequeue, out)
		return ps.goesOn()
	}
	return true
}

// route finds the egress port; nil means that the packet is gone. A flow
// learns its way hop by hop and gives it to its packets; while no table
// changes, that saves the hash and the look-up, most of what forwarding costs.
func (sw *Switch) route(p *Packet) *Port {
	if hop := int(p.hop); hop < len(p.path) && p.path[hop] != 0 && p.routing == sw.net.routing {
		p.hop++
		return sw.ports[p.path[hop]-1]
	}
	return sw.learn(p)
}

// learn is route for a packet that does not know its way from here.
func (sw *Switch) learn(p *Packet) *Port {
	hop := p.hop
	if int(hop) == len(p.path) {
		return sw.lookup(p)
	}
	p.hop++
	out := sw.lookup(p)
	if out != nil && p.flow >= 0 && out.ID <= 255 && p.routing == sw.net.routing {
		if f := sw.net.ownerOf(p); f != nil && f.ways[p.way].routing == p.routing {
			f.ways[p.way].path[hop] = uint8(out.ID)
		}
	}
	return out
}

// way is where one direction of a flow goes, as far as it is known.
type way struct {
	path    path8
	routing uint16
}

// give stamps a packet with its flow's way.
func (f *flow) give(p *Packet, direction uint8) {
	w := &f.ways[direction]
	if w.routing != f.net.routing {
		*w = way{routing: f.net.routing}
	}
	p.flow, p.way, p.path, p.routing = f.id, direction, w.path, w.routing
	p.KeyID = f.keys + uint32(direction)
}

// lookup asks the table.
func (sw *Switch) lookup(p *Packet) *Port {
	key := p.Key
	if p.Extra != nil && len(p.Extra.Outer) > 0 {
		key = p.Extra.Outer[0]
	}
	out, verdict := sw.table.Lookup(key)
	if len(sw.misroute) > 0 {
		if wrong, hit := sw.misroute.of(key); hit {
			if out, verdict = wrong, fib.Forward; wrong == 0 {
				verdict = fib.Drop
			}
		}
	}
	in := sw.ports[max(p.ingress, 1)-1]
	switch {
	case verdict == fib.Forward && out != 0:
		return sw.ports[out-1]
	case verdict == fib.Forward && p.tunnelled():
		if sw.unwrap(in, p) {
			return sw.lookup(p)
		}
	case verdict == fib.Forward && sw.bgp.hear(in, p):
	case verdict == fib.Forward:
		sw.net.drop(p, in, DropHost) // for the switch's own CPU, which no program took it to
	case verdict == fib.Drop:
		sw.net.drop(p, in, DropBlackhole)
	default:
		sw.net.drop(p, in, DropNoRoute)
	}
	return nil
}

// enqueue admits a packet to the buffer and queues it at out. Control packets
// need no room: they are few and small.
func (sw *Switch) enqueue(out *Port, p *Packet) {
	if !p.Control {
		if !sw.admit(out, p) {
			return
		}
		if sw.net.cfg.ECNAtEnq {
			sw.mark(out, p)
		}
	}
	out.enqueue(p)
}

// admit charges a packet to the buffer, or drops it.
func (sw *Switch) admit(out *Port, p *Packet) bool {
	p.buffered = uint16(p.Size)
	if !sw.buffer.Take(p.ingress, p.Priority, model.Bytes(p.Size)) && !sw.squeeze(out, p) {
		return false
	}
	if n := sw.net; n.observer != nil {
		n.observer.Enqueued(n.now, p, out)
	}
	return true
}

// squeeze is admit where room is scarce. The pause is decided before the packet
// may leave at once: what counts is that it arrived.
func (sw *Switch) squeeze(out *Port, p *Packet) bool {
	in, prio := p.ingress, p.Priority
	if sw.buffer.TailDrop(prio, model.Bytes(out.queues[prio].bytes), model.Bytes(p.Size)) ||
		!sw.buffer.Admit(in, prio, model.Bytes(p.Size)) {
		sw.net.drop(p, out, DropBuffer)
		return false
	}
	if sw.buffer.ShouldPause(in, prio) {
		sw.buffer.SetPaused(in, prio, true)
		sw.ports[in-1].sendPause(prio, true)
	}
	return true
}

// dequeued releases a packet's room as it starts to leave. It tells whether it
// does, or a program ended it.
func (sw *Switch) dequeued(out *Port, p *Packet) bool {
	n := sw.net
	in, prio := p.ingress, p.Priority
	calm := sw.buffer.Give(in, prio, model.Bytes(p.buffered))
	if !calm {
		sw.buffer.Release(in, prio, model.Bytes(p.buffered))
	}
	if out.queues[prio].bytes > out.ecn.kmin && !n.cfg.ECNAtEnq {
		sw.mark(out, p)
	}
	if n.observer != nil {
		n.observer.Dequeued(n.now, p, out)
	}
	if !calm && sw.buffer.ShouldResume(in, prio) {
		sw.buffer.SetPaused(in, prio, false)
		sw.ports[in-1].sendPause(prio, false)
	}
	return sw.leaves(p, out)
}

// mark sets the congestion mark with the probability of the queue's length.
func (sw *Switch) mark(out *Port, p *Packet) {
	if p.ECN == NotECT {
		return
	}
	depth := out.queues[p.Priority].bytes
	if depth <= out.ecn.kmin {
		return
	}
	if depth <= out.ecn.kmax {
		chance := out.ecn.pmax * float64(depth-out.ecn.kmin) / float64(out.ecn.kmax-out.ecn.kmin)
		if sw.node.random() >= chance {
			return
		}
	}
	p.ECN = CE
	sw.net.Counts.Marked++
}

// pauseHeard lets programs see a pause frame.
func (sw *Switch) pauseHeard(at *Port, p *Packet) {
	if sw.programs.any(StagePFC) {
		c := &sw.programs.ctx
		p.ingress = at.ID
		c.Pause.Priority, c.Pause.Time = p.Priority, p.pauseFor().Duration()
		sw.meet(p)
		sw.programs.run(StagePFC, nil)
		sw.programs.goesOn()
	}
}

// BufferConfig is how the switch's buffer is set up.
func (sw *Switch) BufferConfig() mmu.Config { return sw.net.bufferConfig(sw.ports) }

// bufferConfig is the buffer of a switch with these ports.
func (n *Network) bufferConfig(ports []*Port) mmu.Config {
	c := &n.cfg
	links := make([]mmu.Link, len(ports))
	for i, p := range ports {
		links[i] = mmu.Link{Rate: p.rate, Delay: p.delay.Duration()}
	}
	if c.HPCC {
		return mmu.HPCCConfig(c.Buffer, n.firstHostRate(), links)
	}
	m := mmu.DefaultConfig(c.Buffer, n.MaxFrame(), links)
	m.Reserve, m.ResumeOffset, m.EgressLimit = c.Reserve, c.ResumeOffset, c.LossyQueue
	m.Lossless = c.Lossless
	if c.NoPFC {
		m.Lossless = 0
	}
	for i := range m.Ports {
		m.Ports[i].Alpha, m.Ports[i].Xoff, m.Ports[i].Xon = mmu.AlphaShift(c.AlphaShift), c.Xoff, c.Xon
		if c.Headroom > 0 {
			m.Ports[i].Headroom = c.Headroom
		}
	}
	return m
}

// MaxFrame is the largest frame on any link, labels and tunnels included: what
// headroom is computed for.
func (n *Network) MaxFrame() model.Bytes { return model.Bytes(n.maxFrame()) }

func (n *Network) maxFrame() int32 {
	if n.cfg.Overhead > 0 {
		return n.cfg.MTU + n.cfg.Overhead + n.tunnel
	}
	return n.cfg.MTU + n.tunnel + ethernetSize + 40 + udpSize + rocePlain + rethSize + labelRoom
}

// labelRoom is what a full stack of INT-labels adds to a packet on its way.
const labelRoom = label.OptionSize + label.DefaultMaxHop*label.ItemSize

// firstHostRate is what HPCC measures port rates against.
func (n *Network) firstHostRate() model.Rate {
	hosts := n.fabric.Hosts()
	return n.fabric.Node(hosts[0]).Ports[0].Rate
}
