package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// shape sizes an invented run.
type shape struct {
	flows, ports, samples int
	bursts                int // incasts, which fill queues and pause neighbours
	stuck                 int // flows that do not finish
}

// invent makes a run that resembles an incast under load: flows of a
// heavy-tailed size, queues that fill in bursts, pauses that spread from the
// receiver's switch outwards. It is for inspection and for sizes, not for
// truth.
func invent(s shape) *Run {
	rng := rand.New(rand.NewPCG(7, 11))
	const interval = 10 * time.Microsecond
	end := model.Time(max(s.samples, 1)) * model.Time(interval)
	r := &Run{
		Title:  "8:1 incast under 60 % WebSearch load",
		Fabric: "fat-tree k=8: 128 hosts, 80 switches, 384 links of 100Gb/s",
		Seed:   7, End: end, PacketHops: 48_200_311, Wall: 2740 * time.Millisecond, Interval: interval,
		Notes: []string{
			"agg2 and agg3: PFC cannot fire on ports 5 to 8, their headroom of 41.2 kB never fills at 100Gb/s over 1 µs.",
			"tor3: headroom of 18.6 kB per port is below the 28.3 kB that 2·propagation·rate + 2·MTU + response time asks for; a packet of a lossless class may be dropped.",
		},
	}
	bursts := make([]model.Time, s.bursts)
	for i := range bursts {
		bursts[i] = end/10 + model.Time(rng.Int64N(int64(end)*7/10))
	}
	for i := range s.flows {
		r.Flows = append(r.Flows, inventFlow(rng, i, end, bursts))
	}
	for i := range min(s.stuck, s.flows) {
		f := &r.Flows[i*7%s.flows]
		f.Finished, f.Delivered = false, f.Bytes/3
	}
	for i := range s.ports {
		r.Ports = append(r.Ports, inventPort(rng, i, s.samples, interval, bursts[:min(len(bursts), 20)]))
	}
	for i, b := range bursts {
		r.Pauses = append(r.Pauses, inventPauses(rng, i, b, end)...)
	}
	r.Pauses = byTime(r.Pauses)
	if s.bursts > 0 {
		r.Drops = []Drop{
			{Node: "tor3", ID: 131, Port: 4, Reason: "headroom exhausted", Packets: 214},
			{Node: "core1", ID: 200, Port: 2, Reason: "silent drop (fault)", Packets: 1733},
			{Node: "agg2", ID: 162, Reason: "no route", Packets: 12},
		}
	}
	return r
}

func inventFlow(rng *rand.Rand, i int, end model.Time, bursts []model.Time) FlowResult {
	size := math.Exp(rng.Float64()*rng.Float64()*11+6.8) + 200
	src, dst := rng.IntN(128), rng.IntN(128)
	f := FlowResult{
		Key:   model.FlowKey{SrcPort: uint16(10000 + i%50000), DstPort: 4791, Proto: model.UDP},
		Bytes: model.Bytes(size), Start: model.Time(rng.Int64N(int64(end) * 9 / 10)),
		Priority: 3, Transport: "dcqcn", Group: "websearch", Finished: true,
	}
	slow := 1 + math.Abs(rng.NormFloat64())*0.35
	if rng.IntN(6) == 0 {
		slow *= 1 + rng.ExpFloat64()*4/(1+size/3e5)
	}
	if len(bursts) > 0 && i%9 == 0 {
		f.Group, f.Bytes, dst = "incast", 64000, 27
		f.Start = bursts[i/9%len(bursts)].Add(time.Duration(rng.IntN(4000)))
		slow = 3 + 9*rng.Float64()
	}
	f.Src, f.Dst = fmt.Sprintf("h%d", src), fmt.Sprintf("h%d", dst)
	f.Key.Src, f.Key.Dst = model.Addr4(0x0b000001+uint32(src)<<8), model.Addr4(0x0b000001+uint32(dst)<<8)
	f.Ideal = time.Duration(8400 + float64(f.Bytes)*0.084)
	f.Finish = f.Start.Add(time.Duration(float64(f.Ideal) * slow))
	if slow > 9 {
		f.Retransmitted = uint64(rng.IntN(40))
	}
	return f
}

func inventPort(rng *rand.Rand, i, samples int, interval time.Duration, bursts []model.Time) PortSeries {
	names := []string{"tor3", "agg2", "agg3", "core1", "tor5", "core4"}
	p := PortSeries{
		Node: names[i%len(names)], ID: model.NodeID(131 + i%len(names)), Port: model.PortID(1 + i/len(names)),
		Rate: 100 * model.Gbps, Peer: fmt.Sprintf("h%d", i*5%128),
	}
	if i%len(names) == 1 {
		p.Peer = fmt.Sprintf("tor%d", i/len(names))
	}
	depth := 0.0
	share := 0.25 + 0.5*rng.Float64()
	for n := range samples {
		at := model.Time(n+1) * model.Time(interval)
		depth = max(0, depth*0.82+rng.NormFloat64()*2500*float64(1+i%3))
		for b, burst := range bursts {
			if since := at.Sub(burst); since > 0 && since < 20*interval && (i+b)%7 < 3 {
				depth += 90000 * share * math.Exp(-float64(since)/float64(6*interval))
			}
		}
		paused := 0.0
		if depth > 200000 {
			paused = rng.Float64()
		}
		p.Samples = append(p.Samples, Sample{At: at, Queue: model.Bytes(depth), Tx: model.Bytes(share * 125000 * (0.8 + 0.4*rng.Float64())), Paused: paused})
	}
	return p
}

// inventPauses lets each incast pause queues further and further from it.
func inventPauses(rng *rand.Rand, burst int, at, end model.Time) (out []PauseEvent) {
	for hop, fan := range []int{1, 4, 12} {
		for i := range fan {
			e := PauseEvent{
				Node: [...]string{"agg2", "tor5", "h"}[hop], ID: model.NodeID(132 + 30*hop + i),
				Switch: hop < 2, Port: model.PortID(1 + i), Priority: 3, Pause: true,
			}
			if hop == 2 {
				e.Node, e.ID, e.Port = fmt.Sprintf("h%d", burst%3*12+i), model.NodeID(burst%3*12+i), 1
			}
			e.At = at.Add(time.Duration(hop+1) * 9 * time.Microsecond)
			for range 1 + rng.IntN(4) {
				e.At = e.At.Add(time.Duration(rng.IntN(20000)))
				e.Pause = true
				out = append(out, e)
				e.At = e.At.Add(time.Duration(3000 + rng.IntN(60000)))
				e.Pause = false
				out = append(out, e)
			}
		}
	}
	for i := range out {
		out[i].At = min(out[i].At, end)
	}
	return out
}
