package api

import "sync"

// requestLimit bounds concurrent requests, with a reserve for those above: of the
// places at most a quarter is for anonymous clients, and at most three quarters
// for them and tenants together, so that the operator always finds one.
type requestLimit struct {
	max int

	mu    sync.Mutex
	count [connClasses]int
}

// take takes a place. Release must follow if it returns true.
func (l *requestLimit) take(class connClass) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	below := 0 // requests that share the class's limit
	for c := range class + 1 {
		below += l.count[c]
	}
	total := below
	for c := class + 1; c < connClasses; c++ {
		total += l.count[c]
	}
	if total >= l.max || below >= l.limit(class) {
		return false
	}
	l.count[class]++
	return true
}

// limit returns the places for a class and those below it.
func (l *requestLimit) limit(class connClass) int {
	switch class {
	case anonymousConn:
		return max(l.max/4, 1)
	case tenantConn:
		return max(3*l.max/4, 1)
	}
	return l.max
}

func (l *requestLimit) release(class connClass) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count[class]--
}
