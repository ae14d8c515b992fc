package flowset

import (
	"time"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	wire "github.com/weft-telemetry/weft/wire/flowset"
)

// export sends the bank that was filled last, a burst at a time.
//
// Paper: the whole flowset at the end of the slot. Here: over the following
// slot, because megabytes at once from every switch overrun the collector and
// the links to it.
type export struct {
	units  []exporter
	chunk  int
	burst  int           // chunks per burst
	gap    time.Duration // between bursts
	list   dta.ListID
	buffer []byte // of a burst

	active bool
	bank   int
	next   int // index of the next unit; the one before is open
	open   bool
	header wire.Header
	split  wire.Splitter
}

// sizeBursts computes the burst size from the number of chunks per slot.
func (x *export) sizeBursts(dev *inswitch.Device, cfg *Config) error {
	x.chunk = cfg.MaxChunk(dev.MTU)
	x.list = cfg.List
	x.header = wire.Header{Switch: dev.ID, Length: cfg.Slot}
	chunks := 0
	for _, u := range x.units {
		u.header(0, &x.header)
		s, err := x.header.Split(x.chunk)
		if err != nil {
			return err
		}
		for _, ok := s.Next(); ok; _, ok = s.Next() {
			chunks++
		}
	}
	x.burst = (chunks + cfg.Bursts - 1) / cfg.Bursts
	bursts := (chunks + x.burst - 1) / x.burst
	x.gap = max(cfg.Slot*4/5/time.Duration(bursts), 1)
	x.buffer = make([]byte, 0, x.burst*x.chunk)
	return nil
}

func (x *export) start(bank int, s slot) {
	x.active, x.bank, x.next, x.open = true, bank, 0, false
	x.header.Slot, x.header.Start = s.number, s.start
}

// onTimer sends the next burst, if any, and sets the timer for the one after.
// The gap between bursts is kept even if the host is late: bursts never
// accumulate.
func (p *Program) onTimer(now model.Time, act *inswitch.Actions) {
	if p.outgoing.lingers {
		if rest := p.now.start.Add(p.outgoing.linger).Sub(now); rest > 0 {
			act.SetTimer(rest, tick)
			return
		}
		p.endLinger()
	}
	if p.out.active {
		p.out.sendBurst(act)
		if !p.out.active && !p.active {
			p.resumeCounting()
		}
	}
	if p.out.active {
		act.SetTimer(p.out.gap, tick)
		return
	}
	act.SetTimer(time.Duration(p.now.end-now), tick)
}

// resumeCounting starts counting again after an export that took longer than a
// slot: the pending bank is exported next, and the one just exported is free.
func (p *Program) resumeCounting() {
	p.out.start(p.bank, p.pendingSlot)
	p.bank ^= 1
	p.active = true
	p.updateFilling()
	for _, u := range p.out.units {
		u.takeMissed(p.bank)
	}
}

// sendBurst reports one burst and ends the export with the last.
func (x *export) sendBurst(act *inswitch.Actions) {
	x.buffer = x.buffer[:0]
	for range x.burst {
		span, ok := x.nextSpan()
		if !ok {
			x.active = false
			return
		}
		start := len(x.buffer)
		x.buffer = x.header.Open(x.buffer, span)
		x.buffer = x.units[x.next-1].appendSpan(x.bank, span, x.buffer)
		x.buffer = wire.Seal(x.buffer, start)
		act.Report(dta.Report{Primitive: dta.Append, List: x.list, Data: x.buffer[start:]})
	}
}

// nextSpan returns the span of the next chunk.
func (x *export) nextSpan() (wire.Span, bool) {
	for {
		if x.open {
			if span, ok := x.split.Next(); ok {
				return span, true
			}
			x.units[x.next-1].clear(x.bank)
			x.open = false
		}
		if x.next == len(x.units) {
			return wire.Span{}, false
		}
		x.units[x.next].header(x.bank, &x.header)
		split, err := x.header.Split(x.chunk)
		if err != nil {
			panic(err) // sizeBursts has checked it
		}
		x.split, x.open = split, true
		x.next++
	}
}
