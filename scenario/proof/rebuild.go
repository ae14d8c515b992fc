package proof

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/scenario/report"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/roce"
)

// setup is one form of the rebuilt run.
type setup struct {
	name, about string
	fitted
	without Culprits
	remedy
}

// fitted is what records do not say.
type fitted struct {
	speed float64 // of senders, as a multiple of their recorded mean rate
	// steady says that the speed is also that of flows which sent steadily.
	steady bool
	// burst says that they sent what was counted faster and then no more; otherwise they
	// send at that rate for the whole interval.
	burst bool
	// drain is the share of its link that a host which pauses its switch takes, and
	// pauses it when its buffer is full; 0: it pauses when records say.
	drain float64
}

// outcome is what a setup did to the victim.
type outcome struct {
	late     time.Duration
	ideal    time.Duration
	finished bool
	dropped  bool          // lossless packets, for a full buffer
	paused   time.Duration // of all ports, for the victim's priority
	text     string        // the scenario
}

// slowdown returns the packet's time as a multiple of that in an idle fabric.
func (o *outcome) slowdown() float64 {
	if o.ideal <= 0 {
		return 0
	}
	return float64(o.ideal+o.late) / float64(o.ideal)
}

const victimGroup = "victim"

// run simulates a setup.
func (p *prover) run(ctx context.Context, x setup) (*outcome, error) {
	text, err := p.scenarioText(x)
	if err != nil {
		return nil, err
	}
	s, err := scenario.Parse(x.name+".yaml", []byte(text))
	if err != nil {
		return nil, fmt.Errorf("the rebuilt scenario: %w", err)
	}
	r, err := scenario.Run(ctx, s, scenario.Options{Cores: p.c.Cores}, nil)
	if err != nil {
		return nil, err
	}
	if p.runs++; p.c.Progress != nil {
		p.c.Progress(p.runs)
	}
	i := slices.IndexFunc(r.Run.Flows, func(f report.FlowResult) bool { return f.Group == victimGroup })
	if i < 0 {
		return nil, fmt.Errorf("the rebuilt scenario %s has no victim", x.name)
	}
	f := &r.Run.Flows[i]
	o := &outcome{ideal: f.Ideal, finished: f.Finished, text: text, paused: pausedTime(&r.Run), dropped: r.LosslessDrops > 0}
	if f.Finished {
		o.late = max(0, f.FCT()-f.Ideal)
	} else {
		o.late = max(0, r.Run.End.Sub(f.Start)-f.Ideal)
	}
	return o, nil
}

// pausedTime sums how long ports of switches were paused.
func pausedTime(r *report.Run) (sum time.Duration) {
	type queue struct {
		id   model.NodeID
		port model.PortID
		prio model.Priority
	}
	since := map[queue]model.Time{}
	until := map[queue]model.Time{} // by the last frame
	stop := func(q queue, at model.Time) {
		if from, ok := since[q]; ok {
			if u := until[q]; u > 0 {
				at = min(at, u)
			}
			sum += at.Sub(from)
			delete(since, q)
		}
	}
	for i := range r.Pauses {
		e := &r.Pauses[i]
		q := queue{e.ID, e.Port, e.Priority}
		if !e.Switch {
			continue
		}
		if u, ok := until[q]; ok && u > 0 && u < e.At {
			stop(q, u)
		}
		if !e.Pause {
			stop(q, e.At)
			continue
		}
		if _, ok := since[q]; !ok {
			since[q] = e.At
		}
		until[q] = 0
		if e.Hold > 0 {
			until[q] = e.At.Add(e.Hold)
		}
	}
	for q := range since {
		stop(q, r.End)
	}
	return sum
}

