package core

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/internal/plural"
)

// Progress is what one stage has done, and whether there is work for it.
type Progress struct {
	Stage   string // as in api.Stage
	Waiting uint64 // what it should work on; 0: nothing
	Unit    string // what waits, in the singular
	Done    uint64 // changes when it works
}

// ProgressReporter is an Input whose stages are watched. Progress answers at once,
// for any goroutine.
type ProgressReporter interface {
	Progress() []Progress
}

// Stall is a stage that has work and does none.
type Stall struct {
	Progress
	For time.Duration
}

// progressWatch finds stages that have work and do none. It reads no clock: a step
// of the wall clock is no stall. Many goroutines may use it.
type progressWatch struct {
	after time.Duration // without progress for this long a stage is stalled

	mu      sync.Mutex
	sampled time.Duration
	stages  []stageProgress
}

type stageProgress struct {
	Progress
	since time.Duration // when it last worked, or had nothing to do
}

// maxGap is the longest time between two samples in which something can be said of
// the stages: after a longer one the process itself did not run.
const maxGap = 3 * time.Second

// sample takes the state of all stages at a time since the start, and returns those
// that are stalled.
func (w *progressWatch) sample(at time.Duration, list []Progress) (stalled []Stall) {
	w.mu.Lock()
	defer w.mu.Unlock()
	asleep := time.Duration(0)
	if gap := at - w.sampled; gap > maxGap {
		asleep = gap
	}
	w.sampled = max(w.sampled, at)
	for _, p := range list {
		i := slices.IndexFunc(w.stages, func(s stageProgress) bool { return s.Stage == p.Stage })
		if i < 0 {
			i = len(w.stages)
			w.stages = append(w.stages, stageProgress{p, at})
		}
		s := &w.stages[i]
		s.since = min(s.since+asleep, at)
		if p.Waiting == 0 || s.Done != p.Done {
			s.since = at
		}
		s.Progress = p
		if idle := at - s.since; idle >= w.after {
			stalled = append(stalled, Stall{p, idle})
		}
	}
	return stalled
}

// stalls samples the progress of all stages.
func (c *Core) stalls() []Stall {
	var list []Progress
	if p, ok := c.input.(ProgressReporter); ok {
		list = p.Progress()
	}
	if c.Writer != nil {
		list = append(list, c.Writer.progress())
	}
	return c.progress.sample(time.Since(c.began), list)
}

// progress is that of the store.
func (w *BatchWriter) progress() Progress {
	s := w.Stats()
	return Progress{Stage: "store", Waiting: uint64(s.Waiting), Unit: "record", Done: s.Written + s.Failed + s.SetAside + w.attempts.Load()}
}

// watchProgress samples the stages once per second until ctx ends, and logs stages
// that stall.
func (c *Core) watchProgress(ctx context.Context) error {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	stalled := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		stalled = logStalls(c.log, stalled, c.stalls())
	}
}

// logStalls writes a line when the stalled stages are others than before, and
// returns their names.
func logStalls(log *slog.Logger, before string, list []Stall) string {
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Stage
	}
	now := strings.Join(names, ",")
	switch {
	case now == before:
	case now == "":
		log.Info("all stages make progress again", "stalled", before)
	default:
		log.Error("no progress", "stages", now, "for", list[0].For.Round(time.Second), "waiting", list[0].Waiting)
	}
	return now
}

// addStalls marks stalled stages. Health is not ok while one of them is.
func addStalls(h *api.Health, list []Stall) {
	for _, s := range list {
		title := s.Stage
		for i := range h.Stages {
			if st := &h.Stages[i]; st.Name == s.Stage {
				st.State, title = stalledState, st.Title
			}
		}
		h.State = stalledState
		h.Alerts = append(h.Alerts, fmt.Sprintf("%s: no progress for %v%s; restart the service if it lasts, and report the log",
			title, s.For.Round(time.Second), waits(&s.Progress)))
	}
}

const stalledState = "stalled"

func waits(p *Progress) string {
	if p.Unit == "" {
		return ""
	}
	return ", waiting: " + plural.Count(p.Waiting, p.Unit)
}
