package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
)

// followInterval is the real time between two queries of a command that follows.
const followInterval = time.Second

// followHelp describes --follow of flows and traces.
const followHelp = "print new ones as they are recorded, oldest first, until it is interrupted"

// maxRemembered is how many printed items a follower remembers, so that none is
// printed twice.
const maxRemembered = 1 << 16

// poller prints the items of a list that are new since the last query.
type poller[T any] struct {
	t     *target
	out   io.Writer
	json  bool
	fetch func(r api.Range) ([]T, error) // of a range, in any order
	id    func(v *T) string              // changes if the item must be printed again
	at    func(v *T) time.Time           // orders items
	line  func(v *T) string

	printed map[string]bool
}

// follow prints until ctx ends. The first query has the items of the last second of
// the fabric's clock.
func (p *poller[T]) follow(ctx context.Context) error {
	if p.t.isScenario() {
		return usagef("--follow of a scenario, want a controller: a run has an end")
	}
	p.printed = map[string]bool{}
	var from time.Time
	for ctx.Err() == nil {
		clock, err := p.t.Clock(ctx)
		if err != nil {
			return p.ended(ctx, err)
		}
		if from.IsZero() || clock.Now.Before(from) { // or the controller was restarted
			from = clock.Now.Add(-time.Second)
		}
		list, err := p.fetch(api.Range{From: from, To: clock.Now.Add(time.Millisecond)})
		if err != nil {
			return p.ended(ctx, err)
		}
		if err := p.print(list); err != nil {
			if errors.Is(err, syscall.EPIPE) {
				return nil
			}
			return err
		}
		// Records are stored some time after what they are about: look back.
		from = clock.Now.Add(-max(time.Second, time.Duration(clock.Pace*float64(3*time.Second))))
		wait(ctx, followInterval)
	}
	return nil
}

// ended is nil if the user ended it.
func (p *poller[T]) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return p.t.explain(err)
}

func (p *poller[T]) print(list []T) error {
	slices.SortStableFunc(list, func(a, b T) int { return p.at(&a).Compare(p.at(&b)) })
	if len(p.printed) > maxRemembered {
		clear(p.printed)
	}
	for i := range list {
		id := p.id(&list[i])
		if p.printed[id] {
			continue
		}
		p.printed[id] = true
		var err error
		if p.json {
			err = json.NewEncoder(p.out).Encode(&list[i])
		} else {
			_, err = fmt.Fprintln(p.out, screenOf(p.out).fit(p.line(&list[i])))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// wait waits until ctx ends, at most for a time.
func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// follow prints flows that are new or have new losses.
func (f *flowsFlags) follow(a *app, cmd *cobra.Command, t *target) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	p := poller[api.Flow]{
		t: t, out: cmd.OutOrStdout(), json: a.format == "json",
		fetch: func(r api.Range) ([]api.Flow, error) {
			q := f.query
			q.Range, q.Sort, q.Limit = r, "newest", maxTop
			page, err := t.Flows(ctx, q)
			return page.Items, err
		},
		id: func(v *api.Flow) string { return fmt.Sprint(v.Flow, v.LostPackets > 0) },
		at: func(v *api.Flow) time.Time { return v.Last },
		line: func(v *api.Flow) string {
			lost := ""
			if v.LostPackets > 0 {
				lost = fmt.Sprintf("  %d LOST", v.LostPackets)
			}
			return fmt.Sprintf("%s  %-12s %v  %s %s%s  %s", timeOfDay(t.clock(v.Last)), dash(endpoints(v.FlowRef)), v.Flow,
				model.FormatBytes(model.Bytes(v.Bytes)), model.FormatRate(model.Rate(v.RateBps)), lost, pathText(v.Path))
		},
	}
	return p.follow(ctx)
}

// follow prints traces that are new.
func (f *traceFlags) follow(a *app, cmd *cobra.Command, t *target) error {
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	p := poller[api.TraceSummary]{
		t: t, out: cmd.OutOrStdout(), json: a.format == "json",
		fetch: func(r api.Range) ([]api.TraceSummary, error) {
			q := f.query
			q.Range, q.Limit = r, maxTop
			page, err := t.matchingTraces(ctx, q)
			return page.Items, err
		},
		id:   func(v *api.TraceSummary) string { return v.ID },
		at:   func(v *api.TraceSummary) time.Time { return v.Time },
		line: func(v *api.TraceSummary) string { return traceLine(t, v) },
	}
	return p.follow(ctx)
}
