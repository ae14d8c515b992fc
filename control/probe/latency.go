package probe

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/inhost/prober"
	"github.com/weft-telemetry/weft/model"
)

// Latency measures the round trip of a link: probes go from one of its switches to
// the other and back, and the first switch mirrors each of them twice. Clocks of
// different switches are never compared.
//
// By Stamps, the two times are those that the switch wrote into its mirrors.
// Without, they are the arrival times of mirrors at the analyzer: both take the same
// path, but not the same time. Mirrors must then leave at once, one per datagram.
type Latency struct {
	Near, Far model.NodeID
	Stamps    bool

	host     model.NodeID
	own      [2]model.Addr // of Near and Far
	packet   prober.Packet
	count    uint32
	interval time.Duration
	trips    []roundTrip
	heard    uint32
	lost     int // probes that traces show to be dropped or to loop
}

// roundTrip is one probe: when the near switch saw it first and again.
type roundTrip struct {
	number    uint32
	out, back model.Time
}

// latencyPort is the discard port: no program receives probes.
const latencyPort = 9

// Latency makes the question about the link between two switches.
func (d *Scheduler) Latency(now model.Time, near, far model.NodeID, stamps bool, count uint32) (*Latency, error) {
	r := d.intent.At(now)
	f := r.Fabric()
	for _, id := range []model.NodeID{near, far} {
		if !f.HasNode(id) || !f.Node(id).Role.IsSwitch() {
			return nil, fmt.Errorf("probe: round trip at node %d, want two switches", id)
		}
	}
	if len(f.Node(near).PortsTo(far)) == 0 {
		return nil, fmt.Errorf("probe: round trip between %s and %s, want neighbours", f.Node(near).Name, f.Node(far).Name)
	}
	if count == 0 {
		return nil, fmt.Errorf("probe: no probes, want at least one")
	}
	q := &Latency{Near: near, Far: far, Stamps: stamps, count: count, own: [2]model.Addr{f.Node(near).IPv4, f.Node(far).IPv4}}
	var err error
	if q.host, _, err = injectionPath(r, near); err != nil {
		return nil, err
	}
	own := f.Node(q.host).IPv4
	q.packet = prober.Packet{
		Tunnels: []prober.Tunnel{tunnel(f, q.host, near), tunnel(f, q.host, far), tunnel(f, q.host, near)},
		Key:     model.FlowKey{Src: own, Dst: own, SrcPort: latencyPort, DstPort: latencyPort, Proto: model.UDP},
	}
	return q, nil
}

func (q *Latency) plan() (model.NodeID, []prober.Packet, uint32) {
	return q.host, []prober.Packet{q.packet}, q.count
}

// addTrace notes a round trip with both mirrors of the near switch: in the first
// tunnel, and in the third.
func (q *Latency) addTrace(number uint32, t *trace.Trace) {
	q.heard++
	if t.End == trace.Lost || t.End == trace.Looped {
		q.lost++
	}
	one := roundTrip{number: number}
	both := 0
	for i := range t.Hops {
		h := &t.Hops[i]
		if h.Switch != q.Near || h.To != q.own[0] || h.Copies > 0 {
			continue
		}
		at := h.Time
		if !q.Stamps {
			at = h.Arrived
		}
		switch h.Depth {
		case 4:
			one.out = at
			both |= 1
		case 2:
			one.back = at
			both |= 2
		}
	}
	if both == 3 {
		q.trips = append(q.trips, one)
	}
}

// Heard is part of Question.
func (q *Latency) Heard() uint32 { return q.heard }

// LatencyAnswer is the round trip of a probe: from its arrival at the near
// switch to its next arrival there, including queueing in both switches.
type LatencyAnswer struct {
	Near, Far model.NodeID
	Stamps    bool
	Sent      uint32
	Returned  int // probes
	Heard     int // probes whose trace has come
	Lost      int // of them, those that were dropped or looped
	Bytes     model.Bytes

	// Min is the round trip of an idle link: the shortest by Stamps. Without, it is
	// the difference of two minima: of the times at which probes passed and at which
	// they returned, each less the number of intervals since the first. Both include
	// the least delay to the analyzer.
	Min time.Duration
	// Mean includes queueing, and Error is its standard error. Median and P90 are by
	// Stamps only.
	Mean, Error, Median, P90 time.Duration
}

// Answer computes the round trip from the traces so far; false means that no
// probe was seen twice.
func (q *Latency) Answer() (LatencyAnswer, bool) {
	a := LatencyAnswer{Near: q.Near, Far: q.Far, Stamps: q.Stamps, Sent: q.count, Returned: len(q.trips), Heard: int(q.heard), Lost: q.lost, Bytes: model.Bytes(q.packet.Size())}
	if len(q.trips) == 0 {
		return a, false
	}
	times := make([]time.Duration, len(q.trips))
	out, back := model.Time(math.MaxInt64), model.Time(math.MaxInt64)
	sum, squares := 0.0, 0.0
	for i, one := range q.trips {
		times[i] = one.back.Sub(one.out)
		beat := time.Duration(one.number) * q.interval
		out, back = min(out, one.out.Add(-beat)), min(back, one.back.Add(-beat))
		sum += float64(times[i])
		squares += float64(times[i]) * float64(times[i])
	}
	slices.SortFunc(times, cmp.Compare)
	n := float64(len(times))
	mean := sum / n
	a.Mean = time.Duration(mean)
	if n > 1 {
		a.Error = time.Duration(math.Sqrt(max(squares-n*mean*mean, 0) / (n - 1) / n))
	}
	if q.Stamps {
		a.Min, a.Median, a.P90 = times[0], times[len(times)/2], times[len(times)*9/10]
	} else {
		a.Min = back.Sub(out)
	}
	return a, true
}
