// Package feedback is rate control that learns from every acknowledgement:
// HPCC, TIMELY and DCTCP, each as a state machine in the form that the HPCC
// simulator has of it. Acknowledgements come in, rates go out; pacing, windows
// and carrying the switches' figures is sim's work. DCQCN, which runs on timers
// instead, is sim/dcqcn.
//
// Origin: docs/papers.md#hpcc-simulator.
package feedback

import (
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
)

// Control is the rate control of one flow. It allocates nothing.
type Control interface {
	// OnAck takes an acknowledgement and returns the flow's rate from now on.
	// It keeps nothing of a.
	OnAck(a *Ack) model.Rate
}

// Ack is what an acknowledgement tells a sender, and what the sender knows when
// it comes.
type Ack struct {
	Now    engine.Time
	Sent   engine.Time // when the data that it answers was sent
	Seq    int64       // bytes that the receiver has
	Next   int64       // the next byte to be sent
	Marked bool        // the data had a congestion mark
	INT    *Stack      // what switches wrote on the data; nil if nothing
}

// Flow is what a control needs to know of its flow. All rates start at Line.
type Flow struct {
	Line    model.Rate  // of its NIC: the highest rate it may have
	Window  int64       // bytes on their way at line rate
	BaseRTT engine.Time // round trip through an empty fabric
	Payload int64       // bytes in a full packet
}

// bounded keeps a rate between two others.
func bounded(r, least, most model.Rate) model.Rate { return min(max(r, least), most) }

// times scales a rate. Rates are whole bits per second, rounded down, as there.
func times(r model.Rate, by float64) model.Rate { return model.Rate(float64(r) * by) }
