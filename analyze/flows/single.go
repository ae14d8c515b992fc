package flows

import (
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
)

// Single decodes a flowset by itself. Every flow it names was inserted. Counts
// are Exact where they are proven (see prove): all of them when the flowset is
// whole, every flow was found and no count is left over.
func Single(fs *Flowset) Decoded { return fs.body.single(fs) }

func (t *table[K]) single(fs *Flowset) Decoded {
	var f finder[K]
	f.start(t)
	f.peel()
	return f.decoded(fs)
}

// head is a result without records.
func (fs *Flowset) head() Decoded {
	return Decoded{
		Switch: fs.Switch, Scope: fs.Scope, Slot: fs.Slot, Start: fs.Start, Length: fs.Length,
		Undecoded: fs.Counts.Flows, Unexplained: fs.Counts.Packets,
		MissingCells: fs.MissingCells, MissingFilter: fs.MissingFilter,
		Unkeyed: fs.Counts.Unkeyed, Missed: fs.Counts.Missed,
		MayHold: fs.MayHold,
	}
}

// decoded counts and grades the flows that were found.
func (f *finder[K]) decoded(fs *Flowset) Decoded {
	d := fs.head()
	e := equations{tables: int(f.family.Tables), cells: f.cells}
	sound := f.sound()

	packets := f.counts(&e, sound, f.packets, packetsFull)
	bytes := counted{values: make([]uint64, len(f.found)), named: packets.named}
	if f.bytes != nil {
		bytes = f.counts(&e, sound, f.bytes, bytesFull)
	}
	closed := make([]bool, len(f.left))
	all := true
	var empty K
	empty[len(empty)-1] = none
	for i := range closed {
		closed[i] = (f.flaws[i] == 0) && f.left[i] == empty && packets.left[i] == 0 && (f.bytes == nil || bytes.left[i] == 0)
		all = all && closed[i]
	}
	var proven, provenBytes []bool
	if !all || e.tables < 3 {
		proven = prove(&e, closed, packets.named)
		provenBytes = proven
		if f.bytes != nil {
			provenBytes = prove(&e, closed, bytes.named)
		}
	}
	ports := f.portsOf()

	d.Records = make([]Record, len(f.found))
	for i := range f.found {
		r := &d.Records[i]
		*r = Record{Key: sketch.FlowKeyOf(&f.found[i]), Packets: packets.values[i], Bytes: bytes.values[i]}
		if ports != nil {
			r.In, r.Out = model.PortID(ports[i]>>16), model.PortID(ports[i])
		}
		if proven == nil || proven[i] && provenBytes[i] {
			r.Grade = Exact
			d.Unexplained -= r.Packets
		} else {
			r.Packets = plausible(r.Packets, fs.Counts.Packets)
			if f.bytes != nil {
				r.Bytes = plausible(r.Bytes, fs.Counts.Bytes)
			}
		}
	}
	d.Undecoded -= min(d.Undecoded, uint32(len(f.found)))
	return d
}

// plausible bounds an estimate: a flow that was counted has a packet at least,
// and no more than all flows together.
func plausible(v, all uint64) uint64 {
	if v == 0 || v > all {
		return 1
	}
	return v
}

// counted is one count of every flow.
type counted struct {
	values []uint64 // by flow
	named  []uint32 // by flow: the cell that gave it, or noCell
	left   []uint64 // by cell: what no flow explains
}

// counts solves one count of the flows that were found.
func (f *finder[K]) counts(e *equations, sound bool, cells []uint64, full flaw) counted {
	c := counted{values: make([]uint64, len(f.found)), named: f.at, left: append([]uint64(nil), cells...)}
	if sound {
		// The order in which flows were found is one in which they can be
		// counted, cell by cell.
		for flow, at := range f.at {
			v := c.left[at]
			c.values[flow] = v
			for _, cell := range e.of(uint32(flow)) {
				c.left[cell] -= v
			}
		}
		return c
	}
	e.usable = make([]bool, len(cells))
	for i, flaws := range f.flaws {
		e.usable[i] = flaws&(absent|full) == 0
	}
	c.named = make([]uint32, len(f.found))
	for i := range c.named {
		c.named[i] = noCell
	}
	// A cell that is not used up by flows found has others in it.
	for i := range f.left {
		last := len(f.left[i]) - 1
		if f.left[i][last]&countMask != none {
			e.usable[i] = false
		}
	}
	steps := e.peel(len(cells), nil)
	e.apply(steps, c.left, c.values)
	for _, s := range steps {
		c.named[s.flow] = s.cell
	}
	return c
}

// portsOf returns the ports of each flow found, nil where cells have none.
func (f *finder[K]) portsOf() []uint32 {
	if f.ports == nil {
		return nil
	}
	left := append([]uint32(nil), f.ports...)
	ports := make([]uint32, len(f.found))
	tables := int(f.family.Tables)
	for flow, at := range f.at {
		p := left[at]
		ports[flow] = p
		for _, c := range f.cells[flow*tables : (flow+1)*tables] {
			left[c] ^= p
		}
	}
	return ports
}
