package probe

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/inhost/prober"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Drops finds the fate of a flow's packets: copies of them are injected into a
// switch, together with packets that differ in one field and take the same path.
// Where they are lost, and how many, determines the kind of drop.
type Drops struct {
	At model.NodeID // where probes are injected

	host     model.NodeID
	along    []prober.Tunnel
	routes   *topo.Routes
	levels   Levels
	patterns []Pattern
	per      uint32
	judge    *trace.Judge
	ends     map[LossLocation]uint64 // of lost probes
	round    []model.NodeID          // a loop
	hops     uint64                  // that probes passed for certain
	missing  uint64                  // mirrors of them
	early    uint64                  // probes that did not reach the injection point
	heard    []bool                  // the scheduler's
	seen     uint64                  // probes
	latest   uint32                  // the highest number of one
}

// LossLocation is a switch and the node to which it sends.
type LossLocation struct {
	Switch model.NodeID
	Next   model.NodeID // where Known
	Known  bool
}

// patternsOf bounds how many patterns of each field are tried.
var patternsOf = []struct {
	field Field
	most  int
}{{SrcPort, 6}, {DstPort, 2}, {Protocol, 1}, {Source, 2}, {Destination, 3}}

// Drops makes the question about a flow. Probes are injected at a switch, or where
// the flow's source is attached if that is nil; per is how many of each pattern.
func (d *Scheduler) Drops(now model.Time, flow model.FlowKey, at *model.NodeID, per uint32) (*Drops, error) {
	r := d.intent.At(now)
	q := &Drops{routes: r, levels: d.cfg.Levels, per: per, ends: map[LossLocation]uint64{}, heard: d.mirrored}
	if per == 0 {
		return nil, errors.New("probe: no probes of each pattern, want at least one")
	}
	if at != nil {
		if !r.Fabric().HasNode(*at) || !r.Fabric().Node(*at).Role.IsSwitch() {
			return nil, fmt.Errorf("probe: injection at node %d, want a switch", *at)
		}
		q.At = *at
	} else {
		first := r.ExpectedLastHops(flow.Src)
		if len(first) == 0 {
			return nil, fmt.Errorf("probe: %v is not attached to a switch, want a switch to inject at", flow.Src)
		}
		q.At = first[0]
	}
	var err error
	if q.host, q.along, err = injectionPath(r, q.At); err != nil {
		return nil, err
	}
	judge := trace.DefaultJudgeConfig()
	judge.Alpha, judge.MirrorsPerDatagram = d.cfg.Levels.Mirrors, 2
	if q.judge, err = trace.NewJudge(judge, r.Fabric()); err != nil {
		return nil, err
	}
	return q, q.choosePatterns(flow)
}

// injectionPath is how a packet gets into a switch: from a host that is attached to
// it and sends it as its own, so that nothing else can go wrong on the path, or
// else from any host, in a tunnel.
func injectionPath(r *topo.Routes, at model.NodeID) (host model.NodeID, along []prober.Tunnel, err error) {
	f := r.Fabric()
	for _, p := range f.Node(at).Ports {
		if f.Node(p.Peer.Node).Role == topo.Host {
			return p.Peer.Node, nil, nil
		}
	}
	if len(f.Hosts()) == 0 {
		return 0, nil, errors.New("probe: a fabric without hosts, want one to probe from")
	}
	host = f.Hosts()[0]
	return host, []prober.Tunnel{tunnel(f, host, at)}, nil
}

