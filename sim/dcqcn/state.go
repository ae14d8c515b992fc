// Package dcqcn is the rate control of RDMA hosts (DCQCN) as a state machine:
// CNPs, bytes sent and the time come in, the rate goes out. Pacing packets and
// carrying CNPs is sim's work.
//
// DCQCN is full of timers, one of them every microsecond. None of them is an
// event here: State knows when it was last looked at and catches up, with
// results that equal those of running timers to the bit. A sender that calls
// OnSent or OnTimer before it reads Rate needs no event at all; one that wants
// to act when the rate changes finds that time in Next.
//
// Origin: "Congestion Control for Large-Scale RDMA Deployments" (SIGCOMM 2015)
// and the HPCC simulator.
package dcqcn

import (
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
)

// State is the reaction point of one flow. The zero State is that of a flow
// without rate control: only Active may be asked of it. Times given to the
// methods must not go back. What timers do at a time comes before a CNP or a
// packet of the same time.
type State struct {
	p *Params

	line   model.Rate // upper bound of target
	rate   model.Rate
	target model.Rate
	alpha  float64

	// Invariant: riseAt and decreaseAt are later than the last time seen.
	// alphaAt may lie behind: alpha matters only to CNPs and cuts.
	riseAt     engine.Time // the next step up; forever before the first cut
	decreaseAt engine.Time // the look that will find a CNP; forever if none has come
	alphaAt    engine.Time // alpha's next update
	start      engine.Time // of the first CNP: Mellanox's timers run from it

	steps     int64 // up since the last cut, by time
	byteSteps int64 // the same, by bytes
	sent      model.Bytes

	limited  bool // a CNP has come, ever
	alphaCNP bool // a CNP has come since alpha's last update
}

// afterAlpha is by how much Mellanox's looks at CNPs are late, so that they
// come after an update of alpha due at the same time.
const afterAlpha = engine.Nanosecond

// New starts a flow at the rate of its line. p must pass Check; the State keeps
// it.
func New(p *Params, line model.Rate) State {
	return State{p: p, line: line, rate: line, target: line, alpha: 1, alphaAt: engine.Forever, riseAt: engine.Forever, decreaseAt: engine.Forever}
}

// Active tells whether s came from New.
func (s *State) Active() bool { return s.p != nil }

// Rate is the rate as of the last call.
func (s *State) Rate() model.Rate { return s.rate }

// Target is what the rate recovers to, as of the last call.
func (s *State) Target() model.Rate { return s.target }

// Alpha is the estimate of congestion as of the last time that it mattered: at
// the last CNP, or the last cut if that was later.
func (s *State) Alpha() float64 { return s.alpha }

// Next is the next time at which the rate may change by itself, engine.Forever
// if only a CNP can change it. Calling OnTimer then is allowed, not required.
func (s *State) Next() engine.Time {
	if s.settled() {
		return s.decreaseAt
	}
	return min(s.decreaseAt, s.riseAt)
}

// OnTimer catches up with the time. Rate is then what it is at now.
func (s *State) OnTimer(now engine.Time) {
	if at := s.decreaseAt; at <= now {
		// Both timers may be due at once, and often are: a step up is counted
		// from a look at CNPs and intervals are multiples of each other. Timers
		// of the same time run in the order they were started, so the longer
		// goes first.
		before := at
		if s.p.IncreaseInterval <= s.p.DecreaseInterval {
			before--
		}
		s.rise(before)
		s.updateAlpha(at)
		if s.p.ClampTarget || s.steps > 0 {
			s.target = s.rate
		}
		s.cut(at)
		s.decreaseAt = engine.Forever
	}
	s.rise(now)
}

// OnCNP takes a congestion notification.
func (s *State) OnCNP(now engine.Time) {
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
		// The first look after now.
		every := engine.Of(s.p.DecreaseInterval)
		past := max(0, now-s.start-afterAlpha) / every
		s.decreaseAt = s.start + afterAlpha + (past+1)*every
	}
}

// OnSent counts bytes put on the wire, and catches up with the time, so that
// Rate is that for the pause before the next packet.
func (s *State) OnSent(now engine.Time, n model.Bytes) {
	s.OnTimer(now)
	if s.p.Variant != Published || s.p.ByteCounter == 0 || !s.limited {
		return
	}
	for s.sent += n; s.sent >= s.p.ByteCounter; s.byteSteps++ {
		s.sent -= s.p.ByteCounter
		s.stepUp()
	}
}

// cut lowers the rate and starts recovery anew.
func (s *State) cut(now engine.Time) {
	// Rates are whole bits per second, rounded down, as in the HPCC simulator.
	lowered := model.Rate(float64(s.rate) * (1 - s.alpha/2))
	s.rate = max(lowered, min(s.p.MinRate, s.line))
	s.steps, s.byteSteps, s.sent = 0, 0, 0
	s.riseAt = now + engine.Of(s.p.IncreaseInterval)
}

// rise makes the steps up that are due until t.
func (s *State) rise(t engine.Time) {
	every := engine.Of(s.p.IncreaseInterval)
	for s.riseAt <= t {
		if s.settled() {
			n := (t-s.riseAt)/every + 1
			s.steps += int64(n)
			s.riseAt += n * every
			return
		}
		s.stepUp()
		s.steps++
		s.riseAt += every
	}
}

// stepUp is one step of recovery.
func (s *State) stepUp() {
	f := int64(s.p.FastRecovery)
	if s.p.Variant == Published {
		switch {
		// The paper does not say whether a step counts itself; here it does
		// not, so that fast recovery has the F steps the text speaks of.
		case max(s.steps, s.byteSteps) < f:
		case min(s.steps, s.byteSteps) > f && s.p.HAI > 0:
			s.target = min(s.target+s.p.HAI, s.line)
		default:
			s.target = min(s.target+s.p.AI, s.line)
		}
	} else {
		switch {
		case s.steps < f:
		case s.steps == f:
			s.target = min(s.target+s.p.AI, s.line)
		default:
			s.target = min(s.target+s.p.HAI, s.line)
		}
	}
	s.rate = s.halfway()
}

// halfway is the mean of rate and target. Mellanox rounds both halves down, as
// the HPCC simulator does, and ends one bit per second short of the target.
func (s *State) halfway() model.Rate {
	if s.p.Variant == Published {
		return (s.rate + s.target + 1) / 2
	}
	return s.rate/2 + s.target/2
}

// settled tells whether steps up change nothing any more.
func (s *State) settled() bool { return s.target == s.line && s.rate == s.halfway() }

// updateAlpha makes the updates of alpha that are due until t.
func (s *State) updateAlpha(t engine.Time) {
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
	// is too small to be seen beside g or 1 it might as well be zero, so that
	// after a long silence about 45/g updates are made up for at most.
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
// processors.
func weigh(alpha, g float64, marked bool) float64 {
	alpha = float64((1 - g) * alpha)
	if marked {
		alpha += g
	}
	return alpha
}
