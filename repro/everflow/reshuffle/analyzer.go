package reshuffle

import (
	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/stream"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/mirror"
)

// Analyzer assembles the traces of some partitions. One that takes a partition over passes on
// every trace that its predecessor had not passed on, whole. For that it acknowledges mirrors
// late: those that are older by trace.Config.CloseAfter, which no trace lasts as long as, than the
// first mirror of any open trace. What is read again begins with the rests of traces, which
// the predecessor has passed on, as it has all traces that begin within that time; these are skipped. A trace that
// the predecessor passed on after its last acknowledgement is passed on again. It is for
// one goroutine.
type Analyzer struct {
	sub    stream.Subscription
	cfg    trace.Config
	intent *topo.Intent
	done   func(*trace.Trace)
	parts  map[int]*partition
	stats  AnalyzerStats
}

// AnalyzerStats are the counters of an Analyzer.
type AnalyzerStats struct {
	Mirrors   uint64 // read
	Malformed uint64 // messages that are not mirrors
	Skipped   uint64 // traces, or rests of them, that the predecessor has passed on
}

// partition is the state of one partition.
type partition struct {
	assembler *trace.Assembler
	unacked   []arrival  // in the order of the stream
	newest    model.Time // arrival of the newest mirror
	skip      model.Time // traces that begin before it are the predecessor's
}

type arrival struct {
	at  stream.Position
	now model.Time
}

// NewAnalyzer returns an Analyzer of the partitions of a subscription. done is called
// with every trace, which it must not keep.
func NewAnalyzer(cfg trace.Config, intent *topo.Intent, sub stream.Subscription, done func(*trace.Trace)) (*Analyzer, error) {
	a := &Analyzer{sub: sub, cfg: cfg, intent: intent, done: done, parts: map[int]*partition{}}
	return a, cfg.Check()
}

// Stats returns the present counts.
func (a *Analyzer) Stats() AnalyzerStats { return a.stats }

// Poll reads the mirrors that have arrived until now, passes on the traces that are complete, and
// acknowledges what is no longer needed. Its error is the subscription's.
func (a *Analyzer) Poll(now model.Time) error {
	var failed error
	for {
		n, err := a.sub.Poll(func(m stream.Message) {
			if err := a.addMessage(&m); failed == nil {
				failed = err
			}
		})
		if err == nil {
			err = failed
		}
		if err != nil && err != stream.ErrEnded {
			return err
		}
		if n == 0 {
			return a.advance(now, err)
		}
	}
}

func (a *Analyzer) addMessage(m *stream.Message) error {
	p := a.parts[m.Position.Partition]
	if p == nil {
		var err error
		if p, err = a.newPartition(m); err != nil {
			return err
		}
		a.parts[m.Position.Partition] = p
	}
	p.unacked = append(p.unacked, arrival{m.Position, m.At})
	p.newest = max(p.newest, m.At)
	if m.Kind == BeginKind {
		return nil
	}
	var decoded mirror.Mirror
	if _, err := decoded.Parse(m.Data); err != nil || m.Kind != MirrorKind {
		a.stats.Malformed++
		return nil
	}
	a.stats.Mirrors++
	p.assembler.AddMirror(m.At, &decoded)
	return nil
}

// newPartition returns the state of a partition whose first message is m.
func (a *Analyzer) newPartition(m *stream.Message) (*partition, error) {
	p := &partition{}
	if m.Kind != BeginKind {
		p.skip = m.At.Add(a.cfg.CloseAfter)
	}
	var err error
	p.assembler, err = trace.NewAssembler(a.cfg, a.intent, func(t *trace.Trace) {
		if t.First < p.skip {
			a.stats.Skipped++
			return
		}
		a.done(t)
	})
	return p, err
}

// advance passes on complete traces, and acknowledges mirrors that are old enough. It
// returns ended unless acknowledging fails.
func (a *Analyzer) advance(now model.Time, ended error) error {
	var through []stream.Position
	for _, p := range a.parts {
		p.assembler.Advance(now)
		oldest, open := p.assembler.OldestOpen()
		if !open {
			oldest = p.newest // the next one begins no earlier
		}
		n := 0
		for n < len(p.unacked) && p.unacked[n].now.Add(a.cfg.CloseAfter) < oldest {
			n++
		}
		// The last of them stays: it says to a successor how far all traces were passed on.
		if n > 1 {
			through = append(through, p.unacked[n-2].at)
			p.unacked = append(p.unacked[:0], p.unacked[n-1:]...)
		}
	}
	if len(through) > 0 {
		if err := a.sub.Ack(through...); err != nil {
			return err
		}
	}
	return ended
}
