package serve

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/mirror"
)

// watch is the controller's goroutine. It ends when the collector has drained.
func (s *Service) watch(ctx context.Context, sockets *sync.WaitGroup) error {
	defer close(s.finished)
	defer s.door.Close()
	now := model.TimeOf(time.Now())
	for {
		select {
		case <-s.drained:
			sockets.Wait()
			now := model.TimeOf(time.Now())
			err := s.look(now)
			s.control.Flush()
			s.control.Tick(now)
			s.count()
			return err
		default:
		}
		s.door.RunPending()
		wall := model.TimeOf(time.Now())
		now = max(min(wall, now.Add(stride)), wall.Add(-behind))
		s.control.SetWallClock(wall)
		if err := s.look(now); err != nil {
			return err
		}
		s.control.Tick(now)
		s.count()
		s.door.Sleep(ctx, s.cfg.Controller.Step)
	}
}

// stride is how far the controller's clock goes at once. A process that was held
// up has reports in its sockets that came in time: it catches up little by
// little, so that they are read before it is too late for them.
const stride = 10 * time.Millisecond

// behind is how far the controller's clock may stay behind: where there is always
// more to do than can be done, it would never catch up.
const behind = 2 * time.Second

// look hands the controller everything that has come.
func (s *Service) look(now model.Time) error {
	n := 0
	_, err := s.inbox.Poll(func(id dta.ListID, data []byte) {
		s.control.IngestReport(now, id, data)
		if n++; n%yieldEvery == 0 {
			runtime.Gosched()
			s.control.SetWallClock(model.TimeOf(time.Now())) // more has come meanwhile
		}
	})
	if s.feed != nil {
		s.feed.take(func(at model.Time, id dta.ListID, data []byte) { s.control.IngestReport(min(at, now), id, data) })
	}
	return err
}

// yieldEvery is after how many reports the controller lets others have its core:
// Go would leave it to it for 10 ms at a time, and an answer of the API waits for
// a core several times.
const yieldEvery = 32

func (s *Service) count() { s.counts.Store(&counts{s.control.Stats(), s.inbox.Lost()}) }

// takeINT reads the socket of INT reports, and what the kernel has queued at the
// end.
func (s *Service) takeINT(ctx context.Context) error {
	var ended, got time.Time
	for {
		if ctx.Err() != nil && ended.IsZero() {
			ended = time.Now()
			got = ended
		}
		n, err := s.ints.Receive(func(from netip.AddrPort, datagram []byte) {
			at, before := model.TimeOf(time.Now()), s.decoders.ints.Stats().Used
			s.decoders.ints.Datagram(at, datagram)
			s.record(capture.INT, s.decoders.ints.Stats().Used > before, at, from, s.ints.Local(), datagram)
		})
		s.ours.Store(&intCounts{s.ints.Stats(), s.decoders.ints.Stats()})
		if err != nil {
			return fmt.Errorf("int.listen: %w", err)
		}
		now := time.Now()
		if n > 0 {
			got = now
		}
		if !ended.IsZero() && (now.Sub(got) >= quiet || now.Sub(ended) >= readOut) {
			return nil
		}
	}
}

// At the end a socket is read until nothing has come for a while, and no longer
// than readOut. One look does not tell that the queue is empty: a signal may have
// interrupted it.
const (
	quiet   = 10 * time.Millisecond
	readOut = time.Second
)

// takeMirrors reads the socket of ERSPAN mirrors.
func (s *Service) takeMirrors(ctx context.Context) error {
	var data []byte
	return s.mirrors.Run(ctx, func(at model.Time, m *mirror.Mirror) {
		data = m.AppendTo(data[:0])
		s.feed.put(at, s.fabric.lists.Mirrors.First, data)
	})
}

// keep hands records on, and tells clients of incidents.
func (s *Service) keep(b *record.Batch) {
	s.keeper.Add(b)
	for i := range b.Incidents {
		s.hub.Publish(api.NewIncident(&b.Incidents[i]))
	}
}

// hear writes incidents to the log: when they are found, when their cause
// changes, when they are over.
func (s *Service) hear(in *incident.Incident) {
	was, known := s.told[in.ID]
	if in.Closed {
		delete(s.told, in.ID) // also of one that ends as part of another
	}
	if in.Severity() == anomaly.Notice || in.MergedInto != 0 {
		return
	}
	switch {
	case in.Closed && known:
		s.log.Info("incident is over", "id", in.ID, "cause", in.Cause)
	case !in.Closed && (!known || was != in.Cause):
		s.told[in.ID] = in.Cause
		s.log.Warn("incident", "id", in.ID, "severity", in.Severity(), "cause", in.Cause, "what", in.Text)
	}
}
