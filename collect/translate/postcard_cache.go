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
	used   bits64   // by row: it has a path; small enough for the first-level cache
	words  []uint64 // the rows again, for Prefetch
	hops   int
	wait   time.Duration
	swept  model.Time
	filled int
	path   Path                     // that leaves
	direct [postcard.MaxHops]uint32 // its values, where they have no row
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
	c := postcardCache{rows: make([]row, rows), used: make(bits64, (rows+63)/64), hops: hops, wait: wait}
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

// addRun is add for packed postcards of one format, as in a datagram. Those of one
// key that follow each other, as a switch sends them that ends a path, need one
// look-up.
func (c *postcardCache) addRun(now model.Time, first *dta.Report, run []byte, size int, emit emitter) {
	g := &c.group
	keyLen, grid := len(first.Key), slothash.Grid{Slots: uint64(len(c.rows)), Words: uint64(rowWords)}
	for r := *first; len(run) > 0; {
		together := c.adjacent(run, size, keyLen) * size
		n := 1
		for n < slothash.BatchLen && len(run) >= (n+1)*together && c.adjacent(run[n*together:], size, keyLen)*size == together {
			n++
		}
		g.FindSlots(slothash.PackedKeys{Rows: run[cardHead:], Len: keyLen, Stride: together}, n, 1, cacheSeed, grid)
		if together == size {
			c.prefetch(g.Words[:n])
		}
		for _, at := range g.Words[:n] {
			c.addAdjacent(now, &r, run[:together:together], size, keyLen, uint32(at/uint64(rowWords)), emit)
			run = run[together:]
		}
	}
}

// adjacent returns how many packed postcards, from the first, have one key; at most
// the hops of a path.
func (c *postcardCache) adjacent(run []byte, size, keyLen int) int {
	n, key := 1, run[cardHead:cardHead+keyLen]
	for n < c.hops && len(run) >= (n+1)*size && sameKey(key, run[n*size+cardHead:][:keyLen]) {
		n++
	}
	return n
}

// addAdjacent adds packed postcards of one key. If they are a path, it needs no
// row, unless that has a path already.
func (c *postcardCache) addAdjacent(now model.Time, r *dta.Report, run []byte, size, keyLen int, at uint32, emit emitter) {
	if n := len(run) / size; !c.used.has(at) && c.wholePath(run, size, n) {
		c.stats.Postcards += uint64(n)
		c.stats.Emitted += uint64(n)
		c.stats.Complete++
		c.path.Redundancy, c.path.Immediate, c.path.Key = r.Redundancy, r.Immediate, run[cardHead:cardHead+keyLen]
		emit(now, &c.path)
		return
	}
	for ; len(run) > 0; run = run[size:] {
		b := run[:size:size]
		r.Hop, r.Path = b[cardHead-2], b[cardHead-1]
		r.Key, r.Data = b[cardHead:cardHead+keyLen], b[cardHead+keyLen:]
		c.add(now, r, at, emit)
	}
}

// wholePath reports whether n postcards are a path, each with another hop and all with
// the same length, and if so has c.path hold it.
func (c *postcardCache) wholePath(run []byte, size, n int) bool {
	length := run[cardHead-1]
	if n != int(length) && (length != 0 || n != c.hops) || n > c.hops {
		return false
	}
	values := c.direct[:c.hops]
	clear(values[n:])
	var seen uint32
	var other byte
	for ; len(run) >= size; run = run[size:] {
		b := run[:size]
		hop := b[cardHead-2]
		if int(hop) >= n {
			return false
		}
		seen |= 1 << hop
		other |= b[cardHead-1] ^ length
		values[hop] = binary.BigEndian.Uint32(b[size-4:])
	}
	c.path.Length, c.path.Seen, c.path.Values = length, seen, values
	return other == 0 && seen == 1<<n-1
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
		c.emitRow(now, at, emit)
	}
	bit := uint32(1) << r.Hop
	if w.seen&bit != 0 {
		if w.values[r.Hop] == value {
			c.stats.Duplicate++
			return
		}
		// The next packet of the key, or another path.
		c.stats.Superseded++
		c.emitRow(now, at, emit)
	}
	if w.keyLen == 0 {
		w.since, w.keyLen = now, uint8(copy(w.key[:], r.Key))
		c.used.flip(at)
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
		c.emitRow(now, at, emit)
	}
}

// hasKey reports whether the row's path is that of a key.
func (w *row) hasKey(key []byte) bool {
	return int(w.keyLen) == len(key) && sameKey(w.key[:len(key)], key)
}

// sameKey compares keys of one length. Those of the common lengths are compared as two
// words that overlap, without a call.
func sameKey(a, b []byte) bool {
	n := len(a)
	if n >= 8 && n <= 16 && n == len(b) {
		return binary.LittleEndian.Uint64(a) == binary.LittleEndian.Uint64(b) &&
			binary.LittleEndian.Uint64(a[n-8:]) == binary.LittleEndian.Uint64(b[n-8:])
	}
	return string(a) == string(b)
}

// emitRow emits a row and empties it.
func (c *postcardCache) emitRow(now model.Time, at uint32, emit emitter) {
	w := &c.rows[at]
	c.stats.Emitted += uint64(bits.OnesCount32(w.seen))
	c.path = Path{
		Redundancy: w.redundancy, Immediate: w.immediate, Length: w.length, Seen: w.seen,
		Key: w.key[:w.keyLen], Values: w.values[:c.hops],
	}
	emit(now, &c.path)
	w.seen, w.redundancy, w.length, w.immediate, w.keyLen = 0, 0, 0, false, 0
	clear(w.values[:c.hops])
	c.used.flip(at)
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
	for at := range c.used.all() {
		if now.Sub(c.rows[at].since) >= c.wait {
			c.stats.Expired++
			c.emitRow(now, at, emit)
		}
	}
}

// emitAll emits every row.
func (c *postcardCache) emitAll(now model.Time, emit emitter) {
	for at := range c.used.all() {
		c.stats.Expired++
		c.emitRow(now, at, emit)
	}
}
