package ebpf

import (
	"math"
	"slices"

	"github.com/weft-telemetry/weft/inswitch/flowset"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
	wire "github.com/weft-telemetry/weft/wire/flowset"
)

// Exported is what an Export has done.
type Exported struct {
	Slots, Chunks  uint64
	Waits          uint64 // for the programs that were at work on a table: none for slots that nothing claimed
	Packets, Bytes uint64 // counted into tables
	Flows          uint64 // inserted
	Unkeyed        uint64 // packets without a key of a family that is kept
	Missed         uint64 // packets for which no table was free
	Probes         uint64
	// Inconsistent is flowsets whose sub-tables do not agree on packets, bytes or
	// flows: not to happen.
	Inconsistent uint64
}

func (e *Exported) add(h *wire.Header) {
	e.Packets += h.Counts.Packets
	e.Bytes += h.Counts.Bytes
	e.Flows += uint64(h.Counts.Flows)
	e.Unkeyed += uint64(h.Counts.Unkeyed)
	e.Missed += uint64(h.Counts.Missed)
	e.Probes += uint64(h.Counts.Probes)
}

// Export passes the chunks of all slots that have ended to emit, which must not keep
// them, and frees their tables.
func (f *Flowset) Export(emit func(chunk []byte)) (e Exported, err error) {
	ended := f.slots.takeEnded()
	if slices.ContainsFunc(ended, func(s endedSlot) bool { return !s.empty }) {
		e.Waits++
		if err := f.wait(); err != nil {
			return e, err
		}
	}
	for _, one := range ended {
		e.Slots++
		bank := int(one.slot % banks)
		if one.empty {
			bank = noBank
		}
		for _, u := range f.units {
			h := wire.Header{Switch: f.sw, Seed: f.seed, Slot: uint32(one.slot), Start: model.Time(one.slot * uint64(f.cfg.Slot)), Length: f.cfg.Slot}
			if !u.read(bank, &h) {
				e.Inconsistent++
			}
			e.add(&h)
			split, err := h.Split(f.chunk)
			if err != nil {
				panic(err) // Load has checked the shape
			}
			for span, ok := split.Next(); ok; span, ok = split.Next() {
				f.chunkBytes = h.Open(f.chunkBytes[:0], span)
				f.chunkBytes = u.appendSpan(bank, span, f.chunkBytes)
				f.chunkBytes = wire.Seal(f.chunkBytes, 0)
				emit(f.chunkBytes)
				e.Chunks++
			}
			if !one.empty {
				u.clear(bank)
			}
		}
		if one.empty {
			continue // its bank may be claimed for a later slot by now
		}
		if err := f.release(one.slot); err != nil {
			return e, err
		}
	}
	return e, nil
}

// unit is the flowset of one family. The bank of a slot without packets is noBank.
type unit interface {
	// read fills in the header of a bank. It reports whether its sub-tables agree.
	read(bank int, h *wire.Header) bool
	appendSpan(bank int, span wire.Span, dst []byte) []byte
	clear(bank int)
}

// family is the tables of one family.
type family[K sketch.Key] struct {
	number int // 0: IPv4, 1: IPv6
	memory *mapped
	flowset.Table
	shape flowsetObjectFamily
	sum   func(at int) (K, uint32, uint32) // key, flows and ports of a cell
	reset func(at int)                     // clears them
}

func (f *Flowset) newUnits(shapes [families]flowsetObjectFamily) {
	m := &f.memory
	if f.cfg.IPv4.TableCells > 0 {
		f.v4 = &family[sketch.Key4]{
			0, m, f.cfg.IPv4, shapes[0],
			func(at int) (sketch.Key4, uint32, uint32) {
				s := &m.sums4[at]
				return s.Key, s.Flows, s.Ports
			},
			func(at int) { m.sums4[at] = flowsetObjectSum4{} },
		}
		f.units = append(f.units, f.v4)
	}
	if f.cfg.IPv6.TableCells > 0 {
		f.v6 = &family[sketch.Key6]{
			1, m, f.cfg.IPv6, shapes[1],
			func(at int) (sketch.Key6, uint32, uint32) {
				s := &m.sums6[at]
				return s.Key, s.Flows, s.Ports
			},
			func(at int) { m.sums6[at] = flowsetObjectSum6{} },
		}
		f.units = append(f.units, f.v6)
	}
}

