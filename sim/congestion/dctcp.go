package congestion

import (
	"fmt"

	"github.com/weft-telemetry/weft/model"
)

// DCTCPParams are the constants of DCTCP as a rate control.
type DCTCPParams struct {
	Gain    float64    `yaml:"gain"`     // g, the weight of the newest round trip in alpha
	AI      model.Rate `yaml:"ai"`       // additive increase
	MinRate model.Rate `yaml:"min-rate"` // no cut goes below
}

// DefaultDCTCP returns the constants of the HPCC simulator.
func DefaultDCTCP() *DCTCPParams {
	return &DCTCPParams{Gain: 1. / 16, AI: 1000 * model.Mbps, MinRate: 100 * model.Mbps}
}

// Check reports constants that cannot work.
func (p *DCTCPParams) Check() error {
	switch {
	case !(p.Gain > 0 && p.Gain <= 1):
		return fmt.Errorf("dctcp: gain %v, want above 0 and at most 1", p.Gain)
	case p.AI < 0 || p.MinRate < 1:
		return fmt.Errorf("dctcp: increase %v and min rate %v, want at least 0b/s and 1b/s", p.AI, p.MinRate)
	}
	return nil
}

// DCTCP lowers the rate by the share of marked packets, at most once a round
// trip.
type DCTCP struct {
	ackDriven
	p       *DCTCPParams
	f       Flow
	alpha   float64
	known   int64 // as HPCC's
	marks   int64 // since known
	packets int64 // expected until the next round trip ends
	until   int64 // after a cut: no other before this byte is acknowledged
	lowered bool
}

// Traits is Params'.
func (p *DCTCPParams) Traits() Traits {
	return Traits{Name: "dctcp", Acks: true, EveryMark: true, PaceAtLineRate: true}
}

// New is Params'. The control keeps p.
func (p *DCTCPParams) New(f Flow) Control { return newDCTCP(p, f) }

func newDCTCP(p *DCTCPParams, f Flow) *DCTCP {
	return &DCTCP{p: p, f: f, ackDriven: ackDriven{f.Line}, alpha: 1}
}

// OnAck is Control's.
func (d *DCTCP) OnAck(a *Ack) model.Rate {
	if a.Marked {
		d.marks++
	}
	full := a.Seq > d.known
	if full {
		d.weigh(a)
	}
	if d.lowered && a.Seq > d.until {
		d.lowered = false
	}
	if a.Marked && !d.lowered {
		d.rate = max(times(d.rate, 1-d.alpha/2), d.p.MinRate)
		d.lowered, d.until = true, a.Next
	}
	if full && !d.lowered {
		d.rate = min(d.rate+d.p.AI, d.f.Line)
	}
	return d.rate
}

// weigh averages a round trip's marks into alpha. Those of the first count with
// the second.
func (d *DCTCP) weigh(a *Ack) {
	if d.known == 0 {
		d.known, d.packets = a.Next, a.Next/d.f.Payload+1
		return
	}
	share := min(1, float64(d.marks)/float64(d.packets))
	d.alpha = float64((1-d.p.Gain)*d.alpha) + float64(d.p.Gain*share)
	d.known, d.packets, d.marks = a.Next, (a.Next-a.Seq)/d.f.Payload+1, 0
}
