package intlabel

import (
	"context"
	"fmt"
	"math"

	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/repro/claim"
	wire "github.com/weft-telemetry/weft/wire/label"
)

var (
	noTelemetry = strategy{name: "no telemetry", silent: true}
	// A limited BMv2 counts packets, in its rate and in its queues: a probe costs
	// as much as a user packet.
	hulaPackets = strategy{name: "HULA, packets count", probes: true}
	// Most switches count bytes.
	hulaBytes = strategy{name: "HULA, bytes count", probes: true}
)

const (
	userFrame = frame + payload
	slot      = userFrame + wire.OptionSize + 5*wire.ItemSize // of a queue: a packet with all its labels
	mostSlots = 64
)

// tightTestbed is a testbed with just enough capacity for its user packets: the
// queues are the shortest with which no user packet is dropped.
type tightTestbed struct {
	load   float64 // of the busiest link
	link   model.Rate
	slots  int
	points []point // by strategy and interval
}

// lostOf returns the share of user packets that switches dropped.
func lostOf(p point) float64 { return float64(p.dropped) / float64(p.sent) }

// sharedTestbeds are evaluated by two claims.
var sharedTestbeds claim.Shared[[]tightTestbed]

// makeTightTestbeds makes tight testbeds, for several loads of their busiest link,
// and runs all strategies in them.
func makeTightTestbeds(ctx context.Context, o claim.Options) ([]tightTestbed, error) {
	base := newLab(noTelemetry, o.Seed)
	base.packets = o.Pick(40_000, 10_000)
	wide, err := base.run(ctx)
	if err != nil {
		return nil, err
	}
	loads := []float64{0.9, 0.7, 0.5}
	if !o.Quick {
		loads = []float64{0.9, 0.8, 0.7, 0.6, 0.5, 0.3}
	}
	if o.Broken() {
		loads = []float64{0.5}
	}
	var all []tightTestbed
	for i, load := range loads {
		part := func(done float64, doing string) { o.Report((float64(i)+done)/float64(len(loads)), doing) }
		t := tightTestbed{load: load, link: model.Rate(float64(wide.busiest) / load)}
		l := base
		l.link = t.link
		if l.queue, err = l.shortest(ctx); err != nil {
			return nil, fmt.Errorf("load %v: %w", load, err)
		}
		t.slots = int(l.queue / slot)
		labs, xs := labsFor(o, []strategy{noTelemetry, baseA, baseB, hulaPackets, hulaBytes},
			[]float64{10, 20, 50, 100}, func(p *lab, v float64) {
				p.packets, p.link, p.queue, p.interval = l.packets, l.link, l.queue, millis(v)
				if p.name == hulaPackets.name {
					p.probeSize = userFrame
				}
			})
		if t.points, err = sweep(ctx, claim.Options{Seed: o.Seed, Quick: o.Quick, Progress: part}, labs,
			xs); err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// shortest returns the least queue, in slots, with which the lab drops no packet.
func (l lab) shortest(ctx context.Context) (model.Bytes, error) {
	for l.queue = slot; l.queue <= mostSlots*slot; l.queue += slot {
		if out, err := l.run(ctx); err != nil || out.dropped == 0 {
			return l.queue, err
		}
	}
	return 0, fmt.Errorf("%s: packets are lost with queues of %d, want none", l.name, mostSlots)
}

// lossAtEnds returns the losses at the shortest and the longest interval.
func (t *tightTestbed) lossAtEnds(s strategy) (first, last float64) {
	list := pointsOf(t.points, s)
	return lostOf(list[0]), lostOf(list[len(list)-1])
}

// closestToPaper returns the testbed in which HULA's loss at 10 ms is closest to
// the published one. Its loss at 100 ms is then not fitted.
func closestToPaper(all []tightTestbed) *tightTestbed {
	best := &all[0]
	off := func(t *tightTestbed) float64 { first, _ := t.lossAtEnds(hulaPackets); return math.Abs(first - 0.12) }
	for i := range all {
		if off(&all[i]) < off(best) {
			best = &all[i]
		}
	}
	return best
}

// lossEvidence tabulates all testbeds, and plots the closest beside the published ends.
func lossEvidence(all []tightTestbed) ([]claim.Table, []claim.Plot) {
	t := claim.Table{
		Title: "user packets lost",
		Header: []string{
			"load of busiest link", "Mb/s", "queue (packets with 5 labels)", "telemetry",
			"interval (ms)", "user packets", "lost", "share", "probes sent",
		},
	}
	for _, in := range all {
		for _, p := range in.points {
			t.Row(fmt.Sprint(in.load), fmt.Sprintf("%.2f", float64(in.link)/1e6), fmt.Sprint(in.slots), p.name,
				fmt.Sprint(p.x),
				fmt.Sprint(p.sent), fmt.Sprint(p.dropped), percent(lostOf(p)), fmt.Sprint(p.probes))
		}
	}
	best := closestToPaper(all)
	c := chart(fmt.Sprintf("user packets lost, busiest link at %.0f %%", 100*best.load),
		"labelling or probing interval (ms)", "share of user packets lost",
		best.points, lostOf, noTelemetry, baseA, baseB, hulaPackets, hulaBytes)
	c.Chart.Series = append(c.Chart.Series,
		plot.Series{Name: "HULA, published ends", X: []float64{10, 100}, Y: []float64{0.12, 0.05}, Dashed: true})
	return []claim.Table{t}, []claim.Plot{c}
}

var tightNotes = []string{
	"the paper's Clos and traffic; the paper does not give its limits, so the rate of links between switches is chosen to load the busiest of them to the share in the table, and queues are the shortest that drop no user packet without telemetry, found for each seed",
	"HULA: each ToR floods one probe per interval up and down all paths, from a random time on; probes are packets in the simulator, in the queues of users. The paper limits BMv2, which counts packets and not bytes: there a probe takes the queue slot and the time of a user packet. The curve where bytes count has probes of 78 to 174 bytes",
	"labels are counted in bytes throughout, and a queue is just long enough without them. So the strict \"none\" depends on the seed: with --quick, labels lost 0, 2, 2, 4, 6 and 6 packets of some 240,000 with seeds 1 to 6, and a seed that passes is luck. If packets were counted, as for HULA, a label would cost nothing and the run would be the same as without telemetry",
}

// extraSetting describes a setting that no claim runs.
const extraSetting = "also tried, on 10,000 packets of seed 1: users that send at even gaps and ToRs that probe in step, which allows queues of one packet. On links of 8 Mb/s HULA lost 12.5 % at 10 ms and 1.4 % at 100 ms, and Base A and B lost 0.09 and 0.08 % at 10 ms, of which one packet may have been in flight: with queues that short, labels are not free of loss"

var probeLoss = claim.Claim{
	ID: "int-label-probe-loss", Where: "section 6.2, figure 14",
	Says:      "where rates and queues are just enough for user packets, HULA's probes cause loss, less with longer intervals, and labels cause none",
	Published: "HULA loses, less with longer intervals; Base A and B none",
	Mutations: []claim.Mutation{probes},
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		all, err := sharedTestbeds.Get(o, func() ([]tightTestbed, error) { return makeTightTestbeds(ctx, o) })
		if err != nil {
			return claim.Result{}, err
		}
		res := claim.Result{Notes: append([]string{"passes when labels lose no packet at any load and interval, and HULA loses some at 10 ms and fewer at 100 ms at every load, where packets count", extraSetting}, tightNotes...)}
		labels, falls := 0, 0
		most := 0.0
		for i := range all {
			t := &all[i]
			for _, s := range []strategy{noTelemetry, baseA, baseB} {
				for _, p := range pointsOf(t.points, s) {
					labels += p.dropped
				}
			}
			if first, last := t.lossAtEnds(hulaPackets); first > last {
				falls++
			}
			first, _ := t.lossAtEnds(hulaBytes)
			most = max(most, first)
		}
		res.Pass = labels == 0 && falls == len(all)
		first, last := closestToPaper(all).lossAtEnds(hulaPackets)
		res.Measured = fmt.Sprintf("labels lose %d packets; HULA's loss falls at %d of %d loads, as from %s to %s; where bytes count it loses at most %s", labels, falls, len(all), percent(first), percent(last), percent(most))
		res.Tables, res.Plots = lossEvidence(all)
		return res, nil
	},
}

var probeLossShare = claim.Claim{
	ID: "int-label-probe-loss-share", Where: "section 6.2, figure 14",
	Says:      "HULA's probes cause the loss of this share of user packets with a probing interval of 10 and of 100 ms",
	Published: "12 % at 10 ms, 5 % at 100 ms",
	Mutations: []claim.Mutation{probes},
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		all, err := sharedTestbeds.Get(o, func() ([]tightTestbed, error) { return makeTightTestbeds(ctx, o) })
		if err != nil {
			return claim.Result{}, err
		}
		best := closestToPaper(all)
		first, last := best.lossAtEnds(hulaPackets)
		res := claim.Result{
			Measured: fmt.Sprintf("%s at 10 ms, %s at 100 ms, with the busiest link at %.0f %%", percent(first),
				percent(last), 100*best.load),
			Pass: first > 0.06 && first < 0.24 && last > 0.025 && last < 0.1,
			Notes: append([]string{
				"passes when both ends are between half and twice the published; the load whose loss at 10 ms is closest is used, so that the loss at 100 ms is a prediction",
				"queues that are long enough for the users' own bursts hold the few probes of 100 ms as well; the paper's 5 % may come from something it does not describe, such as the CPU that all its software switches share",
				extraSetting,
			}, tightNotes...),
		}
		res.Tables, res.Plots = lossEvidence(all)
		return res, nil
	},
}
