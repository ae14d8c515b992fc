package serve

import (
	"time"

	"github.com/weft-telemetry/weft/model"
)

// dropWatch notices that reports are lost before they reach memory.
type dropWatch struct {
	count uint64
	next  model.Time
}

// dropInterval is how often the counters are read: much shorter than a trace stays
// open.
const dropInterval = 10 * time.Millisecond

// grew reports whether the number of lost reports has grown since it was last read.
func (d *dropWatch) grew(now model.Time, count func() uint64) bool {
	if now < d.next && d.next.Sub(now) <= dropInterval {
		return false
	}
	d.next = now.Add(dropInterval)
	before := d.count
	d.count = count()
	return d.count > before
}

// countDropped counts the reports that the kernel dropped, and those that the stream
// of other sources had no capacity for.
func (s *socketInput) countDropped() (n uint64) {
	if st := s.last.Load(); st != nil {
		n = st.Dropped()
	} else {
		n = s.collector.Dropped()
	}
	if s.stream != nil {
		n += s.stream.stream.Stats().Full
	}
	return n
}
