package live

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/core"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
)

// PaceOf is how fast a fabric of links of a rate is simulated: 1 Gb/s in real
// time, faster ones in slow motion, as fast links carry more packets than can be
// simulated in real time.
func PaceOf(rate model.Rate) float64 { return min(1, float64(model.Gbps)/float64(rate)) }

// pace is how many simulated seconds pass in one second of wall time. Its methods
// may be called by many goroutines.
type pace struct {
	wanted   atomic.Uint64 // in parts per billion
	measured atomic.Uint64
}

const billion = 1e9

func (p *pace) set(v float64) { p.wanted.Store(uint64(v * billion)) }

// get returns the pace that is wanted and the one of the last second.
func (p *pace) get() (wanted, measured float64) {
	return float64(p.wanted.Load()) / billion, float64(p.measured.Load()) / billion
}

// faultDuration is how long an injected fault lasts, in simulated time.
const faultDuration = 40 * time.Millisecond

// Clock is part of core.Input.
func (s *System) Clock() api.Clock {
	wanted, measured := s.pace.get()
	return api.Clock{Now: s.wallTime(s.sim.Time()), Wall: time.Now(), Mode: "demo", Pace: measured, TargetPace: wanted}
}

// Ready is part of core.Input: there is something to see after the first step.
func (s *System) Ready() error {
	if s.sim.Time() == 0 {
		return fmt.Errorf("the simulation has not started yet")
	}
	return nil
}

// Stages is part of core.Input.
func (s *System) Stages() []api.Stage { return s.sim.Stages() }

// demoInput is the System as an Input: it simulates at its pace.
type demoInput struct{ *System }

// Run simulates until ctx ends, and injects a fault of the programme once per
// interval of wall time.
func (s demoInput) Run(ctx context.Context) error {
	loop := s.core.Loop
	defer loop.Close()
	if err := s.simulateAtPace(ctx, loop); err != nil || s.sim.net.Now() < s.end {
		s.sim.Controller.Flush()
		return err
	}
	if err := s.sim.finish(); err != nil {
		return err
	}
	s.reportEvent("ended", "the scenario has ended; the console shows its last state")
	loop.RunUntil(ctx, ctx.Done())
	return nil
}

// simulateAtPace simulates until ctx or a scenario ends.
func (s demoInput) simulateAtPace(ctx context.Context, loop *core.EventLoop) error {
	start, from := time.Now(), s.sim.Now() // of the present pace
	wanted := s.pace.wanted.Load()
	nextFault, kind := start.Add(s.faultInterval/6), 0
	lastWall, lastFabric := start, from
	for ctx.Err() == nil && s.sim.net.Now() < s.end {
		loop.RunPending()
		if err := s.sim.advanceTo(min(s.sim.net.Now()+engine.Of(s.sim.cfg.step), s.end)); err != nil {
			return err
		}
		s.publishFaults()
		now := time.Now()
		if s.faultInterval > 0 && now.After(nextFault) {
			nextFault = nextFault.Add(s.faultInterval)
			if _, err := s.director.Inject(FaultKinds()[kind%len(FaultKinds())].Name, Anywhere, faultDuration); err != nil {
				return fmt.Errorf("live: programme: %w", err)
			}
			kind++
		}
		if d := now.Sub(lastWall); d >= time.Second {
			s.pace.measured.Store(uint64(float64(s.sim.Now().Sub(lastFabric)) / float64(d) * billion))
			lastWall, lastFabric = now, s.sim.Now()
		}
		if w := s.pace.wanted.Load(); w != wanted {
			wanted, start, from = w, now, s.sim.Now()
		}
		due := start.Add(time.Duration(float64(s.sim.Now().Sub(from)) / float64(wanted) * billion))
		switch late := now.Sub(due); {
		case late > time.Second:
			start, from = now, s.sim.Now() // too slow for the pace: it does not catch up
		case late < 0:
			loop.Sleep(ctx, -late)
		}
	}
	return nil
}
