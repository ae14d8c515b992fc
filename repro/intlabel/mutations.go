package intlabel

import (
	"time"

	"github.com/weft-telemetry/weft/repro/claim"
)

// What the claims depend on, and their laboratory can remove.
var (
	cumulative = claim.Mutation{
		Name: "probabilistic labels", Removes: "Base B labels by interval alone, as Base A does",
	}
	labelInterval = claim.Mutation{
		Name: "labelling interval", Removes: "ports label at half the rate, every 2T",
	}
	shortInterval = claim.Mutation{
		Name: "short interval", Removes: "ports label every 100 ms where 20 ms are claimed",
	}
	feedback = claim.Mutation{
		Name: "feedback", Removes: "the controller sends no command to ports that it has no label of",
	}
	probes = claim.Mutation{
		Name: "probes", Removes: "HULA sends no probes",
	}
	restTime = claim.Mutation{
		Name: "rest time", Removes: "every port rests for T after a label, whatever T1 is",
	}
	probability = claim.Mutation{
		Name: "probability functions", Removes: "F2 and F3 are F1",
	}
	follow = claim.Mutation{
		Name: "specific flows", Removes: "the flow is not followed: its packets get labels by interval alone",
	}
	bounded = claim.Mutation{
		Name: "interval of labels", Removes: "every port labels every packet",
	}
	idleProbes = claim.Mutation{
		Name: "probes of idle ports", Removes: "nothing is sent over ports without traffic",
	}
	compact = claim.Mutation{
		Name: "one header", Removes: "every hop of INT-label adds a header of its own, as a postcard does",
	}
)

// removed changes labs as the options demand.
func removed(o claim.Options, labs []lab) []lab {
	for i := range labs {
		l := &labs[i]
		switch {
		case o.Without(cumulative):
			l.rest = 1
		case o.Without(labelInterval):
			l.interval *= 2
		case o.Without(feedback):
			l.adaptive = false
		case o.Without(probes) && l.probes:
			l.interval = time.Hour
		case o.Without(idleProbes):
			l.idle = false
		case o.Without(restTime):
			l.rest = 1
		case o.Without(probability):
			l.odds = baseB.odds
		case o.Without(bounded):
			l.interval = 1
		}
	}
	return labs
}
