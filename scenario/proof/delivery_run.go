package proof

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
)

// deliverySetup is one form of the rebuilt run.
type deliverySetup struct {
	name, about string
	mended      []Place      // they forward as intended, and lose nothing
	intended    bool         // all switches forward as intended; what is lost stays lost
	down        []model.Port // links out of service, around which routing leads
}

// mends reports whether a place that is mended is where a hop begins.
func (x *deliverySetup) mends(w *deliveryWorld, h *countedHop) bool {
	name := w.fabric.Node(h.at).Name
	return slices.ContainsFunc(x.mended, func(p Place) bool { return p.Node == name && (p.Port == 0 || p.Port == h.out) })
}

// deliveryOutcome is what a setup did to the flows.
type deliveryOutcome struct {
	counts []passes // by flow, as many as were recorded of as many sent
	text   string   // the scenario
}

const (
	// maxPasses bounds the packets that switches of a rebuilt run count. A longer window is
	// rebuilt in part, at the same rates.
	maxPasses = 200_000
	// stagger is the time between the starts of two flows.
	stagger = 173 * time.Nanosecond
	// settle is the time in which what is in the fabric at the end arrives: also what loops
	// until its time to live ends.
	settle = 5 * time.Millisecond
)

// share is the part of the window that is rebuilt: packets that switches count are bounded by most.
func (w *deliveryWorld) share(most float64) float64 {
	sum := 0.0
	for i := range w.flows {
		for _, n := range w.flows[i].counts {
			sum += n
		}
	}
	return min(1, most/max(sum, 1))
}

// run simulates a setup.
func (p *deliverer) run(ctx context.Context, x deliverySetup) (*deliveryOutcome, error) {
	text, err := p.scenarioText(&x)
	if err != nil {
		return nil, err
	}
	all, err := p.count(ctx, x.name, text)
	if err != nil {
		return nil, err
	}
	o := &deliveryOutcome{counts: make([]passes, len(p.world.flows)), text: text}
	part := p.world.share(maxPasses)
	for i := range p.world.flows {
		f := &p.world.flows[i]
		o.counts[i] = passes{}
		key := p.world.rebuiltKey(f)
		// A flow has whole packets, and counts are of as many as were sent.
		scale := f.sent / f.packets(part)
		for _, c := range all {
			if n := c.packets[key]; n > 0 {
				o.counts[i][c.id] = n * scale
			}
		}
	}
	return o, nil
}

// experiments are the simulations of a case.
type experiments struct {
	c    *DeliveryCase
	runs int
}

// count simulates a scenario, whose switches count what the recorded ones did.
func (e *experiments) count(ctx context.Context, name, text string) (all []*passCounter, err error) {
	s, err := scenario.Parse(name+".yaml", []byte(text))
	if err != nil {
		return nil, fmt.Errorf("the rebuilt scenario: %w", err)
	}
	s.Telemetry = append(s.Telemetry, scenario.Program{
		Kind: "counts", Keyed: true,
		New: func(dev inswitch.Device, _ scenario.ProgramInputs) (inswitch.Program, error) {
			c := &passCounter{id: dev.ID, packets: map[model.FlowKey]float64{}}
			all = append(all, c)
			return c, nil
		},
	})
	if _, err := scenario.Run(ctx, s, scenario.Options{Cores: e.c.Cores}, nil); err != nil {
		return nil, err
	}
	if e.runs++; e.c.Progress != nil {
		e.c.Progress(e.runs)
	}
	return all, nil
}

// passCounter counts the packets of each flow at a switch.
type passCounter struct {
	id      model.NodeID
	packets map[model.FlowKey]float64
}

// Stages is part of inswitch.Program.
func (c *passCounter) Stages() inswitch.Stages { return inswitch.StageSet(inswitch.Ingress) }

// Observe is part of inswitch.Program.
func (c *passCounter) Observe(ev *inswitch.Event, _ *inswitch.Actions) {
	if ev.Packet.IsIP() {
		c.packets[*ev.Packet.Key]++
	}
}

// packets returns how many a rebuilt flow sends.
func (f *countedFlow) packets(part float64) float64 { return max(1, math.Round(f.sent*part)) }

