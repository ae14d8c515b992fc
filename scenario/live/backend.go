package live

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Clock is part of api.Live.
func (s *System) Clock() api.Clock {
	wanted, measured := s.player.Pace()
	return api.Clock{Now: s.time(s.player.Now()), Wall: time.Now(), Mode: "demo", Pace: measured, WantedPace: wanted}
}

// time is an instant of the fabric on the wall.
func (s *System) time(t model.Time) time.Time { return s.began.Add(time.Duration(t)) }

// Ready is part of api.Live: there is something to see once a slot has passed.
func (s *System) Ready() error {
	if s.player.Now() == 0 {
		return fmt.Errorf("the fabric has not started yet")
	}
	return nil
}

// FaultKinds is part of api.Lab.
func (s *System) FaultKinds() (list []api.FaultKind) {
	for _, k := range Kinds() {
		target := k.On
		if target == "" {
			target = "fabric"
		}
		list = append(list, api.FaultKind{Kind: k.Name, Title: k.Title, About: k.About, Target: target})
	}
	return list
}

// Inject is part of api.Lab.
func (s *System) Inject(ctx context.Context, r api.FaultRequest) (f api.Fault, err error) {
	place := Anywhere
	if id, ok := s.Fabric().ByName(r.Node); ok {
		place = At(id, r.Port)
	}
	last := span
	if r.DurationMs > 0 {
		last = time.Duration(r.DurationMs) * time.Millisecond
	}
	asked := s.player.Do(ctx, func() {
		var one *Injected
		if one, err = s.director.Inject(r.Kind, place, last); err != nil {
			err = fmt.Errorf("%w: %w", err, api.ErrInvalid)
			return
		}
		one.By = "user"
		f = s.fault(one)
		s.account()
	})
	if asked != nil {
		return f, asked
	}
	return f, err
}

// Faults is part of api.Lab.
func (s *System) Faults() []api.Fault { return *s.faults.Load() }

// SetPace is part of api.Lab.
func (s *System) SetPace(_ context.Context, pace float64) error {
	s.player.SetPace(pace)
	return nil
}

// fault tells of a fault what the API wants to know.
func (s *System) fault(f *Injected) api.Fault {
	now := s.lab.Now()
	out := api.Fault{
		ID: strconv.Itoa(f.ID), By: f.By, State: "active", Begin: s.time(f.At),
		Request: api.FaultRequest{Kind: f.Kind, DurationMs: int(f.For.Milliseconds())},
		Verdict: "pending", Want: f.Causes[0].String(),
	}
	if len(f.Nodes) > 0 {
		out.Request.Node = s.Fabric().Node(f.Nodes[0]).Name
	}
	if end := f.At.Add(f.For); now >= end {
		t := s.time(end)
		out.State, out.End = "ended", &t
	}
	switch in := s.director.said[f.Incident]; {
	case f.Found:
		ms := float64(f.FoundAt.Sub(f.At)) / float64(time.Millisecond)
		out.Verdict, out.Got, out.FoundMs, out.Incident = "right", in.cause.String(), &ms, "i"+strconv.FormatUint(f.Incident, 10)
	case now > f.At.Add(f.For+slack):
		out.Verdict = "missed"
	}
	return out
}

// shown is how many faults are told of, the newest ones.
const shown = 100

// account makes the snapshots that Faults and Health give out. It runs between
// two steps.
func (s *System) account() {
	var list []api.Fault
	for _, f := range slices.Backward(s.director.faults) {
		if len(list) == shown {
			break
		}
		list = append(list, s.fault(f))
	}
	before := s.Faults()
	s.faults.Store(&list)
	for i := range list {
		if j := slices.IndexFunc(before, func(f api.Fault) bool { return f.ID == list[i].ID }); j < 0 || before[j].Verdict != list[i].Verdict || before[j].State != list[i].State {
			s.hub.Publish(list[i])
		}
	}
	stages := s.lab.stages()
	s.stages.Store(&stages)
}

