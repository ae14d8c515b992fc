package cluster

import (
	"bytes"
	"context"
	"encoding/gob"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/core"
	"github.com/weft-telemetry/weft/control/flowwatch"
	"github.com/weft-telemetry/weft/internal/fieldcodec"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/stream"
)

// Mark is how far a leader has come: all that follows from batches of events up to Batch
// is in the store. It is the value of LeadMark.
type Mark struct {
	Run, Batch uint64
	State      control.Snapshot
}

// LeadMark is the name of the leader's mark.
const LeadMark = "lead"

const (
	// warmUp is how long events stay unacknowledged, by the fabric's clock: a leader that
	// takes over reads them first, so that traces, queues and counters are those of its
	// predecessor when it continues.
	warmUp = 2 * time.Second
	// DefaultCommit is how often records are written.
	DefaultCommit = 250 * time.Millisecond
	// maxRecords is how many records are written together at most.
	maxRecords = 50_000
	// storeRetry is how long a leader waits for a store that fails. Input waits in the broker.
	storeRetry = 500 * time.Millisecond
)

// Leader makes incidents and records of what decoder and analyzers send. Work is a
// member's work.
type Leader struct {
	Config  control.Config
	Streams Streams
	Marks   Marks
	Store   core.Store
	Log     *slog.Logger
	// Commit is how often records are written, by the fabric's clock. All leaders have the
	// same: one that takes over looks whether its first records were written before.
	Commit time.Duration
	Shed   ShedConfig
	// Applied, if not nil, is called when a batch of events is in the store.
	Applied func(run, batch uint64)

	malformed, missing, batches, shed atomic.Uint64
	lag                               atomic.Int64
}

// Lag is how far what was applied is behind what has arrived, by the decoder's clock.
func (l *Leader) Lag() time.Duration { return time.Duration(l.lag.Load()) }

// Sheds counts how often a member was shed.
func (l *Leader) Sheds() uint64 { return l.shed.Load() }

// Counts are batches that were applied, frames that could not be read, and results that
// the leader went on without.
func (l *Leader) Counts() (batches, malformed, missing uint64) {
	return l.batches.Load(), l.malformed.Load(), l.missing.Load()
}

// batchFrame is a batch of events.
type batchFrame struct {
	Header
	events []event
	at     stream.Position
}

// resultKey is a partition's result of a slot.
type resultKey struct {
	run, slot uint64
	part      uint32
}

type slotResult struct {
	*flowwatch.PartResult
	at stream.Position
}

// leaderWork is one term of a leader.
type leaderWork struct {
	*Leader
	ctx        context.Context
	sub        stream.Subscription
	joins      []joiner
	controller *control.Controller
	devices    *forwardedDevices
	merger     *flowwatch.ResultMerger
	mark       Mark
	ahead      bool // of the mark: records are written
	looked     bool // for records that are stored and not marked
	run        uint64
	now        model.Time
	committed  int64 // the interval of the last commit

	slow slowWatch

	queue   []batchFrame
	results map[resultKey]slotResult
	batch   record.Batch
	applied []appliedBatch
}

// appliedBatch is a batch that is not acknowledged.
type appliedBatch struct {
	now     model.Time
	at      stream.Position
	results []stream.Position
}

// forwardedDevices is control.Devices of a fabric whose counters the decoder forwards.
type forwardedDevices struct {
	control.NoDevices
	list []control.PortCounters
}

// Counters is part of control.Devices.
func (d *forwardedDevices) Counters(list []control.PortCounters) []control.PortCounters {
	list = append(list, d.list...)
	d.list = d.list[:0]
	return list
}

// Work leads until ctx ends or another leader takes over.
func (l *Leader) Work(ctx context.Context, _ int, epoch uint64) error {
	w := &leaderWork{
		Leader: l, ctx: ctx, results: map[resultKey]slotResult{}, devices: &forwardedDevices{}, joins: make([]joiner, 1+l.Streams.Partitions),
		slow: slowWatch{cfg: l.Shed},
	}
	defer w.endShedding()
	if err := w.begin(); err != nil {
		return err
	}
	defer w.sub.Close() //nolint:errcheck // what is not acknowledged is read again
	l.Log.Info("leading", "epoch", epoch, "run", w.mark.Run, "batch", w.mark.Batch)
	for ctx.Err() == nil {
		n, err := w.sub.Poll(w.take)
		if err != nil {
			return err
		}
		for len(w.queue) > 0 {
			done, err := w.apply(&w.queue[0])
			if err != nil {
				return err
			}
			if !done {
				break
			}
			w.queue = w.queue[1:]
		}
		w.lag.Store(int64(w.waited()))
		w.watchSlow()
		if n == 0 {
			await(ctx, w.sub)
		}
	}
	return ctx.Err()
}

