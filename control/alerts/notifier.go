package alerts

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/model/record"
)

// maxIncidents bounds the open incidents that have alerts.
const maxIncidents = 4096

// Deps is what a Notifier is given.
type Deps struct {
	// Muted reports whether an incident is muted now; nil: none is.
	Muted func(incident string) bool
	Log   *slog.Logger
	Now   func() time.Time // wall clock; nil: time.Now
}

// Notifier sends alerts about incidents. Update may be called from any goroutine and
// never waits.
type Notifier struct {
	cfg     atomic.Pointer[Config] // Reload replaces it
	deps    Deps
	targets []*target
	tick    time.Duration

	mu        sync.Mutex
	incidents map[string]*tracked
	dropped   uint64 // incidents beyond maxIncidents
}

// tracked is an incident that is open, or whose alert is.
type tracked struct {
	record record.Incident
	sent   *Alert    // the last alert; nil: none
	since  time.Time // when it began to fire
	last   time.Time // when it was sent to Alertmanager
}

// New checks the configuration and starts nothing.
func New(cfg Config, deps Deps) (*Notifier, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if deps.Log == nil {
		deps.Log = slog.New(slog.DiscardHandler)
	}
	if deps.Now == nil {
		deps.Now = time.Now
	}
	n := &Notifier{deps: deps, incidents: map[string]*tracked{}, tick: min(time.Second, cfg.Repeat/2)}
	n.cfg.Store(&cfg)
	for _, t := range cfg.Targets {
		token, err := t.token()
		if err != nil {
			return nil, err
		}
		n.targets = append(n.targets, newTarget(t, token, &n.cfg, &n.deps))
	}
	return n, nil
}

// Prepare checks a new configuration and returns the function that applies it: tokens,
// jobs, link, severity and times. Alerts that a target receives no more are resolved
// there. A target that the configuration lacks receives nothing further; new ones and
// queues need a new Notifier.
func (n *Notifier) Prepare(cfg Config) (apply func(), err error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	tokens, wanted := make([]*string, len(n.targets)), make([]*Target, len(n.targets))
	for i, t := range n.targets {
		is := func(o Target) bool { return o.Kind == t.Kind && o.URL == t.URL }
		at := i // two may have one URL
		if at >= len(cfg.Targets) || !is(cfg.Targets[at]) {
			at = slices.IndexFunc(cfg.Targets, is)
		}
		if at < 0 {
			continue
		}
		token, err := cfg.Targets[at].token()
		if err != nil {
			return nil, err
		}
		tokens[i], wanted[i] = &token, &cfg.Targets[at]
	}
	return func() {
		cfg.Queue = n.cfg.Load().Queue
		n.cfg.Store(&cfg)
		n.mu.Lock()
		defer n.mu.Unlock()
		for i, token := range tokens {
			if token != nil {
				n.targets[i].bearer.Store(token)
			}
			n.changeWanted(n.targets[i], wanted[i])
		}
	}, nil
}

// changeWanted changes what a target receives; nil: nothing. Alerts that fire now and are no
// longer among it are resolved there: what cannot be delivered expires, as any alert. The
// lock is held.
func (n *Notifier) changeWanted(to *target, wanted *Target) {
	now := n.deps.Now()
	for _, t := range n.incidents {
		if t.sent == nil || t.sent.Status != "firing" {
			continue
		}
		if a := *t.sent; to.receives(&a) && (wanted == nil || !wanted.wants(&a)) {
			end := now.UTC()
			a.Status, a.End = "resolved", &end
			to.queue.add(a, now)
		}
	}
	to.wanted.Store(wanted)
}

// SetMuted sets Deps.Muted. Call it before Run.
func (n *Notifier) SetMuted(f func(incident string) bool) { n.deps.Muted = f }

