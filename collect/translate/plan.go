package translate

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/weft-telemetry/weft/collect/count"
	"github.com/weft-telemetry/weft/collect/keywrite"
	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/collect/postcard"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Plan is the geometry of a collector's memories, any of which may be missing. A
// translator needs it to write them, in this process or by RDMA.
type Plan struct {
	KeyWrites []*keywrite.Scheme // one for each size of value
	Counts    *count.Scheme
	Postcards *postcard.Scheme
	Lists     []*list.Scheme // lists are numbered through all of them
}

// ErrNoMemory is returned for a collector without any memory.
var ErrNoMemory = errors.New("translate: no memory")

// Check returns an error if a report could go to two memories.
func (p *Plan) Check() error {
	sizes := map[int]bool{}
	for _, k := range p.KeyWrites {
		if v := k.Config().Value; sizes[v] {
			return fmt.Errorf("translate: two key-write memories for values of %d bytes", v)
		} else {
			sizes[v] = true
		}
	}
	if len(p.KeyWrites) == 0 && p.Counts == nil && p.Postcards == nil && len(p.Lists) == 0 {
		return ErrNoMemory
	}
	return nil
}

// Serves reports whether there is memory for a report.
func (p *Plan) Serves(r *dta.Report) bool {
	switch r.Primitive {
	case dta.KeyWrite:
		i := p.keyWriteIndex(len(r.Data))
		if i < 0 {
			return false
		}
		return p.KeyWrites[i].Config().Layout != keywrite.Prototype || len(r.Key) == 4
	case dta.KeyIncrement:
		return p.Counts != nil && (p.Counts.Config().Layout != count.Prototype || len(r.Key) == 4)
	case dta.Postcarding:
		if p.Postcards == nil || len(r.Data) != 4 || r.Path != 0 && r.Hop >= r.Path {
			return false
		}
		if binary.BigEndian.Uint32(r.Data) == postcard.Blank {
			return false // it would be read as a hop that did not report
		}
		c := p.Postcards.Config()
		return int(r.Hop) < c.Hops && (c.Layout != postcard.Prototype || len(r.Key) == 4)
	case dta.Append:
		i, id := p.listIndex(r.List)
		if i < 0 {
			return false
		}
		class, err := p.Lists[i].Class(id)
		return err == nil && len(r.Data) <= class.Entry
	}
	return false
}

// ServesRun reports whether there is memory for all reports of a run. The deciding
// fields are the same in all of them, except for postcards.
func (p *Plan) ServesRun(first *dta.Report, run []byte, count int) bool {
	if !p.Serves(first) {
		return false
	}
	if first.Primitive != dta.Postcarding {
		return true
	}
	hops, size := p.Postcards.Config().Hops, len(run)/count
	for ; len(run) > 0; run = run[size:] {
		hop, path, value := run[cardHead-2], run[cardHead-1], binary.BigEndian.Uint32(run[size-4:size])
		if int(hop) >= hops || path != 0 && hop >= path || value == postcard.Blank {
			return false
		}
	}
	return true
}

// keyWriteIndex returns the index of the memory for values of that size, or -1.
func (p *Plan) keyWriteIndex(size int) int {
	for i, k := range p.KeyWrites {
		if k.Config().Value == size {
			return i
		}
	}
	return -1
}

// listIndex returns the index of the memory of a list and its number there, or -1.
func (p *Plan) listIndex(id dta.ListID) (int, uint32) {
	n := uint32(id)
	for i, l := range p.Lists {
		if n < l.Lists() {
			return i, n
		}
		n -= l.Lists()
	}
	return -1, 0
}

// copies limits a path's redundancy to the maximum of the postcards' layout.
func (p *Plan) copies(path *Path) int {
	return min(int(path.Redundancy), p.Postcards.Copies())
}

// fillHops returns the values of a path for package postcard: Blank for hops that
// did not report.
func fillHops(hops *[postcard.MaxHops]uint32, p *Path) []uint32 {
	for i, v := range p.Values {
		if p.Seen>>i&1 == 0 {
			v = postcard.Blank
		}
		hops[i] = v
	}
	return hops[:len(p.Values)]
}
