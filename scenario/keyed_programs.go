package scenario

import (
	"time"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/inswitch/portstate"
)

// portStateSpec runs inswitch/portstate.
type portStateSpec struct {
	programHeader
	Period time.Duration `yaml:"period"`
}

func defaultPortState() *portStateSpec {
	c := portstate.DefaultConfig()
	return &portStateSpec{Period: c.Period}
}

func (s *portStateSpec) program(p *Program) error {
	cfg := portstate.Config{Period: s.Period}
	p.Keyed = true
	p.New = func(dev inswitch.Device, _ ProgramInputs) (inswitch.Program, error) { return portstate.New(dev, cfg) }
	return cfg.Check()
}

// PortStateProgram returns the program that writes port states in all switches, with
// a period.
func PortStateProgram(period time.Duration) (p Program, err error) {
	spec := defaultPortState()
	spec.Period = period
	p.Kind = "port-state"
	err = spec.program(&p)
	return p, err
}