// scenarioText writes a setup as a scenario file.
func (p *prover) scenarioText(x setup) (string, error) {
	w := p.world
	var b strings.Builder
	fmt.Fprintf(&b, "# Rebuilt from the records of a diagnosis. Run it with weft run.\nname: %s\nabout: >\n  %s\nseed: 1\nduration: %v\n",
		x.name, x.about, p.duration)
	doc := *p.c.Fabric.Topology
	doc.Seed += x.rehash
	topology, err := scenario.TopologySection(&doc)
	if err != nil {
		return "", err
	}
	b.WriteString(topology + p.settings(x.remedy))
	var routes []string
	b.WriteString("traffic:\n")
	b.WriteString("  - kind: flows\n    name: " + victimGroup + "\n    list:\n")
	v := &w.victim
	fmt.Fprintf(&b, "      - {from: %s, to: %s, source-port: %d, priority: %d, bytes: %d, start: %v, ipv6: %s, congestion-control: off}\n",
		p.name(v.src), p.name(v.dst), p.victimPath.port, v.priority, int64(p.packet), p.victimStart, onOff(!v.flow.Src.Is4()))
	routes = append(routes, p.victimPath.routes...)
	var list []string
	for i := range w.senders {
		s := &w.senders[i]
		if slices.Contains(x.without.Flows, s.flow) || x.disabled && (p.isNamed(s.src) || p.isNamed(s.dst)) {
			continue
		}
		path := p.paths[i]
		rate, payload := p.load(s, x)
		list = append(list, fmt.Sprintf("      - {from: %s, to: %s, source-port: %d, priority: %d, bytes: %d, start: %v, rate: %d, ipv6: %s, congestion-control: off}\n",
			p.name(s.src), p.name(s.dst), path.port, s.priority, int64(payload), p.start(s, path.hops), int64(rate), onOff(!s.flow.Src.Is4())))
		routes = append(routes, path.routes...)
	}
	if len(list) > 0 {
		b.WriteString("  - kind: flows\n    name: recorded\n    list:\n" + strings.Join(list, ""))
	}
	var faults []string
	var drains []model.NodeID
	for _, h := range x.watch(w.pauses, p.isNamed) {
		name := p.name(h.host)
		switch {
		case slices.Contains(x.without.Hosts, name) || h.to <= h.from || x.disabled && p.isNamed(h.host):
		case x.drain == 0:
			faults = append(faults, fmt.Sprintf("  - {kind: storm, host: %s, priority: %d, at: %v, for: %v}\n", name, h.priority, h.from, h.to-h.from))
		case !slices.Contains(drains, h.host):
			drains = append(drains, h.host)
			rate := x.drain * float64(w.fabric.Node(h.host).Ports[0].Rate)
			faults = append(faults, fmt.Sprintf("  - {kind: slow-receiver, host: %s, priority: %d, rate: %d}\n", name, h.priority, int64(max(rate, 1e6))))
		}
	}
	if len(routes) > 0 && !x.mended && x.rehash == 0 {
		faults = append(faults, "  - kind: reroute\n    routes:\n"+strings.Join(routes, ""))
	}
	if len(faults) > 0 {
		b.WriteString("faults:\n" + strings.Join(faults, ""))
	}
	return b.String(), nil
}

// load returns the rate of a sender in a setup, at most that of its link, and what it
// sends in its interval.
func (p *prover) load(s *sender, x setup) (model.Rate, model.Bytes) {
	line := float64(p.world.fabric.Node(s.src).Ports[0].Rate)
	rate, payload := line, float64(s.payload)
	if mean := s.rate(); mean > 0 {
		speed := x.speed
		if s.steady && !x.steady {
			speed = 1
		}
		rate = min(mean*speed, line)
		if !x.burst {
			payload *= rate / mean
		}
	}
	if x.limit > 0 && slices.Contains(p.c.Named.Flows, s.flow) {
		rate, payload = rate*x.limit, payload*x.limit
	}
	return model.Rate(max(rate, 1e6)), model.Bytes(max(payload, 1))
}

// start returns when a sender sends its first packet, which came to the switch that
// counted it later.
func (p *prover) start(s *sender, hops []topo.Hop) time.Duration {
	return max(0, s.from-p.travel(s.src, s.counted, hops))
}

// travel returns the time of a packet from a host to a switch on its path, in an idle
// fabric.
func (p *prover) travel(src, to model.NodeID, hops []topo.Hop) (sum time.Duration) {
	for _, h := range hops {
		if h.Node == to || h.Out == 0 {
			break
		}
		port := p.world.fabric.Port(model.Port{Node: h.Node, Port: h.Out})
		sum += port.Delay + serialization(p.packet+headers4, port.Rate)
	}
	return sum
}

