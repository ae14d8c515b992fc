package simhost

import (
	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
)

// CPUProgram is a program whose switch CPU may still be busy when the traffic
// has ended, such as 80 ms to read two epochs.
type CPUProgram interface {
	inswitch.Program
	// NextReadout returns when the CPU will be ready, on the switch's clock,
	// and the timer to fire then; false if it is idle.
	NextReadout() (model.Time, inswitch.TimerID, bool)
}

// Drain lets the switch CPUs finish their work and the management network
// deliver everything, in order of time, after the run. The run's time does not
// advance: no packet moves. In-band reports remain in flight.
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

// drainHost executes reports only.
type drainHost struct {
	*Switch
	at model.Time
}

// Execute implements inswitch.Host.
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
