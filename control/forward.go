package control

import (
	"github.com/weft-telemetry/weft/analyze/load"
	"github.com/weft-telemetry/weft/analyze/loss"
	"github.com/weft-telemetry/weft/analyze/routeview"
	"github.com/weft-telemetry/weft/control/flowwatch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/nccl"
)

// Forwarder takes what a controller that only decodes has received, for analyses in other
// processes. It must not keep what it is given, nor block.
type Forwarder interface {
	// Report takes a report that is not a flowset.
	Report(now model.Time, list dta.ListID, data []byte)
	// Slot takes a decoded slot, after the counters that explain its losses.
	Slot(now model.Time, s *flowwatch.DecodedSlot)
	// Counters takes counters of ports that have changed.
	Counters(now model.Time, list []PortCounters)
	// Reading, Sample and FlowRecord take what switches on sale report.
	Reading(now model.Time, r *portstat.Reading)
	Sample(now model.Time, s *portstat.Sample)
	FlowRecord(now model.Time, r *portstat.FlowRecord)
	// Routes takes what has been found of a switch's routes.
	Routes(now model.Time, t *routeview.Table)
	// Collectives takes NCCL's records.
	Collectives(now model.Time, d *nccl.Dump)
	// Lost says that reports were lost: of a list, or of any.
	Lost(now model.Time, list dta.ListID, any bool)
	Tick(now model.Time)
	// Flush ends the input.
	Flush(now model.Time)
}

// flowWindows is what a window of slots shows: of a Watch, or of partitions elsewhere.
type flowWindows interface {
	TakeLinks() []*loss.Link
	TakeImbalances() []load.Imbalance
	ResetSizes()
}

// forwardReport decodes a flowset, and forwards slots and all other reports.
func (c *Controller) forwardReport(now model.Time, k Kind, list dta.ListID, data []byte) error {
	if k != Flowset {
		c.cfg.Forward.Report(c.now, list, data)
		return nil
	}
	err := c.flows.IngestReport(now, data)
	for s := range c.flows.Decoder.Complete() {
		c.forwardSlot(s)
	}
	return err
}

func (c *Controller) forwardSlot(s *flowwatch.DecodedSlot) {
	c.stats.Slots++
	c.flowsetsJudged = emitted(c.flowStats())
	c.forwardCounters()
	c.cfg.Forward.Slot(c.now, s)
}

// forwardCounters forwards counters when readNewestCounters reads them, so that analyses
// elsewhere see what they would see here.
func (c *Controller) forwardCounters() {
	if c.now == c.meter.readAt {
		return
	}
	c.meter.readAt = c.now
	if c.meter.list = c.devices.Counters(c.meter.list[:0]); len(c.meter.list) > 0 {
		c.cfg.Forward.Counters(c.now, c.meter.list)
	}
}

// forwardTick is Tick of a controller that only decodes.
func (c *Controller) forwardTick(now model.Time) {
	c.protect("flow decoding", func() {
		for s := range c.flows.Decoder.Tick(now) {
			c.forwardSlot(s)
		}
	})
	if c.now.Sub(c.meter.readAt) >= min(c.cfg.SampleInterval, c.cfg.Flows.Slot) {
		c.forwardCounters()
	}
	c.protect("routes", func() { c.forwardRoutes(now) })
	c.protect("jobs", func() { c.forwardCollectives(now) })
	c.cfg.Forward.Tick(now)
	c.protect("state", func() { c.publishView(now) })
}

// forwardFlush is Flush of a controller that only decodes.
func (c *Controller) forwardFlush() {
	c.protect("flow decoding", func() {
		for s := range c.flows.Decoder.Flush(c.now) {
			c.forwardSlot(s)
		}
	})
	c.cfg.Forward.Flush(c.now)
}

// UseResults has slots come from partitions in other processes, by IngestSlot: their
// windows are those of a merger.
func (c *Controller) UseResults(m *flowwatch.ResultMerger) { c.windows = m }

// IngestSlot takes a slot that partitions in other processes have analysed.
func (c *Controller) IngestSlot(now model.Time, merge func() *flowwatch.Slot) {
	c.now = max(c.now, now)
	c.protect("flow analyses", func() {
		s := merge()
		c.processSlots(func(yield func(*flowwatch.Slot) bool) { yield(s) })
	})
}

// ForgetOutPorts says that mirrors lack the ports by which packets left, as those of ERSPAN
// do, whatever the configuration says.
func (c *Controller) ForgetOutPorts() { c.traces.ForgetOutPorts() }

// NoteLost is NoteOverwritten, or NoteDropped for reports of any list.
func (c *Controller) NoteLost(now model.Time, list dta.ListID, any bool) {
	if any {
		c.NoteDropped(now)
	} else {
		c.NoteOverwritten(now, list)
	}
}

// Snapshot is what outlives a leader: its incidents, and the numbers given to them and to
// diagnoses.
func (c *Controller) Snapshot() Snapshot {
	return Snapshot{Incidents: c.correlator.Snapshot(), Verdicts: c.verdicts}
}

// Snapshot is the state of a controller that its successor continues with. What analyses
// hold is not part of it: it comes from the reports of the last seconds.
type Snapshot struct {
	Incidents []byte
	Verdicts  uint64
}

// Restore continues with the incidents and numbers of another controller. Records that
// wait to be published are forgotten: that controller has published them.
func (c *Controller) Restore(s Snapshot) error {
	c.batch.Reset()
	c.correlator.TakeChanged()
	if err := c.correlator.Restore(s.Incidents); err != nil {
		return err
	}
	c.verdicts = s.Verdicts
	return nil
}
