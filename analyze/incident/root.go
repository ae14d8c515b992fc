package incident

import (
	"cmp"
	"slices"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/model"
)

// root is what the evidence of a cause says about it, without that of its
// consequences: pauses spread over a fabric, and would connect every fault with
// every other.
type root struct {
	nodes        []model.NodeID // ascending
	destinations []model.Addr   // of the affected flows, ascending
	cycle        []model.Port   // ports of deadlock cycles, ascending
}

func (r *root) add(e *Evidence) {
	e.anyNode(func(n model.NodeID) bool {
		r.nodes = insertSorted(r.nodes, n, cmp.Compare[model.NodeID], maxNodes)
		return false
	})
	for _, k := range e.Flows {
		r.destinations = insertSorted(r.destinations, k.Dst, model.Addr.Compare, MaxFlows)
	}
	for _, p := range e.DeadlockCycle {
		r.cycle = insertSorted(r.cycle, p, model.Port.Compare, maxNodes)
	}
}

func (r *root) hasNode(n model.NodeID) bool {
	_, found := slices.BinarySearch(r.nodes, n)
	return found
}

// sharesNode reports whether evidence is at a node of the root.
func (r *root) sharesNode(e *Evidence) bool { return e.anyNode(r.hasNode) }

// hasAllNodes reports whether evidence is at nodes of the root alone.
func (r *root) hasAllNodes(e *Evidence) bool {
	return !e.anyNode(func(n model.NodeID) bool { return !r.hasNode(n) })
}

// leadsTo reports whether flows go to destinations that the root affects: all of
// them, or at least one.
func (r *root) leadsTo(flows []model.FlowKey, all bool) bool {
	elsewhere := func(k model.FlowKey) bool {
		_, found := slices.BinarySearchFunc(r.destinations, k.Dst, model.Addr.Compare)
		return !found
	}
	if all {
		return len(flows) > 0 && !slices.ContainsFunc(flows, elsewhere)
	}
	return slices.ContainsFunc(flows, func(k model.FlowKey) bool { return !elsewhere(k) })
}

// isRoot reports whether evidence shows a fault of its own, or a queue that the
// senders to one host congest, and not only what others do to queues.
func (e *Evidence) isRoot() bool {
	return e.Confirmed && e.Cause != anomaly.Stall && (e.AtReceiver || e.sendersMeet() || e.Cause != anomaly.Contention && !e.Minor)
}

// leastSenders to one host are an incast wherever on their paths they congest a queue, and
// however little it costs: neither a storm nor a wrong route makes them meet.
const leastSenders = 3

func (e *Evidence) sendersMeet() bool {
	return e.Cause == anomaly.Incast && e.HasReceiver && len(e.Culprits) >= leastSenders
}

// hasRoot is isRoot of an incident's cause.
func (in *Incident) hasRoot() bool {
	sendersMeet := in.Cause == anomaly.Incast && in.HasReceiver && len(in.Culprits) >= leastSenders
	return in.Confirmed && in.Cause != anomaly.Stall && (in.AtReceiver || sendersMeet || in.Cause != anomaly.Contention && !in.Minor)
}

// isBackgroundOf reports whether one of an incident and evidence is a fault and the
// other normal background congestion of a larger cause: what costs next to nothing
// leads to no fault.
func (in *Incident) isBackgroundOf(e *Evidence) bool {
	if e.Cause < in.Cause {
		return in.Minor && !e.isMinor() && e.isRoot()
	}
	return e.Cause > in.Cause && e.isMinor() && !in.Minor && in.hasRoot()
}

// isSameFault reports whether confirmed evidence of a fault is about the fault of an
// incident.
func (in *Incident) isSameFault(e *Evidence) bool {
	near := in.isNear(e)
	if e.Cause == in.Cause {
		return in.hasSamePlace(e, near)
	}
	known := in.asEvidence()
	if e.Cause < in.Cause {
		return in.hasSameEvidence(e) || leadsTo(&known, &in.root, e, near)
	}
	var r root
	r.add(e)
	return leadsTo(e, &r, &known, near)
}