func serialization(n model.Bytes, r model.Rate) time.Duration {
	return time.Duration(float64(n) * 8e9 / float64(max(r, 1)))
}

// path is how a rebuilt flow takes the recorded path: a source port for which ECMP
// chooses it, or routes of its own.
type path struct {
	port   uint16
	hops   []topo.Hop
	routes []string
}

const (
	firstPort = 20000
	pathTries = 4096
)

// trace is what is known of a flow's path.
type trace struct {
	port uint16       // recorded source port; 0: not to be used
	outs []model.Port // egress ports that the path has
	like []topo.Hop   // the path that is chosen for other packets of the flow; nil: none yet
}

// strays counts the hops of a path that are beside what is known of it: others than those of
// the flow's other packets, or on ports with records of flows, but not of this one.
func (t *trace) strays(hops []topo.Hop, recorded map[model.Port]bool) (n int) {
	for _, h := range hops {
		out := model.Port{Node: h.Node, Port: h.Out}
		switch {
		case t.like != nil:
			if !slices.ContainsFunc(t.like, func(o topo.Hop) bool { return o.Node == h.Node && o.Out == h.Out }) {
				n++
			}
		case recorded[out] && !slices.Contains(t.outs, out):
			n++
		}
	}
	return n
}

// findPath returns the path of a flow between two hosts over recorded ports, with as few
// strays as any of pathTries source ports has. Source ports that other flows between the
// hosts have are not used.
func (p *prover) findPath(src, dst model.NodeID, six bool, t trace) path {
	used := p.used[[2]model.NodeID{src, dst}]
	if used == nil {
		used = map[uint16]bool{}
		p.used[[2]model.NodeID{src, dst}] = used
	}
	key := func(port uint16) model.FlowKey {
		a, b := &p.world.fabric.Nodes()[src], &p.world.fabric.Nodes()[dst]
		k := model.FlowKey{Src: a.IPv4, Dst: b.IPv4, SrcPort: port, DstPort: roce.Port, Proto: model.UDP}
		if six {
			k.Src, k.Dst = a.IPv6, b.IPv6
		}
		return k
	}
	var best path
	fewest := math.MaxInt
	try := func(port uint16) {
		if port == 0 || used[port] {
			return
		}
		hops, err := p.world.routes.Path(key(port), src)
		if err != nil {
			return
		}
		for _, out := range t.outs {
			if !slices.ContainsFunc(hops, func(h topo.Hop) bool { return h.Node == out.Node && h.Out == out.Port }) {
				return
			}
		}
		if n := t.strays(hops, p.world.recorded); n < fewest {
			best, fewest = path{port: port, hops: hops}, n
		}
	}
	try(t.port)
	for i := uint16(0); fewest > 0 && i < pathTries; i++ {
		try(firstPort + i)
	}
	if best.port != 0 {
		used[best.port] = true
		return best
	}
	// No hash leads there: the packets deviated from the intended routes.
	out := path{port: firstPort}
	for used[out.port] {
		out.port++
	}
	used[out.port] = true
	out.hops = p.deviated(src, dst, t.outs)
	for _, o := range t.outs {
		out.routes = append(out.routes, fmt.Sprintf("      - {at: %s, flow: %q, via: [%s]}\n",
			p.name(o.Node), key(out.port).String(), p.name(p.world.fabric.Port(o).Peer.Node)))
	}
	return out
}

// deviated returns the hops of a path over ports that routes do not lead to, as far as
// they are recorded.
func (p *prover) deviated(src, dst model.NodeID, outs []model.Port) []topo.Hop {
	hops := []topo.Hop{{Node: src, Out: 1}}
	for at := p.world.fabric.Node(src).Ports[0].Peer.Node; at != dst && len(hops) <= len(outs); {
		i := slices.IndexFunc(outs, func(o model.Port) bool { return o.Node == at })
		if i < 0 {
			break
		}
		hops = append(hops, topo.Hop{Node: at, Out: outs[i].Port})
		at = p.world.fabric.Port(outs[i]).Peer.Node
	}
	return hops
}

func (p *prover) name(id model.NodeID) string { return p.world.fabric.Node(id).Name }

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}
