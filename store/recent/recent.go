// Package recent caches the newest records of one kind in memory, so that queries
// about recent times need not go to the database. It reports the time from which
// it is complete; the database answers for older records, and is responsible for
// durability, retention and the cursors of pages.
package recent

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"sort"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// Shape holds the accessors of a Set's records.
type Shape[T any] struct {
	Time       func(*T) time.Time
	Flow       func(*T) *model.FlowKey      // nil: records have no flow
	ByEndpoint bool                         // index the endpoints of flows, too
	Matches    func(*T, *record.Query) bool // applies the query's filters, except for times
	Clone      func(*T)                     // replaces shared memory by copies
	CloneAll   func(n int) func(*T)         // optional: Clone for n records, which may share its memory
	Size       func(*T) int                 // approximate size in memory
}

// Set holds the newest records. One goroutine adds and removes; any number read.
type Set[T any] struct {
	shape Shape[T]
	limit int // bytes
	now   atomic.Pointer[View[T]]
}

// View is an immutable snapshot of a set.
// Invariant: it has every record of the store that is later than Floor.
type View[T any] struct {
	shape  *Shape[T]
	floor  int64
	bytes  int
	blocks []*block[T] // in order; none is empty
}

// block holds consecutive records, in order. It is small enough to be rebuilt for
// a late record, and large enough that there are few.
type block[T any] struct {
	items []item[T]
	bytes int
	// Records by flow, by its source, by its destination.
	flows, srcs, dsts chains
}

type item[T any] struct {
	Position
	record T
}

// Position is a record's sort key: its time in nanoseconds, then its sequence
// number.
type Position struct{ Time, Seq int64 }

// Compare orders positions, the older first.
func (p Position) Compare(o Position) int {
	return cmp.Or(cmp.Compare(p.Time, o.Time), cmp.Compare(p.Seq, o.Seq))
}

// blockLen is the maximum number of records of a block.
const blockLen = 4096

// New makes a set of about most bytes at most. The database has records up to
// floor that are not in the set.
func New[T any](shape Shape[T], most model.Bytes, floor int64) *Set[T] {
	s := &Set[T]{shape: shape, limit: int(most)}
	s.now.Store(&View[T]{shape: &s.shape, floor: floor})
	return s
}

// AddRecords adds copies of records; the first has the sequence number first, and
// so on. The oldest are evicted above the size limit.
func (s *Set[T]) AddRecords(records []T, first int64) {
	if len(records) == 0 {
		return
	}
	next := *s.now.Load()
	items := make([]item[T], 0, len(records))
	for i := range records {
		at := Position{s.shape.Time(&records[i]).UnixNano(), first + int64(i)}
		if at.Time > next.floor {
			items = append(items, item[T]{at, records[i]})
		}
	}
	slices.SortFunc(items, func(a, b item[T]) int { return a.Compare(b.Position) })
	// Only the end of a batch that is larger than the limit would stay.
	left := s.limit
	for i := len(items) - 1; i >= 0; i-- {
		if left -= s.shape.Size(&items[i].record); left < 0 {
			next.floor = items[i].Time
			items = items[i+1:]
			break
		}
	}
	clone := s.shape.Clone
	if s.shape.CloneAll != nil {
		clone = s.shape.CloneAll(len(items))
	}
	for i := range items {
		clone(&items[i].record)
	}
	next.blocks = slices.Clone(next.blocks)
	for len(items) > 0 {
		items = next.insert(items)
	}
	next.bytes = 0
	for _, b := range next.blocks {
		next.bytes += b.bytes
	}
	for next.bytes > s.limit && len(next.blocks) > 0 {
		old := next.blocks[0]
		next.floor = max(next.floor, old.items[len(old.items)-1].Time)
		next.bytes -= old.bytes
		next.blocks = next.blocks[1:]
	}
	s.now.Store(&next)
}

// insert inserts the last of the items, those that belong into one block, and
// returns the others.
func (v *View[T]) insert(items []item[T]) []item[T] {
	last := items[len(items)-1].Position
	// The block that begins at or before it, or the first.
	at := sort.Search(len(v.blocks), func(i int) bool { return v.blocks[i].items[0].Compare(last) > 0 }) - 1
	if at < 0 {
		v.blocks = slices.Insert(v.blocks, 0, makeBlocks(v.shape, items)...)
		return nil
	}
	old := v.blocks[at].items
	begin, _ := slices.BinarySearchFunc(items, old[0].Position, func(a item[T], p Position) int { return a.Compare(p) })
	var made []*block[T]
	if end := old[len(old)-1]; items[begin].Compare(end.Position) > 0 && len(old) == blockLen {
		made = append([]*block[T]{v.blocks[at]}, makeBlocks(v.shape, items[begin:])...) // they do not overlap
	} else {
		made = makeBlocks(v.shape, merge(old, items[begin:]))
	}
	v.blocks = slices.Replace(v.blocks, at, at+1, made...)
	return items[:begin]
}