// rebuiltKey returns the key of a rebuilt flow. It sends datagrams: what is lost is not
// sent again.
func (w *deliveryWorld) rebuiltKey(f *countedFlow) model.FlowKey {
	a, b := w.fabric.Node(f.src), w.fabric.Node(f.dst)
	k := model.FlowKey{Src: a.IPv4, Dst: b.IPv4, SrcPort: f.key.SrcPort, DstPort: f.key.DstPort, Proto: model.UDP}
	if !f.key.Src.Is4() {
		k.Src, k.Dst = a.IPv6, b.IPv6
	}
	return k
}

// Bytes of a datagram's frame that are not payload: Ethernet, IP and UDP.
const (
	datagramHeaders4 = 14 + 20 + 8
	datagramHeaders6 = datagramHeaders4 + 20
)

// Bounds of the payload of a rebuilt packet.
const (
	minPayload = 64
	maxPayload = 9000
)

// payload returns that of all rebuilt packets, in bytes: the mean, so that links are as
// busy as they were.
func (w *deliveryWorld) payload() float64 {
	var bytes, packets float64
	for i := range w.flows {
		f := &w.flows[i]
		bytes, packets = bytes+f.size*f.sent, packets+f.sent
	}
	return math.Round(min(max(bytes/packets-datagramHeaders4, minPayload), maxPayload))
}

// scenarioText writes a setup as a scenario file.
func (p *deliverer) scenarioText(x *deliverySetup) (string, error) {
	w := p.world
	part := w.share(maxPasses)
	length := time.Duration(float64(w.window) * part)
	var b strings.Builder
	fmt.Fprintf(&b, "# Rebuilt from the flow records of an incident. Run it with weft run.\nname: %s\nabout: >\n  %s\nseed: 1\nduration: %v\n",
		x.name, x.about, (length + settle).Round(time.Microsecond))
	topology, err := scenario.TopologySection(p.c.Fabric.Topology)
	if err != nil {
		return "", err
	}
	settings := scenario.Scenario{Sim: p.c.Fabric.Sim}
	payload := w.payload()
	settings.Sim.MTU = int32(payload)
	b.WriteString(topology + settings.FabricSection() + "traffic:\n  - kind: flows\n    name: recorded\n    list:\n")
	var routes, faults []string
	for i := range w.flows {
		f := &w.flows[i]
		n, key := f.packets(part), w.rebuiltKey(f)
		headers := float64(datagramHeaders4)
		if !f.key.Src.Is4() {
			headers = datagramHeaders6
		}
		rate := min(n*(payload+headers)*8/length.Seconds(), float64(w.fabric.Node(f.src).Ports[0].Rate))
		fmt.Fprintf(&b, "      - {from: %s, to: %s, source-port: %d, port: %d, transport: udp, priority: 0, bytes: %d, start: %v, rate: %d, ipv6: %s}\n",
			w.fabric.Node(f.src).Name, w.fabric.Node(f.dst).Name, key.SrcPort, key.DstPort, int64(n*payload), time.Duration(i)*stagger, int64(max(rate, 1)), onOff(!f.key.Src.Is4()))
		for j := range f.hops {
			h := &f.hops[j]
			mended := x.mends(w, h)
			if !x.intended && !(mended && h.strays) {
				routes = append(routes, fmt.Sprintf("      - {at: %s, flow: %q, via: [%s]}\n", w.fabric.Node(h.at).Name, key.String(), w.fabric.Node(h.to).Name))
			}
			if h.lost > 0 && !mended {
				faults = append(faults, fmt.Sprintf("  - {kind: silent-drop, switch: %s, share: %.6f, match: {src: %q, dst: %q, src-port: %d, dst-port: %d}}\n",
					w.fabric.Node(h.at).Name, h.lost, key.Src, key.Dst, key.SrcPort, key.DstPort))
			}
		}
	}
	for _, link := range x.down {
		faults = append(faults, fmt.Sprintf("  - {kind: link-down, port: %q, reconverge: 0s}\n", w.fabric.PortRef(link)))
	}
	if len(routes) > 0 && len(x.down) == 0 {
		faults = append(faults, "  - kind: reroute\n    routes:\n"+strings.Join(routes, ""))
	}
	if len(faults) > 0 {
		b.WriteString("faults:\n" + strings.Join(faults, ""))
	}
	return b.String(), nil
}
