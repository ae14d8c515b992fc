package translate

import (
	"fmt"
	"math/bits"
	"time"

	"github.com/weft-telemetry/weft/collect/place"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Path is the postcards of one key, gathered.
type Path struct {
	Redundancy uint8  // the most that any of the postcards asked for
	Immediate  bool   // one of them asked to tell the collector's program
	Length     uint8  // hops of the whole path, 0 where no postcard told it
	Seen       uint32 // bit i is set when hop i has a value
	Key        []byte
	Values     []uint32 // one for each hop, 0 where there is none
}

// Complete tells whether every hop of the path has a value: all that a
// postcard said there are, or all that memory has room for.
func (p *Path) Complete() bool {
	n := int(p.Length)
	if n == 0 || n > len(p.Values) {
		n = len(p.Values)
	}
	all := uint32(1)<<n - 1
	return p.Seen&all == all
}

// row is a place of the cache.
type row struct {
	since  model.Time
	key    [dta.MaxKey]byte
	keyLen uint8 // 0: empty
	path   Path  // its Key and Values alias the row and the cache
}

// emitter takes a path that leaves the cache, and must not keep it.
type emitter func(now model.Time, p *Path)

// cache gathers postcards, one path to a row. A path leaves when it is
// complete, when another key needs its row, or when it has waited long enough.
type cache struct {
	rows   []row
	values []uint32
	mask   uint64
	wait   time.Duration
	swept  model.Time
	filled int
	stats  PostcardStats
}

// PostcardStats account for the cache.
// Invariant: Postcards = Gathered + Repeated + what lies in rows.
type PostcardStats struct {
	Postcards uint64 `json:"postcards"` // put into the cache
	Gathered  uint64 `json:"gathered"`  // left it with their path
	Repeated  uint64 `json:"repeated"`  // told what was known: the same hop and value again

	Complete uint64 `json:"complete"` // paths that left with all hops
	Collided uint64 `json:"collided"` // left early: another key needed the row
	Renewed  uint64 `json:"renewed"`  // left early: a hop was reported with another value
	Expired  uint64 `json:"expired"`  // left early: they waited too long
}

func newCache(rows, hops int, wait time.Duration) (cache, error) {
	if rows < 1 || rows&(rows-1) != 0 {
		return cache{}, fmt.Errorf("translate: %d rows for postcards, want a power of two", rows)
	}
	c := cache{rows: make([]row, rows), values: make([]uint32, rows*hops), mask: uint64(rows - 1), wait: wait}
	for i := range c.rows {
		r := &c.rows[i]
		r.path.Values = c.values[i*hops : (i+1)*hops : (i+1)*hops]
	}
	return c, nil
}

// cacheSeed keeps rows apart from slots in memory: keys that share a row
// would else share a slot as well, as in the prototype.
const cacheSeed = 0x7f4a7c15

// put takes a postcard and gives the paths that leave to emit.
func (c *cache) put(now model.Time, r *dta.Report, value uint32, emit emitter) {
	c.stats.Postcards++
	w := &c.rows[place.Of(r.Key, cacheSeed).Slot(0, c.mask+1)]
	p := &w.path
	if w.keyLen != 0 && string(w.key[:w.keyLen]) != string(r.Key) {
		// It is written under its own key. The prototype writes it to the
		// slot of the key that displaces it.
		c.stats.Collided++
		c.leave(now, w, emit)
	}
	bit := uint32(1) << r.Hop
	if p.Seen&bit != 0 {
		if p.Values[r.Hop] == value {
			c.stats.Repeated++
			return
		}
		// The next packet of the key, or another path.
		c.stats.Renewed++
		c.leave(now, w, emit)
	}
	if w.keyLen == 0 {
		w.since, w.keyLen = now, uint8(copy(w.key[:], r.Key))
		p.Key = w.key[:w.keyLen]
		c.filled++
	}
	p.Values[r.Hop] = value
	p.Seen |= bit
	p.Redundancy = max(p.Redundancy, r.Redundancy)
	p.Immediate = p.Immediate || r.Immediate
	if r.Path != 0 {
		p.Length = r.Path
	}
	if p.Complete() {
		c.stats.Complete++
		c.leave(now, w, emit)
	}
}

// leave emits a row and empties it.
func (c *cache) leave(now model.Time, w *row, emit emitter) {
	c.stats.Gathered += uint64(bits.OnesCount32(w.path.Seen))
	emit(now, &w.path)
	clear(w.path.Values)
	w.path = Path{Values: w.path.Values}
	w.keyLen = 0
	c.filled--
}

// sweep emits paths that have waited long enough.
func (c *cache) sweep(now model.Time, emit emitter) {
	// Looking at every row twice per wait keeps each at most half as long
	// again, and costs a few percent of the time the rows took to fill.
	if c.filled == 0 || now.Sub(c.swept) < c.wait/2 {
		return
	}
	c.swept = now
	for i := range c.rows {
		if w := &c.rows[i]; w.keyLen != 0 && now.Sub(w.since) >= c.wait {
			c.stats.Expired++
			c.leave(now, w, emit)
		}
	}
}

// drain emits every row.
func (c *cache) drain(now model.Time, emit emitter) {
	for i := range c.rows {
		if w := &c.rows[i]; w.keyLen != 0 {
			c.stats.Expired++
			c.leave(now, w, emit)
		}
	}
}