// countsOf and filterOf are the memory of a bank.
func (u *family[K]) countsOf(bank int) []uint64 {
	n := u.Cells()
	return u.memory.counts[int(u.shape.FirstCount)+bank*n:][:n]
}

func (u *family[K]) filterOf(bank int) sketch.Filter {
	n := int(u.shape.Words)
	return sketch.Filter(u.memory.filter[int(u.shape.FirstWord)+bank*n:][:n])
}

// emptyGeometry is the smallest shape: a slot without packets is exported in it, as
// the chunks of empty cells would say no more.
func emptyGeometry(g sketch.Geometry) sketch.Geometry {
	return sketch.Geometry{FilterHashes: sketch.GroupBits, FilterBits: 64, Tables: g.Tables, TableCells: 1}
}

func (u *family[K]) read(bank int, h *wire.Header) bool {
	h.Geometry, h.Layout = wire.Geometry(u.Geometry), u.Layout
	missed, missedProbes := u.memory.takeSkipped(noBank, u.number)
	h.Counts = wire.Counts{Missed: saturate(missed), Probes: uint32(min(missedProbes, wire.MaxProbes))}
	if bank == noBank {
		h.Geometry = wire.Geometry(emptyGeometry(u.Geometry))
		return true
	}
	unkeyed, probes := u.memory.takeSkipped(bank, u.number)
	h.Counts.Unkeyed, h.Counts.Probes = saturate(unkeyed), uint32(min(probes+missedProbes, wire.MaxProbes))
	// Every packet is in one cell of each sub-table.
	var first wire.Counts
	agree := true
	counts, cells := u.countsOf(bank), int(u.TableCells)
	for t := range int(u.Tables) {
		var sum wire.Counts
		for i := t * cells; i < (t+1)*cells; i++ {
			if counts[i] == 0 {
				continue // no packet, so no flow
			}
			sum.Packets += counts[i] >> packetShift
			sum.Bytes += counts[i] & maxBytes
			_, flows, _ := u.sum(bank*u.Cells() + i)
			sum.Flows += flows
		}
		if t == 0 {
			first = sum
		}
		agree = agree && sum == first
	}
	h.Counts.Packets, h.Counts.Bytes, h.Counts.Flows = first.Packets, first.Bytes, first.Flows
	if first.Packets == 0 && agree {
		h.Geometry = wire.Geometry(emptyGeometry(u.Geometry))
	}
	return agree
}

func (u *family[K]) appendSpan(bank int, span wire.Span, dst []byte) []byte {
	if bank == noBank {
		return u.appendEmpty(span, dst)
	}
	if span.Section == wire.Filter {
		return u.filterOf(bank).AppendBytes(dst, span.First, span.Count)
	}
	counts := u.countsOf(bank)
	var cell wire.Cell
	for i := span.First; i < span.First+span.Count; i++ {
		key, flows, ports := u.sum(bank*u.Cells() + int(i))
		sketch.PutKey(&cell.Key, &key)
		cell.Flows, cell.Packets, cell.Bytes = flows, counts[i]>>packetShift, counts[i]&maxBytes
		cell.InPort, cell.OutPort = model.PortID(ports>>16), model.PortID(ports)
		dst = u.Layout.AppendCell(dst, &cell)
	}
	return dst
}

// appendEmpty is appendSpan of the emptyGeometry.
func (u *family[K]) appendEmpty(span wire.Span, dst []byte) []byte {
	if span.Section == wire.Filter {
		return sketch.Filter{0}.AppendBytes(dst, span.First, span.Count)
	}
	for range span.Count {
		dst = u.Layout.AppendCell(dst, &wire.Cell{})
	}
	return dst
}

// clear empties a bank. Cells without packets were not written.
func (u *family[K]) clear(bank int) {
	counts := u.countsOf(bank)
	for i := range counts {
		if counts[i] != 0 {
			counts[i] = 0
			u.reset(bank*u.Cells() + i)
		}
	}
	clear(u.filterOf(bank))
}

func saturate(n uint64) uint32 { return uint32(min(n, math.MaxUint32)) }
