package coverage

import (
	"cmp"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/label"
)

// Sample is one label of a port.
type Sample struct {
	label.Item
	// Link is the time from the previous switch's label to the packet's
	// arrival here: serialization, propagation, and the offset of the two
	// clocks. NoLink: the neighbour did not label the packet.
	Link time.Duration
}

// NoLink is an unknown time on a link.
const NoLink time.Duration = -1 << 63

// maxLink bounds the time on a link, including the clock offset.
const maxLink = time.Second

// linkLatency returns the time on the link before a packet's label i.
func (b *PortStates) linkLatency(k *label.Block, i int) time.Duration {
	if i+1 >= k.Len() {
		return NoLink
	}
	here, before := k.Item(i), k.Item(i+1)
	if int(before.Switch) >= len(b.ports) {
		return NoLink
	}
	p := b.cfg.Fabric.Port(model.Port{Node: before.Switch, Port: before.Egress})
	if p == nil || p.Peer != (model.Port{Node: here.Switch, Port: here.Ingress}) {
		return NoLink
	}
	// Times of a hostile label may be anything; a link takes less than a second.
	if d := here.Time.Add(-here.Latency).Sub(before.Time); d > -maxLink && d < maxLink {
		return d
	}
	return NoLink
}

// Series returns a port's samples from one time to another of its switch's
// clock, both included. They belong to b and are valid until the next
// IngestReport.
func (b *PortStates) Series(p model.Port, from, to model.Time) []Sample {
	r := b.portRecord(p)
	if r == nil {
		return nil
	}
	return r.history.between(from, to)
}

// Congestion is the depth of a port's queues in a time range.
type Congestion struct {
	Port    model.Port
	Depth   model.Bytes // the greatest of all labels
	At      model.Time
	Latency time.Duration // the longest hop latency
	Samples int
}

// CongestedPorts returns the ports whose queues reached a depth in a time range,
// the deepest first.
func (b *PortStates) CongestedPorts(from, to model.Time, depth model.Bytes) (list []Congestion) {
	for _, p := range b.ReportedPorts() {
		c := Congestion{Port: p}
		for _, s := range b.Series(p, from, to) {
			c.Samples++
			c.Latency = max(c.Latency, s.Latency)
			if d := max(s.EnqueueDepth, s.DequeueDepth); d > c.Depth {
				c.Depth, c.At = d, s.Time
			}
		}
		if c.Samples > 0 && c.Depth >= depth {
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b Congestion) int { return cmp.Compare(b.Depth, a.Depth) })
	return list
}

// Heatmap is queue depth by port and time.
type Heatmap struct {
	From  model.Time
	Step  time.Duration
	Ports []model.Port
	Depth [][]model.Bytes // by port, then step; NoDepth: no label
}

// NoDepth is a step of a heatmap without a label.
const NoDepth model.Bytes = -1

// Heatmap returns the deepest queue of every reported port in each of a number of
// steps.
func (b *PortStates) Heatmap(from model.Time, step time.Duration, steps int) Heatmap {
	h := Heatmap{From: from, Step: step, Ports: b.ReportedPorts()}
	for _, p := range h.Ports {
		row := slices.Repeat([]model.Bytes{NoDepth}, steps)
		for _, s := range b.Series(p, from, from.Add(time.Duration(steps)*step)-1) {
			i := s.Time.Sub(from) / step
			row[i] = max(row[i], s.EnqueueDepth, s.DequeueDepth)
		}
		h.Depth = append(h.Depth, row)
	}
	return h
}
