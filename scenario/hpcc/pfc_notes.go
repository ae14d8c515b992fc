package hpcc

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/mmu"
	"github.com/weft-telemetry/weft/topo"
)

// addPFCNotes notes what surprises people about the original: runs in which PFC
// cannot fire, and switches that drop although they pause.
func (s *Setup) addPFCNotes(c *Config) {
	if note := s.pfcCannotFire(c); note != "" {
		s.Notes = append(s.Notes, note)
		return // headroom is never used
	}
	s.Notes = append(s.Notes, s.shortHeadroom(c)...)
}

// load is the maximum that can be queued in one switch, by ingress port.
type load struct {
	mmu   mmu.Config
	total model.Bytes
	ports []model.Bytes // by port - 1
	flows []int         // whose data arrives there
}

// margin returns how close a port can come to pausing its sender: what it can
// hold in the shared buffer, and what pauses.
func (l *load) margin(port int) (shared, xoff model.Bytes) {
	reserve := l.mmu.Reserve
	shared = max(0, l.ports[port]-reserve)
	// One queue's reserve is subtracted from the others' share; the rest of
	// their reserves is not, which errs on the side of pausing.
	free := max(0, l.mmu.SharedBytes()-max(0, l.total-reserve))
	alpha := l.mmu.Ports[port].Alpha
	return shared, free * model.Bytes(alpha.Num) / model.Bytes(alpha.Den)
}

func (l *load) fires(port int) bool {
	shared, xoff := l.margin(port)
	return shared >= xoff
}

// pfcCannotFire returns a note that PFC cannot fire, if that is so: a sender is
// paused when enough bytes of one port are queued, and all flows together have
// fewer in flight. A flow has at most its window in flight, or its size. With
// loss, retransmissions and old copies are in flight together, so it returns
// nothing.
func (s *Setup) pfcCannotFire(c *Config) string {
	if s.Down != nil || slices.ContainsFunc(s.Fabric.Links(), func(l topo.Link) bool { return l.ErrorRate > 0 }) {
		return ""
	}
	loads := make(map[model.NodeID]*load)
	for _, id := range s.Fabric.Switches() {
		n := len(s.Fabric.Node(id).Ports)
		loads[id] = &load{mmu: s.buffer(c, id), ports: make([]model.Bytes, n), flows: make([]int, n)}
	}
	win := s.newWindows(c)
	var hops []topo.Hop
	for i := range s.Flows {
		f := &s.Flows[i]
		if f.Priority == 0 {
			continue // not accounted
		}
		packets, key := model.Bytes(win.packets(f)), s.key(f)
		for _, dir := range []struct {
			key  model.FlowKey
			from model.NodeID
			size model.Bytes
			data int
		}{{key, f.Src, model.Bytes(c.Payload + c.headers()), 1}, {key.Reverse(), f.Dst, model.Bytes(c.ackSize()), 0}} {
			var err error
			if hops, err = s.Routes.AppendPath(hops[:0], dir.key, dir.from); err != nil {
				return "" // sim reports the error when the flow is added
			}
			for _, h := range hops {
				l := loads[h.Node]
				if l == nil {
					continue
				}
				l.total += packets * dir.size
				l.ports[h.In-1] += packets * dir.size
				l.flows[h.In-1] += dir.data
				if l.fires(int(h.In - 1)) {
					return ""
				}
			}
		}
	}
	return s.closestToPause(loads, win)
}

// closestToPause returns the note with the port that comes closest to pausing
// its sender, or nothing if one does.
func (s *Setup) closestToPause(loads map[model.NodeID]*load, win *flowWindows) string {
	var at model.Port
	near := -1.0
	for _, id := range s.Fabric.Switches() {
		l := loads[id]
		for i := range l.ports {
			shared, xoff := l.margin(i)
			if l.flows[i] > 0 && shared >= xoff {
				return ""
			}
			if r := float64(l.ports[i]) / float64(xoff+l.mmu.Reserve); l.flows[i] > 0 && r > near {
				near, at = r, model.Port{Node: id, Port: model.PortID(i + 1)}
			}
		}
	}
	if near < 0 {
		return "PFC cannot fire: no flow has a priority that PFC acts on"
	}
	l := loads[at.Node]
	_, xoff := l.margin(int(at.Port - 1))
	return fmt.Sprintf("PFC cannot fire: at most %s of one port can be queued in a switch (%s port %d, flows: %d, %s), and a pause needs %s there (BUFFER_SIZE is %v)",
		model.FormatBytes(l.ports[at.Port-1]), s.Fabric.Node(at.Node).Name, at.Port, l.flows[at.Port-1], win.describe(),
		model.FormatBytes(xoff+l.mmu.Reserve), l.mmu.Buffer)
}

// shortHeadroom returns where headroom is too small to be lossless.
func (s *Setup) shortHeadroom(c *Config) (notes []string) {
	type kind struct {
		rate  model.Rate
		delay time.Duration
	}
	count := make(map[kind]int)
	for _, id := range s.Fabric.Switches() {
		for _, p := range s.Fabric.Node(id).Ports {
			count[kind{p.Rate, p.Delay}]++
		}
	}
	frame := model.Bytes(c.Payload + c.headers())
	for k, n := range count {
		have, want := mmu.HPCCHeadroom(k.rate, k.delay), mmu.HeadroomFor(k.rate, k.delay, frame)
		if have >= want {
			continue
		}
		notes = append(notes, fmt.Sprintf("headroom is too small to be lossless on %d ports of %v and %v: it is %s (3 × rate × delay), and up to %s arrive after a pause; the excess is dropped",
			n, k.rate, k.delay, model.FormatBytes(have), model.FormatBytes(want)))
	}
	slices.SortFunc(notes, cmp.Compare)
	return notes
}
