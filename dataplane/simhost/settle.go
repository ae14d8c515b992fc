package simhost

import (
	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
)

// CPUProgram is a program whose switch's processor may work on when the traffic is
// over, as it does for 80 ms to read two epochs.
type CPUProgram interface {
	inswitch.Program
	// NextReadout is when it will be ready, on the switch's clock, and the timer that
	// says so; false: it has nothing to do.
	NextReadout() (model.Time, inswitch.TimerID, bool)
}

// Settle has the processors of switches finish their work and the management
// network deliver everything, in the order of time, when the run is over. The
// run's own time stands still: no packet moves. What travels in-band stays
// underway.
func (m *Management) Settle(switches []*Switch) {
	for _, s := range switches {
		if s.carrier != m {
			continue
		}
		for i, p := range s.pipeline.Programs() {
			b, ok := p.(CPUProgram)
			if !ok {
				continue
			}
			for at, timer, ok := b.NextReadout(); ok; at, timer, ok = b.NextReadout() {
				m.ahead = max(engine.Of(at.Sub(s.sw.Clock())), 0)
				s.timer.Now, s.timer.Timer = at, timer
				s.pipeline.RunTimer(i, &s.timer, settling{s, at})
			}
		}
		if s.packer.Waiting() > 0 {
			s.packer.Flush(s.sw.Clock())
			s.outbox.send()
		}
	}
	m.ahead = 0
	for len(m.underway) > 0 {
		m.hand()
	}
}

// settling carries out reports, and nothing else.
type settling struct {
	*Switch
	at model.Time
}

// Execute is part of inswitch.Host.
func (s settling) Execute(_ int, _ *inswitch.Event, act *inswitch.Actions) {
	for i := range act.Reports {
		s.stats.Reports++
		if s.packer.Add(s.at, &act.Reports[i]) != nil {
			s.lose(Malformed, 1)
		}
		s.outbox.send()
	}
	if s.packer.Waiting() > 0 {
		s.packer.Flush(s.at)
		s.outbox.send()
	}
}
