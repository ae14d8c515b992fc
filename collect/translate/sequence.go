package translate

import (
	"net/netip"

	"github.com/weft-telemetry/weft/wire/dta"
)

// window is how many of a reporter's latest numbers are remembered. At 68
// reports to a datagram it spans 120 datagrams: what comes later than that is
// too late to be told from a repetition. A prototype's window is half of its
// 8-bit circle.
const (
	window      = 8192
	protoWindow = 128
)

// sequence follows one reporter's numbers.
type sequence struct {
	from    netip.AddrPort
	started bool
	next    dta.Seq             // behind the highest number seen
	seen    [window / 64]uint64 // of the window before next: the report was stored

	// A datagram far from the window is a latecomer or the first of a reporter
	// that has started again. The second in a row decides.
	strange   dta.Seq
	isStrange bool
}

func (s *sequence) bit(n dta.Seq) (word *uint64, mask uint64) {
	return &s.seen[n%window/64], 1 << (n % 64)
}

func (s *sequence) stored(n dta.Seq) bool {
	w, m := s.bit(n)
	return *w&m != 0
}

func (s *sequence) store(n dta.Seq) {
	w, m := s.bit(n)
	*w |= m
}

// storeRun is store for count numbers from n on.
func (s *sequence) storeRun(n dta.Seq, count int) {
	for count > 0 {
		w, mask, k := s.bitRange(n, count)
		*w |= mask
		n += dta.Seq(k)
		count -= k
	}
}

// advance moves next to n, with all numbers between not stored.
func (s *sequence) advance(n dta.Seq) {
	if n.Sub(s.next) >= window {
		clear(s.seen[:])
		s.next = n
		return
	}
	for s.next != n {
		w, mask, k := s.bitRange(s.next, n.Sub(s.next))
		*w &^= mask
		s.next += dta.Seq(k)
	}
}

// bitRange returns the word that holds the bit of n, a mask of that bit and of up to
// count-1 behind it in the word, and how many they are.
func (s *sequence) bitRange(n dta.Seq, count int) (word *uint64, mask uint64, k int) {
	at := int(n % 64)
	k = min(64-at, count)
	return &s.seen[n%window/64], (1<<k - 1) << at, k
}

// position says how a datagram's numbers lie to those seen before.
type position uint8

const (
	inOrder      position = iota // at next, or the first of all
	afterGap                     // behind a gap
	withinWindow                 // within the window
	restarted                    // the reporter began anew
	stale                        // before the window
)

// classify finds the place of a datagram with count numbers from first on, and
// how many numbers are missing before it. span is the window that counts.
func (s *sequence) classify(from netip.AddrPort, first dta.Seq, count int, span int) (p position, missing int) {
	if !s.started {
		s.started, s.from, s.next = true, from, first
		return inOrder, 0
	}
	switch d := first.Sub(s.next); {
	case d == 0:
		s.isStrange = false
		return inOrder, 0
	case d > 0 && d < span:
		return afterGap, d
	case d < 0 && -d <= span:
		return withinWindow, 0
	}
	again := s.from != from || s.isStrange && first == s.strange
	s.strange, s.isStrange = first+dta.Seq(count), true
	if !again {
		return stale, 0
	}
	clear(s.seen[:])
	s.from, s.next, s.isStrange = from, first, false
	return restarted, 0
}