// Health is part of api.Live.
func (s *System) Health() api.Health {
	stages := slices.Clone(*s.stages.Load())
	k := s.keeper.Stats()
	stages = append(stages, api.Stage{
		Name: "store", Title: "Store (DuckDB)", Unit: "records", In: k.Taken, Out: k.Kept, Queued: k.Waiting, QueueLimit: keepMost,
		Losses: []api.Lost{
			{Reason: "shed", About: "the store was too slow", Count: k.Shed},
			{Reason: "failed", About: "the store refused them", Count: k.Failed},
		},
	})
	h := api.Health{Time: time.Now(), State: "ok", UptimeMs: time.Since(s.began).Milliseconds(), Alerts: []string{}}
	h.Stages = s.rates.fill(time.Now(), stages)
	for i := range h.Stages {
		st := &h.Stages[i]
		if st.State == "degraded" {
			h.State = "degraded"
			h.Alerts = append(h.Alerts, fmt.Sprintf("%s loses %s", st.Title, st.Unit))
		}
	}
	h.Store = api.Storage{Kind: "duckdb", MaxBytes: int64(maxStore), Forgotten: s.forgotten.Load()}
	if t := s.tended.Load(); t != nil {
		h.Store.Bytes = int64(t.After)
	}
	return h
}

// rates turns totals into rates, from one look to the next.
type rates struct {
	mu   sync.Mutex
	at   time.Time
	last map[string]api.Stage
	rate map[string]api.Stage
}

// fill sets rates and states. Looks that follow each other closely share rates.
func (r *rates) fill(now time.Time, stages []api.Stage) []api.Stage {
	r.mu.Lock()
	defer r.mu.Unlock()
	renew := now.Sub(r.at) >= time.Second
	if renew {
		span := now.Sub(r.at).Seconds()
		r.rate = map[string]api.Stage{}
		for _, st := range stages {
			was, known := r.last[st.Name]
			if !known {
				continue
			}
			n := api.Stage{InPerSecond: float64(st.In-was.In) / span, OutPerSecond: float64(st.Out-was.Out) / span}
			for i, l := range st.Losses {
				n.Losses = append(n.Losses, api.Lost{PerSecond: float64(l.Count-was.Losses[i].Count) / span})
			}
			r.rate[st.Name] = n
		}
		r.at, r.last = now, map[string]api.Stage{}
		for _, st := range stages {
			st.Losses = slices.Clone(st.Losses)
			r.last[st.Name] = st
		}
	}
	for i := range stages {
		st := &stages[i]
		n := r.rate[st.Name]
		st.InPerSecond, st.OutPerSecond, st.State = n.InPerSecond, n.OutPerSecond, "ok"
		if st.In == 0 {
			st.State = "idle"
		}
		for j := range n.Losses {
			l := &st.Losses[j]
			if l.PerSecond = n.Losses[j].PerSecond; l.PerSecond > 0 && !l.Expected {
				st.State = "degraded"
			}
		}
	}
	return stages
}

// stages is the way of reports, from switches to analyses.
func (l *Lab) stages() (list []api.Stage) {
	t := l.session.Telemetry()
	sw := api.Stage{Name: "switches", Title: "Switch programs", Unit: "reports", In: t.Reports, Out: t.Reports, Losses: []api.Lost{}}
	net := api.Stage{Name: "transport", Title: "Management network", Unit: "reports", In: t.Reports, Out: t.Delivered, Queued: int(t.Underway)}
	var lost uint64
	for _, n := range t.Lost {
		lost += n
	}
	net.Losses = []api.Lost{{Reason: "lost", About: "on the way to the collector", Count: lost}}
	in := l.intake.Stats()
	var refused uint64
	for i, n := range in.Refused {
		if dta.Verdict(i) != dta.Stored {
			refused += n
		}
	}
	translator := api.Stage{
		Name: "translator", Title: "DTA translator", Unit: "reports", In: in.Reports, Out: in.Stored,
		Losses: []api.Lost{
			{Reason: "duplicate", Count: in.Duplicate, Expected: true},
			{Reason: "stale", About: "too late to tell from a repetition", Count: in.Stale},
			{Reason: "refused", About: "no memory for them", Count: refused},
			{Reason: "malformed", About: "datagrams", Count: in.Foreign + in.Truncated},
		},
	}
	c := l.Control.Stats()
	var read, used uint64
	var unused []api.Lost
	for k, n := range c.Reports {
		read += n
		used += n - c.Refused[k]
		unused = append(unused, api.Lost{Reason: "unreadable " + control.Kind(k).String(), Count: c.Refused[k]})
	}
	memory := api.Stage{
		Name: "memory", Title: "Queryable memory", Unit: "reports", In: in.Stored, Out: read + c.Unplanned,
		Losses: []api.Lost{{Reason: "overwritten", About: "before they were read", Count: l.inbox.Lost()}},
	}
	analyzers := api.Stage{
		Name: "analyzers", Title: "Analyses", Unit: "reports", In: read + c.Unplanned, Out: used,
		Losses: append(unused, api.Lost{Reason: "unplanned", About: "to lists that are nobody's", Count: c.Unplanned}),
	}
	return append(list, sw, net, translator, memory, analyzers)
}
