package scenario

import (
	"time"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/inswitch/hostcount"
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

// hostCounterSpec runs inswitch/hostcount.
type hostCounterSpec struct {
	programHeader
	Period time.Duration `yaml:"period"`
	Places int           `yaml:"places"`
}

func defaultHostCounters() *hostCounterSpec {
	c := hostcount.DefaultConfig()
	return &hostCounterSpec{Period: c.Period, Places: c.Places}
}

func (s *hostCounterSpec) program(p *Program) error {
	cfg := hostcount.Config{Period: s.Period, Places: s.Places}
	p.Keyed = true
	p.New = func(dev inswitch.Device, _ ProgramInputs) (inswitch.Program, error) { return hostcount.New(dev, cfg) }
	return cfg.Check()
}

// HostCounterProgram returns the program that counts for hosts in all switches, with
// a period.
func HostCounterProgram(period time.Duration) (p Program, err error) {
	spec := defaultHostCounters()
	spec.Period = period
	p.Kind = "host-counters"
	err = spec.program(&p)
	return p, err
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
