package congestion

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
)

// TIMELYParams are the constants of TIMELY.
type TIMELYParams struct {
	Weight  float64       `yaml:"weight"`   // of the newest difference of round-trip times
	Beta    float64       `yaml:"beta"`     // how much a gradient of 1 lowers the rate
	Low     time.Duration `yaml:"t-low"`    // below this round-trip time the gradient does not matter
	High    time.Duration `yaml:"t-high"`   // nor above this one
	MinRTT  time.Duration `yaml:"min-rtt"`  // the unit of differences
	AI      model.Rate    `yaml:"ai"`       // additive increase
	HAI     model.Rate    `yaml:"hai"`      // increase after five additive ones in a row
	MinRate model.Rate    `yaml:"min-rate"` // no cut goes below
}

// DefaultTIMELY returns the constants of the HPCC simulator.
func DefaultTIMELY() *TIMELYParams {
	return &TIMELYParams{
		Weight: 0.875, Beta: 0.8,
		Low: 50 * time.Microsecond, High: 500 * time.Microsecond, MinRTT: 20 * time.Microsecond,
		AI: 50 * model.Mbps, HAI: 100 * model.Mbps, MinRate: 100 * model.Mbps,
	}
}

// Check reports constants that cannot work.
func (p *TIMELYParams) Check() error {
	switch {
	case !(p.Weight >= 0 && p.Weight <= 1 && p.Beta >= 0 && p.Beta <= 1):
		return fmt.Errorf("timely: weight %v and beta %v, want 0 to 1", p.Weight, p.Beta)
	case p.MinRTT < 1 || p.High < p.Low:
		return fmt.Errorf("timely: min RTT %v, T_low %v, T_high %v, want min RTT above 0 and T_low at most T_high", p.MinRTT,
			p.Low, p.High)
	case p.AI < 0 || p.HAI < 0 || p.MinRate < 1:
		return fmt.Errorf("timely: increases %v and %v, min rate %v, want at least 0b/s and 1b/s", p.AI, p.HAI, p.MinRate)
	}
	return nil
}

// hyper is the number of increases in a row before TIMELY makes larger ones.
const hyper = 5

// TIMELY follows the gradient of round-trip times, once a round trip.
type TIMELY struct {
	ackDriven
	p       *TIMELYParams
	line    model.Rate
	known   int64 // as HPCC's
	lastRTT int64 // ns
	diff    float64
	stage   int
}

// Traits is Params'.
func (p *TIMELYParams) Traits() Traits {
	return Traits{Name: "timely", Acks: true, PaceAtLineRate: true}
}

// New is Params'. The control keeps p.
func (p *TIMELYParams) New(f Flow) Control { return newTIMELY(p, f) }

func newTIMELY(p *TIMELYParams, f Flow) *TIMELY {
	return &TIMELY{p: p, line: f.Line, ackDriven: ackDriven{f.Line}}
}

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
	gradient := t.diff / float64(t.p.MinRTT)
	low, high := int64(t.p.Low), int64(t.p.High)
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
