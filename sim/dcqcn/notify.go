package dcqcn

import (
	"time"

	"github.com/weft-telemetry/weft/sim/engine"
)

// Notifier is the notification point of one flow: it decides which marked
// packets a receiver answers with a CNP. The zero Notifier is ready.
//
// Paper: a mark within the interval is remembered and reported at its end. Here
// it is forgotten, and the first mark after the interval is reported: under
// lasting congestion the CNPs are as many, and no timer is needed.
type Notifier struct {
	next engine.Time // no CNP before
}

// OnMarked takes a packet with a congestion mark and tells whether to send a
// CNP. CNPs are at least interval apart; 0 answers every mark, as the HPCC
// simulator does in its acknowledgements.
func (n *Notifier) OnMarked(now engine.Time, interval time.Duration) bool {
	if now < n.next {
		return false
	}
	n.next = now + engine.Of(interval)
	return true
}
