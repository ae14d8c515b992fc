package proof

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/roce"
)

// standingWorld is what flows sent until they stood, as far as switches counted it.
type standingWorld struct {
	fabric   *topo.Fabric
	flows    []sentFlow
	window   time.Duration
	unusable int // flows whose records show no path
}

// sentFlow is a flow by the counts of its switches in the window.
type sentFlow struct {
	countedFlow
	slots   []sentSlot
	arrived float64 // packets, at the last switch
}

// sentSlot is what a flow sent in one slot.
type sentSlot struct {
	at, length     time.Duration // since the window began
	packets, bytes float64
	steady         bool // as in the slot before: that is how the flow sent, not only its mean
}

const (
	rdmaPort = roce.Port
	// losslessPriority is the class of RDMA.
	losslessPriority = 3
	// maxStandingSlots bounds the slots from the incident's begin on. What stands, stands
	// after a few.
	maxStandingSlots = 8
)

// newStandingWorld reads the records of a case.
func newStandingWorld(c *DeliveryCase, routes *topo.Routes) (*standingWorld, error) {
	w := &standingWorld{fabric: c.Fabric.Topology.Fabric}
	counted := deliveryWorld{fabric: w.fabric}
	victims := map[model.FlowKey]bool{}
	for i := range c.Incident.Victims {
		if f := c.Incident.Victims[i].Flow; f != nil {
			victims[f.Flow] = true
		}
	}
	from, to := w.standingSpan(c, victims)
	found := 0
	for i := range c.Flows {
		f := sentFlow{}
		var ok bool
		if f.countedFlow, ok = counted.ends(&c.Flows[i]); !ok || !f.read(w.fabric, &counted, &c.Flows[i], from, to, routes) {
			w.unusable++
			continue
		}
		if f.sent == 0 {
			continue
		}
		if f.victim = victims[f.key]; f.victim {
			found++
		}
		w.flows = append(w.flows, f)
	}
	w.window = to.Sub(from)
	if found == 0 {
		return nil, &MissingError{fmt.Sprintf("no flow of the incident has records from %s to %s that show its path (flow records of all switches of the path)",
			from.UTC().Format(time.RFC3339Nano), to.UTC().Format(time.RFC3339Nano))}
	}
	return w, nil
}

// standingSpan returns the time from the slot before an incident to the last slot in which
// a victim's first switch counted packets.
func (w *standingWorld) standingSpan(c *DeliveryCase, victims map[model.FlowKey]bool) (from, to time.Time) {
	from = c.Incident.Begin
	to = from
	for i := range c.Flows {
		d := &c.Flows[i]
		for j := range d.Series {
			p := &d.Series[j]
			length := time.Duration(p.SlotNs)
			end := p.Time.Add(length)
			if end.Before(c.Incident.Begin) || p.Time.After(c.Incident.Begin.Add(maxStandingSlots*length)) {
				continue
			}
			if p.Time.Before(from) {
				from = p.Time
			}
			if victims[d.Flow.Flow] && p.Packets > 0 && end.After(to) {
				to = end
			}
		}
	}
	return from, to
}

// read reads the counts of a flow, and its path.
func (f *sentFlow) read(fabric *topo.Fabric, counted *deliveryWorld, d *api.FlowDetail, from, to time.Time, routes *topo.Routes) bool {
	var path []model.NodeID
	var bytes, last float64
	for i := range d.Series {
		p := &d.Series[i]
		nodes, known := counted.nodes(p.Path)
		before := last
		if last = 0; known && len(nodes) > 0 && nodes[0] == f.first {
			last = float64(p.Path[0].Packets)
		}
		if !known || p.Time.Before(from) || p.Time.Add(time.Duration(p.SlotNs)).After(to) || len(nodes) == 0 {
			continue
		}
		if nodes[0] == f.first && len(nodes) >= len(path) {
			path = nodes
		}
		for j, h := range p.Path {
			if n := float64(h.Packets); nodes[j] == f.first {
				f.slots = append(f.slots, sentSlot{
					at: p.Time.Sub(from), length: time.Duration(p.SlotNs), packets: n, bytes: n * float64(p.Bytes) / float64(max(p.Packets, 1)),
					steady: absolute(n-before) <= steadyWithin*before,
				})
				f.sent += n
				bytes += f.slots[len(f.slots)-1].bytes
			}
			if nodes[j] == f.last {
				f.arrived += float64(h.Packets)
			}
		}
	}
	if f.sent == 0 {
		return true
	}
	f.size = bytes / f.sent
	for i, at := range path {
		if i+1 == len(path) {
			break
		}
		h := countedHop{at: at, to: path[i+1]}
		ports := fabric.Node(at).PortsTo(h.to)
		if len(ports) == 0 {
			return false // a switch between them did not report
		}
		h.out = ports[0]
		h.strays = !slices.ContainsFunc(ports, func(p model.PortID) bool { return slices.Contains(routes.NextHops(at, f.key.Dst), p) })
		f.hops = append(f.hops, h)
	}
	return len(path) > 0
}

// standingSetup is one form of the rebuilt run.
type standingSetup struct {
	name, about string
	without     []int   // flows
	limit       float64 // of rates, as a share; 0: none
	intended    bool    // all switches forward as intended
}

// standingOutcome is what a setup did to the flows.
type standingOutcome struct {
	arrived []float64 // packets, by flow
	without []int
	text    string
}

