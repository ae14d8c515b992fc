package inswitch

import (
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Stage is a point on the way through a switch at which programs run.
type Stage uint8

// Stages, in the order in which a packet meets them.
const (
	Ingress Stage = iota // arrived, not yet routed
	Routed               // the egress port is known
	Enqueue              // about to join its queue
	Dequeue              // about to leave: what is changed here is what the wire sees
	PFC                  // a pause frame was received; no action can end or change it
	Timer                // a time that the program asked for; there is no packet
	numStages
)

// Stages is a set of them.
type Stages uint8

// Parts of a stage, in a set, for programs that need not see the rest of it.
const (
	NonIPIngress  Stages = 1 << (7 - iota) // Ingress, of packets that are not IP: frames of a program's own
	QueuedDequeue                          // Dequeue, of packets that had to wait
)

// StageSet makes a set.
func StageSet(list ...Stage) (s Stages) {
	for _, x := range list {
		s |= 1 << x
	}
	return s
}

// Has reports whether a stage is in the set.
func (s Stages) Has(x Stage) bool { return s>>x&1 != 0 }

// Event is what a program is shown. It belongs to the host, which fills it
// again for the next event: a program keeps nothing of it. Fields without a
// stage in their comment hold at every stage with a packet.
type Event struct {
	Stage    Stage
	Priority model.Priority // class of the packet, which is its queue
	Control  bool           // it rides in the queue that PFC never pauses
	In       model.PortID   // where it came in; 0: the switch made it itself
	Out      model.PortID   // where it goes; 0 at Ingress and PFC

	Now model.Time // of the switch's clock, at every stage

	Packet *Packet // nil at Timer; at PFC the pause frame

	// Queue is the packet's queue at Out: at Enqueue without the packet, at
	// Dequeue what it leaves behind. Not set at other stages.
	Queue Queue
	// BypassesQueue says, at Enqueue and Dequeue, that the packet does not wait: it
	// leaves at once, and its queue is empty. A host that does not know this at
	// Enqueue never says it.
	BypassesQueue bool
	// StageSet Dequeue: since the packet arrived, and what was in its queue when it
	// joined.
	Latency        time.Duration
	DepthAtEnqueue model.Bytes

	Pause Pause   // at PFC
	Timer TimerID // at Timer

	// Switch answers questions about the rest of the switch, at every stage.
	Switch Switch
}

// Queue is the state of one egress queue.
type Queue struct {
	Bytes   model.Bytes
	Packets int32
	Paused  bool // by the neighbour, at this instant
}

// Pause is what a pause frame says. Where a bit of Classes is clear the frame
// says nothing about that class.
type Pause struct {
	Classes uint8
	Time    [8]time.Duration // how long to pause; 0 resumes
}

// ForClass tells what the frame says about one class, if anything.
func (p *Pause) ForClass(class model.Priority) (time.Duration, bool) {
	return p.Time[class&7], p.Classes>>(class&7)&1 != 0
}

// TimerID tells a program's timers apart. Programs do not share them.
type TimerID uint32

// StartTimer is the timer that fires once for every program that names Timer, when
// its host starts. Programs number their own from 1.
const StartTimer TimerID = 0

// Switch is what a program may ask about the switch it runs in. The host
// implements it once; asking costs a table look-up.
type Switch interface {
	// Route returns the port by which packets of a flow leave at this moment.
	// False means that they do not leave: there is no route, or they are for
	// the switch itself.
	Route(key *model.FlowKey) (model.PortID, bool)
	// Queue reads an egress queue. A port that is not there has an empty one.
	Queue(out model.PortID, class model.Priority) Queue
}

// Device is what a program may know about its switch before the first event.
type Device struct {
	ID         model.NodeID
	IPv4, IPv6 model.Addr // the switch's own address
	MTU        int        // longest IP packet that the fabric's links carry, in bytes
	Ports      []Port     // Ports[0] is port 1
}

// Port is one port of a Device.
type Port struct {
	Rate      model.Rate
	FacesHost bool // a host is at the other end: labels come off here
}

// Port returns a port by number. A number that is not there, such as 0, gives a
// zero Port.
func (d *Device) Port(id model.PortID) Port {
	if id == 0 || int(id) > len(d.Ports) {
		return Port{}
	}
	return d.Ports[id-1]
}
