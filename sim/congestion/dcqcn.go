package congestion

import (
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
)

// DCQCN is the reaction point of one flow. What timers do at a time comes
// before a CNP or a packet of the same time.
//
// DCQCN is full of timers, one of them every microsecond. None of them is an
// event here: DCQCN keeps the time of the last call and catches up, with results
// that equal those of running timers to the bit. A sender that calls OnSent or
// OnTimer before it uses the rate needs no event at all; one that wants to act
// when the rate changes finds that time in Next.
type DCQCN struct {
	p *DCQCNParams

	line   model.Rate // upper bound of target
	rate   model.Rate
	target model.Rate
	alpha  float64

	// Invariant: increaseAt and decreaseAt are later than the last time seen.
	// alphaAt may be earlier: alpha matters only to CNPs and cuts.
	increaseAt engine.Time // the next increase; forever before the first cut
	decreaseAt engine.Time // the check that will find a CNP; forever if none has come
	alphaAt    engine.Time // alpha's next update
	start      engine.Time // of the first CNP: Mellanox's timers run from it

	timeSteps int64 // increases since the last cut, by time
	byteSteps int64 // the same, by bytes
	sent      model.Bytes

	limited  bool // a CNP has come, ever
	alphaCNP bool // a CNP has come since alpha's last update
}

// afterAlpha delays Mellanox's checks for CNPs, so that they come after an
// update of alpha due at the same time.
const afterAlpha = engine.Nanosecond

// New is Params'. The control keeps p.
func (p *DCQCNParams) New(f Flow) Control { return p.newControl(f.Line) }

func (p *DCQCNParams) newControl(line model.Rate) *DCQCN {
	return &DCQCN{
		p: p, line: line, rate: line, target: line, alpha: 1,
		alphaAt: engine.Forever, increaseAt: engine.Forever, decreaseAt: engine.Forever,
	}
}

// Traits is Params'.
func (p *DCQCNParams) Traits() Traits { return Traits{Name: "dcqcn"} }

// Rate is Control's.
func (s *DCQCN) Rate() model.Rate { return s.rate }

// OnAck is Control's: DCQCN learns nothing from acknowledgements.
func (s *DCQCN) OnAck(*Ack) model.Rate { return s.rate }

// Target returns what the rate recovers to, as of the last call.
func (s *DCQCN) Target() model.Rate { return s.target }

// Alpha returns the estimate of congestion as of the last time that it mattered: at
// the last CNP, or the last cut if that was later.
func (s *DCQCN) Alpha() float64 { return s.alpha }

// Next returns the next time at which the rate may change by itself, engine.Forever
// if only a CNP can change it. Calling OnTimer then is allowed, not required.
func (s *DCQCN) Next() engine.Time {
	if s.settled() {
		return s.decreaseAt
	}
	return min(s.decreaseAt, s.increaseAt)
}

// OnTimer is Control's.
func (s *DCQCN) OnTimer(now engine.Time) model.Rate {
	if at := s.decreaseAt; at <= now {
		// Both timers may be due at once, and often are: an increase is counted
		// from a check for CNPs and intervals are multiples of each other. Timers
		// of the same time run in the order they were started, so the longer
		// goes first.
		before := at
		if s.p.IncreaseInterval <= s.p.DecreaseInterval {
			before--
		}
		s.increaseUntil(before)
		s.updateAlpha(at)
		if s.p.ClampTarget || s.timeSteps > 0 {
			s.target = s.rate
		}
		s.cut(at)
		s.decreaseAt = engine.Forever
	}
	s.increaseUntil(now)
	return s.rate
}

// OnCNP is Control's.
func (s *DCQCN) OnCNP(now engine.Time) {
	s.OnTimer(now)
	s.updateAlpha(now)
	first := !s.limited
	s.limited = true
	if s.p.Variant == Published {
		s.target = s.rate
		s.cut(now)
		s.alpha = weigh(s.alpha, s.p.Gain, true)
		s.alphaAt = now + engine.Of(s.p.AlphaInterval)
		return
	}
	if first {
		s.start = now
		s.alphaAt = now + engine.Of(s.p.AlphaInterval)
		s.rate = model.Rate(s.p.FirstRate * float64(s.rate))
		s.target = s.rate
	} else {
		s.alphaCNP = true
	}
	if s.decreaseAt == engine.Forever {
		// The first check after now.
		every := engine.Of(s.p.DecreaseInterval)
		past := max(0, now-s.start-afterAlpha) / every
		s.decreaseAt = s.start + afterAlpha + (past+1)*every
	}
}

