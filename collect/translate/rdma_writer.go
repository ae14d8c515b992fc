package translate

import (
	"encoding/binary"
	"fmt"

	"github.com/weft-telemetry/weft/collect/postcard"
	"github.com/weft-telemetry/weft/collect/rdma"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/roce"
)

// RDMAWriter is a MemoryWriter that writes a collector's memory over RDMA: WRITE
// for values, paths and lists, FETCH_ADD for counters, WRITE with immediate for
// immediate reports. Its host moves packets between the Requester and a socket.
type RDMAWriter struct {
	*Plan
	req   *rdma.Requester
	at    RemoteRegions
	heads []uint64 // entries ever written to each list
	slot  []byte
	stats RDMAWriterStats
}

// RemoteRegions are the regions of a collector's memories, in the order of its
// Plan.
type RemoteRegions struct {
	KeyWrites []rdma.Region
	Counts    rdma.Region
	Postcards rdma.Region
	Lists     []rdma.Region
}

// RDMAWriterStats are the counters of an RDMAWriter.
type RDMAWriterStats struct {
	Dropped uint64 `json:"dropped"` // writes of reports: there was no connection or its window was full
}

// NewRDMAWriter returns a writer for memories of the given geometry. It drops
// everything until Connect.
func NewRDMAWriter(plan *Plan, req *rdma.Requester) (*RDMAWriter, error) {
	if err := plan.Check(); err != nil {
		return nil, err
	}
	return &RDMAWriter{Plan: plan, req: req}, nil
}

// Connect sets the regions of the memories and the number of entries of each
// list, after the Requester was connected. Lists continue from there, and never
// go back.
func (o *RDMAWriter) Connect(at RemoteRegions, heads []uint64) error {
	lists := 0
	for _, l := range o.Lists {
		lists += int(l.Lists())
	}
	if len(at.KeyWrites) != len(o.KeyWrites) || len(at.Lists) != len(o.Lists) || len(heads) != lists {
		return fmt.Errorf("translate: collector has %d key-write memories, %d list memories and %d lists, want %d, %d and %d",
			len(at.KeyWrites), len(at.Lists), len(heads), len(o.KeyWrites), len(o.Lists), lists)
	}
	o.at, o.heads = at, heads
	return nil
}

// Heads returns the number of entries written to each list, 0 before Connect.
func (o *RDMAWriter) Heads() []uint64 {
	if o.heads == nil {
		lists := 0
		for _, l := range o.Lists {
			lists += int(l.Lists())
		}
		return make([]uint64, lists)
	}
	return o.heads
}

// Stats returns the current counters.
func (o *RDMAWriter) Stats() RDMAWriterStats { return o.stats }

// EncodeImmediate returns the immediate data of a WRITE with immediate: the
// primitive in the top 4 bits, below it the list, or for other primitives the low
// bits of the slot's word index.
func EncodeImmediate(p dta.Primitive, where uint64) roce.ImmDt {
	return roce.ImmDt(uint32(p)<<28 | uint32(where)&(1<<28-1))
}

// write writes data at an offset of a region, with immediate data unless it is 0.
func (o *RDMAWriter) write(r rdma.Region, off uint64, data []byte, imm roce.ImmDt) bool {
	if imm != 0 {
		return o.req.WriteImm(r.Addr+off, r.RKey, data, imm)
	}
	return o.req.Write(r.Addr+off, r.RKey, data)
}

// countResult counts a report whose write did not fit into the window.
func (o *RDMAWriter) countResult(ok bool) {
	if !ok {
		o.stats.Dropped++
	}
}

