package cluster

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/client"
	"github.com/weft-telemetry/weft/control/serve"
)

// asker asks an API of its own, which reads the cluster's store, again and again.
type asker struct {
	c      *testCluster
	store  closingStore
	api    *client.Client
	ctx    context.Context
	stop   context.CancelFunc
	all    sync.WaitGroup
	away   time.Time // since when; zero: all are there
	mu     sync.Mutex
	killed []span // and taken over
	asked  []span
	failed []failure
}

type failure struct {
	span
	err error
}

// span is a stretch of time.
type span struct{ begin, end time.Time }

func (s span) overlaps(o span) bool { return s.begin.Before(o.end) && o.begin.Before(s.end) }

// askEvery is the pause between two requests.
const askEvery = 5 * time.Millisecond

// ask starts to ask for incidents and for the flows that lost most.
func (c *testCluster) ask() *asker {
	t := c.t
	st, err := openStoreAt(t.Context(), c.spec.Store)
	if err != nil {
		t.Fatal(err)
	}
	cfg := shipped.config(t)
	cfg.API.Listen = "127.0.0.1:0"
	r, err := serve.NewReader(t.Context(), cfg, serve.Deps{Store: st, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	a := &asker{c: c, store: st}
	a.ctx, a.stop = context.WithCancel(t.Context())
	a.all.Go(func() {
		if err := r.Run(a.ctx); err != nil {
			t.Error(err)
		}
	})
	if a.api, err = client.New("http://"+r.Addr().String(), "", nil); err != nil {
		t.Fatal(err)
	}
	a.all.Go(func() {
		day := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC) // of the recording
		all := api.Range{From: day, To: day.AddDate(0, 0, 1)}
		for i := 0; a.ctx.Err() == nil; i++ {
			begin := time.Now()
			var err error
			if i%2 == 0 {
				_, err = a.api.Incidents(a.ctx, api.IncidentsQuery{Range: all})
			} else {
				_, err = a.api.Flows(a.ctx, api.FlowsQuery{Range: all, Sort: "lost"})
			}
			if a.ctx.Err() == nil {
				a.note(span{begin, time.Now()}, err)
			}
			time.Sleep(askEvery)
		}
	})
	return a
}

func (a *asker) note(one span, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.failed = append(a.failed, failure{one, err})
	} else {
		a.asked = append(a.asked, one)
	}
}

// kill notes how long a kill and the takeover take. What do does not replace yet, so that it
// returns 0, is away until the next call.
func (a *asker) kill(do func() time.Duration) (took time.Duration) {
	if a.away.IsZero() {
		a.away = time.Now()
	}
	if took = do(); took > 0 {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.killed = append(a.killed, span{a.away, time.Now()})
		a.away = time.Time{}
	}
	return took
}

// end ends it, and returns how long answers took that no takeover overlaps. A request that failed
// at another time is an error.
func (a *asker) end() (answers []time.Duration) {
	a.stop()
	a.all.Wait()
	if err := a.store.Close(); err != nil {
		a.c.t.Error(err)
	}
	during := func(one span) bool { return slices.ContainsFunc(a.killed, one.overlaps) }
	for _, f := range a.failed {
		if !during(f.span) {
			a.c.t.Errorf("request to the API: %v", f.err)
		}
	}
	for _, one := range a.asked {
		if !during(one) {
			answers = append(answers, one.end.Sub(one.begin))
		}
	}
	return answers
}
