package scenario

import (
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/topo/file/tree"
)

// faultSpec is one item of the section faults.
type faultSpec interface {
	// fault returns the simulator's fault, with names resolved.
	fault(e *env) (sim.Fault, error)
	when() *schedule
}

// schedule is the start and duration of a fault.
type schedule struct {
	sourcePos
	Kind string        `yaml:"kind"`
	At   model.Time    `yaml:"at"`
	For  time.Duration `yaml:"for"` // 0: to the end of the run
}

func (m *schedule) when() *schedule { return m }

var faultKinds = map[string]func() faultSpec{
	"link-down":         func() faultSpec { return &linkDownSpec{} },
	"link-flap":         func() faultSpec { return &linkFlapSpec{} },
	"silent-drop":       func() faultSpec { return &silentDropSpec{Share: 1} },
	"corruption":        func() faultSpec { return &corruptionSpec{} },
	"blackhole":         func() faultSpec { return &blackholeSpec{} },
	"loop":              func() faultSpec { return &loopSpec{} },
	"reroute":           func() faultSpec { return &rerouteSpec{} },
	"bad-table":         func() faultSpec { return &corruptTableSpec{} },
	"storm":             func() faultSpec { return &stormSpec{Priority: 3} },
	"slow-receiver":     func() faultSpec { return &slowReceiverSpec{Priority: 3} },
	"slow-link":         func() faultSpec { return &slowLinkSpec{} },
	"slow-nic":          func() faultSpec { return &slowNICSpec{} },
	"straggler":         func() faultSpec { return &stragglerSpec{Factor: 1} },
	"hash-polarization": func() faultSpec { return &hashPolarizationSpec{} },
	"wrong-counter":     func() faultSpec { return &wrongCounterSpec{Counter: sim.TxPackets.String()} },
	"slow-mux":          func() faultSpec { return &slowMuxSpec{} },
	"wrong-mux":         func() faultSpec { return &misdirectingMuxSpec{} },
}

type faultItem struct{ faultSpec }

func (p *faultItem) decode(v tree.Value, what string) (err error) {
	p.faultSpec, err = decodeByKind(v, what, faultKinds)
	return err
}

// need returns an error for a missing name.
func (m *schedule) need(key string, r ref) error {
	if r.given() {
		return nil
	}
	return m.errorf("", "%s has no %s, want one", m.Kind, key)
}

// needShare returns an error for a share out of range.
func (m *schedule) needShare(p share) error {
	if p > 0 {
		return nil
	}
	return m.errorf("share", "%s with share %v, want above 0 and at most 1", m.Kind, float64(p))
}

type linkDownSpec struct {
	schedule
	Port ref `yaml:"port"` // either end of the link
	// Reconverge is how long routing takes to react to both down and up;
	// default: routes never change.
	Reconverge time.Duration `yaml:"reconverge"`
}

func (s *linkDownSpec) fault(e *env) (sim.Fault, error) {
	p, err := s.port(e)
	return sim.LinkDown{Port: p}, err
}

func (s *linkDownSpec) port(e *env) (model.Port, error) {
	if err := s.need("port", s.Port); err != nil {
		return model.Port{}, err
	}
	return e.port(s.Port)
}

type linkFlapSpec struct {
	schedule
	Port ref           `yaml:"port"`
	Down time.Duration `yaml:"down"`
	Up   time.Duration `yaml:"up"`
}

func (s *linkFlapSpec) fault(e *env) (sim.Fault, error) {
	if err := s.need("port", s.Port); err != nil {
		return nil, err
	}
	if s.Down <= 0 || s.Up <= 0 {
		return nil, s.errorf("", "link-flap with down %v and up %v, want both above 0", s.Down, s.Up)
	}
	p, err := e.port(s.Port)
	return sim.LinkDown{Port: p, Down: s.Down, Up: s.Up}, err
}

// silentDropSpec drops packets on a link, or in a switch, where it can select
// them.
type silentDropSpec struct {
	schedule
	Port   ref     `yaml:"port"`
	Switch ref     `yaml:"switch"`
	Share  share   `yaml:"share"`
	Match  pattern `yaml:"match"`
}

func (s *silentDropSpec) fault(e *env) (sim.Fault, error) {
	if err := s.needShare(s.Share); err != nil {
		return nil, err
	}
	switch {
	case s.Port.given() == s.Switch.given():
		return nil, s.errorf("", "silent-drop, want either a port or a switch")
	case s.Port.given() && s.has("match"):
		return nil, s.errorf("match", "match with a port, want a switch")
	case s.Port.given():
		p, err := e.port(s.Port)
		return sim.Lossy{Port: p, Share: float64(s.Share)}, err
	}
	sw, err := e.switchNamed(s.Switch)
	if err != nil {
		return nil, err
	}
	match, err := s.Match.compile(e)
	return sim.LossySwitch{Switch: sw, Share: float64(s.Share), Match: match}, err
}

type corruptionSpec struct {
	schedule
	Port  ref   `yaml:"port"` // the sending end
	Share share `yaml:"share"`
}

func (s *corruptionSpec) fault(e *env) (sim.Fault, error) {
	if err := s.need("port", s.Port); err != nil {
		return nil, err
	}
	if err := s.needShare(s.Share); err != nil {
		return nil, err
	}
	p, err := e.port(s.Port)
	return sim.Lossy{Port: p, Share: float64(s.Share), Damaged: true}, err
}