// choosePatterns makes the patterns: the flow, and others that take the same path. A
// pattern on another path would miss a faulty link, and random loss there would
// look like a blackhole of 5-tuples.
func (q *Drops) choosePatterns(flow model.FlowKey) error {
	way, err := q.intendedPath(flow)
	if err != nil {
		return fmt.Errorf("probe: path of %v from %s: %w", flow, q.routes.Fabric().Node(q.At).Name, err)
	}
	q.patterns = []Pattern{{Flow: flow}}
	for _, vary := range patternsOf {
		switch vary.field {
		case Source:
			for _, a := range q.otherAddresses(flow.Src, flow) {
				k := flow
				k.Src = a
				q.addPattern(vary.field, vary.most, k, way)
			}
		case Destination:
			// Paths to other destinations diverge in the end: as late as possible.
			for shared := len(way); shared > 0 && q.countPatterns(Destination) == 0; shared-- {
				for _, a := range q.otherAddresses(flow.Dst, flow) {
					k := flow
					k.Dst = a
					q.addPattern(vary.field, vary.most, k, way[:shared])
				}
			}
		default:
			for range vary.most {
				q.addPattern(vary.field, vary.most, flow, way)
			}
		}
	}
	for i := range q.patterns {
		q.patterns[i].Sent = uint64(q.per)
	}
	return nil
}

// countPatterns is how many patterns vary a field.
func (q *Drops) countPatterns(f Field) (n int) {
	for i := range q.patterns {
		if q.patterns[i].Varied == f {
			n++
		}
	}
	return n
}

// otherAddresses are the addresses of hosts except the flow's, those next to an
// address first: packets to them take nearly the same path.
func (q *Drops) otherAddresses(beside model.Addr, flow model.FlowKey) (list []model.Addr) {
	f, at := q.routes.Fabric(), q.routes.ExpectedLastHops(beside)
	var far []model.Addr
	for _, id := range f.Hosts() {
		a := f.Node(id).IPv4
		if flow.V6 {
			a = f.Node(id).IPv6
		}
		switch {
		case a == flow.Src || a == flow.Dst:
		case slices.Equal(q.routes.ExpectedLastHops(a), at):
			list = append(list, a)
		default:
			far = append(far, a)
		}
	}
	return append(list, far...)
}

// addPattern adds a pattern of a field, up to the limit: a key with the first port
// for which its path is as wanted. The port that is varied is the source port, or
// that of the field.
func (q *Drops) addPattern(field Field, most int, k model.FlowKey, way []model.NodeID) {
	if q.countPatterns(field) >= most {
		return
	}
	if field == Protocol {
		if k.Proto == model.UDP {
			k.Proto = model.TCP
		} else {
			k.Proto = model.UDP
		}
	}
	for range portTries {
		if !slices.ContainsFunc(q.patterns, func(p Pattern) bool { return p.Flow == k }) {
			if w, err := q.intendedPath(k); err == nil && len(w) >= len(way) && slices.Equal(w[:len(way)], way) && (len(w) == len(way) || field == Destination) {
				q.patterns = append(q.patterns, Pattern{Flow: k, Varied: field})
				return
			}
		}
		if field == DstPort {
			k.DstPort++
		} else {
			k.SrcPort++
		}
	}
}

// portTries is how many ports are tried: one in 64 equal-cost paths is found with a
// probability of 98 %.
const portTries = 256

// intendedPath is the switches on the path of a flow.
func (q *Drops) intendedPath(k model.FlowKey) (list []model.NodeID, err error) {
	path, err := q.routes.Path(k, q.At)
	for _, h := range path {
		if q.routes.Fabric().Node(h.Node).Role.IsSwitch() {
			list = append(list, h.Node)
		}
	}
	return list, err
}

func (q *Drops) plan() (model.NodeID, []prober.Packet, uint32) {
	list := make([]prober.Packet, len(q.patterns))
	for i := range list {
		list[i] = prober.Packet{Tunnels: q.along, Key: q.patterns[i].Flow}
	}
	return q.host, list, q.per * uint32(len(list))
}

// tunnel leads from a host to a switch.
func tunnel(f *topo.Fabric, host, to model.NodeID) prober.Tunnel {
	return prober.Tunnel{Src: f.Node(host).IPv4, Dst: f.Node(to).IPv4}
}

