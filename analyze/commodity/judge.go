package commodity

import (
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
)

// judgement is what the newest round of a port says, as shares. It stays until
// the next: neighbours are not polled at the same instant.
type judgement struct {
	known    bool
	tx       float64 // share of the link's rate
	hasBytes bool
	class    [portstat.NumClasses]classJudgement
}

// classJudgement is one class of it.
type classJudgement struct {
	rx, tx                 float64 // share of time paused by the neighbour, and pausing it
	rxMeasured, txMeasured bool    // else bounded by frames, or unknown
	depth                  model.Bytes
	hasDepth               bool
	marked                 uint64
	stormed                bool
	pausedIn               int // the last round in which the port was paused
}

// judge sums up the round of a switch.
func (a *Analyzer) judge(id model.NodeID) {
	s := &a.nodes[id]
	for i := range s.ports {
		p := &s.ports[i]
		if !p.seen {
			continue
		}
		rate := a.fabric.Node(id).Ports[i].Rate
		j := &p.judged
		j.known = true
		if j.hasBytes = p.bytes.span > 0; j.hasBytes {
			j.tx = float64(p.bytes.tx) * 8 / (float64(rate) * p.bytes.span.Seconds())
		}
		for c := range p.class {
			k, in := &j.class[c], &p.class[c]
			k.rx, k.rxMeasured = in.rx.share(rate)
			k.tx, k.txMeasured = in.tx.share(rate)
			k.depth, k.hasDepth = in.depth, in.has.All(portstat.HasQueueWatermark)
			k.marked, k.stormed = in.marked, in.stormed
		}
	}
}

// judged returns the judgement of a port, nil if it reported nothing.
func (a *Analyzer) judged(p model.Port) *judgement {
	s := &a.nodes[p.Node]
	if s.ports == nil || p.Port == 0 || !s.ports[p.Port-1].judged.known {
		return nil
	}
	return &s.ports[p.Port-1].judged
}

// paused returns the share of time that a queue was paused. What both ends measure
// is taken from the port itself; what only the neighbour measures, from it.
func (a *Analyzer) paused(q queueID) (share float64, measured bool) {
	own := a.judged(q.port)
	if own != nil && own.class[q.class].rxMeasured {
		return own.class[q.class].rx, true
	}
	if far := a.judged(a.peer(q.port)); far != nil && far.class[q.class].txMeasured {
		return far.class[q.class].tx, true
	}
	if own != nil {
		return own.class[q.class].rx, false
	}
	return 0, false
}

// pausing returns the share of time that a port paused its neighbour.
func (a *Analyzer) pausing(in queueID) (share float64, measured bool) {
	own := a.judged(in.port)
	if own != nil && own.class[in.class].txMeasured {
		return own.class[in.class].tx, true
	}
	if far := a.judged(a.peer(in.port)); far != nil && far.class[in.class].rxMeasured {
		return far.class[in.class].rx, true
	}
	if own != nil {
		return own.class[in.class].tx, false
	}
	return 0, false
}

func (a *Analyzer) peer(p model.Port) model.Port { return a.fabric.Port(p).Peer }

func (a *Analyzer) isHost(id model.NodeID) bool { return !a.fabric.Node(id).Role.IsSwitch() }

// holder is a queue that makes neighbours wait.
type holder struct {
	paused   float64 // largest share of time that an ingress port paused its neighbour
	measured bool
	by       []model.PortID // ingress ports
}

// findWaits finds for every neighbour that a switch pauses the queue that its packets
// wait in, and returns the queues.
func (a *Analyzer) findWaits(id model.NodeID) map[queueID]*holder {
	holders := map[queueID]*holder{}
	s := &a.nodes[id]
	for i := range s.ports {
		for c := range model.Priority(portstat.NumClasses) {
			in := queueID{model.Port{Node: id, Port: model.PortID(i + 1)}, c}
			upstream := queueID{a.peer(in.port), c}
			share, measured := a.pausing(in)
			if share < a.cfg.MinPaused {
				delete(a.next, upstream)
				continue
			}
			q, ok := a.waitsIn(id, in, share)
			if !ok {
				delete(a.next, upstream)
				continue
			}
			a.next[upstream] = q
			b := holders[q]
			if b == nil {
				b = &holder{}
				holders[q] = b
			}
			if share > b.paused {
				b.paused, b.measured = share, measured
			}
			b.by = append(b.by, in.port.Port)
		}
	}
	return holders
}

// waitsIn returns the queue that packets from an ingress port wait in, which paused
// its neighbour for a share of time: the queue with the largest product of their
// share of its traffic and its depth.
func (a *Analyzer) waitsIn(id model.NodeID, in queueID, share float64) (best queueID, ok bool) {
	s := &a.nodes[id]
	total := uint64(0)
	bytes := func(out model.PortID) uint64 {
		return s.pairs[portPair{in.port.Port, out, in.class}] + s.pairs[portPair{in.port.Port, out, unknownClass}]
	}
	for i := range s.ports {
		total += bytes(model.PortID(i + 1))
	}
	most := 0.0
	for i := range s.ports {
		out := queueID{model.Port{Node: id, Port: model.PortID(i + 1)}, in.class}
		if out.port == in.port || a.occupied(out) < mostOf*share {
			continue
		}
		weight := a.backlog(out)
		if total > 0 {
			weight *= float64(bytes(out.port.Port)) / float64(total)
		}
		if weight > most {
			best, most, ok = out, weight, true
		}
	}
	return best, ok
}

// mostOf is the part of an ingress port's pause that the queue of its packets must
// account for: neighbours' intervals, and what counters leave out of a frame, differ.
const mostOf = 0.7

// occupied returns the largest share of time in which a queue can have had packets:
// one that has is either paused or sends.
func (a *Analyzer) occupied(q queueID) float64 {
	j := a.judged(q.port)
	if j == nil || !j.hasBytes {
		return 1
	}
	paused, _ := a.paused(q)
	return min(1, paused+j.tx)
}

// backlog returns how much a queue held back: its watermark, or, where no switch
// exports that, how long it was paused or full.
func (a *Analyzer) backlog(q queueID) float64 {
	j := a.judged(q.port)
	if j == nil {
		return 0
	}
	if k := &j.class[q.class]; k.hasDepth {
		return float64(k.depth)
	}
	share, _ := a.paused(q)
	if j.hasBytes && j.tx >= busy {
		share = max(share, j.tx)
	}
	return share
}

// busy is the share of its rate from which on a link is full: headers that the
// counters leave out are a few percent.
const busy = 0.9
