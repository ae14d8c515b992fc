package bench

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/inswitch/flowset"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
	"github.com/weft-telemetry/weft/topo"
	wire "github.com/weft-telemetry/weft/wire/flowset"
)

// slotLength is that of the flowsets, as in FlowRadar's paper.
const slotLength = 10 * time.Millisecond

// slotFabric is a fat-tree with k=4 whose flows cross pods: each is counted by five
// of the 20 switches, and every switch counts about the same number.
type slotFabric struct {
	fabric *topo.Fabric
	routes *topo.Routes
	flows  []model.FlowKey
	seen   map[model.NodeID][]seenFlow // by switch
	plan   flowset.Sizing
	sets   map[model.NodeID]*sketch.Set[sketch.Key4]
}

// seenFlow is a flow at a switch.
type seenFlow struct {
	flow    int
	in, out model.PortID
}

// newSlotFabric makes a fabric whose switches count about n flows each.
func newSlotFabric(n int) (*slotFabric, error) {
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		return nil, err
	}
	s := &slotFabric{fabric: f, seen: map[model.NodeID][]seenFlow{}, sets: map[model.NodeID]*sketch.Set[sketch.Key4]{}}
	if s.routes, err = topo.NewRoutes(f, topo.RouteConfig{Seed: 1}); err != nil {
		return nil, err
	}
	hosts := f.Hosts()
	for i := range 4 * n { // of 20 switches each flow passes five
		src := hosts[i%len(hosts)]
		dst := hosts[(i+(1+i/len(hosts)%3)*len(hosts)/4+i/(3*len(hosts))%4)%len(hosts)]
		if f.Node(src).Pod == f.Node(dst).Pod {
			dst = hosts[(i+len(hosts)/2)%len(hosts)]
		}
		key := model.FlowKey{
			Src: f.Node(src).IPv4, Dst: f.Node(dst).IPv4, SrcPort: uint16(1024 + i/len(hosts)), DstPort: 4791,
			Proto: model.UDP,
		}
		path, err := s.routes.Path(key, src)
		if err != nil {
			return nil, err
		}
		for _, h := range path[1 : len(path)-1] {
			s.seen[h.Node] = append(s.seen[h.Node], seenFlow{i, h.In, h.Out})
		}
		s.flows = append(s.flows, key)
	}
	most := 0
	for _, list := range s.seen {
		most = max(most, len(list))
	}
	// Every table can be decoded alone, as a switch is configured.
	s.plan, err = flowset.Plan(most, 0.99, flowset.Single)
	return s, err
}

// hops is the number of flows that all switches count.
func (s *slotFabric) hops() (n int) {
	for _, list := range s.seen {
		n += len(list)
	}
	return n
}

// packets is how many packets of a flow every switch counts in a slot. A tenth of the
// flows changes its rate from slot to slot.
func (s *slotFabric) packets(flow int, slot int64) uint64 {
	n := uint64(1 + flow%7)
	if flow%10 == int(slot%10) {
		n += 8
	}
	return n
}

// packetSize is that of all packets.
const packetSize = 1000

// flowsetReports returns the reports of a switch's flowset of a slot, as long as a
// datagram allows.
func (s *slotFabric) flowsetReports(sw model.NodeID, slot int64) ([][]byte, error) {
	set := s.sets[sw]
	if set == nil {
		var err error
		if set, err = sketch.NewSet[sketch.Key4](s.plan.Geometry, uint64(sw)+1); err != nil {
			return nil, err
		}
		s.sets[sw] = set
	}
	set.ClearFilter()
	set.ClearCells(0, uint32(set.Family().Cells()))
	totals := wire.Counts{}
	for _, f := range s.seen[sw] {
		key := sketch.Pack4(&s.flows[f.flow])
		n := s.packets(f.flow, slot)
		for range n {
			if h, isNew := set.AddPacket(&key, packetSize); isNew {
				set.InsertFlow(&key, h, f.in, f.out)
				totals.Flows++
			}
		}
		totals.Packets, totals.Bytes = totals.Packets+n, totals.Bytes+n*packetSize
	}
	h := wire.Header{
		Switch: sw, Seed: uint64(sw) + 1, Slot: uint32(slot), Start: model.Time(slot * int64(slotLength)), Length: slotLength,
		Geometry: wire.Geometry(set.Family().Geometry), Layout: flowset.Layout4, Counts: totals,
	}
	return flowsetChunks(&h, set, slotReportSize)
}

// slotReportSize is the longest report of a switch.
const slotReportSize = 1460

// flowsetChunks returns the chunks of a set.
func flowsetChunks(h *wire.Header, set *sketch.Set[sketch.Key4], size int) (list [][]byte, err error) {
	split, err := h.Split(size)
	if err != nil {
		return nil, fmt.Errorf("switch %d: %w", h.Switch, err)
	}
	for span, more := split.Next(); more; span, more = split.Next() {
		b := h.Open(make([]byte, 0, size), span)
		if span.Section == wire.Filter {
			b = set.Filter().AppendBytes(b, span.First, span.Count)
		} else {
			for i := range span.Count {
				c := set.Cell(span.First + i)
				cell := wire.Cell{Flows: c.Flows, Packets: c.Packets, Bytes: c.Bytes, InPort: c.In, OutPort: c.Out}
				sketch.PutKey(&cell.Key, &c.Key)
				b = h.Layout.AppendCell(b, &cell)
			}
		}
		list = append(list, wire.Seal(b, 0))
	}
	return slices.Clip(list), nil
}