// Update takes the present state of an incident.
func (n *Notifier) Update(r record.Incident) {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := n.incidents[r.ID]
	switch {
	case t == nil && !atLeast(r.Severity, n.cfg.Load().Severity):
		return
	case t == nil && len(n.incidents) >= maxIncidents:
		n.dropped++
		return
	case t == nil:
		t = &tracked{}
		n.incidents[r.ID] = t
	}
	t.record = r
	n.evaluate(r.ID, t, n.deps.Now())
}

// Run delivers alerts until ctx ends, and then once more what waits.
func (n *Notifier) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	for _, t := range n.targets {
		wg.Go(func() { t.run(ctx) })
	}
	timer := time.NewTicker(n.tick)
	defer timer.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-timer.C:
			n.evaluateAll()
		}
	}
	wg.Wait()
	return nil
}

// evaluateAll sends what time has changed: ends of mutes, of holds, and repetitions.
func (n *Notifier) evaluateAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := n.deps.Now()
	for id, t := range n.incidents {
		n.evaluate(id, t, now)
	}
}

// evaluate compares the alert of an incident with the last one that was sent.
func (n *Notifier) evaluate(id string, t *tracked, now time.Time) {
	r := &t.record
	muted := n.deps.Muted != nil && n.deps.Muted(id)
	fires := r.End.IsZero() && atLeast(r.Severity, n.cfg.Load().Severity) && !muted
	if t.sent == nil && !r.End.IsZero() && !muted && !isPart(r) && atLeast(r.Severity, n.cfg.Load().Severity) {
		fires = true // it was over before it was looked at: it fires, and is resolved after the hold
	}
	if t.sent != nil && t.sent.Status == "firing" && !muted && !r.End.IsZero() && !isPart(r) && now.Sub(t.since) < n.cfg.Load().Hold {
		fires = true
	}
	switch {
	case fires:
		a := newAlert(r, n.cfg.Load().Link)
		if t.sent == nil || t.sent.Status == "resolved" {
			t.since = now
		} else if t.sent.key() != a.key() {
			n.resolve(t, now) // its labels have changed: to Alertmanager it is another one
		}
		if t.sent == nil || !t.sent.same(&a) {
			n.send(t, a, now, false)
		} else if now.Sub(t.last) >= n.cfg.Load().Repeat {
			n.send(t, a, now, true)
		}
	case t.sent != nil && t.sent.Status == "firing":
		n.resolve(t, now)
	}
	if !fires && !r.End.IsZero() {
		delete(n.incidents, id)
	}
}

// resolve ends the alert that was sent last.
func (n *Notifier) resolve(t *tracked, now time.Time) {
	a := *t.sent
	end := now.UTC()
	if !t.record.End.IsZero() {
		end = t.record.End
	}
	a.Status, a.End = "resolved", &end
	n.send(t, a, now, false)
}

// send queues an alert at every target that receives it; a repetition only where it is needed.
func (n *Notifier) send(t *tracked, a Alert, now time.Time, repeated bool) {
	t.sent, t.last = &a, now
	for _, to := range n.targets {
		if (!repeated || to.Kind == Alertmanager) && to.receives(&a) {
			to.queue.add(a, now)
		}
	}
}

// Stats is the account of one target.
// Invariant: In = Out + Replaced + losses + Waiting.
type Stats struct {
	Target        string
	In, Out       uint64
	Replaced      uint64 // by a later state of the same alert, before they were sent
	Waiting       int
	Losses        Losses
	Err           error  // of the last delivery
	OverIncidents uint64 // incidents that had no alert, because too many were open
}

// Stats returns the account of every target.
func (n *Notifier) Stats() (list []Stats) {
	n.mu.Lock()
	over := n.dropped
	n.mu.Unlock()
	for _, t := range n.targets {
		q := t.queue
		q.mu.Lock()
		list = append(list, Stats{t.name(), q.in, q.out, q.same, len(q.list), q.lost, q.err, over})
		q.mu.Unlock()
	}
	return list
}

// QueueLimit is how many alerts may wait for each target.
func (n *Notifier) QueueLimit() int { return n.cfg.Load().Queue }
