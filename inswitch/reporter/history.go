package reporter

import "github.com/weft-telemetry/weft/wire/dta"

// history keeps copies of the newest encoded reports that fit, by number.
type history struct {
	bytes []byte
	used  int // offset of the next copy in bytes

	// A ring of copies in the order of their numbers.
	copies         []reportCopy
	first          int
	count          int
	requested      int // copies with resend set
	firstRequested int // no copy before this one, counted from first, has resend set
}

// reportCopy is one copy.
type reportCopy struct {
	seq     dta.Seq
	at      int
	size    int
	tries   int
	resend  bool
	settled bool // acknowledged or given up; kept only for its slot in the ring
}

// minCopyBytes is the average copy size that the ring is sized for: of smaller
// reports fewer copies are kept than would fit. A Key-Increment of an IPv4 flow
// takes 25 bytes, an Append of 8 takes 16.
const minCopyBytes = 16

func newHistory(bytes int) history {
	return history{bytes: make([]byte, bytes), copies: make([]reportCopy, bytes/minCopyBytes)}
}

func (h *history) at(i int) *reportCopy { return &h.copies[(h.first+i)%len(h.copies)] }

// storeCopy stores a copy and returns how many unsettled ones it evicted.
// Numbers only grow.
func (h *history) storeCopy(seq dta.Seq, rep *dta.Report) (displaced uint64) {
	size := rep.Size()
	if size > len(h.bytes) || len(h.copies) == 0 {
		return 0
	}
	if h.count == len(h.copies) {
		displaced += h.evictOldest()
	}
	if h.used+size > len(h.bytes) {
		// The copies from here to the end are older than those at the start.
		for h.count > 0 && h.at(0).at >= h.used {
			displaced += h.evictOldest()
		}
		h.used = 0
	}
	for h.count > 0 && h.at(0).at >= h.used && h.at(0).at < h.used+size {
		displaced += h.evictOldest()
	}
	rep.AppendTo(h.bytes[h.used : h.used : h.used+size])
	h.count++
	*h.at(h.count - 1) = reportCopy{seq: seq, at: h.used, size: size}
	h.used += size
	return displaced
}

// evictOldest removes the oldest copy, and returns 1 if it was not settled.
func (h *history) evictOldest() (unsettled uint64) {
	c := h.at(0)
	if !c.settled {
		unsettled = 1
	}
	if c.resend {
		h.requested--
	}
	h.first = (h.first + 1) % len(h.copies)
	h.count--
	h.firstRequested = max(0, h.firstRequested-1)
	return unsettled
}

// search returns the index of the first copy that is not before seq.
func (h *history) search(seq dta.Seq) int {
	lo, hi := 0, h.count
	for lo < hi {
		if mid := (lo + hi) / 2; h.at(mid).seq.Sub(seq) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// settleCopies settles the copies of count numbers from first on.
func (h *history) settleCopies(first dta.Seq, count uint32) {
	for i := h.search(first); i < h.count && uint32(h.at(i).seq-first) < count; i++ {
		c := h.at(i)
		if c.resend {
			h.requested--
		}
		c.resend, c.settled = false, true
	}
	for h.count > 0 && h.at(0).settled {
		h.evictOldest()
	}
}

// requestResend marks the copies of count numbers from first on for resending.
// It returns how many there are, and how many of them have used up their
// resends.
func (h *history) requestResend(first dta.Seq, count uint32, tries int) (known, spent uint32) {
	start := h.search(first)
	for i := start; i < h.count && uint32(h.at(i).seq-first) < count; i++ {
		c := h.at(i)
		known++
		switch {
		case c.resend, c.settled:
		case c.tries >= tries:
			c.settled = true
			spent++
		default:
			c.resend = true
			c.tries++
			h.requested++
			h.firstRequested = min(h.firstRequested, i)
		}
	}
	return known, spent
}

// appendRequested appends the first run of requested copies to buf, up to its
// capacity, and returns the number of the first, their count, and the extended
// buffer. There must be a requested copy; a copy fits an empty datagram, since
// it came in one.
func (h *history) appendRequested(buf []byte) (first dta.Seq, count uint16, out []byte) {
	for !h.at(h.firstRequested).resend {
		h.firstRequested++
	}
	first = h.at(h.firstRequested).seq
	for ; h.firstRequested < h.count && count < 1<<16-1; h.firstRequested++ {
		c := h.at(h.firstRequested)
		if !c.resend || c.seq != first+dta.Seq(count) || len(buf)+c.size > cap(buf) {
			break
		}
		buf = append(buf, h.bytes[c.at:c.at+c.size]...)
		c.resend = false
		h.requested--
		count++
	}
	return first, count, buf
}