// waited is how much of the decoder's time waits to be applied.
func (w *leaderWork) waited() time.Duration {
	if len(w.queue) == 0 {
		return 0
	}
	newest := w.now
	if events := w.queue[len(w.queue)-1].events; len(events) > 0 {
		newest = max(newest, events[len(events)-1].now)
	}
	return newest.Sub(w.now)
}

// begin reads the mark, and makes a controller that continues from there.
func (w *leaderWork) begin() (err error) {
	data, err := w.Marks.Get(w.ctx, LeadMark)
	if err != nil {
		return err
	}
	if data != nil {
		if err := gob.NewDecoder(bytes.NewReader(data)).Decode(&w.mark); err != nil {
			return fmt.Errorf("cluster: mark of the leader: %w", err)
		}
	}
	cfg := w.Config
	last, err := core.ReadLastIDs(w.ctx, w.Store)
	if err != nil {
		return err
	}
	cfg.Incidents.LastID, cfg.LastDiagnosis = last.Incident, last.Diagnosis
	w.controller, err = control.New(cfg, w.devices, control.Output{Records: w.addRecords, Panic: core.NewPanicLog(w.Log).Add})
	if err != nil {
		return err
	}
	if err := w.newRun(0); err != nil {
		return err
	}
	w.ahead = w.mark.Batch == 0
	all := make([]int, 1+w.Streams.Partitions)
	for i := range all {
		all[i] = i
	}
	w.sub, err = w.Streams.Lead.Takeover(all...)
	return err
}

// newRun begins with the slots of another decoder.
func (w *leaderWork) newRun(run uint64) (err error) {
	w.run = run
	w.merger, err = flowwatch.NewResultMerger(w.Config.Flows)
	w.controller.UseResults(w.merger)
	return err
}

func (w *leaderWork) addRecords(b *record.Batch) {
	if w.ahead {
		w.batch.Append(b)
	}
}

// take takes a message.
func (w *leaderWork) take(m stream.Message) {
	h, body, done, err := w.joins[m.Position.Partition].add(m.Data)
	switch {
	case err != nil:
		w.malformed.Add(1)
		return
	case !done:
		return
	case m.Position.Partition == 0:
		w.queue = append(w.queue, batchFrame{h, w.decodeEvents(bytes.Clone(body)), m.Position})
		return
	}
	r := flowwatch.NewPartResult(w.merger.Ports())
	c := fieldcodec.NewReader(body)
	if r.Code(c); c.End() != nil {
		w.malformed.Add(1)
		return
	}
	w.results[resultKey{h.Run, h.Number, h.Part}] = slotResult{r, m.Position}
}

// decodeEvents decodes a batch, of which events keep parts; one that is malformed is empty.
func (w *leaderWork) decodeEvents(body []byte) (events []event) {
	c := fieldcodec.NewReader(body)
	for c.Err() == nil && len(c.Rest()) > 0 {
		events = append(events, event{})
		events[len(events)-1].code(c)
	}
	if c.Err() != nil {
		w.malformed.Add(1)
		return nil
	}
	return events
}

// apply applies a batch of events, unless results of its slots have not arrived.
func (w *leaderWork) apply(f *batchFrame) (done bool, err error) {
	events := f.events
	for i := range events {
		if e := &events[i]; e.kind == slotEvent && !w.complete(f.Run, e) {
			return false, nil
		}
	}
	if f.Run != w.run {
		if err := w.newRun(f.Run); err != nil {
			return false, err
		}
	}
	if !w.ahead && (f.Run != w.mark.Run || f.Number > w.mark.Batch) {
		if err := w.continueFromMark(); err != nil {
			return false, err
		}
	}
	one := appliedBatch{at: f.at}
	flushed := false
	for i := range events {
		w.ingest(f.Run, &events[i], &one)
		flushed = flushed || events[i].kind == flushEvent
	}
	one.now = w.now
	w.applied = append(w.applied, one)
	w.batches.Add(1)
	if at := int64(w.now) / int64(w.Commit); w.ahead && (at != w.committed || flushed || w.batch.Len() > maxRecords) {
		w.committed = at
		return true, w.commit(f.Run, f.Number)
	}
	return true, nil
}