// OnSent is Control's.
func (s *DCQCN) OnSent(now engine.Time, n model.Bytes) model.Rate {
	s.OnTimer(now)
	if s.p.Variant != Published || s.p.ByteCounter == 0 || !s.limited {
		return s.rate
	}
	for s.sent += n; s.sent >= s.p.ByteCounter; s.byteSteps++ {
		s.sent -= s.p.ByteCounter
		s.increase()
	}
	return s.rate
}

// cut lowers the rate and starts recovery anew.
func (s *DCQCN) cut(now engine.Time) {
	// Rates are whole bits per second, rounded down, as in the HPCC simulator.
	lowered := model.Rate(float64(s.rate) * (1 - s.alpha/2))
	s.rate = max(lowered, min(s.p.MinRate, s.line))
	s.timeSteps, s.byteSteps, s.sent = 0, 0, 0
	s.increaseAt = now + engine.Of(s.p.IncreaseInterval)
}

// increaseUntil makes the increases that are due until t.
func (s *DCQCN) increaseUntil(t engine.Time) {
	every := engine.Of(s.p.IncreaseInterval)
	for s.increaseAt <= t {
		if s.settled() {
			n := (t-s.increaseAt)/every + 1
			s.timeSteps += int64(n)
			s.increaseAt += n * every
			return
		}
		s.increase()
		s.timeSteps++
		s.increaseAt += every
	}
}

// increase is one step of recovery.
func (s *DCQCN) increase() {
	f := int64(s.p.FastRecovery)
	if s.p.Variant == Published {
		switch {
		// The paper does not say whether a step counts itself; here it does
		// not, so that fast recovery has the F steps the text speaks of.
		case max(s.timeSteps, s.byteSteps) < f:
		case min(s.timeSteps, s.byteSteps) > f && s.p.HAI > 0:
			s.target = min(s.target+s.p.HAI, s.line)
		default:
			s.target = min(s.target+s.p.AI, s.line)
		}
	} else {
		switch {
		case s.timeSteps < f:
		case s.timeSteps == f:
			s.target = min(s.target+s.p.AI, s.line)
		default:
			s.target = min(s.target+s.p.HAI, s.line)
		}
	}
	s.rate = s.halfway()
}

// halfway is the mean of rate and target. Mellanox rounds both halves down, as
// the HPCC simulator does, and ends one bit per second below the target.
func (s *DCQCN) halfway() model.Rate {
	if s.p.Variant == Published {
		return (s.rate + s.target + 1) / 2
	}
	return s.rate/2 + s.target/2
}

// settled reports whether increases no longer change the rate.
func (s *DCQCN) settled() bool { return s.target == s.line && s.rate == s.halfway() }

// updateAlpha makes the updates of alpha that are due until t.
func (s *DCQCN) updateAlpha(t engine.Time) {
	if s.alphaAt > t {
		return
	}
	every := engine.Of(s.p.AlphaInterval)
	n := (t-s.alphaAt)/every + 1
	s.alphaAt += n * every
	if s.alphaCNP {
		s.alpha = weigh(s.alpha, s.p.Gain, true)
		s.alphaCNP = false
		n--
	}
	// Update by update, because a power would round differently. Where alpha
	// is too small to change g or 1 when added, it is set to zero, so that
	// after a long silence at most about 45/g updates are computed.
	for least := s.p.Gain * 0x1p-55; n > 0; n-- {
		if s.alpha < least {
			s.alpha = 0
			break
		}
		s.alpha = weigh(s.alpha, s.p.Gain, false)
	}
}

// weigh is the moving average that alpha is. The conversion keeps compilers
// from fusing the product with the sum, which rounds differently on some
// CPUs.
func weigh(alpha, g float64, marked bool) float64 {
	alpha = float64((1 - g) * alpha)
	if marked {
		alpha += g
	}
	return alpha
}