// firstRebuiltPort is the source port of the first rebuilt flow: each slot of a flow is one of
// its own.
const firstRebuiltPort = 10000

// run simulates a setup.
func (p *stander) run(ctx context.Context, x standingSetup) (*standingOutcome, error) {
	text, owner, err := p.scenarioText(&x)
	if err != nil {
		return nil, err
	}
	all, err := p.count(ctx, x.name, text)
	if err != nil {
		return nil, err
	}
	o := &standingOutcome{arrived: make([]float64, len(p.world.flows)), without: x.without, text: text}
	for _, c := range all {
		for key, i := range owner {
			if f := &p.world.flows[i]; c.id == f.last {
				o.arrived[i] += c.packets[key]
			}
		}
	}
	return o, nil
}

// payload returns that of all rebuilt packets, in bytes: the mean.
func (w *standingWorld) payload() float64 {
	var bytes, packets float64
	for i := range w.flows {
		bytes, packets = bytes+w.flows[i].size*w.flows[i].sent, packets+w.flows[i].sent
	}
	return math.Round(min(max(bytes/packets-headers4, minPayload), maxPayload))
}

// drain returns the time in which all that was sent arrives, if nothing stands.
func (w *standingWorld) drain() time.Duration {
	to := map[model.NodeID]float64{}
	most := 0.0
	for i := range w.flows {
		f := &w.flows[i]
		to[f.dst] += f.size * f.sent * 8 / float64(w.fabric.Node(f.dst).Ports[0].Rate)
		most = max(most, to[f.dst])
	}
	return time.Duration(2*most*1e9) + settle
}

// scenarioText writes a setup as a scenario file, and returns whose flows it has.
func (p *stander) scenarioText(x *standingSetup) (text string, owner map[model.FlowKey]int, err error) {
	w := p.world
	topology, err := scenario.TopologySection(p.c.Fabric.Topology)
	if err != nil {
		return "", nil, err
	}
	limit := x.limit
	if limit == 0 {
		limit = 1
	}
	payload := w.payload()
	settings := scenario.Scenario{Sim: p.c.Fabric.Sim}
	settings.Sim.MTU = int32(payload)
	var b strings.Builder
	fmt.Fprintf(&b, "# Rebuilt from the flow records of an incident. Run it with weft run.\nname: %s\nabout: >\n  %s\nseed: 1\nduration: %v\n",
		x.name, x.about, (time.Duration(float64(w.window)/limit) + w.drain()).Round(time.Microsecond))
	b.WriteString(topology + settings.FabricSection() + "  rto: 0s\ntraffic:\n  - kind: flows\n    name: recorded\n    list:\n")
	owner = map[model.FlowKey]int{}
	var routes []string
	next := uint16(firstRebuiltPort)
	for i := range w.flows {
		f := &w.flows[i]
		if slices.Contains(x.without, i) {
			continue
		}
		class := fmt.Sprintf("priority: %d, congestion-control: off", losslessPriority)
		if !isLossless(f.key) {
			class = "priority: 0, transport: udp"
		}
		six := !f.key.Src.Is4()
		for j := range f.slots {
			s := &f.slots[j]
			key := w.rebuiltKey(f, next)
			next++
			owner[key] = i
			line := float64(w.fabric.Node(f.src).Ports[0].Rate)
			speed := p.speed
			if s.steady {
				speed = 1
			}
			rate := min(s.bytes*8/s.length.Seconds()*speed, line) * limit
			fmt.Fprintf(&b, "      - {from: %s, to: %s, source-port: %d, port: %d, %s, bytes: %d, start: %v, rate: %d, ipv6: %s}\n",
				w.fabric.Node(f.src).Name, w.fabric.Node(f.dst).Name, key.SrcPort, key.DstPort, class, int64(s.packets*payload),
				p.start(f, j, rate)+time.Duration(i)*stagger, int64(max(rate, 1)), onOff(six))
			for k := range f.hops {
				if h := &f.hops[k]; !x.intended || !f.strays() {
					routes = append(routes, fmt.Sprintf("      - {at: %s, flow: %q, via: [%s]}\n", w.fabric.Node(h.at).Name, key.String(), w.fabric.Node(h.to).Name))
				}
			}
		}
	}
	if len(routes) > 0 {
		b.WriteString("faults:\n  - kind: reroute\n    routes:\n" + strings.Join(routes, ""))
	}
	return b.String(), owner, nil
}

// start returns when a flow sends what was counted in a slot: late in the first slot of
// a flow that goes on, as it began within it, and early in all others.
func (p *stander) start(f *sentFlow, slot int, rate float64) time.Duration {
	s := &f.slots[slot]
	if slot == 0 && len(f.slots) > 1 {
		return s.at + max(0, s.length-time.Duration(s.bytes*8e9/rate))
	}
	return s.at
}

// rebuiltKey returns the key of a rebuilt flow.
func (w *standingWorld) rebuiltKey(f *sentFlow, port uint16) model.FlowKey {
	a, b := w.fabric.Node(f.src), w.fabric.Node(f.dst)
	k := model.FlowKey{Src: a.IPv4, Dst: b.IPv4, SrcPort: port, DstPort: f.key.DstPort, Proto: model.UDP}
	if !f.key.Src.Is4() {
		k.Src, k.Dst = a.IPv6, b.IPv6
	}
	return k
}
