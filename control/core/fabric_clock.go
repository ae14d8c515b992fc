package core

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/model"
)

// FabricClock is the clock of a fabric whose devices show the wall's time. It advances
// by the monotonic clock, so a step of this host's wall clock neither stops the
// analyses nor makes reports late. Which clock is right after a step is decided by the
// times of the reports: those of the devices are independent of this host's.
type FabricClock struct {
	wall    func() time.Time
	elapsed func() time.Duration // by the monotonic clock
	log     *slog.Logger
	base    model.Time

	offset atomic.Int64 // beside the monotonic clock
	steps  atomic.Uint64
	ahead  atomic.Int64 // by how much the wall clock differs, while it does

	// Of the goroutine that calls Follow.
	step      int64
	since     time.Duration // when the step was seen
	evaluated time.Duration
}

// Bounds of FabricClock.
const (
	// minStep is the least difference that is a step. What NTP corrects gradually is
	// less, and followed at once.
	minStep = time.Second
	// evaluateEvery is how long reports are compared with both clocks.
	evaluateEvery = time.Second
	// adoptAfter is after how long without reports the wall clock is believed.
	adoptAfter = 10 * time.Second
)

// NewFabricClock makes a clock that shows the wall's time. elapsed is the monotonic
// clock; nil: this process's.
func NewFabricClock(wall func() time.Time, elapsed func() time.Duration, log *slog.Logger) *FabricClock {
	if elapsed == nil {
		began := time.Now()
		elapsed = func() time.Duration { return time.Since(began) }
	}
	return &FabricClock{wall: wall, elapsed: elapsed, log: log, base: model.TimeOf(wall()).Add(-elapsed())}
}

// Now is the fabric's time, for any goroutine.
func (c *FabricClock) Now() model.Time {
	return c.base.Add(c.elapsed()) + model.Time(c.offset.Load())
}

// Steps returns how many steps of the wall clock there were.
func (c *FabricClock) Steps() uint64 { return c.steps.Load() }

// Follow compares the clock with the wall's, and is called by the controller's
// goroutine. It reports whether the clock was set to another time.
func (c *FabricClock) Follow(to *control.Controller) (rebased bool) {
	return c.follow(to, model.TimeOf(c.wall()), c.elapsed())
}

func (c *FabricClock) follow(to *control.Controller, wall model.Time, elapsed time.Duration) (rebased bool) {
	off := int64(wall) - int64(c.base.Add(elapsed)) - c.offset.Load()
	if time.Duration(off).Abs() < minStep {
		if c.step != 0 {
			c.log.Info("this host's wall clock agrees with the fabric's again")
			to.ProposeClock(0)
			c.step = 0
			c.ahead.Store(0)
		}
		c.offset.Add(off)
		return false
	}
	if time.Duration(off-c.step).Abs() >= minStep {
		c.steps.Add(1)
		c.log.Warn("this host's wall clock was set; the fabric's time continues until reports show which is right", "step", time.Duration(off))
		c.step, c.since, c.evaluated = off, elapsed, elapsed
		c.ahead.Store(off)
		to.ProposeClock(off)
		return false
	}
	if elapsed-c.evaluated < evaluateEvery {
		return false
	}
	c.evaluated = elapsed
	present, other := to.ProposeClock(off)
	if other <= present && (present > 0 || elapsed-c.since < adoptAfter) {
		return false
	}
	c.offset.Add(off)
	c.step = 0
	c.ahead.Store(0)
	if err := to.Rebase(wall); err != nil {
		c.log.Error("analyses could not start again", "error", err) // with a configuration that they started with
	}
	c.log.Warn("the fabric's time follows this host's wall clock, and the analyses start again", "step", time.Duration(off))
	return true
}

// Alert returns what an operator should know, or nothing.
func (c *FabricClock) Alert() string {
	off := time.Duration(c.ahead.Load())
	if off == 0 {
		return ""
	}
	return fmt.Sprintf("this host's wall clock is off by %v from the time of the switches' reports; check its NTP", off.Round(time.Second))
}