// merge merges two sorted runs.
func merge[T any](a, b []item[T]) []item[T] {
	out := make([]item[T], 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0].Compare(b[0].Position) < 0 {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// makeBlocks splits a run into blocks.
func makeBlocks[T any](shape *Shape[T], items []item[T]) (blocks []*block[T]) {
	for part := range slices.Chunk(items, blockLen) {
		b := &block[T]{items: slices.Clone(part)}
		if shape.Flow != nil {
			b.flows = newChains(len(part))
		}
		if shape.Flow != nil && shape.ByEndpoint {
			b.srcs, b.dsts = newChains(len(part)), newChains(len(part))
		}
		for i := range b.items {
			r := &b.items[i].record
			b.bytes += shape.Size(r)
			if shape.Flow == nil {
				continue
			}
			k := shape.Flow(r)
			b.flows.add(k.Hash(0), i)
			if shape.ByEndpoint {
				b.srcs.add(hashAddr(k.Src), i)
				b.dsts.add(hashAddr(k.Dst), i)
			}
		}
		blocks = append(blocks, b)
	}
	return blocks
}

// RemoveBefore removes records before a time, which the database has removed, too.
func (s *Set[T]) RemoveBefore(before int64) {
	next := *s.now.Load()
	next.blocks = slices.Clone(next.blocks)
	for len(next.blocks) > 0 {
		b := next.blocks[0]
		n := sort.Search(len(b.items), func(i int) bool { return b.items[i].Time >= before })
		if n == 0 {
			break
		}
		next.bytes -= b.bytes
		if n < len(b.items) {
			next.blocks[0] = makeBlocks(next.shape, b.items[n:])[0]
			next.bytes += next.blocks[0].bytes
			break
		}
		next.blocks = next.blocks[1:]
	}
	s.now.Store(&next)
}

// View returns a snapshot of the set.
func (s *Set[T]) View() *View[T] { return s.now.Load() }

// Floor is the time after which the view has every record.
func (v *View[T]) Floor() int64 { return v.floor }

// NewestFirst iterates over the records that match a query, newest first, before a
// position, in the times from first to last and later than the floor. Callers must
// not modify them.
func (v *View[T]) NewestFirst(q *record.Query, before Position, first, last int64) iter.Seq2[Position, *T] {
	return func(yield func(Position, *T) bool) {
		if v.floor == math.MaxInt64 {
			return
		}
		first = max(first, v.floor+1)
		end := sort.Search(len(v.blocks), func(i int) bool {
			p := v.blocks[i].items[0].Position
			return p.Compare(before) >= 0 || p.Time > last
		})
		for i := end - 1; i >= 0; i-- {
			b := v.blocks[i]
			if b.items[len(b.items)-1].Time < first {
				return
			}
			for at := range b.newestFirst(v.shape, q) {
				it := &b.items[at]
				if it.Time < first {
					break
				}
				if it.Time > last || it.Compare(before) >= 0 || !v.shape.Matches(&it.record, q) {
					continue
				}
				if !yield(it.Position, &it.record) {
					return
				}
			}
		}
	}
}

// newestFirst iterates over the indices of a block that may match a query, newest
// first.
func (b *block[T]) newestFirst(shape *Shape[T], q *record.Query) iter.Seq[int] {
	return func(yield func(int) bool) {
		list, hash, indexed := b.chainsFor(shape, q)
		if !indexed {
			for i := len(b.items) - 1; i >= 0; i-- {
				if !yield(i) {
					return
				}
			}
			return
		}
		for i := range list.newestFirst(hash) {
			if !yield(i) {
				return
			}
		}
	}
}

// chainsFor selects the chains that contain every match of a query, if there are
// some. They contain others, too.
func (b *block[T]) chainsFor(shape *Shape[T], q *record.Query) (list *chains, hash uint64, ok bool) {
	switch {
	case shape.Flow != nil && !q.Flow.IsZero():
		return &b.flows, q.Flow.Hash(0), true
	case shape.ByEndpoint && q.Ends.Src != model.Addr{}:
		return &b.srcs, hashAddr(q.Ends.Src), true
	case shape.ByEndpoint && q.Ends.Dst != model.Addr{}:
		return &b.dsts, hashAddr(q.Ends.Dst), true
	}
	return nil, 0, false
}

// hashAddr can be simple: a fabric has few addresses.
func hashAddr(a model.Addr) uint64 { return a.Hi*0x9e3779b97f4a7c15 ^ a.Lo }
