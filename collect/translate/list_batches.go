package translate

import (
	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/model"
)

// listBatches gathers entries, a batch for each list. Batches with entries form a
// queue by the time of their first entry, so that the oldest is at its head.
type listBatches struct {
	all        []pendingBatch
	head, tail int // of the queue; -1 when empty
}

// pendingBatch holds the entries of one list that wait to be written.
type pendingBatch struct {
	scheme     *list.Scheme
	id         uint32 // in scheme
	batch      int    // maximum number of entries
	stride     int    // bytes of an entry
	buf        []byte // made with the first entry: most lists of a large fabric never have one
	count      int
	since      model.Time // of the first entry
	next, prev int        // in the queue
}

func newLists(plan *Plan) listBatches {
	ls := listBatches{head: -1, tail: -1}
	var entry []byte
	for _, s := range plan.Lists {
		for id := range s.Lists() {
			var err error
			entry, err = s.AppendEntry(entry[:0], id, nil)
			must(err)
			ls.all = append(ls.all, pendingBatch{scheme: s, id: id, batch: s.Config().Batch, stride: len(entry)})
		}
	}
	return ls
}

// enqueue adds list i, which has no entries yet, to the end of the queue.
func (ls *listBatches) enqueue(now model.Time, l *pendingBatch, i int) {
	if l.buf == nil {
		l.buf = make([]byte, 0, l.batch*l.stride)
	}
	l.since = now
	l.prev, l.next = ls.tail, -1
	if ls.tail >= 0 {
		ls.all[ls.tail].next = i
	} else {
		ls.head = i
	}
	ls.tail = i
}

// dequeue removes a list from the queue and empties it. It returns its number,
// and its entries, which are valid until the next is added.
func (ls *listBatches) dequeue(l *pendingBatch) (i int, entries []byte) {
	if l.next >= 0 {
		i = ls.all[l.next].prev
		ls.all[l.next].prev = l.prev
	} else {
		i = ls.tail
		ls.tail = l.prev
	}
	if l.prev >= 0 {
		ls.all[l.prev].next = l.next
	} else {
		ls.head = l.next
	}
	entries = l.buf
	l.buf, l.count = l.buf[:0], 0
	return i, entries
}

// oldest returns the list with the oldest first entry, or nil.
func (ls *listBatches) oldest() *pendingBatch {
	if ls.head < 0 {
		return nil
	}
	return &ls.all[ls.head]
}
