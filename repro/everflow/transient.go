package everflow

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/control/probe"
	"github.com/weft-telemetry/weft/inswitch/mirror"
	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
)

var transient = claim.Claim{
	ID: "everflow-transient", Where: "section 3.2, guided probing",
	Says:      "probes that start when the first trace of a lost packet closes find a fault of milliseconds while it lasts, and say of a shorter one that it is over",
	Published: "no figure: a transient fault may be over before it is probed",
	Mutations: []claim.Mutation{promptProbes},
	Run:       runTransient,
}

// How long a fault has to last to be probed in time: its first trace closes after a
// millisecond, half of one passes until the analyzer looks, one until the host has the
// command, and less than one while the probes are sent.
const (
	commandDelay  = time.Millisecond
	inTime        = 4 * time.Millisecond
	probeInterval = 10 * time.Microsecond
	probeCopies   = 5
)

func runTransient(ctx context.Context, o claim.Options) (claim.Result, error) {
	trials := o.Pick(50, 8)
	lengths := []time.Duration{500 * time.Microsecond, time.Millisecond, 2 * time.Millisecond, 3 * time.Millisecond, inTime, 8 * time.Millisecond}
	if o.Broken() {
		trials, lengths = 2, lengths[5:]
	}
	res := claim.Result{Pass: true, Notes: []string{
		fmt.Sprintf("%d trials of each length: a leaf or spine on the path of a flow of 1 Gb/s, of which one packet in 16 is mirrored, drops all packets; %d probes of each pattern, %v apart, into the flow's first switch", trials, probeCopies, probeInterval),
		fmt.Sprintf("traces close a millisecond after their last mirror, where the paper waits for a second; a command to a host takes %v", commandDelay),
		fmt.Sprintf("passes when every fault of %v and longer is found to persist at its switch, every one that ended before the first probe to be over, and none at another switch", inTime),
	}}
	table := claim.Table{
		Title:  "faults by their length",
		Header: []string{"lasts", "trials", "probes began after", "found while it lasts", "found to be over", "ended while probed", "wrong"},
	}
	chart := plot.Chart{Title: "faults that probes find while they last", XTitle: "ms", YTitle: "%", Series: []plot.Series{{Name: "found"}}}
	wrong, missed := 0, 0
	var slowest time.Duration
	for i, length := range lengths {
		found, over, during, bad := 0, 0, 0, 0
		var began time.Duration
		for n := range trials {
			o.Report(float64(i*trials+n)/float64(len(lengths)*trials), length.String())
			p, err := probeTransient(ctx, o, length, claim.Rand(o.Seed, uint64(1000*i+n)).Uint64())
			if err != nil {
				return res, err
			}
			began = max(began, p.began)
			persists := p.answer.Kind == probe.Persistent && p.answer.At.Switch == p.at
			switch {
			case p.began+p.took <= length && persists:
				found++
			case p.began >= length && p.answer.Kind == probe.Passed:
				over++
			case p.began < length && p.began+p.took > length && (p.answer.Kind == probe.Passed || p.answer.At.Switch == p.at):
				during++
			default:
				bad++
			}
		}
		if length >= inTime {
			missed += trials - found
		}
		wrong, slowest = wrong+bad, max(slowest, began)
		table.Row(length.String(), fmt.Sprint(trials), "at most "+began.Round(10*time.Microsecond).String(), fmt.Sprint(found), fmt.Sprint(over), fmt.Sprint(during), fmt.Sprint(bad))
		chart.Series[0].X = append(chart.Series[0].X, length.Seconds()*1e3)
		chart.Series[0].Y = append(chart.Series[0].Y, 100*float64(found)/float64(trials))
	}
	res.Pass = wrong == 0 && missed == 0
	res.Measured = fmt.Sprintf("probes began at most %v after the fault; %d of those of %v and longer were missed, and %d verdicts of all %d were wrong",
		slowest.Round(10*time.Microsecond), missed, inTime, wrong, trials*len(lengths))
	res.Tables, res.Plots = []claim.Table{table}, []claim.Plot{{Chart: chart}}
	return res, nil
}

// probed is a fault, and what probes said of it.
type probed struct {
	at     model.NodeID
	began  time.Duration // the probes, after the fault
	took   time.Duration // the probes
	answer probe.DropAnswer
}

// probeTransient has a switch on a flow's path drop everything for a time, and probes the flow
// when the first trace of a lost packet closes.
func probeTransient(ctx context.Context, o claim.Options, length time.Duration, seed uint64) (out probed, err error) {
	var (
		l         *lab
		scheduler *probe.Scheduler
		question  *probe.Drops
		key       model.FlowKey
		start     engine.Time // of the fault
	)
	delay := commandDelay
	if o.Without(promptProbes) {
		delay += 10 * time.Millisecond
	}
	ask := func() {
		if question, err = scheduler.Drops(l.Now().Model(), key, nil, probeCopies); err != nil {
			return
		}
		out.began = (l.Now() - start).Duration()
		out.took = time.Duration(scheduler.Sent(question)) * probeInterval
		_, err = scheduler.StartEvery(question, probeInterval)
	}
	asked := false
	l, err = newLab(setup{
		seed: seed, linger: 20 * time.Microsecond,
		mirrors: func(_ model.NodeID, c *mirror.Config) { c.SampleOneIn = 16 },
		closed: func(t *trace.Trace) {
			if !scheduler.MatchTrace(t) && t.End == trace.Lost && !asked {
				asked = true
				l.At(l.Now()+engine.Of(delay), ask)
			}
		},
	})
	if err != nil {
		return out, err
	}
	if err := l.scheduler(probe.DefaultConfig(), &scheduler); err != nil {
		return out, err
	}
	src, dst := model.NodeID(l.rng.IntN(4)), model.NodeID(4+l.rng.IntN(12)) // of different pods
	flow := traffic.Flow{Src: src, Dst: dst, Stop: model.Time(20 * time.Millisecond), Transport: traffic.UDP, Rate: model.Gbps}
	if err := l.AddFlows([]traffic.Flow{flow}); err != nil {
		return out, err
	}
	key, _ = l.FlowKey(0)
	path, err := l.Routes().Path(key, src)
	if err != nil {
		return out, err
	}
	out.at = path[2+l.rng.IntN(3)].Node // a leaf, a spine, a leaf
	start = ms + engine.Time(l.rng.Int64N(int64(ms)))
	fault := sim.Injection{At: start.Model(), For: length, Fault: sim.LossySwitch{Switch: out.at, Share: 1}}
	if err := l.Inject(fault); err != nil {
		return out, err
	}
	if runErr := l.run(ctx, 30*ms); runErr != nil || err != nil {
		return out, cmp.Or(runErr, err)
	}
	if question == nil {
		return out, fmt.Errorf("no trace of a lost packet within %v of a fault of %v", 30*ms, length)
	}
	out.answer = question.Answer()
	return out, nil
}
