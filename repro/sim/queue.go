package sim

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

// Mechanisms that a laboratory can remove.
var (
	oneSize = claim.Mutation{Name: "one-size", Removes: "packets have two sizes of the same mean: the queue is M/G/1"}
	poisson = claim.Mutation{Name: "poisson", Removes: "packets arrive at even intervals"}
)

// queueWire is the size of a packet on the wire, and queueRate the rate of the queue's link:
// a transmission takes 800 ns, against arrivals in whole nanoseconds.
const (
	queueWire     = 1000
	queueHeaders  = 14 + 20 + 8
	queueRate     = 10 * model.Gbps
	queueService  = float64(queueWire*8) / float64(queueRate) * 1e9 // ns
	mostDeviation = 4.0                                             // standard errors of the mean
	mostError     = 0.04                                            // standard error, as a share of the mean
)

var queue = claim.Claim{
	ID: "sim-md1", Where: "docs/simulator.md",
	Says:      "packets of one size that arrive at random wait as in an M/D/1 queue: the mean and the whole distribution",
	Published: "theory; means within 4 standard errors, which are below 4 %; Kolmogorov-Smirnov distances below 0.01 + 2/(√packets·(1 - load))",
	Mutations: []claim.Mutation{oneSize, poisson},
	Run: func(_ context.Context, o claim.Options) (claim.Result, error) {
		r := claim.Result{Pass: true, Notes: []string{
			"UDP packets of 1000 bytes over a link of 10 Gb/s, from a host whose own link is 800 times as fast; waits as the switch's queue has them",
			"the standard error is that of the means of 50 batches, since successive waits depend on each other",
		}}
		t := claim.Table{Title: "waits", Header: []string{"load", "packets", "mean, ns", "theory, ns", "standard errors", "KS distance"}}
		var worst, farthest float64
		for i, load := range []float64{0.3, 0.6, 0.8} {
			o.Report(float64(i)/3, fmt.Sprintf("load %.1f", load))
			waits, err := queueWaits(o, load, o.Pick(400_000, 100_000))
			if err != nil {
				return claim.Result{}, err
			}
			want := load / (2 * (1 - load)) * queueService
			mean, stderr := batchMeans(waits, 50)
			slices.Sort(waits)
			distance := md1Distance(waits, load)
			off := math.Abs(mean-want) / stderr
			r.Pass = r.Pass && off <= mostDeviation && stderr <= mostError*want && distance <= mostDistance(len(waits), load)
			worst, farthest = max(worst, math.Abs(mean-want)/want), max(farthest, distance)
			t.Row(fmt.Sprintf("%.1f", load), fmt.Sprint(len(waits)), fmt.Sprintf("%.1f", mean), fmt.Sprintf("%.1f", want),
				fmt.Sprintf("%.1f", off), fmt.Sprintf("%.4f", distance))
			if load == 0.8 {
				r.Plots = []claim.Plot{{Chart: md1Chart(waits, load)}}
			}
		}
		r.Measured = fmt.Sprintf("means within %.1f %% of theory, distance at most %.4f", 100*worst, farthest)
		r.Tables = []claim.Table{t}
		return r, nil
	},
}

// mostDistance bounds the distance of Kolmogorov and Smirnov for a number of waits: those
// within a busy period depend on each other, and busy periods grow with 1/(1 - load).
func mostDistance(waits int, load float64) float64 {
	return 0.01 + 2/(math.Sqrt(float64(waits))*(1-load))
}

