package probe

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/inhost/prober"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/probe"
)

// Injector has a host send a series of probes from now on. The packets of the
// series must not be changed until it ends.
type Injector interface {
	Inject(host model.NodeID, s prober.Series) error
}

// Config is how probes are sent.
type Config struct {
	Interval      time.Duration // between two probes of a question
	CapturedBytes int           // bytes of a frame that mirrors and traces keep
	Levels        Levels
}

// DefaultConfig sends ten thousand probes a second and expects mirrors cut to
// what inswitch/mirror cuts them to.
func DefaultConfig() Config {
	return Config{Interval: 100 * time.Microsecond, CapturedBytes: 128, Levels: DefaultLevels()}
}

// Check returns the first error of the configuration.
func (c *Config) Check() error {
	switch {
	case c.Interval <= 0:
		return fmt.Errorf("probe: interval %v, want more than 0", c.Interval)
	case !(c.Levels.Mirrors > 0 && c.Levels.Mirrors < 1) || !(c.Levels.Homogeneity > 0 && c.Levels.Homogeneity < 1):
		return fmt.Errorf("probe: levels %v and %v, want them between 0 and 1", c.Levels.Mirrors, c.Levels.Homogeneity)
	}
	return nil
}

// Question is what probes are sent for. It is started once.
type Question interface {
	// plan returns the sending host, the packets, and their number over all patterns.
	plan() (host model.NodeID, packets []prober.Packet, count uint32)
	// addTrace reads the trace of a probe, by its number, which it must not keep.
	addTrace(number uint32, t *trace.Trace)
	// Heard returns how many probes have had their trace.
	Heard() uint32
}

// Scheduler starts questions and gives each the traces of its probes.
type Scheduler struct {
	cfg      Config
	intent   *topo.Intent
	in       Injector
	series   uint32
	open     map[uint32]openQuestion
	closed   []sentSeries // questions that ended, the newest last
	mirrored []bool       // by node: a mirror of it was in some trace

	// Late counts traces of probes whose question has ended. Foreign counts those of
	// packets that are marked and stamped like probes and that no question has sent.
	Late, Foreign uint64
}

// sentSeries identifies the probes of a question.
type sentSeries struct {
	id   uint32
	host model.NodeID
}

// maxClosed is how many questions that ended are remembered.
const maxClosed = 256

type openQuestion struct {
	Question
	host model.NodeID
}

// NewScheduler makes a scheduler. Questions read the intended routes to choose
// probes that take the path of the flow in question.
func NewScheduler(cfg Config, intent *topo.Intent, in Injector) (*Scheduler, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	return &Scheduler{cfg: cfg, intent: intent, in: in, open: map[uint32]openQuestion{}, mirrored: make([]bool, len(intent.At(0).Fabric().Nodes()))}, nil
}

// Start starts a question and returns how long its probes take; the answer is
// complete when their traces have closed after that.
func (d *Scheduler) Start(q Question) (time.Duration, error) { return d.StartEvery(q, d.cfg.Interval) }

// StartEvery is Start with another interval between two probes.
func (d *Scheduler) StartEvery(q Question, interval time.Duration) (time.Duration, error) {
	if interval <= 0 {
		return 0, fmt.Errorf("probe: interval %v, want more than 0", interval)
	}
	if l, ok := q.(*Latency); ok {
		l.interval = interval
	}
	host, packets, count := q.plan()
	for i := range packets {
		if n := packets[i].StampEnd(); n > d.cfg.CapturedBytes {
			return 0, fmt.Errorf("probe: a probe in %d tunnels has its stamp in the first %d bytes, mirrors keep %d, want as many", len(packets[i].Tunnels), n, d.cfg.CapturedBytes)
		}
	}
	id := d.series + 1
	if err := d.in.Inject(host, prober.Series{ID: id, Patterns: packets, Interval: interval, Count: count}); err != nil {
		return 0, err
	}
	d.series = id
	d.open[id] = openQuestion{q, host}
	return time.Duration(count) * interval, nil
}

// Sent returns how many probes a question sends.
func (d *Scheduler) Sent(q Question) (n uint32) {
	_, _, n = q.plan()
	return n
}

// MatchTrace reads a trace, which it does not keep, and reports whether it is that
// of a probe. Traces of other packets show which switches mirror at all.
func (d *Scheduler) MatchTrace(t *trace.Trace) bool {
	for i := range t.Hops {
		if id := int(t.Hops[i].Switch); id < len(d.mirrored) {
			d.mirrored[id] = true
		}
	}
	s, err := probe.FindStamp(t.Frame)
	if err != nil {
		return false
	}
	q, ok := d.open[s.Series]
	if !ok || q.host != s.Origin {
		if slices.Contains(d.closed, sentSeries{s.Series, s.Origin}) {
			d.Late++
		} else {
			d.Foreign++
		}
		return true
	}
	q.addTrace(s.Number, t)
	return true
}

// Close ends a question: later traces of its probes are late.
func (d *Scheduler) Close(q Question) {
	for id, a := range d.open {
		if a.Question == q {
			delete(d.open, id)
			if len(d.closed) == maxClosed {
				d.closed = slices.Delete(d.closed, 0, 1)
			}
			d.closed = append(d.closed, sentSeries{id, a.host})
		}
	}
}
