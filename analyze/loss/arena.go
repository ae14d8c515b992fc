package loss

import "github.com/weft-telemetry/weft/internal/hugepages"

// arena holds small arrays of T in one slice, which has no pointers for the garbage
// collector to follow. Arrays have capacities of a least one times powers of two. Those
// that were freed are given again.
type arena[T any] struct {
	items []T
	least int
	free  [17][]uint32 // by class
}

// alloc returns where an array of a class begins; its capacity is that of the class. It
// may move all arrays.
func (a *arena[T]) alloc(class uint8) uint32 {
	if last := len(a.free[class]) - 1; last >= 0 {
		at := a.free[class][last]
		a.free[class] = a.free[class][:last]
		return at
	}
	at, n := len(a.items), a.capacity(class)
	if at+n > cap(a.items) {
		grown := hugepages.Make[T](max(at+at/2, at+n, 64*n))[:at]
		copy(grown, a.items)
		a.items = grown
	}
	a.items = a.items[:at+n]
	return uint32(at)
}

func (a *arena[T]) release(at uint32, class uint8) { a.free[class] = append(a.free[class], at) }

func (a *arena[T]) capacity(class uint8) int { return a.least << class }

// grow moves an array of n items to one of the next class.
func (a *arena[T]) grow(at uint32, class uint8, n int) uint32 {
	to := a.alloc(class + 1)
	copy(a.items[to:], a.items[at:int(at)+n])
	a.release(at, class)
	return to
}