// queueWaits returns what packets waited at the switch, in ns, in the order of departure.
func queueWaits(o claim.Options, load float64, packets int) ([]float64, error) {
	f, err := topo.Dumbbell(1, linksOf(8*model.Tbps, queueRate))
	cfg := sim.DefaultConfig()
	cfg.Seed, cfg.MTU = o.Seed, 2*queueWire
	cfg.Buffer, cfg.Lossless, cfg.AlphaShift, cfg.LossyQueue = 512*model.MB, 0, 0, 0
	n, err := newNetwork(f, err, cfg)
	if err != nil {
		return nil, err
	}
	rng := claim.Rand(o.Seed, math.Float64bits(load))
	flows := make([]traffic.Flow, packets)
	at := 0.0
	for i := range flows {
		between := rng.ExpFloat64()
		if o.Without(poisson) {
			between = 1
		}
		at += between * queueService / load
		flows[i] = traffic.Flow{
			Src: 0, Dst: 1, Bytes: queueWire - queueHeaders, Transport: traffic.UDP, SrcPort: 1, Start: model.Time(at),
		}
		if o.Without(oneSize) {
			flows[i].Bytes += []model.Bytes{-400, 400}[rng.IntN(2)]
		}
	}
	if err := n.AddFlows(flows); err != nil {
		return nil, err
	}
	s0, _ := f.ByName("s0")
	w := &waitObserver{port: n.Switch(s0).Ports()[1], entered: map[int]engine.Time{}}
	n.Observe(w)
	n.Run(engine.Forever - 1)
	if len(w.waits) != packets {
		return nil, fmt.Errorf("%d of %d packets left the queue", len(w.waits), packets)
	}
	return w.waits, nil
}

// waitObserver notes what packets wait at one port before they start to leave.
type waitObserver struct {
	sim.NopObserver
	port    *sim.Port
	entered map[int]engine.Time
	waits   []float64
}

// Enqueued is part of sim.Observer.
func (w *waitObserver) Enqueued(now engine.Time, p *sim.Packet, out *sim.Port) {
	if out == w.port {
		id, _ := p.Flow()
		w.entered[id] = now
	}
}

// Dequeued is part of sim.Observer.
func (w *waitObserver) Dequeued(now engine.Time, p *sim.Packet, out *sim.Port) {
	if out == w.port {
		id, _ := p.Flow()
		w.waits = append(w.waits, float64(now-w.entered[id])/float64(engine.Nanosecond))
		delete(w.entered, id)
	}
}

// batchMeans returns the mean of a series and its standard error.
func batchMeans(series []float64, batches int) (mean, stderr float64) {
	size := len(series) / batches
	means := make([]float64, batches)
	for i := range means {
		for _, v := range series[i*size : (i+1)*size] {
			means[i] += v / float64(size)
		}
		mean += means[i] / float64(batches)
	}
	for _, m := range means {
		stderr += (m - mean) * (m - mean)
	}
	return mean, math.Sqrt(stderr / float64(batches*(batches-1)))
}

// longestWait is in transmissions: beyond it the series below loses precision.
const longestWait = 16

// md1 returns the probability that a wait is at most t transmissions: Erlang's formula.
func md1(load, t float64) float64 {
	sum, sign := 0.0, 1.0
	for k := 0; float64(k) <= t; k++ {
		x := load * (t - float64(k))
		lg, _ := math.Lgamma(float64(k) + 1)
		term := math.Exp(x - lg)
		if k > 0 {
			term *= math.Pow(x, float64(k))
		}
		sum += sign * term
		sign = -sign
	}
	return (1 - load) * sum
}

// md1Distance returns the largest difference between the distribution of sorted waits and
// that of M/D/1, up to longestWait.
func md1Distance(waits []float64, load float64) (most float64) {
	for i := 0; i <= longestWait*50; i++ {
		t := float64(i) / 50
		// A wait of nearly nothing is one: arrivals are in whole nanoseconds.
		have := float64(sortedUpTo(waits, t*queueService+0.5)) / float64(len(waits))
		most = max(most, math.Abs(have-md1(load, t)))
	}
	return most
}

func sortedUpTo(sorted []float64, v float64) int {
	i, _ := slices.BinarySearchFunc(sorted, v, func(a, b float64) int {
		if a <= b {
			return -1
		}
		return 1
	})
	return i
}

func md1Chart(waits []float64, load float64) plot.Chart {
	c := plot.Chart{
		Title: fmt.Sprintf("Waits at load %.1f", load), XTitle: "wait in transmissions", YTitle: "share of packets",
		Series: []plot.Series{{Name: "simulated"}, {Name: "M/D/1"}},
	}
	for i := 0; i <= longestWait*4; i++ {
		t := float64(i) / 4
		have := float64(sortedUpTo(waits, t*queueService+0.5)) / float64(len(waits))
		for k, y := range []float64{have, md1(load, t)} {
			c.Series[k].X, c.Series[k].Y = append(c.Series[k].X, t), append(c.Series[k].Y, y)
		}
	}
	return c
}
