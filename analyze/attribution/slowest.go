package attribution

import "time"

// slowestSteps is how many packets of a window are compared: the longest of their
// waits is within a share of 1/slowestSteps of the window of the longest of all.
const slowestSteps = 64

// Slowest returns the packet of a flow that its queues must have delayed most, for a
// flow of which no packet was measured. Of all that were sent since v.Sent, it follows
// some, evenly spread, through the queues of the path. One that cannot have arrived
// until v.Sent+v.Took, when the flow was found to be slow, is in flight.
func Slowest(ev *Evidence, v *Victim) *Victim {
	end := v.Sent.Add(v.Took)
	best, most := *v, 0.0
	best.InFlight, best.Sent, best.Took = false, end.Add(-v.Base), v.Base
	all := *v
	all.InFlight, all.QueuedAt = true, -1
	e := newEngine(ev, &all)
	for i := range slowestSteps {
		took := v.Took * time.Duration(i+1) / slowestSteps
		visits, waits, _ := e.walk(walkChoice{start: float64(v.Took - took)})
		if waits <= most {
			continue
		}
		most, best = waits, all
		best.Sent, best.Took = end.Add(-took), took
		if best.InFlight = visits[len(visits)-1].held; !best.InFlight {
			best.Took = best.Base + time.Duration(waits)
		}
	}
	return &best
}
