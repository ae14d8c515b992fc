package scenario

import (
	"github.com/weft-telemetry/weft/dataplane/simhost"
	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
)

// Session is a scenario that its caller runs, by Network.Run, for any length of
// time. Nothing is recorded and nothing judged: only its telemetry is known, so
// it can run for ever in bounded memory.
type Session struct {
	Network  *sim.Network
	Programs map[model.NodeID][]inswitch.Program // of telemetry, by switch

	x *session
}

// Open assembles a scenario whose reports go to sink. Nothing has run yet.
func Open(s *Scenario, sink simhost.Sink) (*Session, error) {
	x, err := assemble(s, Options{Sink: sink, unrecorded: true})
	if err != nil {
		return nil, err
	}
	return &Session{Network: x.net, Programs: x.programs, x: x}, nil
}

// Telemetry accounts for the reports of all switches, up to the sink; nil where
// no switch runs a program.
func (s *Session) Telemetry() *Telemetry { return s.x.telemetry() }

// Settle ends the run: switch CPUs finish what they were asked for, and the
// management network delivers the reports in flight. Simulated time does not
// advance.
func (s *Session) Settle() {
	if s.x.mgmt != nil {
		s.x.mgmt.Drain(s.x.hosts)
	}
}