// continueFromMark ends the warm-up: from here on records are new.
func (w *leaderWork) continueFromMark() error {
	w.ahead = true
	w.committed = int64(w.now) / int64(w.Commit)
	return w.controller.Restore(w.mark.State)
}

// complete reports whether all results of a slot have arrived that will.
func (w *leaderWork) complete(run uint64, e *event) bool {
	have := 0
	for p := range uint32(w.Streams.Partitions) {
		if _, ok := w.results[resultKey{run, e.slot, p}]; ok {
			have++
		}
	}
	return have+len(e.lost) >= w.Streams.Partitions
}

// ingest hands an event to the controller.
func (w *leaderWork) ingest(run uint64, e *event, b *appliedBatch) {
	w.now = max(w.now, e.now)
	switch e.kind {
	case reportEvent:
		w.controller.IngestReport(e.now, e.list, e.data)
	case countersEvent:
		w.devices.list = append(w.devices.list, e.counters...)
	case lostEvent:
		w.controller.NoteLost(e.now, e.list, e.any)
	case readingEvent:
		w.controller.IngestReading(e.now, e.reading)
	case sampleEvent:
		w.controller.IngestSample(e.now, e.sample)
	case flowRecordEvent:
		w.controller.IngestFlowRecord(e.now, e.flowRecord)
	case routesEvent:
		if w.controller.IngestRoutes(e.now, e.routes) != nil {
			w.malformed.Add(1)
		}
	case collectivesEvent:
		w.controller.IngestCollectives(e.now, e.collectives)
	case noOutPortsEvent:
		w.controller.ForgetOutPorts()
	case tickEvent:
		w.controller.Tick(e.now)
	case flushEvent:
		w.controller.Flush()
		w.controller.Tick(e.now)
	case slotEvent:
		var parts []*flowwatch.PartResult
		for p := range uint32(w.Streams.Partitions) {
			key := resultKey{run, e.slot, p}
			if r, ok := w.results[key]; ok {
				parts, b.results = append(parts, r.PartResult), append(b.results, r.at)
				delete(w.results, key)
			}
		}
		w.missing.Add(uint64(w.Streams.Partitions - len(parts)))
		if len(parts) > 0 {
			w.controller.IngestSlot(e.now, func() *flowwatch.Slot { return w.merger.Merge(parts) })
		}
	}
}

// commit writes the records, then the mark, and then acknowledges what is no longer needed.
func (w *leaderWork) commit(run, number uint64) error {
	for w.batch.Len() > 0 {
		err := w.write()
		if err == nil {
			break
		}
		w.Log.Error("write to store failed; input waits in the broker", "error", err)
		w.looked = false // some kinds of records may be stored
		select {
		case <-w.ctx.Done():
			return w.ctx.Err()
		case <-time.After(storeRetry):
		}
	}
	w.batch = record.Batch{Flows: make([]record.FlowSlot, 0, len(w.batch.Flows)*5/4)} // the next is about as large
	w.mark = Mark{run, number, w.controller.Snapshot()}
	var data bytes.Buffer
	if err := gob.NewEncoder(&data).Encode(&w.mark); err != nil {
		return err
	}
	if err := w.Marks.Put(w.ctx, LeadMark, data.Bytes()); err != nil {
		return err
	}
	if w.Applied != nil {
		w.Applied(run, number)
	}
	return w.acknowledge()
}

func (w *leaderWork) write() error {
	if !w.looked { // the predecessor, or a write that failed, may have stored some of it
		if err := dropStored(w.ctx, w.Store, &w.batch); err != nil {
			return err
		}
		w.looked = true
	}
	return w.Store.Append(w.ctx, &w.batch)
}

// acknowledge acknowledges batches that are older than a warm-up, and then their results: a
// batch that is read again needs them.
func (w *leaderWork) acknowledge() error {
	n := 0
	for n < len(w.applied) && w.now.Sub(w.applied[n].now) > warmUp {
		n++
	}
	if n == 0 {
		return nil
	}
	if err := w.sub.Ack(w.applied[n-1].at); err != nil {
		return err
	}
	last := map[int]stream.Position{}
	for i := range n {
		for _, at := range w.applied[i].results {
			last[at.Partition] = at
		}
	}
	for _, at := range last {
		if err := w.sub.Ack(at); err != nil {
			return err
		}
	}
	w.applied = append(w.applied[:0], w.applied[n:]...)
	return nil
}
