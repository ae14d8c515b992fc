package flows

import (
	"slices"
	"testing"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
	"github.com/weft-telemetry/weft/wire/flowset"
)

// oracle is a slower SingleDecode: it stores chunks cell by cell in an array for each
// count, asks the filter for every flow, and finds flows, packets, bytes and ports in
// passes of their own. It has equations and proof in common with the other.
type oracle[K sketch.Key] struct {
	header  flowset.Header
	family  sketch.Family
	filter  sketch.Filter
	keys    []K
	packets []uint64
	bytes   []uint64
	ports   []uint32
	flaws   []flaw

	left   []K // what is left of keys
	queue  []uint32
	found  []K
	e      equations
	source []uint32
}

// oracleDecode decodes what arrived of a flowset, without an Assembler.
func oracleDecode(tb testing.TB, chunks [][]byte) Decoded {
	tb.Helper()
	var c flowset.Chunk
	if _, err := c.Parse(chunks[0]); err != nil {
		tb.Fatal(err)
	}
	if c.Layout.Key == model.KeyLen6 {
		return newOracle[sketch.Key6](tb, chunks).decode()
	}
	return newOracle[sketch.Key4](tb, chunks).decode()
}

func newOracle[K sketch.Key](tb testing.TB, chunks [][]byte) *oracle[K] {
	tb.Helper()
	o := new(oracle[K])
	for _, b := range chunks {
		var c flowset.Chunk
		if _, err := c.Parse(b); err != nil {
			tb.Fatal(err)
		}
		if o.keys == nil {
			o.header = c.Header
			var err error
			if o.family, err = sketch.NewFamily(sketch.Geometry(c.Geometry), c.Seed); err != nil {
				tb.Fatal(err)
			}
			n := o.family.Cells()
			o.filter, o.keys = sketch.NewFilter(o.family.Geometry), make([]K, n)
			o.packets, o.bytes, o.ports, o.flaws = make([]uint64, n), make([]uint64, n), make([]uint32, n), make([]flaw, n)
			for i := range o.filter {
				o.filter[i] = ^uint64(0)
			}
			for i := range o.keys {
				o.keys[i][len(o.keys[i])-1], o.flaws[i] = unknownFlows, cellMissing
			}
		}
		o.store(&c)
	}
	return o
}

func (o *oracle[K]) store(c *flowset.Chunk) {
	if c.Section == flowset.Filter {
		for i, v := range c.Data {
			at := c.First + uint32(i)
			o.filter[at/8] = o.filter[at/8]&^(0xff<<(at%8*8)) | uint64(v)<<(at%8*8)
		}
		return
	}
	mostFlows, mostPackets, mostBytes := c.Layout.Limits()
	var cell flowset.Cell
	for j := range c.Len() {
		c.Cell(j, &cell)
		i := int(c.First) + j
		key := sketch.ReadKey[K](&cell.Key)
		if cell.Flows >= mostFlows || cell.Flows > maxCellFlows {
			key[len(key)-1] |= unknownFlows
		} else {
			key[len(key)-1] |= uint64(zeroFlows + cell.Flows)
		}
		o.keys[i], o.packets[i], o.bytes[i], o.flaws[i] = key, cell.Packets, cell.Bytes, 0
		o.ports[i] = uint32(cell.InPort)<<16 | uint32(cell.OutPort)
		if cell.Packets == mostPackets {
			o.flaws[i] |= packetsFull
		}
		if c.Layout.Bytes != 0 && cell.Bytes == mostBytes {
			o.flaws[i] |= bytesFull
		}
	}
}

// peel finds the flows, first come, first served.
func (o *oracle[K]) peel() {
	o.left, o.e.tables = slices.Clone(o.keys), int(o.family.Tables)
	last := len(*new(K)) - 1
	for i := range o.left {
		if showsSingleKey(o.left[i][last]) {
			o.queue = append(o.queue, uint32(i))
		}
	}
	for head := 0; head < len(o.queue); head++ {
		i := o.queue[head]
		key := o.left[i]
		if key[last]&countMask != zeroFlows+1 {
			continue
		}
		key[last] &^= countMask
		h := sketch.HashOf(&o.family, &key)
		if o.family.Cell(h, int(i/o.family.TableCells)) != i || !o.filter.Has(&o.family, h) {
			continue
		}
		o.found, o.source = append(o.found, key), append(o.source, i)
		for t := range o.e.tables {
			c := o.family.Cell(h, t)
			o.e.cells = append(o.e.cells, c)
			for w := range len(key) {
				o.left[c][w] ^= key[w]
			}
			o.left[c][last]--
			if showsSingleKey(o.left[c][last]) {
				o.queue = append(o.queue, c)
			}
		}
	}
}

