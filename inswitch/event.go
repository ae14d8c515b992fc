package inswitch

import (
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Stage is a point of the switch's packet pipeline at which programs run.
type Stage uint8

// Stages, in the order in which a packet passes them.
const (
	Ingress Stage = iota // arrived, not yet routed
	Routed               // the egress port is known
	Enqueue              // about to be enqueued
	Dequeue              // about to be sent: changes made here are on the wire
	PFC                  // a pause frame was received; no action can drop or change it
	Timer                // a timer of the program fired; there is no packet
	numStages
)

// Stages is a set of stages.
type Stages uint8

// Parts of a stage, for programs that need not see the rest of it.
const (
	NonIPIngress  Stages = 1 << (7 - iota) // Ingress, of packets that are not IP, such as polls
	QueuedDequeue                          // Dequeue, of packets that were queued
)

// StageSet returns the set of the given stages.
func StageSet(list ...Stage) (s Stages) {
	for _, x := range list {
		s |= 1 << x
	}
	return s
}

// Has reports whether a stage is in the set.
func (s Stages) Has(x Stage) bool { return s>>x&1 != 0 }

// Event is the input of a program. It belongs to the host, which reuses it for
// the next event: a program must not keep it. Fields without a stage in their
// comment are set at every stage with a packet.
type Event struct {
	Stage    Stage
	Priority model.Priority // of the packet: selects its queue
	Control  bool           // the packet uses the queue that PFC never pauses
	In       model.PortID   // ingress port; 0: the switch originated the packet
	Out      model.PortID   // egress port; 0 at Ingress and PFC

	Now model.Time // by the switch's clock, at every stage

	Packet *Packet // nil at Timer; at PFC the pause frame

	// Queue is the packet's queue at Out, without the packet, at Enqueue and
	// Dequeue. Not set at other stages.
	Queue Queue
	// BypassesQueue is true, at Enqueue and Dequeue, if the packet does not wait:
	// it is sent at once, and its queue is empty. A host that does not know this
	// at Enqueue never sets it.
	BypassesQueue bool
	// At Dequeue: the time since the packet arrived, and the bytes in its queue
	// when it was enqueued.
	Latency        time.Duration
	DepthAtEnqueue model.Bytes

	Pause Pause   // at PFC
	Timer TimerID // at Timer

	// Switch gives access to the rest of the switch, at every stage.
	Switch Switch
}

// Queue is the state of one egress queue.
type Queue struct {
	Bytes   model.Bytes
	Packets int32
	Paused  bool // by the neighbour, at this instant
}

// Pause is the content of a pause frame. A clear bit of Classes leaves that
// priority as it is.
type Pause struct {
	Classes uint8
	Time    [8]time.Duration // how long to pause; 0 resumes
}

// ForClass returns the pause time of one priority, and whether the frame has one.
func (p *Pause) ForClass(class model.Priority) (time.Duration, bool) {
	return p.Time[class&7], p.Classes>>(class&7)&1 != 0
}

// TimerID identifies a timer of one program. Programs do not share timers.
type TimerID uint32

// StartTimer fires once for every program of stage Timer, when its host starts.
// Programs number their own timers from 1.
const StartTimer TimerID = 0

// Switch is the state of the switch that a program may query. The host
// implements it once; a query costs a table look-up.
type Switch interface {
	// Route returns the current egress port of a flow. False means that the
	// switch does not forward it: there is no route, or the flow is addressed to
	// the switch itself.
	Route(key *model.FlowKey) (model.PortID, bool)
	// Queue returns the state of an egress queue. It is empty for a port that
	// does not exist.
	Queue(out model.PortID, class model.Priority) Queue
}

// CountingSwitch is a Switch that has counters of its ports, as the ASICs of switches
// do. Counts are since the switch started.
type CountingSwitch interface {
	Switch
	// Counters returns the counters of a port's egress side. They are zero for a port
	// that does not exist.
	Counters(out model.PortID) PortCounters
}

// PortCounters are the counters of a port's egress side.
type PortCounters struct {
	Bytes    uint64        // sent
	Discards uint64        // packets that found no buffer
	Paused   time.Duration // by the neighbour, of the priority that was paused for longest
}

// Device is what a program may know about its switch before the first event.
type Device struct {
	ID         model.NodeID
	IPv4, IPv6 model.Addr // the switch's own address
	MTU        int        // longest IP packet that the fabric's links carry, in bytes
	Ports      []Port     // Ports[0] is port 1

	Buffer model.Bytes // that all ports share; 0: unknown
	// Xoff and Xon are the lengths of an ingress queue from which the switch pauses
	// the neighbour and lets it resume, where they are static; 0: they are not.
	Xoff, Xon model.Bytes
}

// Port is one port of a Device.
type Port struct {
	Rate      model.Rate
	FacesHost bool // a host is at the other end: labels come off here
}

// Port returns a port by number, or a zero Port if there is none, as for 0.
func (d *Device) Port(id model.PortID) Port {
	if id == 0 || int(id) > len(d.Ports) {
		return Port{}
	}
	return d.Ports[id-1]
}
