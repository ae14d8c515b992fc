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

// Options are what a caller wants of one run.
type Options struct {
	// Capture opens where a link is written as pcapng: those of
	// Output.Capture. Where it is nil, none is. Run closes it.
	Capture func(link model.Port, name string) (io.WriteCloser, error)

	// Sink takes the datagrams of telemetry as they arrive at the collector,
	// and must not keep them. Where it is nil, they are counted and forgotten.
	Sink simhost.Sink

	// Begin is called when everything is assembled and nothing has happened,
	// with the telemetry programs of each switch. It may schedule what shall
	// happen in the run (Network.At), and end it by an error.
	Begin func(n *sim.Network, programs map[model.NodeID][]inswitch.Program) error

	// Truth is what the recorder keeps; the zero value is what results need.
	Truth truth.Options

	unrecorded bool // there is no truth, and no result: see Open
}

// Progress is how far a run has come.
type Progress struct {
	Now, End time.Duration // simulated
	Hops     int64         // packet-hops so far
	PerWall  float64       // packet-hops per second of wall time, lately
	Wall     time.Duration // since the run began
	Left     time.Duration // of wall time, if it goes on like this
	Flows    int
	Finished int // flows
}

// progressSteps is into how many equal parts a run is cut. Between two of them
// the run can be cancelled and progress is told. They are of simulated time, so
// that the clock on the wall decides nothing.
const progressSteps = 4096

// progressInterval is how often progress is told at most.
const progressInterval = 100 * time.Millisecond

// Run plays a scenario and judges it. progress, if not nil, is called from time
// to time and at the end. An error says that the run could not be made or was
// cancelled; that it came out otherwise than expected is in the Result.
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
		if now := time.Now(); progress != nil && now.Sub(p.last) >= progressInterval {
			progress(p.measure(now))
		}
	}
	if progress != nil {
		progress(p.measure(time.Now()))
	}
	return nil
}

// firstStart is when the first flow begins: time before it costs nothing, so it
// is no guide to the time that is left.
func (x *session) firstStart() engine.Time {
	first := engine.Of(x.s.Duration)
	for id := range x.flows {
		_, spec := x.net.FlowKey(id)
		first = min(first, timeOf(spec.Start))
	}
	return first
}

// progressMeter measures how fast a run goes.
type progressMeter struct {
	x           *session
	first, end  engine.Time
	began, last time.Time // of wall time
	hops        int64     // when last told
}

func (p *progressMeter) measure(now time.Time) Progress {
	net := p.x.net
	out := Progress{
		Now: net.Now().Duration(), End: p.end.Duration(), Hops: net.Counts.Hops,
		Wall: now.Sub(p.began), Flows: p.x.flows, Finished: net.Finished,
	}
	if lately := now.Sub(p.last); lately > 0 {
		out.PerWall = float64(net.Counts.Hops-p.hops) / lately.Seconds()
	}
	if done := net.Now() - p.first; done > 0 {
		out.Left = time.Duration(float64(out.Wall) * float64(p.end-net.Now()) / float64(done))
	}
	p.last, p.hops = now, net.Counts.Hops
	return out
}