func (q *Drops) addTrace(number uint32, t *trace.Trace) {
	p := &q.patterns[int(number)%len(q.patterns)]
	q.missing += uint64(t.MirrorsLost)
	q.hops += uint64(t.MirrorsLost + len(t.Hops) - 1) // the last was seen or it would not be the last
	q.seen++
	q.latest = max(q.latest, number)
	last := &t.Hops[len(t.Hops)-1]
	if last.Depth > 1 && last.Switch != q.At {
		q.early++
		return
	}
	if t.End == trace.Unsettled || t.End == trace.Unknown {
		return
	}
	p.Reached++
	q.judge.AddTrace(t)
	switch t.End {
	case trace.Looped:
		p.Looped++
		p.Lost++
		q.round = q.round[:0]
		for i := t.Loop[0]; i < t.Loop[1]; i++ {
			q.round = append(q.round, t.Hops[i].Switch)
		}
	case trace.Lost:
		p.Lost++
		at := LossLocation{Switch: last.Switch}
		key := p.Flow
		if out, ok := q.routes.NextHop(last.Switch, key); ok {
			at.Next, at.Known = q.routes.Fabric().Port(model.Port{Node: last.Switch, Port: out}).Peer.Node, true
		}
		q.ends[at]++
	}
}

// Heard is part of Question.
func (q *Drops) Heard() uint32 { return uint32(q.seen) }

// DropAnswer is where a flow's packets are lost, and how.
type DropAnswer struct {
	Verdict
	Begin model.NodeID // where probes were injected
	// Deaf says that At sends to a switch that is in no trace: it is down, or its
	// mirrors are lost; probes cannot distinguish these.
	Deaf    bool
	At      LossLocation   // where they are lost; not of Passed and Unreached
	Loop    []model.NodeID // if Looping: the devices
	Early   uint64         // probes that did not reach the injection point
	Mirrors Interval       // share of mirrors that are lost
}

// Answer evaluates the traces so far.
func (q *Drops) Answer() DropAnswer {
	// A probe that was not seen, though a later one was, has lost all its mirrors,
	// at least that of its first switch.
	missing, hops := q.missing, q.hops
	if q.seen > 0 {
		missing += uint64(q.latest) + 1 - min(q.seen, uint64(q.latest)+1)
		hops += uint64(q.latest) + 1
	}
	// Bound of the probability that the mirror of a probe's arrival is lost: three
	// and two standard deviations above the measured share.
	k, n := float64(missing), float64(hops)
	excused := min((k+2*math.Sqrt(k)+3)/(n+3), 1)
	a := DropAnswer{
		Verdict: Decide(slices.Clone(q.patterns), excused, q.levels),
		Begin:   q.At, Early: q.early, Mirrors: intervalOf(missing, hops),
	}
	switch a.Kind {
	case Looping:
		a.Loop = slices.Clone(q.round)
		a.At = LossLocation{Switch: a.Loop[0]}
	case Passed, Unreached:
	default:
		a.At = q.location()
		a.Deaf = a.At.Known && q.routes.Fabric().Node(a.At.Next).Role.IsSwitch() && !q.heard[a.At.Next]
	}
	return a
}

// location is where most lost probes were seen last, by the judge's findings if
// there are any: they exclude ends that lost mirrors explain.
func (q *Drops) location() (at LossLocation) {
	for _, f := range q.judge.Findings() {
		if f.Kind != trace.Loop {
			at = LossLocation{Switch: f.Switch, Next: f.Next, Known: f.Known}
			if !at.Known {
				at = q.completeLocation(at)
			}
			return at
		}
	}
	most := uint64(0)
	for p, n := range q.ends {
		if n > most || n == most && p.Switch < at.Switch {
			at, most = p, n
		}
	}
	return at
}

// completeLocation adds the next hop of most lost probes.
func (q *Drops) completeLocation(at LossLocation) LossLocation {
	most := uint64(0)
	for p, n := range q.ends {
		if p.Switch == at.Switch && (n > most || n == most && p.Next < at.Next) {
			at, most = p, n
		}
	}
	return at
}
