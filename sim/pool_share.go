package sim

import "sync"

// leftOver holds packets that a worker has too many of: where one worker's nodes
// send more than they receive, its packets return to the pools of others.
type leftOver struct {
	mu      sync.Mutex
	batches []packetBatch
}

type packetBatch struct {
	first  *Packet // of a list by next
	extras []*Extra
}

// batchSize packets change hands at once: 512 KB.
const batchSize = 4096

// give hands over a batch if the pool has two to spare.
func (o *leftOver) give(l *pool) {
	if l.spare < 2*batchSize {
		return
	}
	b := packetBatch{first: l.free}
	last := l.free
	for range batchSize - 1 {
		last = last.next
	}
	l.free, last.next = last.next, nil
	l.spare -= batchSize
	if k := len(l.extras); k > batchSize {
		b.extras = append(b.extras, l.extras[k/2:]...)
		clear(l.extras[k/2:])
		l.extras = l.extras[:k/2]
	}
	o.mu.Lock()
	o.batches = append(o.batches, b)
	o.mu.Unlock()
}

// take adds a batch to an empty pool, and reports whether there was one.
func (o *leftOver) take(l *pool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	last := len(o.batches) - 1
	if last < 0 {
		return false
	}
	b := o.batches[last]
	o.batches[last] = packetBatch{}
	o.batches = o.batches[:last]
	l.free, l.spare = b.first, batchSize
	l.extras = append(l.extras, b.extras...)
	return true
}
