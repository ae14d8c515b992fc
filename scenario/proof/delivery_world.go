package proof

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// deliveryWorld is what flows did in the window of an incident, as far as switches counted
// it.
type deliveryWorld struct {
	fabric   *topo.Fabric
	flows    []countedFlow
	window   time.Duration // of the counts
	unusable int           // flows whose records show no path
	sampled  bool
}

// countedFlow is a flow by the counts of its switches in the window.
type countedFlow struct {
	key         model.FlowKey // recorded
	src, dst    model.NodeID
	first, last model.NodeID // switches that src and dst are attached to
	victim      bool
	sent        float64 // packets, by its host
	fitted      bool    // sent is not counted: the flow loops at its first switch
	size        float64 // bytes of a packet, the mean
	counts      passes
	hops        []countedHop
	intended    map[model.NodeID]bool // switches on its intended paths
}

// passes are packets of a flow by switch.
type passes map[model.NodeID]float64

// countedHop is what happened to a flow's packets after a switch counted them.
type countedHop struct {
	at, to model.NodeID
	out    model.PortID
	strays bool    // no intended route leads there
	lost   float64 // share that the next switch did not count
}

const (
	// again is by how many times a switch counts more than was sent if packets loop there. A
	// packet that passes twice is one that loops.
	again = 1.9
	// fewest is the smallest difference of two counts that is a loss: packets are between
	// two switches when a slot ends.
	fewest = 2
)

// newDeliveryWorld reads the records of a case.
func newDeliveryWorld(c *DeliveryCase, routes *topo.Routes) (*deliveryWorld, error) {
	w := &deliveryWorld{fabric: c.Fabric.Topology.Fabric}
	victims := map[model.FlowKey]bool{}
	for i := range c.Incident.Victims {
		if f := c.Incident.Victims[i].Flow; f != nil {
			victims[f.Flow] = true
		}
	}
	from, to := c.Incident.Begin, c.Incident.Updated
	if c.Incident.End != nil {
		to = *c.Incident.End
	}
	faulty := map[time.Time]time.Duration{} // slots in which victims were harmed, by start
	for i := range c.Flows {
		d := &c.Flows[i]
		f, ok := w.ends(d)
		if !ok || !victims[f.key] {
			continue
		}
		f.intended = intendedSwitches(routes, f.first, f.key.Dst)
		for j := range d.Series {
			p := &d.Series[j]
			if length := time.Duration(p.SlotNs); !p.Time.Before(from) && !p.Time.Add(length).After(to) && w.isHarmed(&f, p) {
				faulty[p.Time] = length
			}
		}
	}
	for _, length := range faulty {
		w.window += length
	}
	found := 0
	for i := range c.Flows {
		d := &c.Flows[i]
		f, ok := w.countFlow(d, routes, faulty)
		if !ok {
			w.unusable++
			continue
		}
		f.victim = victims[f.key]
		if f.victim {
			found++
		}
		w.flows = append(w.flows, f)
	}
	if found == 0 {
		return nil, &MissingError{fmt.Sprintf("no flow of the incident has records from %s to %s that show its path and that its packets do not arrive (flow records of all switches of the path, in slots shorter than the fault)",
			from.UTC().Format(time.RFC3339Nano), to.UTC().Format(time.RFC3339Nano))}
	}
	return w, nil
}

// ends returns a flow with its ends; false if they are not in the topology.
func (w *deliveryWorld) ends(d *api.FlowDetail) (f countedFlow, ok bool) {
	var okSrc, okDst bool
	f.src, okSrc = w.fabric.ByName(d.Src)
	f.dst, okDst = w.fabric.ByName(d.Dst)
	if !okSrc || !okDst || len(w.fabric.Node(f.src).Ports) == 0 || len(w.fabric.Node(f.dst).Ports) == 0 {
		return f, false
	}
	f.key, f.counts = d.Flow.Flow, passes{}
	f.first, f.last = w.fabric.Node(f.src).Ports[0].Peer.Node, w.fabric.Node(f.dst).Ports[0].Peer.Node
	return f, true
}

