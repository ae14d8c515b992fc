package hawkeye

import "github.com/weft-telemetry/weft/repro/claim"

// The mechanisms of the paper's sections 3.3 and 3.4 that its accuracy rests on.
var (
	inNetworkTracing = claim.Mutation{
		Name: "tracing", Removes: "switches discard polls that follow pauses off the victim's path",
	}
	flowTelemetry = claim.Mutation{Name: "flow telemetry", Removes: "switches keep no flows"}
	portTelemetry = claim.Mutation{
		Name: "port telemetry", Removes: "reports have no pauses and states of ports and no traffic between ports",
	}

	// Of the overhead, what matters is which switches report.
	selectivePolling = claim.Mutation{Name: "selective polling", Removes: "every switch of the fabric reports on every request"}

	// Of collection, that the switch CPU reads before it sends.
	switchCPU = claim.Mutation{Name: "switch CPU", Removes: "a switch sends all of its memory, zeros included"}

	// Of accounts, what switches remember of pauses and congestion.
	intervals = claim.Mutation{Name: "intervals", Removes: "switches report sums of pauses and congestion, no intervals"}

	// Of confidence, that it counts what has no cause.
	unexplainedTime = claim.Mutation{
		Name: "unexplained time", Removes: "verdicts name the longest cause whatever is unexplained, and are certain of it",
	}

	allMechanisms = []claim.Mutation{inNetworkTracing, flowTelemetry, portTelemetry}
)

// removed are the mechanisms that a laboratory works without.
type removed struct{ tracing, flows, ports, selection bool }

// without returns the lab without the mechanism that a mutation removes. What
// remains fails soon: one choice of parameters, and deadlocks that last for a
// third of the time, show it.
func (l lab) without(o claim.Options) lab {
	l.removed = removed{
		o.Without(inNetworkTracing), o.Without(flowTelemetry), o.Without(portTelemetry), o.Without(selectivePolling),
	}
	if l.removed != (removed{}) {
		l = l.withVariant(3, 500*us)
		l.timing.deadlock /= 3
	}
	return l
}
