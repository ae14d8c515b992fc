// Package marker sets the debug bit in packets that a host sends and a rule
// matches, so that every switch on their path mirrors them. control decides
// which hosts mark what. Origin: docs/papers.md#everflow. Manual:
// docs/traces.md.
package marker

import (
	"fmt"
	"slices"

	"github.com/weft-telemetry/weft/inhost"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/packet"
)

// Config is the configuration of one host.
type Config struct {
	Mark   uint8         // bits of the DSCP field that switches mirror
	Budget inhost.Budget // of marked frames
}

// DefaultConfig marks at most 1 Gb/s: each switch on the path sends about a
// tenth of that as mirrors, if packets are long.
func DefaultConfig() Config {
	return Config{Mark: 1, Budget: inhost.Budget{Rate: model.Gbps, Burst: 256 * model.KiB}}
}

// Check returns an error for the first invalid field.
func (c *Config) Check() error {
	if c.Mark == 0 || c.Mark > 63 {
		return fmt.Errorf("marker: mark %#x, want bits of the DSCP field, 0x01 to 0x3f", c.Mark)
	}
	return nil
}

// Rule marks the packets that Match accepts. Match must not keep the parsed
// frame.
type Rule struct {
	Name  string
	Match func(p *packet.Packet) bool
}

// Stats are the marker's counters, in frames.
type Stats struct {
	Seen        uint64 // while there were rules
	Marked      uint64
	RateLimited uint64 // matched, but not marked: the budget was spent
}

// Marker marks the packets of one host.
type Marker struct {
	cfg    Config
	rules  []Rule
	parsed packet.Packet
	stats  Stats
}

// New returns a marker without rules.
func New(cfg Config) (*Marker, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	return &Marker{cfg: cfg}, nil
}

// Enable adds a rule, replacing one of the same name.
func (m *Marker) Enable(r Rule) error {
	if r.Match == nil {
		return fmt.Errorf("marker: rule %q matches nothing, want a Match", r.Name)
	}
	m.Disable(r.Name)
	m.rules = append(m.rules, r)
	return nil
}

// Disable removes a rule and reports whether there was one.
func (m *Marker) Disable(name string) bool {
	before := len(m.rules)
	m.rules = slices.DeleteFunc(m.rules, func(r Rule) bool { return r.Name == name })
	return len(m.rules) < before
}

// HasRules reports whether there are rules: without any, Mark need not be
// called.
func (m *Marker) HasRules() bool { return len(m.rules) > 0 }

// Stats returns the current counters.
func (m *Marker) Stats() Stats { return m.stats }

// Mark returns the bits to set in the DSCP field of an outgoing frame that
// starts with head. It allocates nothing.
func (m *Marker) Mark(now model.Time, head []byte, size model.Bytes) uint8 {
	m.stats.Seen++
	if m.parsed.Parse(head) != nil || m.parsed.Depth == 0 {
		return 0
	}
	for i := range m.rules {
		if !m.rules[i].Match(&m.parsed) {
			continue
		}
		if m.cfg.Budget.Wait(now, size) > 0 {
			m.stats.RateLimited++
			return 0
		}
		m.cfg.Budget.Spend(now, size)
		m.stats.Marked++
		return m.cfg.Mark
	}
	return 0
}