// isHarmed reports whether packets of a slot did not arrive, or not by the intended route.
func (w *deliveryWorld) isHarmed(f *countedFlow, p *api.FlowPoint) bool {
	nodes, known := w.nodes(p.Path)
	if !known || len(nodes) == 0 || nodes[0] != f.first {
		return false
	}
	end := len(nodes) - 1
	return nodes[end] != f.last || p.Path[0].Packets >= p.Path[end].Packets+fewest ||
		slices.ContainsFunc(nodes, func(id model.NodeID) bool { return !f.intended[id] })
}

// countFlow reads the counts of one flow in faulty slots.
func (w *deliveryWorld) countFlow(d *api.FlowDetail, routes *topo.Routes, faulty map[time.Time]time.Duration) (f countedFlow, ok bool) {
	if f, ok = w.ends(d); !ok {
		return f, false
	}
	var path, usual []model.NodeID
	var packets, bytes, slots, before, slotsBefore float64
	for i := range d.Series {
		p := &d.Series[i]
		nodes, known := w.nodes(p.Path)
		if !known {
			continue
		}
		if faulty[p.Time] == 0 {
			if len(nodes) > 0 && nodes[0] == f.first && nodes[len(nodes)-1] == f.last {
				usual = nodes
				before, slotsBefore = before+float64(p.Path[0].Packets), slotsBefore+1
			}
			continue
		}
		w.sampled = w.sampled || p.Samples > 0
		slots++
		packets, bytes = packets+float64(p.Packets), bytes+float64(p.Bytes)
		for j, h := range p.Path {
			f.counts[nodes[j]] += float64(h.Packets)
		}
		if len(nodes) >= len(path) {
			path = nodes
		}
	}
	if packets == 0 || len(path) == 0 || path[0] != f.first || len(f.counts) != len(path) {
		return f, false
	}
	f.size = bytes / packets
	f.intended = intendedSwitches(routes, f.first, f.key.Dst)
	f.sent = f.counts[f.first]
	loop := -1
	if usually := before / max(slotsBefore, 1) * slots; usually > 0 && f.sent >= again*usually {
		loop, f.sent, f.fitted = 0, usually, true
	}
	for i := 1; i < len(path) && loop < 0; i++ {
		if f.counts[path[i]] >= again*f.counts[path[i-1]] {
			loop = i
		}
	}
	return f, w.addHops(&f, routes, path, usual, loop)
}

// addHops adds the fate of a flow's packets after each switch of a path. From index loop
// of it on they loop; less than 0: they do not. Its usual path is that of other times.
func (w *deliveryWorld) addHops(f *countedFlow, routes *topo.Routes, path, usual []model.NodeID, loop int) bool {
	for i, at := range path {
		h := countedHop{at: at}
		switch {
		case i+1 < len(path):
			h.to = path[i+1]
			if n, next := f.counts[at], f.counts[h.to]; loop < 0 && n-next >= fewest {
				h.lost = 1 - next/n
			}
		case loop >= 0:
			back := slices.IndexFunc(path[loop:], func(id model.NodeID) bool { return len(w.fabric.Node(at).PortsTo(id)) > 0 })
			if back < 0 {
				return false
			}
			h.to = path[loop+back]
		case at == f.last:
			return true
		default:
			h.lost = 1
			if j := slices.Index(usual, at); j >= 0 && j+1 < len(usual) {
				h.to = usual[j+1]
			} else if out, ok := routes.NextHop(at, f.key); ok && out != 0 {
				h.to = w.fabric.Port(model.Port{Node: at, Port: out}).Peer.Node
			} else {
				return false
			}
		}
		ports := w.fabric.Node(at).PortsTo(h.to)
		if len(ports) == 0 {
			return false // a switch between them did not report
		}
		h.out = ports[0]
		h.strays = !slices.ContainsFunc(ports, func(p model.PortID) bool { return slices.Contains(routes.NextHops(at, f.key.Dst), p) })
		f.hops = append(f.hops, h)
	}
	return true
}

