package scenario

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/inswitch/mirror"
	"github.com/weft-telemetry/weft/model"
)

// mirrorSpec runs inswitch/mirror, with one report list per analyzer.
type mirrorSpec struct {
	programHeader
	Flags    bool        `yaml:"flags"`
	Every    int         `yaml:"every"`
	Debug    uint8       `yaml:"debug"`
	Protocol bool        `yaml:"protocol"`
	Rules    []ruleSpec  `yaml:"rules"`
	Truncate int         `yaml:"truncate"`
	Rate     model.Rate  `yaml:"rate"`
	Burst    model.Bytes `yaml:"burst"`
	Lists    uint16      `yaml:"lists"`
}

func defaultMirror() *mirrorSpec {
	c := mirror.DefaultConfig()
	return &mirrorSpec{
		Flags: c.TCPFlags, Every: int(c.SampleOneIn), Debug: c.DebugMask, Protocol: c.Protocol,
		Truncate: c.Truncate, Rate: c.Rate, Burst: c.Burst, Lists: uint16(c.Lists),
	}
}

func (s *mirrorSpec) program(p *Program) error {
	cfg := mirror.DefaultConfig()
	if s.Every < 0 || s.Every > 1<<31 {
		return fmt.Errorf("every %d, want 0 for none or one in up to %d", s.Every, 1<<31)
	}
	cfg.TCPFlags, cfg.SampleOneIn, cfg.DebugMask, cfg.Protocol = s.Flags, uint32(s.Every), s.Debug, s.Protocol
	cfg.Truncate, cfg.Rate, cfg.Burst, cfg.Lists = s.Truncate, s.Rate, s.Burst, uint32(s.Lists)
	for i := range s.Rules {
		rule, err := s.Rules[i].rule()
		if err != nil {
			return fmt.Errorf("rule %d: %w", i+1, err)
		}
		cfg.Rules = append(cfg.Rules, rule)
	}
	p.Lists = int(s.Lists)
	p.New = func(dev inswitch.Device, g ProgramInputs) (inswitch.Program, error) {
		// Not the seed of g, which differs between switches: all switches
		// select the same packets.
		cfg := cfg
		cfg.List = g.List
		if g.MaxLists > 0 {
			cfg.Lists = min(cfg.Lists, uint32(g.MaxLists))
		}
		return mirror.New(dev, cfg)
	}
	return cfg.Check()
}

// ruleSpec is a mirror.Rule, with values as SONiC writes them.
type ruleSpec struct {
	Name      string `yaml:"name"`
	Priority  int    `yaml:"priority"`
	Outer     bool   `yaml:"outer"`
	EtherType string `yaml:"ether-type"`
	VLAN      string `yaml:"vlan"`
	Src       string `yaml:"src"`
	Dst       string `yaml:"dst"`
	Proto     string `yaml:"proto"`
	SrcPorts  string `yaml:"src-ports"`
	DstPorts  string `yaml:"dst-ports"`
	TCPFlags  string `yaml:"tcp-flags"`
	ICMPType  string `yaml:"icmp-type"`
	ICMPCode  string `yaml:"icmp-code"`
	DSCP      string `yaml:"dscp"`
	InPorts   []int  `yaml:"in-ports"`
	Every     int    `yaml:"every"`
	Skip      bool   `yaml:"skip"`
}

func (s *ruleSpec) rule() (r mirror.Rule, err error) {
	r = mirror.Rule{Name: s.Name, Priority: s.Priority, Outer: s.Outer, OneIn: uint32(s.Every), Skip: s.Skip}
	if s.Every < 0 || s.Every > 1<<31 {
		return r, fmt.Errorf("every %d, want one in up to %d", s.Every, 1<<31)
	}
	for _, one := range s.InPorts {
		if one < 1 || one > 1<<16-1 {
			return r, fmt.Errorf("in port %d, want 1 to %d", one, 1<<16-1)
		}
		r.InPorts = append(r.InPorts, model.PortID(one))
	}
	for _, field := range []struct {
		name, text, want string
		read             func(text string) error
	}{
		{"ether-type", s.EtherType, "a number such as 0x0800", func(t string) error {
			return readNumber(t, 16,
				&r.EtherType)
		}},
		{"vlan", s.VLAN, "a number such as 12", func(t string) error { return readNumber(t, 16, &r.VLAN) }},
		{"icmp-type", s.ICMPType, "a number from 0 to 255", func(t string) error { return readOctet(t, &r.ICMPType) }},
		{"icmp-code", s.ICMPCode, "a number from 0 to 255", func(t string) error { return readOctet(t, &r.ICMPCode) }},
		{"src", s.Src, "a prefix such as 10.0.0.0/8", func(t string) error { return readPrefix(t, &r.Src) }},
		{"dst", s.Dst, "a prefix such as 10.0.0.0/8", func(t string) error { return readPrefix(t, &r.Dst) }},
		{"proto", s.Proto, "a protocol such as tcp or 17", func(t string) (err error) {
			r.Proto,
				err = model.ParseProto(t)
			return err
		}},
		{
			"src-ports", s.SrcPorts, "a port or a range such as 80-90",
			func(t string) error { return readRange(t, &r.SrcPorts) },
		},
		{
			"dst-ports", s.DstPorts, "a port or a range such as 80-90",
			func(t string) error { return readRange(t, &r.DstPorts) },
		},
		{
			"tcp-flags", s.TCPFlags, "a value and a mask such as 0x02/0x12",
			func(t string) error { return readMasked(t, 0xff, &r.TCPFlags, &r.TCPMask) },
		},
		{
			"dscp", s.DSCP, "a value, perhaps with a mask, such as 26 or 0x01/0x01",
			func(t string) error { return readMasked(t, 0x3f, &r.DSCP, &r.DSCPMask) },
		},
	} {
		if field.text != "" && field.read(field.text) != nil {
			return r, fmt.Errorf("%s %q, want %s", field.name, field.text, field.want)
		}
	}
	return r, r.Check()
}

func readNumber[T uint8 | uint16](s string, bits int, into *T) error {
	n, err := strconv.ParseUint(s, 0, bits)
	*into = T(n)
	return err
}

func readOctet(s string, into *mirror.OptionalByte) error {
	into.Set = true
	return readNumber(s, 8, &into.Value)
}

// readPrefix reads a prefix, or an address as a host prefix.
func readPrefix(s string, into *netip.Prefix) error {
	if a, err := netip.ParseAddr(s); err == nil {
		*into = netip.PrefixFrom(a, a.BitLen())
		return nil
	}
	p, err := netip.ParsePrefix(s)
	*into = p
	return err
}

func readRange(s string, into *mirror.PortRange) error {
	lo, hi, found := strings.Cut(s, "-")
	if !found {
		hi = lo
	}
	if err := readNumber(lo, 16, &into.Lo); err != nil {
		return err
	}
	return readNumber(hi, 16, &into.Hi)
}

func readMasked(s string, all uint8, value, mask *uint8) error {
	v, m, found := strings.Cut(s, "/")
	*mask = all
	if found {
		if err := readNumber(m, 8, mask); err != nil {
			return err
		}
	}
	return readNumber(v, 8, value)
}
