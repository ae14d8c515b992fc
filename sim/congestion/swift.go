package congestion

import (
	"fmt"
	"math"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
)

// SwiftParams are the constants of Swift as a rate control ("Swift: Delay is
// Simple and Effective for Congestion Control in the Datacenter", SIGCOMM 2020).
// Windows are in packets.
type SwiftParams struct {
	Target    time.Duration `yaml:"target"`     // delay to hold, of a path without switches and a large window
	PerHop    time.Duration `yaml:"per-hop"`    // more for each switch of the path
	AI        float64       `yaml:"ai"`         // packets by which a window grows in a round trip
	Beta      float64       `yaml:"beta"`       // decrease per excess of the delay, as a share of it
	MaxCut    float64       `yaml:"max-cut"`    // the most that one decrease takes
	FlowRange time.Duration `yaml:"flow-range"` // the most that small windows add to the target
	MinFlow   float64       `yaml:"min-flow"`   // the window with all of it
	MaxFlow   float64       `yaml:"max-flow"`   // and the one with none
	MinWindow float64       `yaml:"min-window"` // no cut goes below
}

// DefaultSwift returns a target of 25 µs and 1 µs per hop, which suit round trips
// of about 10 µs, and otherwise csg-htsim's constants: increase 1, beta 0.8, cuts
// of at most 0.5, flow scaling from 0.1 to 100 packets.
func DefaultSwift() *SwiftParams {
	return &SwiftParams{
		Target: 25 * time.Microsecond, PerHop: time.Microsecond, AI: 1, Beta: 0.8, MaxCut: 0.5,
		FlowRange: 100 * time.Microsecond, MinFlow: 0.1, MaxFlow: 100, MinWindow: 0.001,
	}
}

// Check reports constants that cannot work.
func (p *SwiftParams) Check() error {
	switch {
	case p.Target <= 0 || p.PerHop < 0 || p.FlowRange < 0:
		return fmt.Errorf("swift: target %v, %v per hop, flow range %v, want a target above 0 and none below 0", p.Target, p.PerHop,
			p.FlowRange)
	case !(p.AI > 0) || !(p.Beta > 0 && p.Beta <= 1) || !(p.MaxCut > 0 && p.MaxCut < 1):
		return fmt.Errorf("swift: increase %v, beta %v, largest cut %v, want above 0, beta at most 1 and the cut below 1", p.AI, p.Beta,
			p.MaxCut)
	case !(p.MinFlow > 0 && p.MinFlow < p.MaxFlow) || !(p.MinWindow > 0 && p.MinWindow <= 1):
		return fmt.Errorf("swift: flow scaling from %v to %v, smallest window %v, want 0 < min-flow < max-flow and 0 < min-window <= 1",
			p.MinFlow, p.MaxFlow, p.MinWindow)
	}
	return nil
}

// Swift holds the round-trip time at a target: additive increase below,
// multiplicative decrease by the excess above, at most once a round trip.
//
// Paper: the window limits packets in flight, and delays of NIC and fabric have
// a window each. Here: there is one window, for the fabric's delay, and it acts
// through the rate, window / round-trip time; sim paces by it.
type Swift struct {
	ackDriven
	p      *SwiftParams
	line   model.Rate
	bits   float64 // of a full packet
	most   float64 // window with which line rate is possible at the largest target
	base   float64 // target without flow scaling, ps
	scale  float64 // of flow scaling, ps
	offset float64 // ps
	window float64 // packets
	rtt    engine.Time
	cut    engine.Time // when the window was cut last
	seq    int64
}

// Traits is Params'.
func (p *SwiftParams) Traits() Traits { return Traits{Name: "swift", Acks: true, Hops: true} }

// New is Params'. The control keeps p.
func (p *SwiftParams) New(f Flow) Control {
	s := &Swift{p: p, line: f.Line, bits: float64(8 * f.Payload), ackDriven: ackDriven{f.Line}}
	s.base = float64(engine.Of(p.Target + time.Duration(f.Hops)*p.PerHop))
	// The target grows by FlowRange as the window falls from MaxFlow to MinFlow,
	// with the inverse of its square root.
	s.scale = float64(engine.Of(p.FlowRange)) / (1/math.Sqrt(p.MinFlow) - 1/math.Sqrt(p.MaxFlow))
	s.offset = -s.scale / math.Sqrt(p.MaxFlow)
	s.most = float64(f.Line) / s.bits * (s.base + float64(engine.Of(p.FlowRange))) / float64(engine.Second)
	s.window = s.most
	return s
}

// target returns the delay that the flow may have now.
func (s *Swift) target() engine.Time {
	extra := s.scale/math.Sqrt(s.window) + s.offset
	return engine.Time(s.base + min(max(extra, 0), float64(engine.Of(s.p.FlowRange))))
}

// OnAck is Control's. An acknowledgement that covers several packets counts for
// all of them.
func (s *Swift) OnAck(a *Ack) model.Rate {
	acked := max(1, float64(8*(a.Seq-s.seq))/s.bits)
	s.seq = max(s.seq, a.Seq)
	s.rtt = max(a.Now-a.Sent, 1)
	target := s.target()
	switch {
	case s.rtt < target && s.window >= 1:
		s.window += float64(s.p.AI / s.window * acked)
	case s.rtt < target:
		s.window += float64(s.p.AI * acked)
	case a.Now-s.cut >= s.rtt:
		excess := float64(s.rtt-target) / float64(s.rtt)
		s.window *= max(1-float64(s.p.Beta*excess), 1-s.p.MaxCut)
		s.cut = a.Now
	}
	s.window = min(max(s.window, s.p.MinWindow), s.most)
	s.rate = bounded(model.Rate(s.window*s.bits/float64(s.rtt)*float64(engine.Second)), 1, s.line)
	return s.rate
}
