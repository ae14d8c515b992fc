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
// one, because megabytes at once from every switch overrun the collector and
// whatever leads there.
type export struct {
	units []exporter
	chunk int
	burst int           // chunks of one
	gap   time.Duration // between bursts
	list  dta.ListID
	room  []byte // of a burst

	on     bool
	bank   int
	next   int // unit; the one before is open
	open   bool
	header wire.Header
	split  wire.Splitter
}

// plan sizes bursts from the number of chunks that a slot has.
func (x *export) plan(dev *inswitch.Device, cfg *Config) error {
	x.chunk = cfg.chunk(dev.MTU)
	x.list = cfg.Lists + dta.ListID(dev.ID)
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
	x.room = make([]byte, 0, x.burst*x.chunk)
	return nil
}

func (x *export) begin(bank int, s slot) {
	x.on, x.bank, x.next, x.open = true, bank, 0, false
	x.header.Slot, x.header.Start = s.number, s.start
}

// wake sends a burst if there is one to send, and asks to be woken again. Time
// passes between bursts even if the host is late: they never pile up.
func (p *Program) wake(now model.Time, act *inswitch.Actions) {
	if p.out.on {
		p.out.send(act)
		if !p.out.on && !p.active {
			p.resume()
		}
	}
	if p.out.on {
		act.After(p.out.gap, tick)
		return
	}
	act.After(time.Duration(p.now.end-now), tick)
}

// resume goes on counting after an export that has taken longer than a slot:
// the bank that waited is next to be read, and the one just read is free.
func (p *Program) resume() {
	p.out.begin(p.bank, p.waiting)
	p.bank ^= 1
	p.active = true
	p.refill()
	for _, u := range p.out.units {
		u.admit(p.bank)
	}
}

// send makes the reports of a burst and ends the export with the last.
func (x *export) send(act *inswitch.Actions) {
	x.room = x.room[:0]
	for range x.burst {
		span, ok := x.span()
		if !ok {
			x.on = false
			return
		}
		start := len(x.room)
		x.room = x.header.Open(x.room, span)
		x.room = x.units[x.next-1].export(x.bank, span, x.room)
		x.room = wire.Seal(x.room, start)
		act.Report(dta.Report{Primitive: dta.Append, List: x.list, Data: x.room[start:]})
	}
}

// span returns what the next chunk carries, of the unit that is open.
func (x *export) span() (wire.Span, bool) {
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
			panic(err) // plan has tried it
		}
		x.split, x.open = split, true
		x.next++
	}
}