func (o *oracle[K]) emptied(i int) bool {
	var empty K
	empty[len(empty)-1] = zeroFlows
	return o.left[i] == empty
}

// count solves one count.
func (o *oracle[K]) count(cells []uint64, full flaw) *flowCounts {
	n := len(o.found)
	c := &flowCounts{values: make([]uint64, n), left: slices.Clone(cells)}
	if !slices.ContainsFunc(o.flaws, func(f flaw) bool { return f != 0 }) {
		c.source = o.source
		for flow, at := range o.source {
			c.values[flow] = c.left[at]
			for _, cell := range o.e.cellsOf(uint32(flow)) {
				c.left[cell] -= c.values[flow]
			}
		}
		return c
	}
	c.source, c.usable = slices.Repeat([]uint32{noCell}, n), make([]bool, len(cells))
	for i := range cells {
		c.usable[i] = o.flaws[i]&(cellMissing|full) == 0 && o.emptied(i)
	}
	steps := o.e.peel(c.usable, nil)
	o.e.substitute(steps, c.left, c.values)
	for _, s := range steps {
		c.source[s.flow] = s.cell
	}
	for flow, at := range c.source {
		if at == noCell {
			c.core = append(c.core, uint32(flow))
		}
	}
	return c
}

// exact returns the flows whose counts are proven.
func (o *oracle[K]) exact(packets, bytes *flowCounts) []bool {
	if o.e.tables < 3 {
		return make([]bool, len(o.found))
	}
	closed := make([]bool, len(o.left))
	for i := range closed {
		closed[i] = o.flaws[i] == 0 && o.emptied(i) && packets.left[i] == 0 && (bytes == nil || bytes.left[i] == 0)
	}
	if !slices.Contains(closed, false) && (len(packets.core) == 0 || independent(&o.e, packets.core, closed)) {
		return slices.Repeat([]bool{true}, len(o.found))
	}
	p := proof{equations: &o.e, closed: closed, source: packets.source, minCells: o.e.tables - 1}
	exact := p.provenFlows()
	if bytes != nil && !slices.Equal(bytes.source, p.source) {
		p.source = bytes.source
		for i, ok := range p.provenFlows() {
			exact[i] = exact[i] && ok
		}
	}
	return exact
}

func (o *oracle[K]) decode() Decoded {
	o.peel()
	packets := o.count(o.packets, packetsFull)
	var bytes *flowCounts
	if o.header.Layout.Bytes != 0 {
		bytes = o.count(o.bytes, bytesFull)
	}
	exact := o.exact(packets, bytes)
	all := &o.header.Counts
	d := Decoded{Undecoded: all.Flows - min(all.Flows, uint32(len(o.found))), Unexplained: all.Packets, Records: []Record{}}
	ports := slices.Clone(o.ports)
	for i, key := range o.found {
		r := Record{Key: sketch.FlowKeyOf(&key), Packets: packets.values[i]}
		ok := exact[i] && r.Packets > 0 && r.Packets <= all.Packets
		if bytes != nil {
			r.Bytes = bytes.values[i]
			ok = ok && r.Bytes > 0 && r.Bytes <= all.Bytes
		}
		if ok {
			r.Grade = Exact
			d.Unexplained -= r.Packets
		} else {
			r.Packets = max(1, min(r.Packets, all.Packets))
			if bytes != nil {
				r.Bytes = max(1, min(r.Bytes, all.Bytes))
			}
		}
		p := ports[o.source[i]]
		r.In, r.Out = model.PortID(p>>16), model.PortID(p)
		for _, c := range o.e.cellsOf(uint32(i)) {
			ports[c] ^= p
		}
		d.Records = append(d.Records, r)
	}
	return d
}
