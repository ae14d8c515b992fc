package postcard

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/weft-telemetry/weft/collect/bound"
	"github.com/weft-telemetry/weft/collect/region"
	"github.com/weft-telemetry/weft/collect/slothash"
)

// ErrValues is returned where a chunk can only be validated with the set of
// values, and it is missing or has codes of another length.
var ErrValues = errors.New("postcard: the layout needs the set of values, with the table's bits")

// Query configures a read.
type Query struct {
	Copies  int     // redundancy of the reports, 1 to 4; 0 if unknown
	Values  *Values // values that a hop can report; may be nil for a Sealed table of 32 bits
	Partial bool    // also accept paths with hops missing in between
}

// Outcome is the kind of result of a query.
type Outcome uint8

// The outcomes. All but Found are what the paper calls an empty return.
const (
	Found    Outcome = iota
	Absent           // no valid chunk: never written, or overwritten
	Conflict         // valid chunks with different paths
)

// String names the outcome.
func (o Outcome) String() string { return [...]string{"found", "absent", "conflict", ""}[o&3] }

// Answer is the result of a query for a key's path.
type Answer struct {
	Outcome Outcome
	Hops    []uint32 // when Found: the values by hop, Blank where one is missing in between
	Valid   int      // copies that are valid
	Bound   bound.Bound
}

// Load returns the load of the table.
func (t *Table) Load() bound.Load {
	return bound.Load(float64(t.mem.Counts().Writes) / float64(t.cfg.Chunks))
}

// match is the probability that the chunk of another key is valid for this one.
func (t *Table) match(v *Values) float64 {
	if t.proto && v == nil {
		return 1 // the chunk has nothing to check
	}
	n := 1.0
	if v != nil {
		n = min(1, float64(v.Len()+1)*math.Exp2(-float64(t.cfg.Bits)))
	}
	m := math.Pow(n, float64(t.cfg.Hops))
	if t.sealed {
		m *= math.Exp2(-32)
	}
	return max(m, math.Exp2(-64)) // two keys with the same hash are indistinguishable
}

// Bound bounds the failure probability of an answer at a load.
func (t *Table) Bound(l bound.Load, q Query) bound.Bound {
	if q.Copies == 0 && !t.proto {
		return bound.UnknownCopies(l, slothash.MaxCopies, t.match(q.Values))
	}
	return bound.KnownCopies(l, max(1, q.Copies), t.match(q.Values))
}

// Read answers a query, with the failure bound at the current load.
func (t *Table) Read(key []byte, q Query) (Answer, error) {
	a, err := t.Lookup(nil, key, q)
	if err == nil {
		a.Bound = t.Bound(t.Load(), q)
	}
	return a, err
}

// Lookup is Read without the bound, for many keys: it appends the hops to dst,
// and allocates nothing if dst has the capacity for those of all copies.
//
// A chunk is valid if every hop decodes and blanks are at its end only; an
// answer needs a valid chunk and no valid one with another path.
func (t *Table) Lookup(dst []uint32, key []byte, q Query) (Answer, error) {
	copies := q.Copies
	if copies == 0 {
		copies = t.Copies()
	}
	if copies < 1 || copies > t.Copies() {
		return Answer{}, ErrCopies
	}
	if q.Values == nil && !t.proto && (!t.sealed || t.cfg.Bits != 32) || q.Values != nil && q.Values.bits != t.cfg.Bits {
		return Answer{}, ErrValues
	}
	p, err := t.HashKey(key)
	if err != nil {
		return Answer{}, err
	}
	a := Answer{Outcome: Absent}
	base := len(dst)
	for n := range copies {
		var chunk [maxWords]uint64
		at := t.chunk(p, n) * uint64(t.words)
		for i := range t.words {
			chunk[i] = region.Load(&t.chunks[at+uint64(i)])
		}
		end := len(dst)
		var ok bool
		dst, ok = t.decode(dst, &chunk, p, q)
		switch {
		case !ok:
			dst = dst[:end]
			continue
		case a.Valid > 0 && !slices.Equal(dst[base:base+len(a.Hops)], dst[end:]):
			a.Outcome = Conflict
		case a.Valid == 0:
			a.Outcome = Found
			a.Hops = dst[base:]
		}
		a.Valid++
		dst = dst[:base+len(a.Hops)]
	}
	if a.Outcome != Found {
		a.Hops = nil
	}
	return a, nil
}

// decode appends the hops of a chunk, if it is valid for the key.
func (t *Table) decode(dst []uint32, chunk *[maxWords]uint64, p KeyHash, q Query) ([]uint32, bool) {
	if t.proto {
		return protoDecode(dst, chunk, p.key, q)
	}
	seal := uint64(0)
	if t.sealed {
		seal = chunk[t.words-1] >> 32
		chunk[t.words-1] &= math.MaxUint32
	}
	if t.sealed && seal != t.chunkChecksum(p.hash, chunk) {
		return dst, false
	}
	start, end := len(dst), len(dst)
	for i := range t.cfg.Hops {
		c := uint32((chunk[i/2] ^ hopPairMask(p.hash, i/2)) & t.keep >> (i % 2 * 32))
		v := decodeValue(c)
		if q.Values != nil {
			var ok bool
			if v, ok = q.Values.valueOf(c); !ok {
				return dst, false
			}
		}
		dst = append(dst, v)
		if v != Blank {
			if end < len(dst)-1 && !q.Partial { // a blank before
				return dst, false
			}
			end = len(dst)
		}
	}
	return dst[:max(start, end)], true
}

// protoDecode decodes the prototype's chunk. A value of 0 is a hop that did not
// report. Without the set of values every chunk looks valid.
func protoDecode(dst []uint32, chunk *[maxWords]uint64, key uint32, q Query) ([]uint32, bool) {
	var b [32]byte
	for i := range 4 {
		binary.LittleEndian.PutUint64(b[8*i:], chunk[i])
	}
	if b == [32]byte{} { // never written
		return dst, false
	}
	end := len(dst)
	for i := range protoHops {
		v := binary.BigEndian.Uint32(b[4*i:]) ^ protoCRC(hopTables[i], key)
		if v == 0 {
			dst = append(dst, Blank)
			continue
		}
		if q.Values != nil && !q.Values.contains(v) {
			return dst, false
		}
		if end < len(dst) && !q.Partial {
			return dst, false
		}
		dst = append(dst, v)
		end = len(dst)
	}
	return dst[:end], true
}
