package flows

import (
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
	"github.com/weft-telemetry/weft/wire/flowset"
)

// SingleDecode decodes a flowset by itself. Every flow it returns was inserted.
// Counts are Exact where they are proven: all of them when the flowset is
// complete, every flow was found and no cell has a residual.
func SingleDecode(fs *Flowset) Decoded { return new(Decoder).SingleDecode(fs) }

// Decoder holds memory for decoding flowsets one after the other, and that of the records of
// a table that empties. The zero value is ready.
type Decoder struct {
	v4 singleDecoder[sketch.Key4]
	v6 singleDecoder[sketch.Key6]
}

// SingleDecode is the function SingleDecode, in the Decoder's memory: the result is valid until
// the next call.
func (d *Decoder) SingleDecode(fs *Flowset) Decoded {
	if t, ok := fs.body.(*table[sketch.Key4]); ok {
		return d.v4.decode(fs, t)
	}
	return d.v6.decode(fs, fs.body.(*table[sketch.Key6]))
}

// singleDecoder decodes flowsets of one family.
type singleDecoder[K sketch.Key] struct {
	peeler[K]
	alone          alone[K]
	packets, bytes flowCounts
}

func (s *singleDecoder[K]) decode(fs *Flowset, t *table[K]) Decoded {
	if d, ok := s.alone.decode(fs, t); ok {
		s.alone.records = d.Records
		return d
	}
	s.load(t, int(fs.Counts.Flows))
	s.peel()
	e := s.equationsOf(nil)
	a := solution[K]{peeler: &s.peeler, fs: fs, e: e, packets: &s.packets}
	s.countPackets(&s.packets, e)
	if t.layout.Bytes != 0 {
		a.bytes = &s.bytes
		s.countBytes(&s.bytes, e)
	}
	return a.gradedResult()
}

// solution holds a flowset's flows and counts, to be graded.
type solution[K sketch.Key] struct {
	*peeler[K]
	fs     *Flowset
	e      *equations
	proven []bool // by flow: its presence is proven; nil: all are
	// extra are flows that were not inserted but may have been counted; they
	// come after those found in e and in the counts.
	extra          []K
	packets, bytes *flowCounts // bytes is nil where cells have none
}

// emptyResult returns a result without records.
func (fs *Flowset) emptyResult() Decoded {
	return Decoded{
		Switch: fs.Switch, Scope: fs.Scope, V6: fs.Layout.Key == model.KeyLen6, Slot: fs.Slot, Start: fs.Start, Length: fs.Length,
		Undecoded: fs.Counts.Flows, Unexplained: fs.Counts.Packets,
		MissingCells: fs.MissingCells, MissingFilter: fs.MissingFilter,
		Unkeyed: fs.Counts.Unkeyed, Missed: fs.Counts.Missed, Probes: fs.Counts.Probes,
		MayContain: fs.body.filterTest(), Filter: FilterState{sketch.Geometry(fs.Geometry), fs.Seed, fs.body.filterWords()},
	}
}

// gradedResult returns the records, with flows and counts graded.
func (a *solution[K]) gradedResult() Decoded {
	d := a.fs.emptyResult()
	exact := a.exactFlows()
	ports := a.portsOf()
	d.Records = make([]Record, len(a.found)+len(a.extra))
	n := 0
	for i := range a.found {
		if a.proven != nil && !a.proven[i] {
			d.Likely = append(d.Likely, sketch.FlowKeyOf(&a.found[i]))
			continue
		}
		r := &d.Records[n]
		a.fillRecord(r, &a.found[i], i, exact == nil || exact[i])
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
		// Its packets alone prove that it was counted.
		if flow := len(a.found) + i; exact == nil || exact[flow] {
			if a.fillRecord(&d.Records[n], &a.extra[i], flow, true); d.Records[n].Grade == Exact {
				d.Unexplained -= d.Records[n].Packets
				n++
			}
		}
	}
	d.Records = d.Records[:n:n]
	return d
}

// fillRecord writes the record of a flow.
func (a *solution[K]) fillRecord(r *Record, key *K, flow int, exact bool) {
	r.Key = sketch.FlowKeyOf(key)
	r.Packets = a.packets.values[flow]
	if a.bytes != nil {
		r.Bytes = a.bytes.values[flow]
	}
	r.grade(exact, &a.fs.Counts, a.bytes != nil)
}

// grade grades a record. exact says whether its counts are proven, all what the switch
// counted, and bytes whether that includes bytes.
func (r *Record) grade(exact bool, all *flowset.Counts, bytes bool) {
	if exact && r.Packets > 0 && r.Packets <= all.Packets && (!bytes || r.Bytes > 0 && r.Bytes <= all.Bytes) {
		r.Grade = Exact
		return
	}
	// An estimate should at least be plausible: a flow that was counted has a
	// packet, and no more than all flows together.
	r.Grade = Estimated
	r.Packets = max(1, min(r.Packets, all.Packets))
	if bytes {
		r.Bytes = max(1, min(r.Bytes, all.Bytes))
	}
}

// exactFlows returns the flows whose counts are proven; nil means all of them.
func (a *solution[K]) exactFlows() []bool {
	if a.e.tables < 3 {
		return make([]bool, a.e.flows())
	}
	closed := make([]bool, len(a.left))
	all := true
	for i := range closed {
		closed[i] = a.flawsOf(i) == 0 && a.emptied(i) && a.packets.left[i] == 0 &&
			(a.bytes == nil || a.bytes.left[i] == 0)
		all = all && closed[i]
	}
	// Without a flaw, packets and bytes have the same core.
	if core := a.packets.core; all && (len(core) == 0 || independent(a.e, core, closed)) {
		return nil
	}
	p := proof{equations: a.e, closed: closed, source: a.packets.source, minCells: a.e.tables - 1}
	exact := p.provenFlows()
	if a.bytes != nil && !slices.Equal(a.bytes.source, p.source) {
		p.source = a.bytes.source
		for i, ok := range p.provenFlows() {
			exact[i] = exact[i] && ok
		}
	}
	return exact
}
