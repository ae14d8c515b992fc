package core

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model/record"
)

// TestStallIsFound: a stage that has work and does none is stalled after a time,
// and no longer when it works again. Neither an idle stage is, nor one in a process
// that was stopped.
func TestStallIsFound(t *testing.T) {
	const second = time.Second
	w := progressWatch{after: 10 * second}
	stalled := func(at time.Duration, waiting, done uint64) time.Duration {
		t.Helper()
		list := w.sample(at, []Progress{{Stage: "store", Waiting: waiting, Done: done}})
		if len(list) == 0 {
			return 0
		}
		return list[0].For
	}
	for i := range 60 {
		at := time.Duration(i) * second
		want := time.Duration(0)
		waiting, done := uint64(7), uint64(3)
		switch {
		case i < 20: // works
			done = uint64(i)
		case i < 40: // has stopped with 19 done
			done = 19
			if i >= 29 {
				want = at - 19*second
			}
		case i < 50: // works again
			done = uint64(i)
		default: // has nothing to do
			waiting, done = 0, 49
		}
		if got := stalled(at, waiting, done); got != want {
			t.Errorf("after %v: stalled for %v; want %v", at, got, want)
		}
	}
	if got := stalled(60*second, 1, 49); got != 0 {
		t.Errorf("stalled for %v with work of this second", got)
	}
	if got := stalled(3660*second, 1, 49); got != 0 {
		t.Errorf("stalled for %v after the process was stopped for an hour", got)
	}
	for i := range 11 {
		stalled(3660*second+time.Duration(i)*second, 1, 49)
	}
	if got := stalled(3671*second, 1, 49); got == 0 {
		t.Error("not stalled; want it, ten seconds after the process goes on")
	}
}

// stuckInput is an input whose analyses do not work.
type stuckInput struct{ progress []Progress }

func (s *stuckInput) Run(ctx context.Context) error { <-ctx.Done(); return nil }
func (s *stuckInput) Clock() api.Clock              { return api.Clock{Now: noon} }
func (s *stuckInput) Ready() error                  { return nil }
func (s *stuckInput) Progress() []Progress          { return s.progress }
func (s *stuckInput) Stages() []api.Stage {
	return []api.Stage{{Name: "analyzers", Title: "Analyses", Unit: "reports", In: 1, Out: 1}}
}

// TestHealthIsNotOKWhileAStageIsStuck blocks the store and the analyses: health says
// which, and for how long.
func TestHealthIsNotOKWhileAStageIsStuck(t *testing.T) {
	s := &shelf{taken: make(chan struct{}), keep: make(chan struct{})}
	in := &stuckInput{}
	c := stalledCore(t, in, s)
	c.progress.after = 10 * time.Second
	c.Writer.Add(&record.Batch{Incidents: incidents(1)})
	written := make(chan error, 1)
	go func() { written <- c.Writer.Flush(context.Background()) }()
	<-s.taken // the store has the batch, and keeps it waiting
	in.progress = []Progress{{Stage: "analyzers", Waiting: 1, Done: 5}}
	if h := c.Health(); h.State != "ok" {
		t.Errorf("health is %s at once; want ok", h.State)
	}
	for range 12 { // a second passes between two looks
		c.began = c.began.Add(-time.Second)
		c.stalls()
	}
	h := c.Health()
	alerts := strings.Join(h.Alerts, "\n")
	if h.State != "stalled" || !strings.Contains(alerts, "Analyses: no progress for 1") || !strings.Contains(alerts, "waiting: 1 record;") {
		t.Errorf("health is %s, alerts:\n%s\nwant it stalled, with the analyses and the store", h.State, alerts)
	}
	for _, st := range h.Stages {
		if st.State != "stalled" {
			t.Errorf("stage %s is %s; want stalled", st.Name, st.State)
		}
	}
	s.keep <- struct{}{}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	in.progress[0].Done++
	if h := c.Health(); h.State != "ok" {
		t.Errorf("health is %s, %v; want ok after both work again", h.State, h.Alerts)
	}
}

// TestStallsAreLoggedOnce: when they begin, and when they end.
func TestStallsAreLoggedOnce(t *testing.T) {
	var text strings.Builder
	log, state := slog.New(slog.NewTextHandler(&text, nil)), ""
	for i := range 30 {
		var list []Stall
		if i > 10 && i < 20 {
			list = []Stall{{Progress{Stage: "memory"}, time.Minute}}
		}
		state = logStalls(log, state, list)
	}
	if n := strings.Count(text.String(), "\n"); n != 2 {
		t.Errorf("%d lines; want one for the begin and one for the end:\n%s", n, text.String())
	}
}
