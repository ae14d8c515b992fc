package cluster

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/analyze/routeview"
	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/flowwatch"
	"github.com/weft-telemetry/weft/internal/fieldcodec"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/stream"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/nccl"
)

// Publisher is the decoder's end: it divides slots among partitions, and sends everything
// else to the leader, in order. The goroutine of the controller uses it.
type Publisher struct {
	streams  Streams
	cfg      *control.Config
	splitter *flowwatch.Splitter
	run      uint64
	batches  uint64 // of events
	slots    uint64
	buffer   []byte
	sent     model.Time // when a batch was sent
	parts    [][]byte
	message  []byte // memory of publish
	// wait has Publish wait for room in the streams: for recordings, which can wait.
	wait context.Context

	lostEvents, lostParts atomic.Uint64
}

var _ control.Forwarder = (*Publisher)(nil)

// NewPublisher makes a publisher for the fabric of a configuration. If wait is not nil, it
// waits for streams that are full until wait ends; otherwise it counts what they refuse.
func NewPublisher(cfg *control.Config, s Streams, wait context.Context) *Publisher {
	var seed [8]byte
	_, _ = rand.Read(seed[:])
	return &Publisher{
		streams: s, cfg: cfg, splitter: flowwatch.NewSplitter(&cfg.Flows, s.Partitions), parts: make([][]byte, s.Partitions),
		run: binary.LittleEndian.Uint64(seed[:]), wait: wait,
	}
}

// Position is the run, and the last batch of events that was published.
func (p *Publisher) Position() (run, batch uint64) { return p.run, p.batches }

// Refused counts batches of events and parts of slots that the streams did not take.
func (p *Publisher) Refused() (events, parts uint64) { return p.lostEvents.Load(), p.lostParts.Load() }

func (p *Publisher) publish(s Stream, key uint64, h Header, unique byte, body []byte) error {
	for {
		err := publish(s, key, h, unique, body, &p.message)
		if p.wait == nil || !errors.Is(err, stream.ErrFull) {
			return err
		}
		if err := s.Flush(p.wait); err != nil {
			return err
		}
	}
}

func (p *Publisher) add(e *event) {
	c := fieldcodec.NewWriter(p.buffer)
	if len(p.buffer) == 0 && !p.cfg.Traces.Trace.OutPorts {
		// In every batch: a leader that takes over begins with any.
		(&event{kind: noOutPortsEvent, now: e.now}).code(c)
	}
	e.code(c)
	p.buffer = c.Written()
	if len(p.buffer) > maxChunk-4096 || e.kind == flushEvent || e.kind == tickEvent && (e.now < p.sent || e.now.Sub(p.sent) >= sendEvery) {
		p.sent = e.now
		p.send()
	}
}

// sendEvery is how long events wait for others, by the decoder's clock: a message for each
// tick costs the broker and the leader more than what is in it.
const sendEvery = 5 * time.Millisecond

// send publishes the events that wait, as one batch.
func (p *Publisher) send() {
	p.batches++
	if err := p.publish(p.streams.Lead, 0, Header{Run: p.run, Number: p.batches}, 0, p.buffer); err != nil {
		p.lostEvents.Add(1)
	}
	p.buffer = p.buffer[:0]
}

// Report is part of control.Forwarder.
func (p *Publisher) Report(now model.Time, list dta.ListID, data []byte) {
	p.add(&event{kind: reportEvent, now: now, list: list, data: data})
}

// Slot is part of control.Forwarder.
func (p *Publisher) Slot(now model.Time, s *flowwatch.DecodedSlot) {
	p.slots++
	for i := range p.parts {
		p.parts[i] = p.parts[i][:0]
	}
	p.splitter.Split(s, p.cfg.Flows.Slot, p.slots%uint64(p.cfg.BalanceSlots) == 0, p.parts)
	e := event{kind: slotEvent, now: now, slot: p.slots}
	for i, body := range p.parts {
		h := Header{Run: p.run, Number: p.slots, Part: uint32(i)}
		if err := p.publish(p.streams.Flows, uint64(i), h, 's', body); err != nil {
			p.lostParts.Add(1)
			e.lost = append(e.lost, uint32(i))
		}
	}
	p.add(&e)
}

// Counters is part of control.Forwarder.
func (p *Publisher) Counters(now model.Time, list []control.PortCounters) {
	p.add(&event{kind: countersEvent, now: now, counters: list})
}

// Lost is part of control.Forwarder.
func (p *Publisher) Lost(now model.Time, list dta.ListID, any bool) {
	p.add(&event{kind: lostEvent, now: now, list: list, any: any})
}

// Reading is part of control.Forwarder.
func (p *Publisher) Reading(now model.Time, r *portstat.Reading) {
	p.add(&event{kind: readingEvent, now: now, reading: r})
}

// Sample is part of control.Forwarder.
func (p *Publisher) Sample(now model.Time, s *portstat.Sample) {
	p.add(&event{kind: sampleEvent, now: now, sample: s})
}

// FlowRecord is part of control.Forwarder.
func (p *Publisher) FlowRecord(now model.Time, r *portstat.FlowRecord) {
	p.add(&event{kind: flowRecordEvent, now: now, flowRecord: r})
}

// Routes is part of control.Forwarder.
func (p *Publisher) Routes(now model.Time, t *routeview.Table) {
	p.add(&event{kind: routesEvent, now: now, routes: t})
}

// Collectives is part of control.Forwarder.
func (p *Publisher) Collectives(now model.Time, d *nccl.Dump) {
	p.add(&event{kind: collectivesEvent, now: now, collectives: d})
}

// Tick is part of control.Forwarder.
func (p *Publisher) Tick(now model.Time) { p.add(&event{kind: tickEvent, now: now}) }

// Flush is part of control.Forwarder.
func (p *Publisher) Flush(now model.Time) { p.add(&event{kind: flushEvent, now: now}) }
