package load

import (
	"cmp"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/internal/fieldcodec"
	"github.com/weft-telemetry/weft/model"
)

// listedFlow is a flow, by its number, at a port that leads to a host.
type listedFlow struct {
	port, flow    uint32
	bytes, before uint64 // in this slot, and in the one before
}

func (f *listedFlow) growth() float64 { return float64(f.bytes) - float64(f.before) }

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
	counts := make([]int32, len(t.bytes))
	for n := range t.m.Flows() {
		hops := t.m.Sightings(n)
		for i := range hops {
			s := &hops[i]
			if port, ok := ports.Number(s.Switch, s.Out); ok && t.used[port] {
				t.listed = append(t.listed, listedFlow{port, uint32(n), s.Bytes, bytesAt(last, t.m, n, s)})
				counts[port]++
			}
		}
	}
	if slices.Max(append(counts, 0)) <= maxListed {
		return
	}
	slices.SortFunc(t.listed, func(a, b listedFlow) int {
		return cmp.Or(cmp.Compare(a.port, b.port), cmp.Compare(b.growth(), a.growth()),
			t.m.Key(int(a.flow)).Compare(*t.m.Key(int(b.flow))))
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

// Code codes what List listed, and the sums. Listed flows are numbers of a list that both
// sides have: its length and the keys are given.
func (t *HostTraffic) Code(c *fieldcodec.Coder, ports *paths.Ports, flows int, key func(uint32) *model.FlowKey) {
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
		t.m, t.reports, t.key = nil, paths.NewReports(slot, length), key
	}
	t.codePorts(c, ports)
	t.codeSenders(c, ports)
	n := c.Length(len(t.listed), 4)
	if c.Reading() {
		t.listed = make([]listedFlow, n)
	}
	fieldcodec.Field(c, t.listed, func(f *listedFlow) *uint32 { return &f.port })
	fieldcodec.Field(c, t.listed, func(f *listedFlow) *uint32 { return &f.flow })
	fieldcodec.Field(c, t.listed, func(f *listedFlow) *uint64 { return &f.bytes })
	fieldcodec.Field(c, t.listed, func(f *listedFlow) *uint64 { return &f.before })
	for i := range t.listed {
		if f := &t.listed[i]; int(f.flow) >= flows {
			c.Fail("load: flow %d of %d", f.flow, flows)
		}
	}
	if c.Err() != nil {
		t.listed = nil
	}
}

// codePorts codes the bytes of ports.
func (t *HostTraffic) codePorts(c *fieldcodec.Coder, ports *paths.Ports) {
	type carried struct {
		port  uint32
		bytes uint64
	}
	list := make([]carried, c.Length(len(t.ports), 2))
	if !c.Reading() {
		for i, n := range t.ports {
			list[i] = carried{n, t.bytes[n]}
		}
	}
	fieldcodec.Field(c, list, func(p *carried) *uint32 { return &p.port })
	fieldcodec.Field(c, list, func(p *carried) *uint64 { return &p.bytes })
	if !c.Reading() || c.Err() != nil {
		return
	}
	for _, p := range list {
		if isHosts(c, ports, p.port) {
			t.addPort(p.port, p.bytes)
		}
	}
}

// codeSenders codes the bytes of sources. Those that are read are a list, and no table: they
// are added to one.
func (t *HostTraffic) codeSenders(c *fieldcodec.Coder, ports *paths.Ports) {
	var list []senderBytes
	for i := range t.senders {
		if t.senders[i].used {
			list = append(list, t.senders[i])
		}
	}
	if n := c.Length(len(list), 4); c.Reading() {
		list = make([]senderBytes, n)
	}
	fieldcodec.Field(c, list, func(s *senderBytes) *uint32 { return &s.port })
	fieldcodec.Field(c, list, func(s *senderBytes) *uint64 { return &s.src.Hi })
	fieldcodec.Field(c, list, func(s *senderBytes) *uint64 { return &s.src.Lo })
	fieldcodec.Field(c, list, func(s *senderBytes) *uint64 { return &s.bytes })
	if !c.Reading() {
		return
	}
	for i := range list {
		list[i].used = c.Err() == nil && isHosts(c, ports, list[i].port)
	}
	if t.senders = list; c.Err() != nil {
		t.senders = nil
	}
}

// isHosts reports whether a port leads to a host; others fail.
func isHosts(c *fieldcodec.Coder, ports *paths.Ports, n uint32) bool {
	if int(n) >= ports.Len() || ports.PeerOf(n).Kind != paths.HostPeer {
		c.Fail("load: port number %d of %d; want a host's", n, ports.Len())
		return false
	}
	return true
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
		list = append(list, GroupLoad{group: b.groups[i], large: make([][]Size, len(b.groups[i].ports))})
	}
	for n := range uint32(len(b.heads)) {
		for i := b.heads[n]; i != 0; i = b.uses[i-1].next {
			u := &b.uses[i-1]
			flows := &list[u.group].large[u.port]
			*flows = append(*flows, Size{Flow: *b.flows.Key(n), Packets: u.packets})
		}
	}
	for i := range list {
		for p, flows := range list[i].large {
			list[i].large[p] = Largest(flows, maxHeavy)
		}
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
