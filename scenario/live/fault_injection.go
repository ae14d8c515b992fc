package live

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
)

// Clock is part of api.Live.
func (s *System) Clock() api.Clock {
	wanted, measured := s.player.Pace()
	return api.Clock{Now: s.time(s.player.Now()), Wall: time.Now(), Mode: "demo", Pace: measured, TargetPace: wanted}
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
	asked := s.player.Call(ctx, func() {
		var one *Injected
		if one, err = s.director.Inject(r.Kind, place, last); err != nil {
			err = fmt.Errorf("%w: %w", err, api.ErrInvalid)
			return
		}
		one.By = "user"
		f = s.fault(one)
		s.snapshot()
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

// snapshot makes that Faults and Health give out. It runs between
// two steps.
func (s *System) snapshot() {
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
	h := s.account.Health(time.Now(), append(slices.Clone(*s.stages.Load()), s.keeper.Stage()))
	s.Hear(&h)
	h.Store.MaxBytes, h.Store.Expired = int64(maxStore), s.forgotten.Load()
	if t := s.tended.Load(); t != nil {
		h.Store.Bytes, h.Store.Memory = int64(t.After), int64(t.Memory)
	}
	return h
}

// stages is the way of reports, from switches to analyses.
func (l *Lab) stages() []api.Stage {
	t := l.session.Telemetry()
	sw := api.Stage{Name: "switches", Title: "Switch programs", Unit: "reports", In: t.Reports, Out: t.Reports, Losses: []api.StageLoss{}}
	net := api.Stage{Name: "transport", Title: "Management network", Unit: "reports", In: t.Reports, Out: t.Delivered, Queued: int(t.Underway)}
	var lost uint64
	for _, n := range t.Lost {
		lost += n
	}
	net.Losses = []api.StageLoss{{Reason: "lost", About: "on the way to the collector", Count: lost}}
	return append([]api.Stage{sw, net}, control.Stages(l.line.Intake(), l.line.Lost(), l.Control.Stats())...)
}
