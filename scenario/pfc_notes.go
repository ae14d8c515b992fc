package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/mmu"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

// collectNotes returns what a reader of the result must know and would not
// guess.
func (x *session) collectNotes(r *Result) []string {
	notes := append(slices.Clone(x.s.Notes), x.offeredLoad...)
	if x.repeats != nil {
		notes = append(notes, x.repeats.note())
	}
	if !x.s.pfcExplained {
		notes = append(notes, x.pfcNotes()...)
	}
	if r.LosslessDrops > 0 {
		notes = append(notes, fmt.Sprintf("%d packets of a lossless class were dropped (buffer full)", r.LosslessDrops))
	}
	for _, d := range r.Deadlocks {
		end := "and persists to the end"
		if !d.Persistent {
			end = fmt.Sprintf("and dissolved at %v", d.Ended)
		}
		notes = append(notes, fmt.Sprintf("a deadlock formed at %v %s: cycle of %s", d.Formed, end,
			strings.Join(d.Ports, ", ")))
	}
	late := 0
	for id := range x.flows {
		if _, spec := x.net.FlowKey(id); timeOf(spec.Start) > x.net.Now() {
			late++
		}
	}
	if late > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d flows start after the end of the run and are not counted", late, x.flows))
	}
	if n := x.recorder.framesLost; n > 0 {
		notes = append(notes, fmt.Sprintf("%d pause frames after the first %d are counted, not listed", n, maxFrames))
	}
	return notes
}

// pfcNotes returns where PFC cannot do what people expect of it: fire, or
// prevent drops.
func (x *session) pfcNotes() []string {
	if x.lossless() == 0 {
		return []string{"PFC cannot fire: no priority is lossless"}
	}
	if note := x.pfcCannotFire(); note != "" {
		return []string{note} // headroom is never used
	}
	return x.shortHeadroom()
}

// load is the maximum that can be queued in one switch, by ingress port.
type load struct {
	buffer mmu.Config
	total  model.Bytes
	ports  []model.Bytes // by port - 1
}

// margin returns what a port can hold of the shared buffer, and what it must
// hold for a pause, when everything else is queued in the switch too. More of
// either only brings a pause nearer, so a port that does not fire here never
// does.
func (l *load) margin(port int) (shared, xoff model.Bytes) {
	p := &l.buffer.Ports[port]
	shared = max(0, l.ports[port]-l.buffer.Reserve)
	if p.Xoff > 0 {
		return shared, p.Xoff
	}
	free := max(0, l.buffer.SharedBytes()-max(0, l.total-l.buffer.Reserve))
	return shared, free * model.Bytes(p.Alpha.Num) / model.Bytes(p.Alpha.Den)
}

// pfcCannotFire returns a note that PFC cannot fire, if that can be proven: the
// flows together never have enough bytes in flight. A flow has at most its
// window in flight, or its size. With faults, or with retransmissions while old
// copies are in flight, it returns nothing.
func (x *session) pfcCannotFire() string {
	lossy := slices.ContainsFunc(x.fabric.Links(), func(l topo.Link) bool { return l.ErrorRate > 0 })
	if x.net.Counts.Pauses > 0 || len(x.s.Faults) > 0 || len(x.s.Changes) > 0 || lossy || x.anyDrops() {
		return ""
	}
	loads := make(map[model.NodeID]*load)
	for _, id := range x.fabric.Switches() {
		n := x.fabric.Node(id)
		loads[id] = &load{buffer: x.net.Switch(n.ID).BufferConfig(), ports: make([]model.Bytes, len(n.Ports))}
	}
	some := false
	var hops []topo.Hop
	for id := range x.flows {
		key, spec := x.net.FlowKey(id)
		if x.lossless()>>spec.Priority&1 == 0 || spec.IsComputation() {
			continue
		}
		some = true
		packets, bounded := x.inFlight(key, &spec)
		if !bounded {
			return ""
		}
		for _, dir := range []struct {
			key  model.FlowKey
			from model.NodeID
			size model.Bytes
		}{{key, spec.Src, x.net.MaxFrame()}, {x.net.BackKey(id), spec.Dst, leastFrame + 40}} {
			var err error
			if hops, err = x.routes.AppendPath(hops[:0], dir.key, dir.from); err != nil {
				return ""
			}
			for _, h := range hops {
				if l := loads[h.Node]; l != nil {
					l.total += packets * dir.size
					l.ports[h.In-1] += packets * dir.size
				}
			}
		}
	}
	if !some {
		return "PFC cannot fire: no flow has a lossless priority"
	}
	return x.closestToPause(loads)
}

