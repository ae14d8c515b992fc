package flows

import (
	"encoding/binary"
	"math"

	"github.com/weft-telemetry/weft/sketch"
	"github.com/weft-telemetry/weft/wire/flowset"
)

func (t *table[K]) storeFilter(c *flowset.Chunk) { t.filter.SetBytes(c.First, c.Data) }

// storeCells stores the cells of a chunk, whose header is the flowset's.
func (t *table[K]) storeCells(c *flowset.Chunk) {
	if l := t.layout; l.Flows == 1 && l.Packets == 4 && l.Bytes == 4 && l.Ports == 2 {
		t.storeUsual(int(c.First), c.Data)
		return
	}
	mostFlows, mostPackets, mostBytes := t.layout.Limits()
	var cell flowset.Cell
	for j := range c.Len() {
		c.Cell(j, &cell)
		i := int(c.First) + j
		key := sketch.ReadKey[K](&cell.Key)
		last := len(key) - 1
		if cell.Flows >= mostFlows || cell.Flows > maxCellFlows {
			key[last] |= unknownFlows
		} else {
			key[last] |= uint64(zeroFlows + cell.Flows)
		}
		if cell.Flows != 0 {
			t.filled++
		}
		var f flaw
		if cell.Packets == mostPackets {
			f |= packetsFull
		}
		if t.layout.Bytes != 0 && cell.Bytes == mostBytes {
			f |= bytesFull
		}
		t.sums[i] = cellSum[K]{key: key, counts: cell.Packets<<32 | uint64(cell.InPort)<<16 | uint64(cell.OutPort), bytes: cell.Bytes}
		if t.high != nil {
			t.high[i] = uint32(cell.Packets >> 32)
		}
		t.setFlaws(i, f)
	}
}

// storeUsual stores cells of the layout that switches export unless they are
// configured otherwise: a byte of flows, four of packets, four of bytes, ports. Cells
// of 26 bytes (IPv4) are read by words.
func (t *table[K]) storeUsual(first int, data []byte) {
	last := len(*new(K)) - 1
	size := 8*last + 18
	be := binary.BigEndian
	sums := t.sums[first : first+len(data)/size]
	filled := 0
	for j := range sums {
		b := data[j*size:][:8*last+18]
		s := &sums[j]
		for w := range last {
			s.key[w] = be.Uint64(b[8*w:])
		}
		// Two ports and the protocol, the flow count, and half of the packets.
		b = b[8*last:]
		word := be.Uint64(b)
		flows := word >> 16 & 0xff
		if flows != 0 {
			filled++
		}
		packets, bytes := be.Uint32(b[6:]), be.Uint32(b[10:])
		s.key[last] = word&^countMask | (zeroFlows + flows)
		s.counts = uint64(packets)<<32 | uint64(be.Uint32(b[14:]))
		s.bytes = uint64(bytes)
		if flows != math.MaxUint8 && packets != math.MaxUint32 && bytes != math.MaxUint32 && t.flaws == nil {
			continue
		}
		var f flaw
		if flows == math.MaxUint8 {
			s.key[last] = word&^countMask | unknownFlows
		}
		if packets == math.MaxUint32 {
			f |= packetsFull
		}
		if bytes == math.MaxUint32 {
			f |= bytesFull
		}
		t.setFlaws(first+j, f)
	}
	t.filled += filled
}

// markMissing marks the units that are not among those that arrived. They must prove
// nothing: filter bits that say yes, cells that are no equation.
func (t *table[K]) markMissing(cells, filter bitmap) {
	missing := cellSum[K]{}
	missing.key[len(missing.key)-1] = unknownFlows
	for i := range t.sums {
		if !cells.has(uint32(i)) {
			t.sums[i] = missing
			t.setFlaws(i, cellMissing)
		}
	}
	for i := range uint32(len(t.filter) * 8) {
		if !filter.has(i) {
			t.filter[i/8] |= 0xff << (i % 8 * 8)
		}
	}
}

// setFlaws sets the flaws of a cell.
func (t *table[K]) setFlaws(i int, f flaw) {
	if t.flaws == nil {
		if f == 0 {
			return
		}
		t.flaws = make([]flaw, len(t.sums))
	}
	t.flaws[i] = f
}

func (t *table[K]) flawsOf(i int) flaw {
	if t.flaws == nil {
		return 0
	}
	return t.flaws[i]
}

// intact reports whether no cell has a flaw.
func (t *table[K]) intact() bool {
	for _, f := range t.flaws {
		if f != 0 {
			return false
		}
	}
	return true
}

// appendPackets, appendBytes and appendPorts append a count of every cell.
func (t *table[K]) appendPackets(dst []uint64) []uint64 {
	for i := range t.sums {
		v := t.sums[i].counts >> 32
		if t.high != nil {
			v |= uint64(t.high[i]) << 32
		}
		dst = append(dst, v)
	}
	return dst
}

func (t *table[K]) appendBytes(dst []uint64) []uint64 {
	for i := range t.sums {
		dst = append(dst, t.sums[i].bytes)
	}
	return dst
}

func (t *table[K]) appendPorts(dst []uint32) []uint32 {
	for i := range t.sums {
		dst = append(dst, uint32(t.sums[i].counts))
	}
	return dst
}
