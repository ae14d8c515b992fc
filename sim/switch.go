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
	w      *worker
	node   *node
	ports  []*Port
	buffer *mmu.Buffer
	table  *fib.Table
	loss   impairments // LossySwitch faults

	miscounts []*miscount // faults of its flowset; nil usually

	intended       *topo.Routes // the routes that the table follows, and their version
	appliedVersion uint32

	// misrouted overrides the table for flows of a corrupt table; port 0 drops
	// them.
	misrouted   diversions[model.PortID]
	wrongRoutes []*Entry // active Reroute entries

	dropTap DropTap // nil usually

	bgp      *speaker // nil usually
	programs programs
	slowPath bool // programs or faults see every packet
}

// updateSlowPath updates slowPath.
func (sw *Switch) updateSlowPath() {
	sw.slowPath = len(sw.loss) > 0
	for s := range numStages {
		sw.slowPath = sw.slowPath || sw.programs.any(s)
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

// Table returns the switch's actual forwarding state. Call TableChanged after a
// change.
func (sw *Switch) Table() *fib.Table { return sw.table }

// TableChanged makes flows forget the paths that they learned from an earlier
// state of Table.
func (sw *Switch) TableChanged() { sw.net.tableVersion++ }

// receive handles a packet that arrived at port in and forwards it.
// receiveSlowPath is its copy with programs and faults: this one stays short
// enough for the hot path.
func (sw *Switch) receive(in *Port, p *Packet) {
	p.ingress = in.ID
	if sw.slowPath {
		sw.receiveSlowPath(in, p)
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
	if out.idle(p) && sw.buffer.FitsUnqueued(in.ID, p.Priority, model.Bytes(p.Size)) && sw.net.observer == nil {
		// The packet leaves at once: it is not queued, not charged to the
		// buffer, and meets no threshold. It still uses its round-robin turn.
		if !p.Control {
			out.next = (uint8(p.Priority) + 1) & (numPriorities - 1)
		}
		out.send(p)
		return
	}
	sw.enqueue(out, p)
}

// receiveSlowPath is receive with the programs and the faults of the switch.
func (sw *Switch) receiveSlowPath(in *Port, p *Packet) {
	n, ps := sw.net, &sw.programs
	sw.startPrograms(p)
	if ps.any(StageIngress) {
		if ps.runStage(StageIngress, nil); !ps.survives() {
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
	if len(sw.loss) > 0 && !sw.loss.survives(in, p) {
		return
	}
	if ps.any(StageRouted) {
		if ps.runStage(StageRouted, out); !ps.survives() {
			return
		}
	}
	unqueued := out.idle(p) && !p.Control && sw.buffer.FitsUnqueued(in.ID, p.Priority,
		model.Bytes(p.Size)) && n.observer == nil
	switch {
	case !unqueued:
		if ps.any(StageEnqueue) {
			if ps.runStage(StageEnqueue, out); !ps.survives() {
				return
			}
		}
		if ps.any(StageDequeue) {
			p.noteEnqueue(out)
		}
		sw.enqueue(out, p)
		return
	case ps.unqueued != nil:
		p.EnqueuedAt, p.BytesAhead = sw.w.now, 0
		c := &ps.ctx
		c.Stage, c.Out, c.Unqueued = StageEnqueue, out, true
		if ps.unqueued.Run(c); !ps.survives() {
			return
		}
	case !sw.runUnqueued(p, out):
		return
	}
	out.next = (uint8(p.Priority) + 1) & (numPriorities - 1)
	out.send(p)
}

// runUnqueued runs the programs for a packet that is not queued, stage by
// stage, and reports whether it survives.
func (sw *Switch) runUnqueued(p *Packet, out *Port) bool {
	ps := &sw.programs
	ps.ctx.Unqueued = true
	if ps.any(StageEnqueue) {
		if ps.runStage(StageEnqueue, out); !ps.survives() {
			return false
		}
	}
	if ps.any(StageDequeue) {
		p.EnqueuedAt, p.BytesAhead = sw.w.now, 0
		ps.runStage(StageDequeue, out)
		return ps.survives()
	}
	return true
}

// route returns the egress port; nil means that the packet ended. A flow learns
// its path hop by hop and stamps it on its packets; while no table changes,
// that saves the hash and the lookup, most of the cost of forwarding.
func (sw *Switch) route(p *Packet) *Port {
	if hop := int(p.hop); hop < len(p.path) && p.path[hop] != 0 && p.tableVersion == sw.net.tableVersion {
		p.hop++
		return sw.ports[p.path[hop]-1]
	}
	return sw.learnHop(p)
}

// learnHop is route for a packet whose path is unknown from here on.
func (sw *Switch) learnHop(p *Packet) *Port {
	if sw.net.cfg.LoadBalancing != ECMP && p.spreads() {
		return sw.balance(p)
	}
	hop := p.hop
	if int(hop) == len(p.path) {
		return sw.lookup(p)
	}
	p.hop++
	out := sw.lookup(p)
	if out != nil && p.flow >= 0 && out.ID <= 255 && p.tableVersion == sw.net.tableVersion {
		if f := sw.net.flowOf(p); f != nil {
			sw.w.learned = append(sw.w.learned, learnedHop{f, p.tableVersion, p.direction, hop, uint8(out.ID)})
		}
	}
	return out
}

// flowPath is the path of one direction of a flow, as far as it is known.
type flowPath struct {
	path         path8
	tableVersion uint16
}

// stampPath stamps a packet with its flow's path.
func (f *flow) stampPath(p *Packet, direction uint8) {
	w := &f.paths[direction]
	if w.tableVersion != f.net.tableVersion {
		*w = flowPath{tableVersion: f.net.tableVersion}
	}
	p.flow, p.direction, p.path, p.tableVersion = f.id, direction, w.path, w.tableVersion
	p.KeyID = f.keyID + uint32(direction)
}

// lookup consults the table.
func (sw *Switch) lookup(p *Packet) *Port {
	key := p.Key
	if p.Extra != nil && len(p.Extra.Outer) > 0 {
		key = p.Extra.Outer[0]
	}
	out, verdict := sw.table.Lookup(key)
	if len(sw.misrouted) > 0 {
		if wrong, hit := sw.misrouted.match(key); hit {
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
	case verdict == fib.Forward && sw.bgp.receiveKeepalive(in, p):
	case verdict == fib.Forward:
		sw.net.drop(p, in, DropHost) // for the switch CPU, and not BGP
	case verdict == fib.Drop:
		sw.net.drop(p, in, DropBlackhole)
	default:
		sw.net.drop(p, in, DropNoRoute)
	}
	return nil
}

// enqueue admits a packet to the buffer and queues it at out. Control packets
// are not charged: they are few and small.
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
	if !sw.buffer.AdmitFast(p.ingress, p.Priority, model.Bytes(p.Size)) && !sw.admitSlow(out, p) {
		return false
	}
	if n := sw.net; n.observer != nil {
		n.observer.Enqueued(sw.w.now, p, out)
	}
	return true
}

// admitSlow is admit above the reserve. The pause is decided before the packet
// may leave at once: its arrival counts.
func (sw *Switch) admitSlow(out *Port, p *Packet) bool {
	in, prio := p.ingress, p.Priority
	if sw.buffer.TailDrop(prio, model.Bytes(out.queues[prio].bytes), model.Bytes(p.Size)) ||
		!sw.buffer.Admit(in, prio, model.Bytes(p.Size)) {
		if !sw.trim(out, p) {
			sw.net.drop(p, out, DropBuffer)
		}
		return false
	}
	if sw.buffer.ShouldPause(in, prio) {
		sw.buffer.SetPaused(in, prio, true)
		sw.ports[in-1].sendPause(prio, true)
	}
	return true
}

// finishDequeue releases a packet's buffer as it starts to leave. It reports
// whether it leaves, or a program ended it.
func (sw *Switch) finishDequeue(out *Port, p *Packet) bool {
	n := sw.net
	in, prio := p.ingress, p.Priority
	calm := sw.buffer.ReleaseFast(in, prio, model.Bytes(p.buffered))
	if !calm {
		sw.buffer.Release(in, prio, model.Bytes(p.buffered))
	}
	if out.queues[prio].bytes > out.ecn.kmin && !n.cfg.ECNAtEnq {
		sw.mark(out, p)
	}
	if n.observer != nil {
		n.observer.Dequeued(sw.w.now, p, out)
	}
	if !calm && sw.buffer.ShouldResume(in, prio) {
		sw.buffer.SetPaused(in, prio, false)
		sw.ports[in-1].sendPause(prio, false)
	}
	return sw.runDequeue(p, out)
}

// mark sets the ECN mark with the probability that the queue's length has.
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
	out.Marked[p.Priority]++
	sw.w.counts.Marked++
}

// pauseReceived runs programs for a pause frame.
func (sw *Switch) pauseReceived(at *Port, p *Packet) {
	if sw.programs.any(StagePFC) {
		c := &sw.programs.ctx
		p.ingress = at.ID
		c.Pause.Priority, c.Pause.Time = p.Priority, p.pauseFor().Duration()
		sw.startPrograms(p)
		sw.programs.runStage(StagePFC, nil)
		sw.programs.survives()
	}
}

// IngressBuffer returns what packets of a priority that entered by a port hold of the
// shared buffer and of the port's headroom.
func (sw *Switch) IngressBuffer(port model.PortID, prio model.Priority) (shared, headroom model.Bytes) {
	_, shared, headroom = sw.buffer.Usage(port, prio)
	return shared, headroom
}

// BufferConfig returns the settings of the switch's buffer.
func (sw *Switch) BufferConfig() mmu.Config { return sw.net.bufferConfig(sw.ports) }

// bufferConfig returns the buffer settings of a switch with these ports.
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

// MaxFrame returns the largest frame on any link, labels and tunnels included:
// headroom is computed for it.
func (n *Network) MaxFrame() model.Bytes { return model.Bytes(n.maxFrame()) }

func (n *Network) maxFrame() int32 {
	if n.cfg.Overhead > 0 {
		return n.cfg.MTU + n.cfg.Overhead + n.tunnelOverhead
	}
	return n.cfg.MTU + n.tunnelOverhead + ethernetSize + 40 + udpSize + rocePlain + rethSize + labelBytes
}

// labelBytes is what a full stack of labels adds to a packet.
const labelBytes = label.OptionSize + label.DefaultMaxHop*label.ItemSize

// firstHostRate returns the rate that HPCC scales port rates by.
func (n *Network) firstHostRate() model.Rate {
	hosts := n.fabric.Hosts()
	return n.fabric.Node(hosts[0]).Ports[0].Rate
}
