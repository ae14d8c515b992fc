package flowwatch

import (
	"math"

	"github.com/weft-telemetry/weft/analyze/load"
	"github.com/weft-telemetry/weft/analyze/loss"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/internal/fieldcodec"
	"github.com/weft-telemetry/weft/model"
)

// PartResult is what one partition found in a slot.
type PartResult struct {
	Index     int64
	WindowEnd bool
	// Flows are all of the partition's. What is coded of a hop are switch, out port and
	// packets.
	Flows  []Flow
	Losses []loss.Event

	ports   *paths.Ports
	places  []uint32 // of Flows; ascending
	found   *paths.Part
	traffic *load.HostTraffic
	links   []*loss.Link
	groups  []load.GroupLoad
	hops    []paths.Sighting // memory of Code
}

// NewPartResult returns a result to decode into.
func NewPartResult(p *paths.Ports) *PartResult {
	return &PartResult{ports: p, found: paths.NewPartResult(p), traffic: &load.HostTraffic{}}
}

// Code codes a result.
func (r *PartResult) Code(c *fieldcodec.Coder) {
	c.Int64(&r.Index)
	c.Bool(&r.WindowEnd)
	r.codeFlows(c)
	fieldcodec.Slice(c, &r.Losses, func(e *loss.Event) { e.Code(c) })
	r.found.Code(c)
	r.traffic.Code(c, r.ports, len(r.Flows), func(i uint32) *model.FlowKey { return r.Flows[i].Key })
	fieldcodec.Slice(c, &r.links, func(l **loss.Link) {
		if c.Reading() {
			*l = new(loss.Link)
		}
		(*l).Code(c)
	})
	fieldcodec.Slice(c, &r.groups, func(g *load.GroupLoad) { g.Code(c) })
}

// codeFlows codes the flows as columns. Totals of packets are those of the hops.
func (r *PartResult) codeFlows(c *fieldcodec.Coder) {
	n := c.Length(len(r.Flows), model.KeyColumns+4)
	if c.Reading() {
		keys := make([]model.FlowKey, n)
		r.Flows, r.places = make([]Flow, n), make([]uint32, n)
		for i := range keys {
			r.Flows[i].Key = &keys[i]
		}
	}
	codePlaces(c, r.places)
	model.CodeKeys(c, r.Flows, func(f *Flow) *model.FlowKey { return f.Key })
	fieldcodec.Field(c, r.Flows, func(f *Flow) *uint64 { return &f.Bytes })
	exact := func(f *Flow) uint64 {
		if f.Exact {
			return 1
		}
		return 0
	}
	fieldcodec.Column(c, r.Flows, 1, exact, func(f *Flow, v uint64) { f.Exact = v != 0 })
	hops := 0
	length := func(f *Flow) uint64 {
		hops += len(f.Hops)
		return uint64(len(f.Hops))
	}
	fieldcodec.Column(c, r.Flows, math.MaxUint16, length, func(f *Flow, v uint64) {
		hops += int(v)
		f.Packets = v // until the hops are there
	})
	if n := c.Length(hops, 3); n != hops {
		c.Fail("flowwatch: %d hops, want %d", n, hops)
	}
	r.codeHops(c, hops)
}

// codeHops codes the hops of all flows.
func (r *PartResult) codeHops(c *fieldcodec.Coder, n int) {
	if c.Err() != nil {
		r.Flows, r.places = nil, nil
		return
	}
	r.hops = r.hops[:0]
	if c.Reading() {
		r.hops = make([]paths.Sighting, n)
	} else {
		for i := range r.Flows {
			r.hops = append(r.hops, r.Flows[i].Hops...)
		}
	}
	all := r.hops
	fieldcodec.Field(c, all, func(h *paths.Sighting) *model.NodeID { return &h.Switch })
	fieldcodec.Field(c, all, func(h *paths.Sighting) *model.PortID { return &h.Out })
	fieldcodec.Field(c, all, func(h *paths.Sighting) *uint64 { return &h.Packets })
	if !c.Reading() {
		return
	}
	for i := range r.Flows {
		f := &r.Flows[i]
		k := int(f.Packets)
		f.Hops, all = all[:k:k], all[k:]
		f.Packets = 0
		for h := range f.Hops {
			f.Packets = max(f.Packets, f.Hops[h].Packets)
		}
	}
}
