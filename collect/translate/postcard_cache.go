package translate

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"time"
	"unsafe"

	"github.com/weft-telemetry/weft/collect/postcard"
	"github.com/weft-telemetry/weft/collect/region"
	"github.com/weft-telemetry/weft/collect/slothash"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Path holds the gathered postcards of one key.
type Path struct {
	Redundancy uint8  // maximum of the postcards
	Immediate  bool   // one of them was immediate
	Length     uint8  // hops of the whole path, 0 if no postcard had it
	Seen       uint32 // bit i is set when hop i has a value
	Key        []byte
	Values     []uint32 // one for each hop, 0 where there is none
}

// Complete reports whether every hop of the path has a value: the length that a
// postcard reported, or the maximum of the memory.
func (p *Path) Complete() bool {
	return complete(p.Seen, int(p.Length), len(p.Values))
}

func complete(seen uint32, length, hops int) bool {
	if length == 0 || length > hops {
		length = hops
	}
	all := uint32(1)<<length - 1
	return seen&all == all
}

// row is a row of the cache: two cache lines, and no pointer for the garbage
// collector to scan.
type row struct {
	since      model.Time
	seen       uint32 // as in Path, as are the next three
	redundancy uint8
	length     uint8
	immediate  bool
	keyLen     uint8 // 0: empty
	key        [dta.MaxKey]byte
	values     [postcard.MaxHops]uint32
	_          [8]byte
}

const rowWords = unsafe.Sizeof(row{}) / 8

// emitter is called with a path that leaves the cache, and must not keep it.
type emitter func(now model.Time, p *Path)

// postcardCache gathers postcards, one path per row. A path leaves when it is
// complete, when another key needs its row, or when its wait time is over.
type postcardCache struct {
	rows   []row
	words  []uint64 // the rows again, for Prefetch
	hops   int
	wait   time.Duration
	swept  model.Time
	filled int
	path   Path // that leaves
	// Scratch space of prefetchRows, prefetch and addRun: to clear 3 KiB on the
	// stack each time would cost as much as a postcard.
	group slothash.SlotBatch
	lines [2 * slothash.BatchLen]uint64
	stats PostcardStats
}

// PostcardStats are the counters of the cache.
// Invariant: Postcards = Emitted + Duplicate + postcards in rows.
type PostcardStats struct {
	Postcards uint64 `json:"postcards"` // added to the cache
	Emitted   uint64 `json:"emitted"`   // left it with their path
	Duplicate uint64 `json:"duplicate"` // the same hop and value again

	Complete   uint64 `json:"complete"`   // paths that left with all hops
	Evicted    uint64 `json:"evicted"`    // left early: another key needed the row
	Superseded uint64 `json:"superseded"` // left early: a hop was reported with another value
	Expired    uint64 `json:"expired"`    // left early: the wait time was over
}

func newCache(rows, hops int, wait time.Duration) (postcardCache, error) {
	if rows < 1 || rows&(rows-1) != 0 {
		return postcardCache{}, fmt.Errorf("translate: %d rows for postcards, want a power of two", rows)
	}
	c := postcardCache{rows: make([]row, rows), hops: hops, wait: wait}
	c.words = unsafe.Slice((*uint64)(unsafe.Pointer(&c.rows[0])), rows*int(rowWords))
	return c, nil
}

// cacheSeed makes rows independent of slots in memory: otherwise keys that share
// a row would share a slot as well, as in the prototype.
const cacheSeed = 0x7f4a7c15

// prefetchRows finds the rows of the postcards in a batch, and prefetches them
// before the first is used.
func (c *postcardCache) prefetchRows(rows *[batchSize]uint32, batch []dta.Report) {
	words := &c.group.Words
	n := 0
	for i := range batch {
		if batch[i].Primitive == dta.Postcarding {
			rows[i] = c.rowOf(batch[i].Key)
			words[n] = uint64(rows[i]) * uint64(rowWords)
			n++
		}
	}
	c.prefetch(words[:n])
}

// prefetch prefetches rows, given by their first words. The postcards of a path
// often follow each other, so a repeated row is prefetched once.
func (c *postcardCache) prefetch(words []uint64) {
	lines := &c.lines
	n, last := 0, ^uint64(0)
	for _, at := range words {
		if at != last {
			lines[n], lines[n+1] = at, at+uint64(rowWords)/2
			n, last = n+2, at
		}
	}
	region.Prefetch(c.words, lines[:n])
}

// cardHead is the length of the header of a Postcarding report; hop and path
// length are its last two bytes.
const cardHead = 6

