package flows

import (
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
)

// Single decodes a flowset by itself. Every flow it names was inserted. Counts
// are Exact where they are proven: all of them when the flowset is whole, every
// flow was found and no count is left over.
func Single(fs *Flowset) Decoded { return fs.body.single(fs) }

func (t *table[K]) single(fs *Flowset) Decoded {
	f := newFinder(t, int(fs.Counts.Flows))
	f.peel()
	e := f.equationsOf(nil)
	a := answer[K]{finder: f, fs: fs, e: e, packets: f.count(e, f.packets, packetsFull)}
	if f.bytes != nil {
		a.bytes = f.count(e, f.bytes, bytesFull)
	}
	return a.decoded()
}

// answer is a flowset's flows and counts, to be graded.
type answer[K sketch.Key] struct {
	*finder[K]
	fs    *Flowset
	e     *equations
	known []bool // by flow: its presence is proven; nil: of all
	// extra are flows that were not inserted but may have been counted; they
	// come after those found in e and in the counts.
	extra          []K
	packets, bytes *counted // bytes is nil where cells have none
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

// decoded grades flows and counts.
func (a *answer[K]) decoded() Decoded {
	d := a.fs.head()
	exact := a.exact()
	ports := a.portsOf()
	d.Records = make([]Record, 0, len(a.found))
	for i := range a.found {
		if a.known != nil && !a.known[i] {
			d.Likely = append(d.Likely, sketch.FlowKeyOf(&a.found[i]))
			continue
		}
		r := a.record(&a.found[i], i, exact == nil || exact[i])
		if ports != nil {
			r.In, r.Out = model.PortID(ports[i]>>16), model.PortID(ports[i])
		}
		d.add(r)
	}
	d.Undecoded -= min(d.Undecoded, uint32(len(d.Records)))
	for i := range a.extra {
		// That it was counted is known by its packets alone.
		if flow := len(a.found) + i; (exact == nil || exact[flow]) && a.packets.values[flow] > 0 {
			if r := a.record(&a.extra[i], flow, true); r.Grade == Exact {
				d.add(r)
			}
		}
	}
	return d
}

// add appends a record.
func (d *Decoded) add(r Record) {
	if r.Grade == Exact {
		d.Unexplained -= r.Packets
	}
	d.Records = append(d.Records, r)
}

// record makes the record of a flow, with plausible estimates where counts are
// not exact: a flow that was counted has a packet at least, and no more than
// all flows together.
func (a *answer[K]) record(key *K, flow int, exact bool) Record {
	plausible := func(c *counted, all uint64) (v uint64, ok bool) {
		if c == nil {
			return 0, true
		}
		v = c.values[flow]
		return max(1, min(v, all)), v > 0 && v <= all
	}
	packets, ok := plausible(a.packets, a.fs.Counts.Packets)
	bytes, ok2 := plausible(a.bytes, a.fs.Counts.Bytes)
	r := Record{Key: sketch.FlowKeyOf(key), Packets: packets, Bytes: bytes}
	if exact && ok && ok2 {
		r.Grade = Exact
	}
	return r
}

// exact returns the flows whose counts are proven; nil means all of them.
func (a *answer[K]) exact() []bool {
	if a.e.tables < 3 {
		return make([]bool, a.e.flows())
	}
	closed := make([]bool, len(a.left))
	all := true
	for i := range closed {
		closed[i] = a.flaws[i] == 0 && a.emptied(i) && a.packets.left[i] == 0 && (a.bytes == nil || a.bytes.left[i] == 0)
		all = all && closed[i]
	}
	// Without a flaw, packets and bytes have the same core.
	if core := a.packets.core; all && (len(core) == 0 || independent(a.e, core, closed)) {
		return nil
	}
	p := proof{equations: a.e, closed: closed, named: a.packets.named, enough: a.e.tables - 1}
	exact := p.flowsProven()
	if a.bytes != nil && !slices.Equal(a.bytes.named, p.named) {
		p.named = a.bytes.named
		for i, ok := range p.flowsProven() {
			exact[i] = exact[i] && ok
		}
	}
	return exact
}