// nodes returns the switches of a recorded path; false if one is not in the topology.
func (w *deliveryWorld) nodes(path []api.FlowPointHop) (ids []model.NodeID, ok bool) {
	for _, h := range path {
		id, known := w.fabric.ByName(h.Switch)
		if !known || slices.Contains(ids, id) {
			return nil, false
		}
		ids = append(ids, id)
	}
	return ids, true
}

// intendedSwitches returns the switches on the intended paths from one to an address.
func intendedSwitches(routes *topo.Routes, first model.NodeID, dst model.Addr) map[model.NodeID]bool {
	f := routes.Fabric()
	seen := map[model.NodeID]bool{first: true}
	for todo := []model.NodeID{first}; len(todo) > 0; todo = todo[1:] {
		for _, out := range routes.NextHops(todo[0], dst) {
			if out == 0 {
				continue
			}
			if next := f.Port(model.Port{Node: todo[0], Port: out}).Peer.Node; f.Node(next).Role.IsSwitch() && !seen[next] {
				seen[next] = true
				todo = append(todo, next)
			}
		}
	}
	return seen
}

// harmed returns how many of a flow's packets did not arrive, or passed a switch that is on
// none of its intended paths, or one twice.
func (f *countedFlow) harmed(n passes) float64 {
	most := 0.0 // packets beside the intended paths
	for id, count := range n {
		if f.intended[id] {
			count -= f.sent
			if count < fewest {
				count = 0 // a slot may have a packet of the one before
			}
		}
		most = max(most, count)
	}
	lost := f.sent - n[f.last]
	if lost < fewest {
		lost = 0
	}
	return min(f.sent, max(lost, most))
}

// harm returns the share of packets that were harmed, of the victims or of the other flows.
func (w *deliveryWorld) harm(counts []passes, victims bool) float64 {
	var sum, all float64
	for i := range w.flows {
		if f := &w.flows[i]; f.victim == victims {
			sum, all = sum+f.harmed(counts[i]), all+f.sent
		}
	}
	if all == 0 {
		return 0
	}
	return sum / all
}

// recorded returns the counts of the records.
func (w *deliveryWorld) recorded() []passes {
	list := make([]passes, len(w.flows))
	for i := range w.flows {
		list[i] = w.flows[i].counts
	}
	return list
}

// deviation returns by how much counts deviate from the recorded ones: the mean of the
// victims, or of all other flows if that is larger. Each flow counts alike, as a loop has
// many times the packets of others.
func (w *deliveryWorld) deviation(counts []passes) float64 {
	var sum, flows [2]float64
	for i := range w.flows {
		f := &w.flows[i]
		k := 0
		if f.victim {
			k = 1
		}
		sum[k], flows[k] = sum[k]+f.deviation(counts[i]), flows[k]+1
	}
	return max(sum[0]/max(flows[0], 1), sum[1]/max(flows[1], 1))
}

func (f *countedFlow) deviation(n passes) float64 {
	var off, all float64
	for id, want := range f.counts {
		off, all = off+math.Abs(n[id]-want), all+want
	}
	for id, got := range n {
		if _, known := f.counts[id]; !known {
			off += got
		}
	}
	return min(1, off/max(all, 1))
}

// refit corrects what hosts sent that no switch counted. It reports whether it changed
// anything that matters.
func (w *deliveryWorld) refit(counts []passes) (changed bool) {
	for i := range w.flows {
		f := &w.flows[i]
		got, want := counts[i][f.first], f.counts[f.first]
		if !f.fitted || got == 0 || math.Abs(got-want) <= want*tolerance/4 {
			continue
		}
		f.sent *= min(max(want/got, 0.25), 4)
		changed = true
	}
	return changed
}

// strays reports whether packets left the intended routes.
func (w *deliveryWorld) strays() bool {
	return slices.ContainsFunc(w.flows, func(f countedFlow) bool {
		return slices.ContainsFunc(f.hops, func(h countedHop) bool { return h.strays })
	})
}
