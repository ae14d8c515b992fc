package translate

import (
	"net/netip"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// silence is how long a reporter of version 1 must have been silent before
// another address may report for it, and before its numbers are given up for
// those after a restart. A reporter sends at least a beacon every 100 ms.
const silence = 10 * time.Second

// sequence tracks one reporter's sequence numbers. Intakes share it.
//
// A reporter of version 2 is known by its MAC, and its restart by a later start.
// The address of one of version 1 can be forged: numbers far from the window may
// be a restart or not the reporter's. They are followed beside the numbers so far,
// which stay as long as datagrams have them, so that neither makes the other's
// reports stale.
type sequence struct {
	mu        sync.Mutex
	forgotten bool // no longer in the table

	started  bool
	from     netip.AddrPort
	received model.Time // when the numbers last had a datagram; version 1
	numbers

	// Version 2; start is 0 in version 1.
	start model.Time
	sent  model.Time // the latest

	// Version 1.
	restart *numbers            // far from numbers, while those are not silent; or nil
	ends    [latestEnds]dta.Seq // after the latest datagrams with reports: one that starts there continues them
	endAt   uint8               // the oldest of ends
}

const latestEnds = 8

// begin starts with the number first.
func (s *sequence) begin(now model.Time, from netip.AddrPort, first dta.Seq) {
	s.started, s.from, s.received = true, from, now
	s.restartAt(first)
	s.start, s.sent, s.restart = 0, 0, nil
	for i := range s.ends {
		s.ends[i] = first
	}
}

// place finds the numbers that a datagram belongs to, and its position there. It
// returns a Refusal for one that must not change them.
func (s *sequence) place(now model.Time, from netip.AddrPort, h *dta.Header) (n *numbers, p position, missing int, why Refusal) {
	if h.Signed {
		return s.placeSigned(now, from, h)
	}
	switch {
	case !s.started:
		s.begin(now, from, h.Seq)
		s.noteEnd(h)
		return &s.numbers, inOrder, 0, Admitted
	case s.start != 0: // its keys were taken away
		s.begin(now, from, h.Seq)
		s.noteEnd(h)
		return &s.numbers, restarted, 0, Admitted
	}
	s.received = min(s.received, now) // the clock may have been set back
	silent := now.Sub(s.received) >= silence
	if from.Addr() != s.from.Addr() && (!silent || h.Count == 0) {
		return nil, 0, 0, AnotherAddress
	}
	defer s.noteEnd(h)
	if p, missing = s.locate(h.Seq, window); p != far {
		s.received = now
		if silent {
			s.from = from
		}
		return &s.numbers, p, missing, Admitted
	}
	if s.restart != nil {
		if p, missing = s.restart.locate(h.Seq, window); p != far {
			n = s.restart
			if silent {
				s.numbers, s.restart = *n, nil
				s.from, s.received, n = from, now, &s.numbers
			}
			return n, p, missing, Admitted
		}
	}
	// Another port, or two datagrams in a row, show a restart; a single one is
	// late. One without reports shows nothing.
	if h.Count == 0 || s.from == from && !s.continues(h.Seq) {
		return &s.numbers, far, 0, Admitted
	}
	if silent {
		s.begin(now, from, h.Seq)
		return &s.numbers, restarted, 0, Admitted
	}
	if s.restart == nil {
		s.restart = new(numbers)
	}
	s.restart.restartAt(h.Seq)
	return s.restart, restarted, 0, Admitted
}

// placeSigned is place for a datagram whose MAC was verified.
func (s *sequence) placeSigned(now model.Time, from netip.AddrPort, h *dta.Header) (*numbers, position, int, Refusal) {
	if !s.started || h.Start > s.start {
		p := inOrder
		if s.started {
			p = restarted
		}
		s.begin(now, from, h.Seq)
		s.start, s.sent = h.Start, h.Sent
		return &s.numbers, p, 0, Admitted
	}
	if h.Start < s.start {
		return nil, 0, 0, Replayed
	}
	p, missing := s.locate(h.Seq, window)
	// It is authentic, however much was lost. One that was sent before the latest is
	// behind by more than half of all numbers.
	if ahead := h.Seq.Sub(s.next); p == far && ahead > 0 && h.Sent >= s.sent {
		p, missing = afterGap, ahead
	}
	s.sent = max(s.sent, h.Sent)
	return &s.numbers, p, missing, Admitted
}

// noteEnd remembers the end of a datagram with reports.
func (s *sequence) noteEnd(h *dta.Header) {
	if h.Count == 0 {
		return
	}
	end := h.Seq + dta.Seq(h.Count)
	for i := range s.ends {
		if s.ends[i] == h.Seq || s.ends[i] == end {
			s.ends[i] = end
			return
		}
	}
	s.ends[s.endAt] = end
	s.endAt = (s.endAt + 1) % latestEnds
}

// continues reports whether a datagram that starts with first continues one of
// the latest.
func (s *sequence) continues(first dta.Seq) bool {
	for _, end := range s.ends {
		if end == first {
			return true
		}
	}
	return false
}
