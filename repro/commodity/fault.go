package commodity

import (
	"math/rand/v2"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

// anomalyKind is what a run injects.
type anomalyKind uint8

const (
	healthy anomalyKind = iota
	storm
	slowReceiver
	incast
	imbalance
	blackhole
	numKinds
)

var kindNames = [numKinds]string{"healthy", "storm", "slow receiver", "incast", "imbalance", "blackhole"}

func (k anomalyKind) String() string { return kindNames[k] }

// faults are all kinds but healthy.
var faults = []anomalyKind{storm, slowReceiver, incast, imbalance, blackhole}

// warmUp is how long every run is healthy first.
const warmUp = 150 * ms

// draw places a fault at random. Its start is unrelated to the polls.
func draw(rng *rand.Rand, f *topo.Fabric, kind anomalyKind, lasts time.Duration) fault {
	hosts := f.Hosts()
	d := fault{kind: kind, host: hosts[rng.IntN(len(hosts))]}
	d.start = warmUp + time.Duration(rng.Int64N(int64(100*ms)))
	d.end = d.start + lasts
	switch kind {
	case blackhole:
		switches := f.Switches()
		d.at = switches[rng.IntN(len(switches))]
	case storm, slowReceiver:
		d.senders = others(rng, hosts, d.host, 4)
	case incast:
		d.senders = others(rng, hosts, d.host, 8+rng.IntN(9))
	}
	return d
}

// others draws hosts other than one.
func others(rng *rand.Rand, hosts []model.NodeID, not model.NodeID, n int) (list []model.NodeID) {
	for _, i := range rng.Perm(len(hosts)) {
		if hosts[i] != not && len(list) < n {
			list = append(list, hosts[i])
		}
	}
	return list
}

// traffic returns what the fault needs beside background load: flows that a host
// with a fault receives, or the bursts of an incast.
func (f *fault) traffic(rng *rand.Rand, _ *topo.Fabric) []traffic.Generator {
	switch f.kind {
	case storm, slowReceiver:
		g := traffic.Persistent{Class: traffic.DefaultClass(), Stop: model.Time(f.end + 200*ms)}
		g.Rate = 180 * model.Mbps // four of them fill 72 % of the link
		for _, s := range f.senders {
			g.Pairs = append(g.Pairs, traffic.Pair{Src: s, Dst: f.host})
		}
		return []traffic.Generator{g}
	case incast:
		g := traffic.DefaultIncast()
		g.Class = traffic.DefaultClass()
		g.Receivers, g.Senders, g.Fanin = []model.NodeID{f.host}, f.senders, len(f.senders)
		g.Bytes = 128 * model.KB
		g.Start = model.Time(f.start)
		// A round takes about as long as the receiver's link needs for it.
		g.Period = time.Duration(float64(len(f.senders)) * 128e3 * 8 * (1 + rng.Float64()/4))
		g.Rounds = int((f.end - f.start) / g.Period)
		return []traffic.Generator{g}
	}
	return nil
}

// inject injects the fault.
func (f *fault) inject(n *sim.Network) error {
	in := sim.Injection{At: model.Time(f.start), For: f.end - f.start}
	switch f.kind {
	case storm:
		in.Fault = sim.Storm{Host: f.host, Priority: lossless}
	case slowReceiver:
		// Between a fifth and a half of the link's rate.
		in.Fault = sim.SlowReceiver{Host: f.host, Rate: model.Rate(200+(uint64(f.start)/1e3)%300) * model.Mbps, Priority: lossless}
	case imbalance:
		in.Fault = sim.HashPolarization{}
	case blackhole:
		in.Fault = sim.CorruptTable{Switch: f.at, Share: 0.05, Seed: uint64(f.start)}
	default:
		return nil
	}
	return n.Inject(in)
}
