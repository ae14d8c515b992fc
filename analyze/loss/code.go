package loss

import (
	"slices"

	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/internal/fieldcodec"
)

// Code codes an event.
func (e *Event) Code(c *fieldcodec.Coder) {
	e.Flow.Code(c)
	e.Segment.code(c)
	c.Uint64(&e.Packets)
	c.Uint64(&e.Sent)
	c.Int64(&e.FirstSlot)
	c.Int64(&e.LastSlot)
	c.Int64(&e.FoundSlot)
	c.Bool(&e.Final)
}

func (s *Segment) code(c *fieldcodec.Coder) {
	s.From.Code(c)
	s.To.Code(c)
	c.Bool(&s.WholePath)
}

// Code codes a link of a part of the flows, for MergeLinks in another process.
func (l *Link) Code(c *fieldcodec.Coder) {
	l.Segment.code(c)
	fieldcodec.Signed(c, &l.Flowlets)
	c.Uint64(&l.Sent)
	c.Uint64(&l.Lost)
	c.Int64(&l.FirstSlot)
	c.Int64(&l.LastSlot)
	fieldcodec.Slice(c, &l.Affected, func(a *AffectedFlowlet) {
		a.Flow.Code(c)
		c.Uint64(&a.Sent)
		c.Uint64(&a.Lost)
	})
	fieldcodec.Slice(c, &l.sizes, func(n *uint64) { c.Uint64(n) })
}

// TakePartLinks returns the links of one tracker since the last call, and starts a new
// window. They are for MergeLinks.
func (t *Tracker) TakePartLinks() []*Link {
	list := t.links.list
	t.links.clear()
	return list
}

// MergeLinks returns the loss map of the links of several parts, as a tracker that saw all
// flows would. It changes the links.
func MergeLinks(ports *paths.Ports, parts ...[]*Link) []*Link {
	var sum links
	for _, list := range parts {
		for _, l := range list {
			all := sum.find(ports, &l.Segment)
			all.add(l)
			all.sizes, all.Affected = append(all.sizes, l.sizes...), append(all.Affected, l.Affected...)
		}
	}
	return sortLinks(slices.Clip(sum.list))
}
