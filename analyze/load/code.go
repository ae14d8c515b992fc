package load

import (
	"cmp"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/internal/fieldcodec"
	"github.com/weft-telemetry/weft/model"
)

// listedFlow is a flow at a port that leads to a host.
type listedFlow struct {
	port uint32
	portFlow
}

// maxListed is how many flows of a port and part are listed for other processes, those that
// grew most: a microburst of more flows names these.
const maxListed = 32

// List lists the flows that may be those of bursts, so that a BurstDetector of another
// process can name them. Last is the map of the slot before; it may be nil.
func (t *HostTraffic) List(ports *paths.Ports, last *paths.Map) {
	t.listed = t.listed[:0]
	if last != nil && last.Slot+1 != t.m.Slot {
		last = nil
	}
	for n := range t.m.Flows() {
		for _, s := range t.m.Sightings(n) {
			if port, ok := ports.Number(s.Switch, s.Out); ok && t.used[port] {
				t.listed = append(t.listed, listedFlow{port, portFlow{*t.m.Key(n), s.Bytes, bytesAt(last, t.m, n, &s)}})
			}
		}
	}
	slices.SortFunc(t.listed, func(a, b listedFlow) int {
		return cmp.Or(cmp.Compare(a.port, b.port), cmp.Compare(b.growth(), a.growth()), a.key.Compare(b.key))
	})
	port, count := uint32(0), 0
	t.listed = slices.DeleteFunc(t.listed, func(f listedFlow) bool {
		if f.port != port {
			port, count = f.port, 0
		}
		count++
		return count > maxListed
	})
}

// Code codes what List listed, and the sums.
func (t *HostTraffic) Code(c *fieldcodec.Coder, ports *paths.Ports) {
	var slot int64
	var length time.Duration
	if !c.Reading() {
		slot, length = t.reports.Slot, t.reports.Length
	}
	c.Int64(&slot)
	fieldcodec.Signed(c, &length)
	if length <= 0 {
		c.Fail("load: slot of %v", length)
	}
	if c.Reading() {
		t.reset(ports)
		t.m, t.reports = nil, paths.NewReports(slot, length)
	}
	number := func(n *uint32) bool {
		fieldcodec.Unsigned(c, n)
		if int(*n) >= len(t.bytes) || ports.PeerOf(*n).Kind != paths.HostPeer {
			c.Fail("load: port number %d of %d; want a host's", *n, len(t.bytes))
			return false
		}
		return true
	}
	carried := t.ports
	fieldcodec.Slice(c, &carried, func(n *uint32) {
		if !number(n) {
			return
		}
		bytes := t.bytes[*n]
		if c.Uint64(&bytes); c.Reading() && c.Err() == nil {
			t.addPort(*n, bytes)
		}
	})
	var senders []senderBytes
	for i := range t.senders {
		if t.senders[i].used {
			senders = append(senders, t.senders[i])
		}
	}
	fieldcodec.Slice(c, &senders, func(s *senderBytes) {
		if !number(&s.port) {
			return
		}
		s.src.Code(c)
		if c.Uint64(&s.bytes); c.Reading() && c.Err() == nil {
			t.addSender(s.port, s.src, s.bytes)
		}
	})
	fieldcodec.Slice(c, &t.listed, func(f *listedFlow) {
		if !number(&f.port) {
			return
		}
		f.key.Code(c)
		c.Uint64(&f.bytes)
		c.Uint64(&f.before)
	})
}

// GroupLoad is the load of a group of equal-cost ports by a part of the flows, and the
// largest flows of each port.
type GroupLoad struct {
	group portGroup
	large [][]Size // by port
}

// maxHeavy is how many flows of a port and part are listed: an imbalance that more explain
// names these.
const maxHeavy = 32

// TakeGroupLoads returns the loads of the window, and starts a new one.
func (b *BalanceDetector) TakeGroupLoads() (list []GroupLoad) {
	for i := range b.groups {
		g := GroupLoad{group: b.groups[i]}
		for _, p := range g.group.ports {
			g.large = append(g.large, Largest(b.flowsOf(nil, uint32(i), p), maxHeavy))
		}
		list = append(list, g)
	}
	b.reset()
	return list
}

// Code codes a group's load.
func (g *GroupLoad) Code(c *fieldcodec.Coder) {
	fieldcodec.Unsigned(c, &g.group.sw)
	fieldcodec.Signed(c, &g.group.flows)
	fieldcodec.Slice(c, &g.group.share, func(s *Share) {
		fieldcodec.Unsigned(c, &s.Port)
		fieldcodec.Signed(c, &s.Flows)
		c.Uint64(&s.Packets)
	})
	fieldcodec.Slice(c, &g.large, func(list *[]Size) {
		fieldcodec.Slice(c, list, func(s *Size) { s.Flow.Code(c); c.Uint64(&s.Packets) })
	})
	if len(g.group.share) == 0 || len(g.large) != len(g.group.share) {
		c.Fail("load: flows of %d ports of a group of %d", len(g.large), len(g.group.share))
		g.large = make([][]Size, len(g.group.share))
	}
	if !c.Reading() {
		return
	}
	g.group.ports = make([]model.PortID, 0, len(g.group.share))
	for i := range g.group.share {
		g.group.ports = append(g.group.ports, g.group.share[i].Port)
	}
}

// MergeGroupLoads is TakeImbalances of loads of several parts.
func MergeGroupLoads(cfg *BalanceConfig, parts ...[]GroupLoad) (list []Imbalance) {
	var detectors []*BalanceDetector
	for _, p := range parts {
		b := &BalanceDetector{}
		for i := range p {
			b.groups = append(b.groups, p[i].group)
		}
		detectors = append(detectors, b)
	}
	for _, g := range sumGroups(detectors) {
		im, ok := g.evaluate(cfg)
		if !ok {
			continue
		}
		if im.Cause == Burst {
			busiest := im.busiest().Port
			var sizes []Size
			for _, p := range parts {
				for i := range p {
					if own := &p[i]; own.group.sw == g.sw && slices.Equal(own.group.ports, g.ports) {
						sizes = append(sizes, own.large[slices.Index(own.group.ports, busiest)]...)
					}
				}
			}
			im.Heavy = heaviest(sizes, &im)
		}
		list = append(list, im)
	}
	return sortImbalances(list)
}