// anyDrops reports whether packets were dropped.
func (x *session) anyDrops() bool {
	return slices.ContainsFunc(x.net.Counts.Drops[:], func(n int64) bool { return n > 0 })
}

// closestToPause returns the note with the port that comes closest to a pause,
// or nothing if one may fire.
func (x *session) closestToPause(loads map[model.NodeID]*load) string {
	var at model.Port
	near := -1.0
	for _, id := range x.fabric.Switches() {
		l := loads[id]
		for i, bytes := range l.ports {
			if bytes == 0 {
				continue
			}
			shared, xoff := l.margin(i)
			if shared >= xoff {
				return ""
			}
			if part := float64(bytes) / float64(xoff+l.buffer.Reserve); part > near {
				near, at = part, model.Port{Node: id, Port: model.PortID(i + 1)}
			}
		}
	}
	l := loads[at.Node]
	_, xoff := l.margin(int(at.Port) - 1)
	return fmt.Sprintf("PFC cannot fire: all flows together can queue at most %s in a switch from one ingress port (%s), and a pause needs %s there (the buffer has %s)",
		model.FormatBytes(l.ports[at.Port-1]), x.fabric.PortRef(at), model.FormatBytes(xoff+l.buffer.Reserve), model.FormatBytes(l.buffer.Buffer))
}

// inFlight returns how many packets of a flow can be in flight at once, if
// something bounds them.
func (x *session) inFlight(key model.FlowKey, f *traffic.Flow) (packets model.Bytes, bounded bool) {
	mtu := model.Bytes(x.s.Sim.MTU)
	bytes := f.Bytes
	if x.s.Sim.Window && f.Transport == traffic.RDMA {
		w, ok := x.window(key, f.Src)
		if !ok {
			return 0, false
		}
		// A sender stops at its window; the packet that reaches it may go beyond.
		if w += mtu - 1; bytes == 0 || w < bytes {
			bytes = w
		}
	}
	return (bytes + mtu - 1) / mtu, bytes > 0
}

// window returns a flow's window as sim computes it: the lowest rate of its
// path times propagation in both directions and transmission of a payload in
// one; with one window for the fabric, at least this much.
func (x *session) window(key model.FlowKey, from model.NodeID) (model.Bytes, bool) {
	if x.s.Sim.GlobalWindow {
		return 0, false // the largest of any pair: not worth the search
	}
	hops, err := x.routes.Path(key, from)
	if err != nil {
		return 0, false
	}
	rtt, least := 0.0, model.Rate(0)
	for _, h := range hops {
		if h.Out == 0 {
			continue
		}
		p := x.fabric.Node(h.Node).Port(h.Out)
		rtt += 2*p.Delay.Seconds() + float64(x.s.Sim.MTU)*8/float64(p.Rate)
		if least == 0 || p.Rate < least {
			least = p.Rate
		}
	}
	return model.Bytes(rtt * float64(least) / 8), true
}

// Sizes of frames in sim that depend on its headers.
const (
	leastFrame = 60
)

// shortHeadroom returns where headroom is too small to be lossless.
func (x *session) shortHeadroom() (notes []string) {
	type kind struct {
		rate       model.Rate
		delay      time.Duration
		have, want model.Bytes
	}
	count := make(map[kind]int)
	for _, id := range x.fabric.Switches() {
		n := x.fabric.Node(id)
		b := x.net.Switch(n.ID).BufferConfig()
		for i, p := range n.Ports {
			k := kind{p.Rate, p.Delay, b.Ports[i].Headroom, mmu.HeadroomFor(p.Rate, p.Delay, x.net.MaxFrame())}
			if k.have < k.want {
				count[k]++
			}
		}
	}
	for k, n := range count {
		notes = append(notes, fmt.Sprintf("headroom is too small to be lossless on %d ports of %v and %v: it is %s, and up to %s arrive after a pause; the excess is dropped",
			n, k.rate, k.delay, model.FormatBytes(k.have), model.FormatBytes(k.want)))
	}
	slices.Sort(notes)
	return notes
}