// addRun is add for packed postcards of one format, as in a datagram.
func (c *postcardCache) addRun(now model.Time, first *dta.Report, run []byte, size int, emit emitter) {
	g := &c.group
	keyLen, grid := len(first.Key), slothash.Grid{Slots: uint64(len(c.rows)), Words: uint64(rowWords)}
	for r := *first; len(run) > 0; {
		n := min(len(run)/size, slothash.BatchLen)
		g.FindSlots(slothash.PackedKeys{Rows: run[cardHead:], Len: keyLen, Stride: size}, n, 1, cacheSeed, grid)
		c.prefetch(g.Words[:n])
		for _, at := range g.Words[:n] {
			b := run[:size:size]
			run = run[size:]
			r.Hop, r.Path = b[cardHead-2], b[cardHead-1]
			r.Key, r.Data = b[cardHead:cardHead+keyLen], b[cardHead+keyLen:]
			c.add(now, &r, uint32(at/uint64(rowWords)), emit)
		}
	}
}

// rowOf is the row of a key.
func (c *postcardCache) rowOf(key []byte) uint32 {
	return uint32(slothash.HashKey(key, cacheSeed).Slot(0, uint64(len(c.rows))))
}

// add adds a postcard to its row and emits the paths that leave.
func (c *postcardCache) add(now model.Time, r *dta.Report, at uint32, emit emitter) {
	c.stats.Postcards++
	w, value := &c.rows[at], binary.BigEndian.Uint32(r.Data)
	if w.keyLen != 0 && !w.hasKey(r.Key) {
		// The evicted path is written under its own key. The prototype writes it
		// to the slot of the key that evicts it.
		c.stats.Evicted++
		c.emitRow(now, w, emit)
	}
	bit := uint32(1) << r.Hop
	if w.seen&bit != 0 {
		if w.values[r.Hop] == value {
			c.stats.Duplicate++
			return
		}
		// The next packet of the key, or another path.
		c.stats.Superseded++
		c.emitRow(now, w, emit)
	}
	if w.keyLen == 0 {
		w.since, w.keyLen = now, uint8(copy(w.key[:], r.Key))
		c.filled++
	}
	w.values[r.Hop] = value
	w.seen |= bit
	w.redundancy = max(w.redundancy, r.Redundancy)
	w.immediate = w.immediate || r.Immediate
	if r.Path != 0 {
		w.length = r.Path
	}
	if complete(w.seen, int(w.length), c.hops) {
		c.stats.Complete++
		c.emitRow(now, w, emit)
	}
}

// hasKey reports whether the row's path is that of a key. Keys of the common
// lengths are compared as two words that overlap, without a call.
func (w *row) hasKey(key []byte) bool {
	n := len(key)
	if n >= 8 && n <= 16 {
		return int(w.keyLen) == n &&
			binary.LittleEndian.Uint64(w.key[:]) == binary.LittleEndian.Uint64(key) &&
			binary.LittleEndian.Uint64(w.key[n-8:]) == binary.LittleEndian.Uint64(key[n-8:])
	}
	return string(w.key[:w.keyLen]) == string(key)
}

// emitRow emits a row and empties it.
func (c *postcardCache) emitRow(now model.Time, w *row, emit emitter) {
	c.stats.Emitted += uint64(bits.OnesCount32(w.seen))
	c.path = Path{
		Redundancy: w.redundancy, Immediate: w.immediate, Length: w.length, Seen: w.seen,
		Key: w.key[:w.keyLen], Values: w.values[:c.hops],
	}
	emit(now, &c.path)
	w.seen, w.redundancy, w.length, w.immediate, w.keyLen = 0, 0, 0, false, 0
	clear(w.values[:c.hops])
	c.filled--
}

// emitExpired emits paths whose wait time is over.
func (c *postcardCache) emitExpired(now model.Time, emit emitter) {
	// Scanning every row twice per wait time delays a path by at most half of it,
	// and costs a few percent of the time the rows took to fill.
	if c.filled == 0 || now.Sub(c.swept) < c.wait/2 {
		return
	}
	c.swept = now
	for i := range c.rows {
		if w := &c.rows[i]; w.keyLen != 0 && now.Sub(w.since) >= c.wait {
			c.stats.Expired++
			c.emitRow(now, w, emit)
		}
	}
}

// emitAll emits every row.
func (c *postcardCache) emitAll(now model.Time, emit emitter) {
	for i := range c.rows {
		if w := &c.rows[i]; w.keyLen != 0 {
			c.stats.Expired++
			c.emitRow(now, w, emit)
		}
	}
}
