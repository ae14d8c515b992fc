package feedback

import (
	"fmt"

	"github.com/weft-telemetry/weft/model"
)

// DCTCPParams are the constants of DCTCP as a rate control.
type DCTCPParams struct {
	Gain    float64 // of the moving average of marks
	AI      model.Rate
	MinRate model.Rate
}

// DefaultDCTCP returns the simulator's own constants.
func DefaultDCTCP() DCTCPParams {
	return DCTCPParams{Gain: 1. / 16, AI: 1000 * model.Mbps, MinRate: 100 * model.Mbps}
}

// Check complains about constants that cannot work.
func (p *DCTCPParams) Check() error {
	switch {
	case !(p.Gain > 0 && p.Gain <= 1):
		return fmt.Errorf("feedback: DCTCP: gain %v, want above 0 and at most 1", p.Gain)
	case p.AI < 0 || p.MinRate < 1:
		return fmt.Errorf("feedback: DCTCP: increase %v and lowest rate %v, want at least 0b/s and 1b/s", p.AI, p.MinRate)
	}
	return nil
}

// DCTCP lowers the rate by the share of marked packets, at most once a round
// trip.
type DCTCP struct {
	p       *DCTCPParams
	f       Flow
	rate    model.Rate
	alpha   float64
	known   int64 // as HPCC's
	marks   int64 // since known
	packets int64 // that known to the next will be
	until   int64 // the rate was lowered: no more of it before this byte
	lowered bool
}

// NewDCTCP starts a flow. p must pass Check; the control keeps it.
func NewDCTCP(p *DCTCPParams, f Flow) *DCTCP { return &DCTCP{p: p, f: f, rate: f.Line, alpha: 1} }

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

// weigh takes a round trip's marks into alpha. Those of the first count with
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
