package translate

import "github.com/weft-telemetry/weft/wire/dta"

// window is the number of a reporter's latest sequence numbers that are tracked.
// At 68 reports per datagram it spans 120 datagrams: later reports cannot be
// distinguished from duplicates. The prototype's window is half of its 8-bit
// sequence space.
const (
	window      = 8192
	protoWindow = 128
)

// numbers tracks which of the latest sequence numbers were stored.
type numbers struct {
	next dta.Seq             // after the highest number seen
	seen [window / 64]uint64 // of the window before next: the report was stored
}

// restartAt forgets all numbers and expects first.
func (s *numbers) restartAt(first dta.Seq) {
	clear(s.seen[:])
	s.next = first
}

func (s *numbers) bit(n dta.Seq) (word *uint64, mask uint64) {
	return &s.seen[n%window/64], 1 << (n % 64)
}

func (s *numbers) stored(n dta.Seq) bool {
	w, m := s.bit(n)
	return *w&m != 0
}

func (s *numbers) store(n dta.Seq) {
	w, m := s.bit(n)
	*w |= m
}

// storeRun is store for count numbers from n.
func (s *numbers) storeRun(n dta.Seq, count int) {
	for count > 0 {
		w, mask, k := s.bitRange(n, count)
		*w |= mask
		n += dta.Seq(k)
		count -= k
	}
}

// advance moves next to n, with all numbers between not stored.
func (s *numbers) advance(n dta.Seq) {
	if n.Sub(s.next) >= window {
		s.restartAt(n)
		return
	}
	for s.next != n {
		w, mask, k := s.bitRange(s.next, n.Sub(s.next))
		*w &^= mask
		s.next += dta.Seq(k)
	}
}

// bitRange returns the word that holds the bit of n, a mask of that bit and of up
// to count-1 after it in the word, and their number.
func (s *numbers) bitRange(n dta.Seq, count int) (word *uint64, mask uint64, k int) {
	at := int(n % 64)
	k = min(64-at, count)
	return &s.seen[n%window/64], (1<<k - 1) << at, k
}

// position is the relation of a datagram's numbers to those seen before.
type position uint8

const (
	inOrder      position = iota // at next, or the first of all
	afterGap                     // after a gap
	withinWindow                 // within the window
	restarted                    // the reporter restarted
	far                          // neither: late, or not the reporter's
)

// locate returns the position of a datagram whose first number is first, and the
// number of missing numbers before it. span is the length of the window.
func (s *numbers) locate(first dta.Seq, span int) (p position, missing int) {
	switch d := first.Sub(s.next); {
	case d == 0:
		return inOrder, 0
	case d > 0 && d < span:
		return afterGap, d
	case d < 0 && -d <= span:
		return withinWindow, 0
	}
	return far, 0
}
