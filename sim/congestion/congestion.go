// Package congestion is the congestion control of RDMA senders: DCQCN, HPCC,
// TIMELY, DCTCP and Swift, each as a state machine behind one interface. CNPs,
// acknowledgements, bytes sent and the time come in, rates go out. Pacing,
// windows, and carrying CNPs and in-band telemetry are sim's work.
//
// A new algorithm is a file here and a row of the table in table.go: its Params
// carry their keys for scenario files.
//
// Origin: docs/papers.md#hpcc-simulator and "Congestion Control for Large-Scale
// RDMA Deployments" (SIGCOMM 2015).
package congestion

import (
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
)

// Control is the congestion control of one flow. Times given to it must not go
// back. It allocates nothing.
type Control interface {
	// OnAck handles an acknowledgement and returns the rate from now on. It
	// keeps no reference to a. It is called only if Traits.Acks is set.
	OnAck(a *Ack) model.Rate
	// OnCNP handles a congestion notification: a CNP, or a mark echoed in an
	// acknowledgement. The next OnSent or OnTimer returns the new rate.
	OnCNP(now engine.Time)
	// OnSent counts bytes put on the wire and returns the rate that paces the
	// next packet.
	OnSent(now engine.Time, n model.Bytes) model.Rate
	// OnTimer catches up with the time and returns the rate at now.
	OnTimer(now engine.Time) model.Rate
	// Rate returns the rate as of the last call.
	Rate() model.Rate
}

// Params are the constants of an algorithm. They must not change once a Control
// was made of them.
type Params interface {
	// Check reports constants that cannot work.
	Check() error
	// New returns the Control of a flow that starts. Params must pass Check.
	New(f Flow) Control
	// Traits returns what the algorithm needs of the simulator.
	Traits() Traits
}

// Traits are what an algorithm needs of the simulator.
type Traits struct {
	// Name is that of the row in the table.
	Name string
	// Acks asks for OnAck with every acknowledgement.
	Acks bool
	// EveryMark asks receivers to echo every ECN mark in an acknowledgement:
	// CNPs at intervals would hide the share of marked packets.
	EveryMark bool
	// INTMulti asks switches to write their state on data packets, and
	// receivers to return it, in units coarsened by this factor. 0: no INT.
	INTMulti uint32
	// PaceAtLineRate delays a packet by the transmission time of the one before
	// it even at line rate, as the HPCC simulator does.
	PaceAtLineRate bool
	// Hops asks for the number of switches on the path of a flow.
	Hops bool
	// Repace applies a new rate to the packet that is already due, not only to
	// those after it.
	Repace bool
}

// Ack is what an acknowledgement reports to a sender, and what the sender knows
// when it arrives.
type Ack struct {
	Now    engine.Time
	Sent   engine.Time // when the acknowledged data was sent
	Seq    int64       // bytes that the receiver has
	Next   int64       // the next byte to be sent
	Marked bool        // the data had a congestion mark
	INT    *Stack      // what switches wrote on the data; nil if nothing
}

// Flow is what a control needs to know of its flow. All rates start at Line.
type Flow struct {
	Line    model.Rate  // of its NIC: the highest rate it may have
	Window  int64       // bytes in flight at line rate
	BaseRTT engine.Time // round trip through an empty fabric
	Payload int64       // bytes in a full packet
	Hops    int         // switches on its path, where Traits.Hops asks for it
}

// bounded keeps a rate between two others.
func bounded(r, least, most model.Rate) model.Rate { return min(max(r, least), most) }

// times scales a rate. Rates are whole bits per second, rounded down, as in the
// HPCC simulator.
func times(r model.Rate, by float64) model.Rate { return model.Rate(float64(r) * by) }

// ackDriven is the part of a Control that learns from acknowledgements alone.
type ackDriven struct{ rate model.Rate }

// Rate is Control's.
func (c *ackDriven) Rate() model.Rate { return c.rate }

// OnCNP is Control's. Marks that matter come with acknowledgements.
func (c *ackDriven) OnCNP(engine.Time) {}

// OnSent is Control's.
func (c *ackDriven) OnSent(engine.Time, model.Bytes) model.Rate { return c.rate }

// OnTimer is Control's.
func (c *ackDriven) OnTimer(engine.Time) model.Rate { return c.rate }