// corruptTableSpec is a bit flip: a share of flows is misrouted.
type corruptTableSpec struct {
	schedule
	Switch ref    `yaml:"switch"`
	Share  share  `yaml:"share"`
	Via    ref    `yaml:"via"` // a port of the switch; default: dropped
	Seed   uint64 `yaml:"seed"`
}

func (s *corruptTableSpec) fault(e *env) (sim.Fault, error) {
	if err := s.need("switch", s.Switch); err != nil {
		return nil, err
	}
	if err := s.needShare(s.Share); err != nil {
		return nil, err
	}
	sw, err := e.switchNamed(s.Switch)
	if err != nil {
		return nil, err
	}
	f := sim.CorruptTable{Switch: sw, Share: float64(s.Share), Seed: s.Seed}
	if s.Via.given() {
		p, err := e.port(s.Via)
		if err != nil {
			return nil, err
		}
		if p.Node != sw {
			return nil, s.Via.Errorf("%s is not a port of %s, want one that is", s.Via.text, s.Switch.text)
		}
		f.Via = p.Port
	}
	return f, nil
}

type stormSpec struct {
	schedule
	Host     ref            `yaml:"host"`
	Priority model.Priority `yaml:"priority"`
	On       time.Duration  `yaml:"on"`
	Off      time.Duration  `yaml:"off"` // 0: continuous
}

func (s *stormSpec) fault(e *env) (sim.Fault, error) {
	if err := s.need("host", s.Host); err != nil {
		return nil, err
	}
	if (s.On > 0) != (s.Off > 0) {
		return nil, s.errorf("", "storm with on %v and off %v, want both above 0, or neither for a continuous storm", s.On,
			s.Off)
	}
	h, err := e.host(s.Host)
	return sim.Storm{Host: h, Priority: s.Priority, On: s.On, Off: s.Off}, err
}

type slowReceiverSpec struct {
	schedule
	Host     ref            `yaml:"host"`
	Rate     model.Rate     `yaml:"rate"`   // at which it drains packets
	Buffer   model.Bytes    `yaml:"buffer"` // of its NIC; 0: sim's default
	Priority model.Priority `yaml:"priority"`
}

func (s *slowReceiverSpec) fault(e *env) (sim.Fault, error) {
	if err := s.need("host", s.Host); err != nil {
		return nil, err
	}
	if s.Rate == 0 {
		return nil, s.errorf("rate", "slow-receiver with rate %v, want above 0", s.Rate)
	}
	h, err := e.host(s.Host)
	return sim.SlowReceiver{Host: h, Rate: s.Rate, Buffer: s.Buffer, Priority: s.Priority}, err
}

type hashPolarizationSpec struct{ schedule }

func (s *hashPolarizationSpec) fault(*env) (sim.Fault, error) { return sim.HashPolarization{}, nil }

// slowLinkSpec makes a link slower, or longer.
type slowLinkSpec struct {
	schedule
	Port  ref           `yaml:"port"` // either end of the link
	Rate  model.Rate    `yaml:"rate"`
	Delay time.Duration `yaml:"delay"`
}

func (s *slowLinkSpec) fault(e *env) (sim.Fault, error) {
	if err := s.need("port", s.Port); err != nil {
		return nil, err
	}
	p, err := e.port(s.Port)
	return sim.SlowLink{Port: p, Rate: s.Rate, Delay: s.Delay}, err
}

type slowNICSpec struct {
	schedule
	Host ref        `yaml:"host"`
	Rate model.Rate `yaml:"rate"`
}

func (s *slowNICSpec) fault(e *env) (sim.Fault, error) {
	if err := s.need("host", s.Host); err != nil {
		return nil, err
	}
	h, err := e.host(s.Host)
	return sim.SlowNIC{Host: h, Rate: s.Rate}, err
}

// stragglerSpec slows the computations of a host.
type stragglerSpec struct {
	schedule
	Host   ref           `yaml:"host"`
	Factor float64       `yaml:"factor"`
	Delay  time.Duration `yaml:"delay"`
}

func (s *stragglerSpec) fault(e *env) (sim.Fault, error) {
	if err := s.need("host", s.Host); err != nil {
		return nil, err
	}
	h, err := e.host(s.Host)
	return sim.Straggler{Host: h, Factor: s.Factor, Delay: s.Delay}, err
}

// wrongCounterSpec has a counter count more or less than passed.
type wrongCounterSpec struct {
	schedule
	Port    ref     `yaml:"port"`
	Switch  ref     `yaml:"switch"` // of a flowset
	Counter string  `yaml:"counter"`
	Factor  float64 `yaml:"factor"`
}

func (s *wrongCounterSpec) fault(e *env) (sim.Fault, error) {
	counter, ok := sim.CounterNamed(s.Counter)
	if !ok {
		return nil, s.errorf("counter", "counter %q, want one of %s", s.Counter, strings.Join(sim.CounterNames(), ", "))
	}
	f := sim.Miscount{Counter: counter, Factor: s.Factor}
	var err error
	if counter == sim.FlowsetPackets {
		if err := s.need("switch", s.Switch); err != nil {
			return nil, err
		}
		f.Port.Node, err = e.switchNamed(s.Switch)
		return f, err
	}
	if err := s.need("port", s.Port); err != nil {
		return nil, err
	}
	f.Port, err = e.port(s.Port)
	return f, err
}
