package cluster

import (
	"github.com/weft-telemetry/weft/analyze/routeview"
	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/internal/fieldcodec"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/nccl"
)

// eventKind is what happened at the decoder.
type eventKind uint8

const (
	reportEvent eventKind = iota
	slotEvent
	countersEvent
	lostEvent
	readingEvent
	sampleEvent
	flowRecordEvent
	routesEvent
	collectivesEvent
	noOutPortsEvent // the first of every batch, where some mirrors lack the out port
	tickEvent
	flushEvent
	numEventKinds
)

// event is one call of control.Forwarder.
type event struct {
	kind     eventKind
	now      model.Time
	list     dta.ListID
	data     []byte
	any      bool     // reports of any list were lost
	slot     uint64   // its number in the run
	lost     []uint32 // partitions that did not get the slot
	counters []control.PortCounters

	reading     *portstat.Reading
	sample      *portstat.Sample
	flowRecord  *portstat.FlowRecord
	routes      *routeview.Table
	collectives *nccl.Dump
}

func (e *event) code(c *fieldcodec.Coder) {
	fieldcodec.Unsigned(c, &e.kind)
	fieldcodec.Signed(c, &e.now)
	switch e.kind {
	case reportEvent:
		fieldcodec.Unsigned(c, &e.list)
		c.Bytes(&e.data)
	case slotEvent:
		c.Uint64(&e.slot)
		fieldcodec.Slice(c, &e.lost, func(p *uint32) { fieldcodec.Unsigned(c, p) })
	case countersEvent:
		fieldcodec.Slice(c, &e.counters, func(p *control.PortCounters) {
			p.Port.Code(c)
			fieldcodec.Signed(c, &p.At)
			c.Uint64(&p.Packets)
			c.Uint64(&p.Bytes)
			c.Uint64(&p.Discards)
			fieldcodec.Signed(c, &p.Paused)
		})
	case lostEvent:
		fieldcodec.Unsigned(c, &e.list)
		c.Bool(&e.any)
	case readingEvent:
		if c.Reading() {
			e.reading = new(portstat.Reading)
		}
		e.reading.Code(c)
	case sampleEvent:
		if c.Reading() {
			e.sample = new(portstat.Sample)
		}
		e.sample.Code(c)
	case flowRecordEvent:
		if c.Reading() {
			e.flowRecord = new(portstat.FlowRecord)
		}
		e.flowRecord.Code(c)
	case routesEvent:
		if c.Reading() {
			e.routes = new(routeview.Table)
		}
		e.routes.Code(c)
	case collectivesEvent:
		if c.Reading() {
			e.collectives = new(nccl.Dump)
		}
		e.collectives.Code(c)
	case noOutPortsEvent, tickEvent, flushEvent:
	default:
		c.Fail("event of kind %d, want less than %d", e.kind, numEventKinds)
	}
}
