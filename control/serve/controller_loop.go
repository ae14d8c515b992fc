package serve

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/core"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Clock is part of core.Input: the fabric's time is the wall's, without its steps.
func (s *socketInput) Clock() api.Clock {
	return api.Clock{Now: time.Unix(0, int64(s.clock.Now())), Wall: s.wall(), Mode: "serve", Pace: 1}
}

// runController is the controller's goroutine. It ends when the collector has
// drained.
func (s *socketInput) runController(ctx context.Context, sockets *sync.WaitGroup) error {
	defer close(s.finished)
	defer s.core.Loop.Close()
	now := s.clock.Now()
	before := now // the wall's, of the last turn
	pace := pollPace{step: s.cfg.Controller.Step}
	for {
		select {
		case <-s.drained:
			sockets.Wait()
			now := max(now, s.clock.Now())
			_, err := s.poll(now)
			s.core.Controller.Flush()
			s.core.Controller.Tick(now)
			s.core.Controller.RefreshView(now)
			s.publishCounts()
			return err
		default:
		}
		s.core.Loop.RunPending()
		if s.clock.Follow(s.core.Controller) {
			now = s.clock.Now()
			before = now
		}
		wall := s.clock.Now()
		var skipped bool
		if now, skipped = advance(now, wall, wall.Sub(before)); skipped && s.hasUnread(now) {
			s.core.Controller.NoteDropped(now)
		}
		before = wall
		s.core.Controller.SetWallClock(wall)
		found, err := s.poll(now)
		if err != nil {
			return err
		}
		s.core.Controller.Tick(now)
		s.publishCounts()
		s.core.Loop.Sleep(ctx, pace.next(found))
	}
}

// pollPace is how often the controller reads reports: every step, and less often after
// none has arrived for a second. An idle service then costs little, and the first report
// after a pause waits for idleStep at most.
type pollPace struct {
	step  time.Duration
	quiet time.Duration // since the last report
}

const (
	idleAfter = time.Second
	idleStep  = 5 * time.Millisecond // less than maxStride, so that the clock keeps up
)

// next returns when to read again after a poll that found some reports.
func (p *pollPace) next(found int) time.Duration {
	step := p.step
	if found > 0 {
		p.quiet = 0
	} else if p.quiet >= idleAfter {
		return max(step, idleStep)
	}
	p.quiet += step
	return step
}

// How far the controller's clock advances at once. A process that was not scheduled has
// reports in its sockets that arrived in time: its clock catches up gradually, so that they
// are read before they are too late. A process whose turns take long advances by twice
// what the last one took, or it would never catch up.
const (
	maxStride     = 10 * time.Millisecond
	maxLongStride = 50 * time.Millisecond // a quarter of the default time-out of reports
)

// maxLag is how far the controller's clock may lag: under constant overload it
// would never catch up.
const maxLag = 2 * time.Second

// advance returns the controller's next time, after a turn that took some time, and
// whether the clock has to skip time.
func advance(now, wall model.Time, turn time.Duration) (next model.Time, skips bool) {
	stride := min(max(maxStride, 2*turn), maxLongStride)
	next = max(now, min(wall, now.Add(stride)))
	if earliest := wall.Add(-maxLag); earliest > next {
		return earliest, true
	}
	return next, false
}

// hasUnread reports whether reports that arrived before a time may not have been read from
// their sockets: they will be too late if it is the controller's. Sources beside DTA do not
// say how far they have read theirs.
func (s *socketInput) hasUnread(t model.Time) bool {
	return s.stream != nil || s.collector.ReadThrough() < t
}

// poll hands the controller all reports that have arrived, and returns their number.
func (s *socketInput) poll(now model.Time) (n int, err error) {
	c := s.core.Controller
	_, err = s.inbox.Poll(func(id dta.ListID, data []byte) {
		c.IngestReport(now, id, data)
		if n++; n%yieldEvery == 0 {
			runtime.Gosched()
			s.beats.Add(1)
			c.SetWallClock(s.clock.Now()) // more has arrived meanwhile
		}
	})
	s.inbox.TakeOverwritten(func(id dta.ListID, _ uint64) { c.NoteOverwritten(now, id) })
	if s.dropped.grew(now, s.countDropped) {
		c.NoteDropped(now)
	}
	if s.stream != nil {
		s.stream.poll(func(at model.Time, id dta.ListID, data []byte) {
			c.IngestReport(min(at, now), id, data)
			n++
		})
		n += s.counters.poll(
			func(r *portstat.Reading) { c.IngestReading(now, r) },
			func(one *portstat.Sample) { c.IngestSample(now, one) },
			func(r *portstat.FlowRecord) { c.IngestFlowRecord(now, r) },
		)
	}
	return n, err
}

// yieldEvery is after how many reports the controller yields its core: Go would
// let it run for 10 ms at a time, and an answer of the API waits for a core
// several times.
const yieldEvery = 32

func (s *socketInput) publishCounts() {
	s.beats.Add(1)
	s.counts.Store(&controllerCounts{s.core.Controller.Stats(), s.inbox.Lost()})
}

// Progress is part of core.ProgressReporter.
func (s *socketInput) Progress() []core.Progress {
	select {
	case <-s.drained: // what is left takes as long as it takes
		return nil
	default:
	}
	c := s.counts.Load()
	read := c.lost + c.stats.UnknownList
	for _, n := range c.stats.Reports {
		read += n
	}
	list := []core.Progress{
		{Stage: "analyzers", Waiting: 1, Done: s.beats.Load()},
		{Stage: "slots", Waiting: c.stats.FlowsetsWaiting, Unit: "flowset", Done: c.stats.Slots},
	}
	if s.stream == nil { // the controller's counts are those of both sources
		listed := s.collector.Appended()
		list = append(list, core.Progress{Stage: "memory", Waiting: listed - min(listed, read), Unit: "report", Done: read})
	} else {
		st := s.stream.stream.Stats()
		list = append(list, core.Progress{Stage: "readers", Waiting: st.Waiting, Unit: "report", Done: st.Delivered})
	}
	if s.recorder != nil {
		st := s.recorder.Stats()
		list = append(list, core.Progress{Stage: "recording", Waiting: uint64(st.Waiting), Unit: "datagram", Done: st.Written + st.Failed + st.Shed})
	}
	return list
}

// Alerts is part of core.AlertingInput.
func (s *socketInput) Alerts() []string {
	var list []string
	if a := s.clock.Alert(); a != "" {
		list = append(list, a)
	}
	for i := range s.listeners {
		if l, ok := s.listeners[i].Listener.(source.AlertingListener); ok {
			list = append(list, l.Alerts()...)
		}
	}
	return list
}
