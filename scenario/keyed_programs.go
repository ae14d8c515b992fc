package scenario

import (
	"fmt"
	"math"
	"time"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/inswitch/hostcount"
	"github.com/weft-telemetry/weft/inswitch/portstate"
	"github.com/weft-telemetry/weft/inswitch/postcard"
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

// postcardSpec runs inswitch/postcard.
type postcardSpec struct {
	programHeader
	Flows   int   `yaml:"flows"`
	Packets int   `yaml:"packets"`
	Marked  int   `yaml:"marked"`
	Debug   uint8 `yaml:"debug"`
	Rate    int   `yaml:"rate"`
	Burst   int   `yaml:"burst"`
}

func defaultPostcards() *postcardSpec {
	c := postcard.DefaultConfig()
	return &postcardSpec{
		Flows: int(c.FlowOneIn), Packets: int(c.PacketOneIn), Marked: int(c.MarkedOneIn), Debug: c.DebugMask, Rate: c.Rate, Burst: c.Burst,
	}
}

func (s *postcardSpec) program(p *Program) error {
	for _, n := range []int{s.Flows, s.Packets, s.Marked} {
		if n < 0 || n > math.MaxInt32 {
			return fmt.Errorf("one in %d flows or packets, want 0 to %d", n, math.MaxInt32)
		}
	}
	// No seed of the switch's: all switches choose the same packets.
	cfg := postcard.Config{
		FlowOneIn: uint32(s.Flows), PacketOneIn: uint32(s.Packets), MarkedOneIn: uint32(s.Marked), DebugMask: s.Debug, Rate: s.Rate, Burst: s.Burst,
	}
	p.Keyed = true
	p.New = func(dev inswitch.Device, _ ProgramInputs) (inswitch.Program, error) { return postcard.New(dev, cfg) }
	return cfg.Check()
}

// PostcardProgram returns the program that sends postcards in all switches: of one
// packet in a number of packets of every flow.
func PostcardProgram(packets int) (p Program, err error) {
	spec := defaultPostcards()
	spec.Flows, spec.Packets = 1, packets
	p.Kind = "postcard"
	err = spec.program(&p)
	return p, err
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
