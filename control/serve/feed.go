package serve

import (
	"sync/atomic"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// feed carries what was made of INT reports and mirrors to the controller's
// goroutine. What finds no room is shed, the newest first, and counted: sockets
// must not wait for analyses.
type feed struct {
	queue chan entry
	in    atomic.Uint64
	shed  atomic.Uint64
}

// entry is one report of Weft's own form.
type entry struct {
	at   model.Time
	list dta.ListID
	data []byte
}

// feedRoom is how many reports may wait for the controller: those of some
// milliseconds at a million a second.
const feedRoom = 1 << 14

func newFeed() *feed { return &feed{queue: make(chan entry, feedRoom)} }

// put takes a copy of a report.
func (f *feed) put(at model.Time, list dta.ListID, data []byte) {
	f.in.Add(1)
	if len(f.queue) == cap(f.queue) { // spare the copy
		f.shed.Add(1)
		return
	}
	select {
	case f.queue <- entry{at, list, append([]byte(nil), data...)}:
	default:
		f.shed.Add(1)
	}
}

// take hands over what waits, at most as much as there was room for.
func (f *feed) take(to func(at model.Time, list dta.ListID, data []byte)) {
	for range feedRoom {
		select {
		case e := <-f.queue:
			to(e.at, e.list, e.data)
		default:
			return
		}
	}
}