// asEvidence is what an incident's cause is known by, as one piece of evidence.
func (in *Incident) asEvidence() Evidence {
	e := Evidence{
		Cause: in.Cause, Confirmed: in.Confirmed, Minor: in.Minor, Location: in.Location, NextHop: in.NextHop, HasNextHop: in.HasNextHop,
		Extent: in.root.nodes, Receiver: in.Receiver, HasReceiver: in.HasReceiver, AtReceiver: in.AtReceiver, Culprits: in.Culprits,
	}
	for _, a := range in.root.destinations {
		e.Flows = append(e.Flows, model.FlowKey{Dst: a})
	}
	return e
}

// hasSamePlace reports whether evidence of an incident's cause is about its place.
// Near says that they share a node or a flow, those of consequences included.
func (in *Incident) hasSamePlace(e *Evidence, near bool) bool {
	r := &in.root
	switch e.Cause {
	case anomaly.Storm, anomaly.SlowReceiver:
		return in.Location.Node == e.Location.Node
	case anomaly.Incast:
		return near && sameReceiver(e, in.Receiver, in.AtReceiver)
	case anomaly.Blackhole:
		return near && (len(r.destinations) == 0 || len(e.Flows) == 0 || r.leadsTo(e.Flows, false))
	case anomaly.Loop, anomaly.Deadlock:
		return r.sharesNode(e) || near && r.leadsTo(e.Flows, false)
	}
	return near
}

// sameReceiver reports whether a congested queue may be due to the senders to a
// host: unless it is the queue to another.
func sameReceiver(e *Evidence, host model.NodeID, known bool) bool {
	return !e.AtReceiver || !known || e.Receiver == host
}

// leadsTo reports whether a fault can lead to what e, of a smaller cause, shows.
func leadsTo(fault *Evidence, r *root, e *Evidence, near bool) bool {
	if e.Cause == anomaly.Imbalance {
		return r.hasAllNodes(e)
	}
	congested := e.Cause == anomaly.Incast || e.Cause == anomaly.Contention
	ofReceiver := e.AtReceiver || e.sendersMeet()
	switch fault.Cause {
	case anomaly.Storm, anomaly.SlowReceiver:
		switch {
		case e.Cause == anomaly.WrongRoute:
			return false
		case e.Cause == anomaly.SlowReceiver:
			return e.Location.Node == fault.Location.Node
		case e.Cause == anomaly.Deadlock:
			return e.anyNode(func(n model.NodeID) bool { return n == fault.Location.Node })
		case congested:
			return near && (!ofReceiver || e.Receiver == fault.Location.Node)
		}
	case anomaly.Loop, anomaly.WrongRoute:
		switch {
		case e.Cause == anomaly.Storm || e.Cause == anomaly.SlowReceiver:
			return false // no route makes a host send pauses
		case congested:
			return r.hasNode(e.Location.Node) || !ofReceiver && near || r.leadsTo(e.Culprits, false)
		case e.Cause == anomaly.Blackhole && e.Confirmed:
			// No route elsewhere makes a switch drop all packets, and none to other
			// destinations.
			return r.hasNode(e.Location.Node) && (len(e.Flows) == 0 || r.leadsTo(e.Flows, false))
		case e.Cause.Family() == anomaly.PacketLoss:
			// Misrouted packets fill the buffers of its nodes, and are dropped there with
			// others. A link between other nodes loses packets by itself.
			return r.leadsTo(e.Flows, true) && (!e.HasNextHop || r.sharesNode(e)) || r.hasNode(e.Location.Node)
		}
		return r.sharesNode(e) || near && r.leadsTo(e.Flows, false)
	case anomaly.Deadlock:
		switch {
		case e.Cause == anomaly.WrongRoute:
			return r.sharesNode(e)
		case congested:
			return near && (!ofReceiver || r.hasNode(e.Location.Node))
		case e.Cause == anomaly.Loss:
			_, found := slices.BinarySearchFunc(r.cycle, e.Location, model.Port.Compare)
			return found
		}
	case anomaly.Blackhole:
		if e.Cause == anomaly.Loss && e.Confirmed && !r.hasNode(e.Location.Node) && !(e.HasNextHop && e.NextHop == fault.Location.Node) {
			return false // it drops what reaches its switch, and nothing on other links
		}
		return near && (len(e.Flows) == 0 || r.leadsTo(e.Flows, true))
	case anomaly.Incast:
		return near && sameReceiver(e, fault.Receiver, fault.AtReceiver)
	}
	return near
}
