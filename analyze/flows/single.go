package flows

import (
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
)

// Single decodes a flowset by itself. Every flow it names was inserted. Counts
// are Exact where they are proven: all of them when the flowset is whole, every
// flow was found and no count is left over.
func Single(fs *Flowset) Decoded { return new(Decoder).Single(fs) }

// Decoder is memory for decoding flowsets one after the other. The zero value
// is ready. Results do not refer to it.
type Decoder struct {
	v4 single[sketch.Key4]
	v6 single[sketch.Key6]
}

// Single is the function of that name, in the Decoder's memory.
func (d *Decoder) Single(fs *Flowset) Decoded {
	if t, ok := fs.body.(*table[sketch.Key4]); ok {
		return d.v4.decode(fs, t)
	}
	return d.v6.decode(fs, fs.body.(*table[sketch.Key6]))
}

// single decodes flowsets of one family.
type single[K sketch.Key] struct {
	finder[K]
	packets, bytes counted
}

func (s *single[K]) decode(fs *Flowset, t *table[K]) Decoded {
	s.start(t, int(fs.Counts.Flows))
	s.peel()
	e := s.equationsOf(nil)
	a := answer[K]{finder: &s.finder, fs: fs, e: e, packets: &s.packets}
	s.count(&s.packets, e, t.packets, packetsFull)
	if t.bytes != nil {
		a.bytes = &s.bytes
		s.count(&s.bytes, e, t.bytes, bytesFull)
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
		Switch: fs.Switch, Scope: fs.Scope, V6: fs.Layout.Key == model.KeyLen6, Slot: fs.Slot, Start: fs.Start, Length: fs.Length,
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
	d.Records = make([]Record, len(a.found)+len(a.extra))
	n := 0
	for i := range a.found {
		if a.known != nil && !a.known[i] {
			d.Likely = append(d.Likely, sketch.FlowKeyOf(&a.found[i]))
			continue
		}
		r := &d.Records[n]
		a.fill(r, &a.found[i], i, exact == nil || exact[i])
		if ports != nil {
			r.In, r.Out = model.PortID(ports[i]>>16), model.PortID(ports[i])
		}
		if r.Grade == Exact {
			d.Unexplained -= r.Packets
		}
		n++
	}
	d.Undecoded -= min(d.Undecoded, uint32(n))
	for i := range a.extra {
		// That it was counted is known by its packets alone.
		if flow := len(a.found) + i; exact == nil || exact[flow] {
			if a.fill(&d.Records[n], &a.extra[i], flow, true); d.Records[n].Grade == Exact {
				d.Unexplained -= d.Records[n].Packets
				n++
			}
		}
	}
	d.Records = d.Records[:n:n]
	return d
}

// fill makes the record of a flow.
func (a *answer[K]) fill(r *Record, key *K, flow int, exact bool) {
	r.Key = sketch.FlowKeyOf(key)
	r.Packets = a.packets.values[flow]
	all := &a.fs.Counts
	ok := r.Packets > 0 && r.Packets <= all.Packets
	if a.bytes != nil {
		r.Bytes = a.bytes.values[flow]
		ok = ok && r.Bytes > 0 && r.Bytes <= all.Bytes
	}
	if exact && ok {
		r.Grade = Exact
		return
	}
	// An estimate should be plausible at least: a flow that was counted has a
	// packet, and no more than all flows together.
	r.Grade = Known
	r.Packets = max(1, min(r.Packets, all.Packets))
	if a.bytes != nil {
		r.Bytes = max(1, min(r.Bytes, all.Bytes))
	}
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
