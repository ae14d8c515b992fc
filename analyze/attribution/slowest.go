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
	best, most := *v, -1.0
	best.InFlight, best.Sent, best.Took = false, end.Add(-v.Base), v.Base
	for i := range slowestSteps {
		x := *v
		x.Took = v.Took * time.Duration(i+1) / slowestSteps
		x.Sent, x.InFlight, x.QueuedAt = end.Add(-x.Took), true, -1
		visits, waits, _ := newEngine(ev, &x).walk(walkChoice{})
		if waits <= max(most, 0) {
			continue
		}
		most = waits
		if x.InFlight = visits[len(visits)-1].held; !x.InFlight {
			x.Took = x.Base + time.Duration(waits)
		}
		best = x
	}
	return &best
}