// KeyWrite implements MemoryWriter.
func (o *RDMAWriter) KeyWrite(r *dta.Report) {
	i := o.keyWriteIndex(len(r.Data))
	s := o.KeyWrites[i]
	p, err := s.HashKey(r.Key)
	must(err)
	o.slot, err = s.AppendSlot(o.slot[:0], p, r.Data)
	must(err)
	if o.req.WindowFree() == 0 {
		o.countResult(false)
		return
	}
	ok := true
	for n := range int(r.Redundancy) {
		off := s.Offset(p, n)
		imm := roce.ImmDt(0)
		if r.Immediate && n == int(r.Redundancy)-1 {
			imm = EncodeImmediate(dta.KeyWrite, off/8)
		}
		ok = o.write(o.at.KeyWrites[i], off, o.slot, imm) && ok
	}
	o.countResult(ok)
}

// KeyIncrement implements MemoryWriter. There is no FETCH_ADD with immediate: an
// empty write that carries the immediate data follows.
func (o *RDMAWriter) KeyIncrement(r *dta.Report) {
	p, err := o.Counts.HashKey(r.Key)
	must(err)
	if o.req.WindowFree() == 0 {
		o.countResult(false)
		return
	}
	ok := true
	for n := range int(r.Redundancy) {
		ok = o.req.FetchAdd(o.at.Counts.Addr+o.Counts.Offset(p, n), o.at.Counts.RKey, r.Delta) && ok
	}
	if r.Immediate {
		o.write(o.at.Counts, 0, nil, EncodeImmediate(dta.KeyIncrement, o.Counts.Offset(p, 0)/8))
	}
	o.countResult(ok)
}

// WriteRun implements MemoryWriter.
func (o *RDMAWriter) WriteRun(first *dta.Report, run []byte) {
	for r := *first; len(run) > 0; {
		n, err := r.Parse(run)
		must(err)
		if r.Primitive == dta.KeyWrite {
			o.KeyWrite(&r)
		} else {
			o.KeyIncrement(&r)
		}
		run = run[n:]
	}
}

// WritePath implements MemoryWriter.
func (o *RDMAWriter) WritePath(path *Path) {
	p, err := o.Plan.Postcards.HashKey(path.Key)
	must(err)
	var hops [postcard.MaxHops]uint32
	o.slot, err = o.Plan.Postcards.AppendChunk(o.slot[:0], p, fillHops(&hops, path))
	must(err)
	if o.req.WindowFree() == 0 {
		o.countResult(false)
		return
	}
	ok, copies := true, o.copies(path)
	for n := range copies {
		off := o.Plan.Postcards.Offset(p, n)
		imm := roce.ImmDt(0)
		if path.Immediate && n == copies-1 {
			imm = EncodeImmediate(dta.Postcarding, off/8)
		}
		ok = o.write(o.at.Postcards, off, o.slot, imm) && ok
	}
	o.countResult(ok)
}

// Append implements MemoryWriter. The number of entries is written after them, so
// a reader never sees one without the other; if the window does not fit all of it,
// nothing is written.
func (o *RDMAWriter) Append(id dta.ListID, entries []byte, immediate bool) {
	i, n := o.listIndex(id)
	if o.req.WindowFree() < o.req.PacketsOf(len(entries))+4 {
		o.countResult(false)
		return
	}
	s := o.Lists[i]
	spans, parts, err := s.BatchParts(n, o.heads[id], entries)
	must(err)
	for _, part := range spans[:parts] {
		o.write(o.at.Lists[i], part.Offset, part.Bytes, 0)
	}
	one, err := s.AppendEntry(o.slot[:0], n, nil)
	must(err)
	o.heads[id] += uint64(len(entries) / len(one))
	o.slot = binary.LittleEndian.AppendUint64(o.slot[:0], o.heads[id])
	imm := roce.ImmDt(0)
	if immediate {
		imm = EncodeImmediate(dta.Append, uint64(id))
	}
	if off, ok := s.HeadOffset(n); ok {
		o.write(o.at.Lists[i], off, o.slot, imm)
	} else if imm != 0 {
		o.write(o.at.Lists[i], 0, nil, imm)
	}
}

// Flush implements MemoryWriter: the host sends the Requester's packets.
func (o *RDMAWriter) Flush(model.Time) {}
