package live

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/weft-telemetry/weft/control/api"
)

// FaultKinds is part of api.Lab.
func (s *System) FaultKinds() (list []api.FaultKind) {
	for _, k := range FaultKinds() {
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
	location := Anywhere
	if id, ok := s.sim.fabric.ByName(r.Node); ok {
		location = At(id, r.Port)
	}
	duration := faultDuration
	if r.DurationMs > 0 {
		duration = time.Duration(r.DurationMs) * time.Millisecond
	}
	called := s.core.Loop.Call(ctx, func() {
		var one *Injected
		if one, err = s.director.Inject(r.Kind, location, duration); err != nil {
			err = fmt.Errorf("%w: %w", err, api.ErrInvalid)
			return
		}
		one.By = "user"
		f = s.faultView(one)
		s.publishFaults()
	})
	if called != nil {
		return f, called
	}
	return f, err
}

// Faults is part of api.Lab.
func (s *System) Faults() []api.Fault { return *s.faults.Load() }

// SetPace is part of api.Lab.
func (s *System) SetPace(_ context.Context, pace float64) error {
	s.pace.set(pace)
	return nil
}

// faultView is a fault as the API shows it.
func (s *System) faultView(f *Injected) api.Fault {
	now := s.sim.Now()
	out := api.Fault{
		ID: strconv.Itoa(f.ID), By: f.By, State: "active", Begin: s.wallTime(f.At),
		Request: api.FaultRequest{Kind: f.Kind, DurationMs: int(f.For.Milliseconds())},
		Verdict: "pending", Want: f.Causes[0].String(),
	}
	if len(f.Nodes) > 0 {
		out.Request.Node = s.sim.fabric.Node(f.Nodes[0]).Name
	}
	if end := f.At.Add(f.For); now >= end {
		t := s.wallTime(end)
		out.State, out.End = "ended", &t
	}
	switch in := s.director.incidents[f.Incident]; {
	case f.Found && in != nil:
		ms := float64(f.FoundAt.Sub(f.At)) / float64(time.Millisecond)
		out.Verdict, out.Got, out.FoundMs, out.Incident = "right", in.cause.String(), &ms, "i"+strconv.FormatUint(f.Incident, 10)
		if !f.isFoundBy(in) {
			out.Verdict = "wrong" // it was merged into one with another cause or place
		}
	case now > f.At.Add(f.For+reportDelay):
		out.Verdict = "missed"
	}
	return out
}

// Found returns how many faults were found with their cause at their place, and how
// many there were time to find, of the newest ones.
func (s *System) Found() (right, judged int) {
	for _, f := range *s.faults.Load() {
		switch f.Verdict {
		case "right":
			right++
			judged++
		case "wrong", "missed":
			judged++
		}
	}
	return right, judged
}

// maxFaultsShown is how many faults Faults returns, the newest ones.
const maxFaultsShown = 100

// publishFaults makes what Faults and Stages return. It runs between two steps.
func (s *System) publishFaults() {
	var list []api.Fault
	for _, f := range slices.Backward(s.director.faults) {
		if len(list) == maxFaultsShown {
			break
		}
		list = append(list, s.faultView(f))
	}
	before := s.Faults()
	s.faults.Store(&list)
	for i := range list {
		j := slices.IndexFunc(before, func(f api.Fault) bool { return f.ID == list[i].ID })
		if j < 0 || before[j].Verdict != list[i].Verdict || before[j].State != list[i].State || before[j].Incident != list[i].Incident {
			s.core.Hub().Publish(list[i])
		}
	}
	s.sim.publishStages()
}
