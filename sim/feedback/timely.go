package feedback

import (
	"fmt"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
)

// TIMELYParams are the constants of TIMELY.
type TIMELYParams struct {
	Weight    float64     // of the newest difference of round-trip times
	Beta      float64     // how much a gradient of 1 lowers the rate
	Low, High engine.Time // round-trip times below and above which the gradient does not matter
	MinRTT    engine.Time // what differences are measured in
	AI, HAI   model.Rate  // increases; the second after five in a row
	MinRate   model.Rate
}

// DefaultTIMELY returns the simulator's own constants.
func DefaultTIMELY() TIMELYParams {
	return TIMELYParams{
		Weight: 0.875, Beta: 0.8,
		Low: 50 * engine.Microsecond, High: 500 * engine.Microsecond, MinRTT: 20 * engine.Microsecond,
		AI: 50 * model.Mbps, HAI: 100 * model.Mbps, MinRate: 100 * model.Mbps,
	}
}

// Check complains about constants that cannot work.
func (p *TIMELYParams) Check() error {
	switch {
	case !(p.Weight >= 0 && p.Weight <= 1 && p.Beta >= 0 && p.Beta <= 1):
		return fmt.Errorf("feedback: TIMELY: weight %v and beta %v, want 0 to 1", p.Weight, p.Beta)
	case p.MinRTT < engine.Nanosecond || p.High < p.Low:
		return fmt.Errorf("feedback: TIMELY: round-trip times %v, %v, %v, want the first above 0 and the others to ascend", p.MinRTT, p.Low, p.High)
	case p.AI < 0 || p.HAI < 0 || p.MinRate < 1:
		return fmt.Errorf("feedback: TIMELY: increases %v and %v, lowest rate %v, want at least 0b/s and 1b/s", p.AI, p.HAI, p.MinRate)
	}
	return nil
}

// hyper is after how many increases in a row TIMELY makes larger ones.
const hyper = 5

// TIMELY follows how round-trip times change, once a round trip.
type TIMELY struct {
	p       *TIMELYParams
	line    model.Rate
	rate    model.Rate
	known   int64 // as HPCC's
	lastRTT int64 // ns
	diff    float64
	stage   int
}

// NewTIMELY starts a flow. p must pass Check; the control keeps it.
func NewTIMELY(p *TIMELYParams, f Flow) *TIMELY { return &TIMELY{p: p, line: f.Line, rate: f.Line} }

// OnAck is Control's.
func (t *TIMELY) OnAck(a *Ack) model.Rate {
	if a.Seq <= t.known {
		return t.rate
	}
	rtt := int64((a.Now - a.Sent) / engine.Nanosecond)
	if t.known != 0 {
		t.update(rtt)
	}
	if a.Next > t.known {
		t.known, t.lastRTT = a.Next, rtt
	}
	return t.rate
}

func (t *TIMELY) update(rtt int64) {
	t.diff = float64((1-t.p.Weight)*t.diff) + float64(t.p.Weight*float64(rtt-t.lastRTT))
	gradient := t.diff / float64(t.p.MinRTT/engine.Nanosecond)
	low, high := int64(t.p.Low/engine.Nanosecond), int64(t.p.High/engine.Nanosecond)
	var cut float64
	switch {
	case rtt < low, rtt <= high && gradient <= 0:
		more := t.p.AI
		if t.stage >= hyper {
			more = t.p.HAI
		}
		t.rate = min(t.rate+more, t.line)
		t.stage++
		return
	case rtt > high:
		cut = 1 - float64(t.p.Beta*(1-float64(high)/float64(rtt)))
	default:
		cut = max(0, 1-float64(t.p.Beta*gradient))
	}
	t.rate = max(times(t.rate, cut), t.p.MinRate)
	t.stage = 0
}
