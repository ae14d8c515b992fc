package simhost

import (
	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
)

// CPUProgram is a program whose switch's processor may work on when the traffic is
// stopped, as it does for 80 ms to read two epochs.
type CPUProgram interface {
	inswitch.Program
	// NextReadout is when it will be ready, on the switch's clock, and the timer that
	// says so; false: it has nothing to do.
	NextReadout() (model.Time, inswitch.TimerID, bool)
}

// Drain has the processors of switches finish their work and the management
// network deliver everything, in the order of time, when the run is over. The
// run's own time stands still: no packet moves. What travels in-band stays
// inFlight.
func (m *Management) Drain(switches []*Switch) {
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
				m.drainOffset = max(engine.Of(at.Sub(s.sw.Clock())), 0)
				s.timer.Now, s.timer.Timer = at, timer
				s.pipeline.RunTimer(i, &s.timer, drainHost{s, at})
			}
		}
		if s.packer.PendingReports() > 0 {
			s.packer.Flush(s.sw.Clock())
			s.outbox.sendReady()
		}
	}
	m.drainOffset = 0
	for len(m.inFlight) > 0 {
		m.deliverNext()
	}
}

// drainHost carries out reports, and nothing else.
type drainHost struct {
	*Switch
	at model.Time
}

// Execute is part of inswitch.Host.
func (s drainHost) Execute(_ int, _ *inswitch.Event, act *inswitch.Actions) {
	for i := range act.Reports {
		s.stats.Reports++
		if s.packer.AddReport(s.at, &act.Reports[i]) != nil {
			s.countLost(Malformed, 1)
		}
		s.outbox.sendReady()
	}
	if s.packer.PendingReports() > 0 {
		s.packer.Flush(s.at)
		s.outbox.sendReady()
	}
}
