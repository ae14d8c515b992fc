package flowradar

import "github.com/weft-telemetry/weft/repro/claim"

// What the claims depend on, and their laboratory can remove.
var (
	doublesAsFilter = claim.Mutation{
		Name: "table as filter", Removes: "a filter of its own recognises known flows, and not the counting table",
	}
	severalCells = claim.Mutation{
		Name: "several cells", Removes: "a flow is in one cell in place of one in each sub-table",
	}
	narrowCounters = claim.Mutation{
		Name: "narrow counters", Removes: "cells have four bytes of packets and of bytes, and two for each port",
	}
	neighbours = claim.Mutation{
		Name: "neighbours", Removes: "every flowset is decoded alone, without those of its neighbours",
	}
	similarCounters = claim.Mutation{
		Name: "neighbours' counters", Removes: "a flow's packets at one switch say nothing about those at its neighbours",
	}
	secondSighting = claim.Mutation{
		Name: "second flowset", Removes: "only spines export flowsets, so that a flow is in one of them",
	}
	routeKnowledge = claim.Mutation{
		Name: "routes", Removes: "the decoder asks all neighbours, as if it knew no routes",
	}
	faultySwitch = claim.Mutation{
		Name: "flowsets of the faulty switch", Removes: "the switch whose route is wrong exports no flowset",
	}
	outgoingCounters = claim.Mutation{
		Name: "outgoing counters", Removes: "switches count packets only as they come in, so that no counter is behind a queue: flowlets of successive switches are compared",
	}
	arrivalSlots = claim.Mutation{
		Name: "slots of arrival", Removes: "outgoing packets are counted in the slot in which they leave, so that those in queues at its end seem lost",
	}
	oneDLeftTable = claim.Mutation{
		Name: "several tables", Removes: "a flow has one bucket in place of the least loaded of several",
	}
	bigIntegers = claim.Mutation{
		Name: "IBLT", Removes: "the flowset is compared with itself and not with an IBLT",
	}
)
