package scenario

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/weft-telemetry/weft/dataplane/simhost"
	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/truth"
)

// Options are the options of one run.
type Options struct {
	// Capture opens the pcapng file of a link of Output.Capture; nil captures
	// none. Run closes it.
	Capture func(link model.Port, name string) (io.WriteCloser, error)

	// Sink receives the telemetry datagrams as they arrive at the collector,
	// and must not keep them. With nil they are only counted.
	Sink simhost.Sink

	// Begin is called when everything is assembled and nothing has run, with
	// the telemetry programs of each switch. It may schedule events of the run
	// (Network.At), and end it by an error.
	Begin func(n *sim.Network, programs map[model.NodeID][]inswitch.Program) error

	// Truth selects what the recorder keeps; the zero value is what results
	// need.
	Truth truth.Options

	// Cores are how many the run uses at most; 0 is all of them in fabrics where that is
	// faster, and else one. They change no result.
	Cores int

	// SkipRepeats, if not 0, ends the run when the iterations of the scenario's job take as
	// long as each other, but for this share of their mean: the result says when the job
	// would end if they go on like that.
	SkipRepeats float64

	unrecorded bool // no truth and no result: see Open
}

// Progress is the progress of a run.
type Progress struct {
	Now, End time.Duration // simulated
	Hops     int64         // packet-hops so far
	PerWall  float64       // packet-hops per second of wall time, since the last report
	Wall     time.Duration // since the run started
	Left     time.Duration // estimated wall time
	Flows    int
	Finished int // flows
}

// progressSteps is the number of equal parts of a run. Between two of them the
// run can be cancelled and progress is reported. They are of simulated time, so
// that wall time decides nothing.
const progressSteps = 4096

// minProgressStep is several lookahead windows: a step divides them, and parts
// of windows are slower.
const minProgressStep = 20 * engine.Microsecond

// progressInterval is the minimum time between two progress reports.
const progressInterval = 100 * time.Millisecond

// Run simulates a scenario and checks its expectations. progress, if not nil,
// is called at intervals and at the end. An error says that the run could not
// be made or was cancelled; unmet expectations are in the Result.
func Run(ctx context.Context, s *Scenario, o Options, progress func(Progress)) (*Result, error) {
	x, err := assemble(s, o)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	err = x.simulate(ctx, began, progress)
	for _, c := range x.captures {
		if bad := c.close(); err == nil && bad != nil {
			err = fmt.Errorf("capture %s: %w", c.name, bad)
		}
	}
	if err != nil {
		return nil, err
	}
	x.finishDiagnosis()
	r := x.result()
	r.Wall = time.Since(began)
	return r, nil
}

func (x *session) simulate(ctx context.Context, began time.Time, progress func(Progress)) error {
	end := engine.Of(x.s.Duration)
	step := max(end/progressSteps, engine.Nanosecond)
	if !x.s.StopWhenFinished { // else the run may end between any two
		step = max(step, minProgressStep)
	}
	p := progressMeter{x: x, end: end, began: began, last: began, first: x.firstStart()}
	for at := engine.Time(0); at < end; {
		at = min(at+step, end)
		x.net.Run(at)
		for _, c := range x.captures {
			if err := c.flush(); err != nil {
				return fmt.Errorf("capture %s: %w", c.name, err)
			}
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("stopped at %v of %v: %w", at.Duration(), end.Duration(), err)
		}
		if x.s.StopWhenFinished && x.net.Finished == x.flows {
			break
		}
		if x.repeats != nil && x.repeats.steady() {
			break
		}
		if now := time.Now(); progress != nil && now.Sub(p.last) >= progressInterval {
			progress(p.measure(now))
		}
	}
	if progress != nil {
		progress(p.measure(time.Now()))
	}
	return nil
}

// firstStart returns when the first flow starts: the time before it costs
// nothing, so it is no guide to the remaining time.
func (x *session) firstStart() engine.Time {
	first := engine.Of(x.s.Duration)
	for id := range x.flows {
		_, spec := x.net.FlowKey(id)
		first = min(first, timeOf(spec.Start))
	}
	return first
}

// progressMeter measures the speed of a run.
type progressMeter struct {
	x           *session
	first, end  engine.Time
	began, last time.Time // of wall time
	hops        int64     // at the last report
}

func (p *progressMeter) measure(now time.Time) Progress {
	net := p.x.net
	out := Progress{
		Now: net.Now().Duration(), End: p.end.Duration(), Hops: net.Counts.Hops,
		Wall: now.Sub(p.began), Flows: p.x.flows, Finished: net.Finished,
	}
	if elapsed := now.Sub(p.last); elapsed > 0 {
		out.PerWall = float64(net.Counts.Hops-p.hops) / elapsed.Seconds()
	}
	if done := net.Now() - p.first; done > 0 {
		out.Left = time.Duration(float64(out.Wall) * float64(p.end-net.Now()) / float64(done))
	}
	p.last, p.hops = now, net.Counts.Hops
	return out
}
