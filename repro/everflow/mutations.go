package everflow

import "github.com/weft-telemetry/weft/repro/claim"

// What the claims depend on, and their laboratory can remove.
var (
	flagMirrors = claim.Mutation{
		Name: "flag mirrors", Removes: "switches do not mirror SYN, FIN and RST, only a sample of one in 100",
	}
	commonSeed = claim.Mutation{
		Name: "common seed", Removes: "every switch chooses the packets of its sample by itself",
	}
	flowHash = claim.Mutation{
		Name: "flow hash", Removes: "mirrors go to the analyzers in turn and not by the hash of their flow",
	}
	innerHash = claim.Mutation{
		Name: "inner header", Removes: "mirrors go to the analyzers by the hash of the outer header",
	}
	fixedPartitions = claim.Mutation{
		Name: "fixed partitions", Removes: "flows are hashed over the analyzers that run, and not over partitions that these share",
	}
	lateAcknowledgement = claim.Mutation{
		Name: "late acknowledgement", Removes: "an analyzer acknowledges mirrors when it reads them, and not when it has their trace",
	}
	copiesOfProbes = claim.Mutation{
		Name: "copies", Removes: "one probe of each pattern is injected in place of 40",
	}
	promptProbes = claim.Mutation{
		Name: "prompt probes", Removes: "probes start 10 ms later",
	}
	roundTrip = claim.Mutation{
		Name: "round trip", Removes: "the latency is taken from the clocks of both switches and not from a probe that returns",
	}
	upperMirrors = claim.Mutation{
		Name: "mirrors above ToRs", Removes: "leaves and spines mirror nothing",
	}
	aggregation = claim.Mutation{
		Name: "aggregation", Removes: "the controller keeps every trace",
	}
	allMirrors = claim.Mutation{
		Name: "mirrors", Removes: "no switch mirrors a packet",
	}
)
