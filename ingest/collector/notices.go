package collector

import (
	"sync"
	"sync/atomic"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/wire/dta"
)

// notices hands immediate reports to whoever listens.
type notices struct {
	mu    sync.Mutex
	next  int
	all   map[int]func(translate.Notification)
	any   atomic.Bool // without listeners there is no lock to take
	total atomic.Uint64
}

func (n *notices) publish(x translate.Notification) {
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

// publishRDMA takes what came as immediate data: the place of the write, not
// its key.
func (n *notices) publishRDMA(p dta.Primitive, where uint32) {
	n.publish(translate.Notification{Primitive: p, List: dta.ListID(where)})
}

func (n *notices) subscribe(f func(translate.Notification)) (stop func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all == nil {
		n.all = map[int]func(translate.Notification){}
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
