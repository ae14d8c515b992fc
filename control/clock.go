package control

import (
	"errors"
	"math"
	"reflect"

	"github.com/weft-telemetry/weft/analyze/audit"
	"github.com/weft-telemetry/weft/analyze/commodity"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/analyze/sampled"
	"github.com/weft-telemetry/weft/control/flowwatch"
	"github.com/weft-telemetry/weft/control/portwatch"
	"github.com/weft-telemetry/weft/control/rootcause"
	"github.com/weft-telemetry/weft/model"
)

// clockVotes counts which of two clocks the times of reports are nearer to: the one
// that the controller is called with, or another that the collector's host now shows.
type clockVotes struct {
	offset  int64 // of the other clock; 0: there is none
	present uint64
	other   uint64
}

// ProposeClock has the times of reports compared with a clock that is off by some
// nanoseconds from the present one; 0 ends it. It returns how many reports since the
// last call were nearer to the present clock, and how many to the other one.
func (c *Controller) ProposeClock(offset int64) (present, other uint64) {
	present, other = c.clocks.present, c.clocks.other
	c.clocks = clockVotes{offset: offset}
	return present, other
}

// compareClocks notes which clock the time of a report is nearer to.
func (c *Controller) compareClocks(at model.Time) {
	v := &c.clocks
	if v.offset == 0 {
		return
	}
	// A difference of forged times may overflow, which is far from both.
	now := max(c.now, c.wall)
	if distance(at, now) <= distance(at, now+model.Time(v.offset)) {
		v.present++
	} else {
		v.other++
	}
}

func distance(a, b model.Time) uint64 {
	if a < b {
		a, b = b, a
	}
	return uint64(a) - uint64(b)
}

// Rebase sets the fabric's clock to another time, before or after the present one.
// Half of a slot, of a trace or of an answer would look like loss: everything that
// waits is dropped without a verdict, open incidents are closed, and the analyses
// start again. What was found before stays.
func (c *Controller) Rebase(now model.Time) error {
	delta := now.Sub(c.now)
	c.correlator.CloseQuiet(math.MaxInt64)
	c.publishChanges()
	err := c.traces.Rewind()
	if c.flows != nil {
		c.flowsBase = sumCounters(c.flowsBase, c.flows.Stats())
		c.causesBase = sumCounters(c.causesBase, c.diagnoser.Stats())
	}
	err = errors.Join(err, c.newAnalyses())
	for i := range c.timers {
		c.timers[i].at = c.timers[i].at.Add(delta)
	}
	// Routes that were set at a time of the other clock are those of now.
	c.cfg.Intent.Forget(math.MaxInt64)
	clear(c.lastVerdict)
	c.lastVerdictBytes = 0
	c.flowsetsJudged = emitted(c.flowStats())
	c.balanceWindow, c.recentLosses = balanceWindow{}, recentLosses{}
	c.suspects, c.stuck = suspects{}, stuckPackets{}
	clear(c.tracedFlows)
	c.meter, c.liveness = newPortMeter(c.cfg.Flows.Slot, meterSlots(&c.cfg)), newLivenessTable(c.fabric)
	c.rebaseRoutes(now)
	c.now, c.wall = now, now
	c.clocks = clockVotes{}
	c.stats.Rebased++
	return err
}

// newAnalyses makes the analyses that only the controller's goroutine uses.
func (c *Controller) newAnalyses() (err error) {
	var e error
	c.flows, e = flowwatch.New(c.cfg.Flows)
	err = errors.Join(err, e)
	c.windows = c.flows
	c.ports, e = portwatch.New(c.cfg.Ports, c.devices)
	err = errors.Join(err, e)
	c.diagnoser, e = rootcause.New(c.cfg.Causes)
	err = errors.Join(err, e)
	c.counters, e = commodity.New(commodity.DefaultConfig(c.cfg.Intent))
	c.counted = 0
	err = errors.Join(err, e)
	c.auditor, e = audit.New(audit.DefaultConfig(paths.NewPorts(c.fabric), c.cfg.Flows.Slot))
	err = errors.Join(err, e)
	c.sampled, e = sampled.NewEstimator(sampled.DefaultConfig(c.cfg.Intent))
	c.sampledFrom, c.exporters = 0, sampled.NewExporters(c.cfg.Intent)
	return errors.Join(err, e)
}

// flowStats are the counts of this and earlier watches of flows.
func (c *Controller) flowStats() flowwatch.Stats {
	if c.stats.Rebased == 0 {
		return c.flows.Stats()
	}
	return sumCounters(c.flowsBase, c.flows.Stats())
}

// sumCounters adds the counters of two structs, field by field.
func sumCounters[T any](a, b T) T {
	addFields(reflect.ValueOf(&a).Elem(), reflect.ValueOf(b))
	return a
}

func addFields(sum, more reflect.Value) {
	switch sum.Kind() {
	case reflect.Struct:
		for i := range sum.NumField() {
			addFields(sum.Field(i), more.Field(i))
		}
	case reflect.Uint64:
		sum.SetUint(sum.Uint() + more.Uint())
	}
}
