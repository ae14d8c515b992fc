package collector

import (
	"sync"
	"sync/atomic"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/wire/dta"
)

// noticeFeed distributes immediate reports to subscribers.
type noticeFeed struct {
	mu    sync.Mutex
	next  int
	all   map[int]func(translate.ImmediateNotice)
	any   atomic.Bool // without subscribers no lock is needed
	total atomic.Uint64
}

func (n *noticeFeed) publish(x translate.ImmediateNotice) {
	n.total.Add(1)
	if !n.any.Load() {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, f := range n.all {
		f(x)
	}
}

// publishRDMA publishes immediate data of RDMA: the location of the write, not
// its key.
func (n *noticeFeed) publishRDMA(p dta.Primitive, where uint32) {
	n.publish(translate.ImmediateNotice{Primitive: p, List: dta.ListID(where)})
}

func (n *noticeFeed) subscribe(f func(translate.ImmediateNotice)) (stop func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all == nil {
		n.all = map[int]func(translate.ImmediateNotice){}
	}
	id := n.next
	n.next++
	n.all[id] = f
	n.any.Store(true)
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.all, id)
		n.any.Store(len(n.all) > 0)
	}
}
