// Package prober makes guided probes at a host: packets with any header, routed
// through chosen switches by nested IP headers, marked so that every switch
// mirrors them, and sent at an interval within a budget. control/probe
// evaluates their traces. Origin: docs/papers.md#everflow. Manual:
// docs/traces.md.
package prober

import (
	"errors"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/inhost"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/probe"
)

// Config is the configuration of one host.
type Config struct {
	Host      model.NodeID // in the stamps
	Mark      uint8        // bits of the DSCP field that switches mirror
	Budget    inhost.Budget
	MaxSeries int // at a time
}

// DefaultConfig probes with at most 100 Mb/s: a thousandth of a port, and ten
// times that of mirrors over five hops.
func DefaultConfig(host model.NodeID) Config {
	return Config{
		Host: host, Mark: 1, Budget: inhost.Budget{Rate: 100 * model.Mbps, Burst: 64 * model.KiB},
		MaxSeries: 256,
	}
}

// Check returns an error for the first invalid field.
func (c *Config) Check() error {
	switch {
	case c.Mark == 0 || c.Mark > 63:
		return fmt.Errorf("prober: mark %#x, want bits of the DSCP field, 0x01 to 0x3f", c.Mark)
	case c.MaxSeries < 1:
		return fmt.Errorf("prober: %d series at a time, want at least 1", c.MaxSeries)
	case c.Budget.Rate < 0:
		return fmt.Errorf("prober: rate %v, want 0 for no bound or more", c.Budget.Rate)
	}
	return nil
}

// Series is a number of probes of one or more patterns in rotation: the n-th
// has the pattern n modulo their number.
type Series struct {
	ID       uint32 // in the stamps
	Patterns []Packet
	Interval time.Duration // between two probes
	Count    uint32        // of probes, all patterns together
}

// ErrFull is returned when a prober has its maximum of series.
var ErrFull = errors.New("prober: too many series")

// Check returns an error for a series that cannot be sent.
func (s *Series) Check() error {
	switch {
	case len(s.Patterns) == 0 || s.Count == 0:
		return fmt.Errorf("prober: series %d of %d probes of %d patterns, want at least one of each", s.ID, s.Count,
			len(s.Patterns))
	case s.Interval <= 0:
		return fmt.Errorf("prober: series %d at an interval of %v, want more than 0", s.ID, s.Interval)
	}
	for i := range s.Patterns {
		if err := s.Patterns[i].Check(); err != nil {
			return err
		}
	}
	return nil
}

// Stats are the prober's counters.
type Stats struct {
	Sent    uint64
	Bytes   model.Bytes // of IP packets
	Delayed uint64      // sent later than due: the budget was spent
}

// Prober sends the series of one host. The host passes the time and asks for
// packets; it allocates nothing per packet.
type Prober struct {
	cfg    Config
	active []activeSeries
	stats  Stats
}

type activeSeries struct {
	Series
	begin  model.Time
	number uint32
	late   bool // the next probe waits for the budget
}

// due returns when the next probe is to be sent. The budget may delay a probe
// but not those after it.
func (r *activeSeries) due() model.Time { return r.begin.Add(time.Duration(r.number) * r.Interval) }

// New returns a prober.
func New(cfg Config) (*Prober, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	return &Prober{cfg: cfg}, nil
}

// Stats returns the current counters.
func (p *Prober) Stats() Stats { return p.stats }

// Start begins a series; the first probe is due at once. It returns an error if
// a series of that number is active. The prober owns the packets until it ends.
func (p *Prober) Start(now model.Time, s Series) error {
	if err := s.Check(); err != nil {
		return err
	}
	for i := range p.active {
		if p.active[i].ID == s.ID {
			return fmt.Errorf("prober: series %d is active, want another number", s.ID)
		}
	}
	if len(p.active) >= p.cfg.MaxSeries {
		return ErrFull
	}
	p.active = append(p.active, activeSeries{Series: s, begin: now})
	return nil
}

// Stop ends a series and reports whether it was active.
func (p *Prober) Stop(id uint32) bool {
	for i := range p.active {
		if p.active[i].ID == id {
			p.active = append(p.active[:i], p.active[i+1:]...)
			return true
		}
	}
	return false
}

// nextDue returns the series whose next probe is due first, of two the older
// one.
func (p *Prober) nextDue() *activeSeries {
	var r *activeSeries
	for i := range p.active {
		if r == nil || p.active[i].due() < r.due() {
			r = &p.active[i]
		}
	}
	return r
}

func (r *activeSeries) packet() *Packet { return &r.Patterns[int(r.number)%len(r.Patterns)] }

// NextSend returns when AppendNext will have a probe to send, from now on;
// false means that all series have ended.
func (p *Prober) NextSend(now model.Time) (model.Time, bool) {
	r := p.nextDue()
	if r == nil {
		return 0, false
	}
	at := max(r.due(), now)
	return at.Add(p.cfg.Budget.Wait(at, model.Bytes(r.packet().Size()))), true
}

// AppendNext appends the bytes of the next IP packet that is due, if there is
// one and the budget allows it. Call it until it returns false.
func (p *Prober) AppendNext(now model.Time, b []byte) ([]byte, bool) {
	r := p.nextDue()
	if r == nil || r.due() > now {
		return b, false
	}
	what := r.packet()
	size := model.Bytes(what.Size())
	if p.cfg.Budget.Wait(now, size) > 0 {
		r.late = true
		return b, false
	}
	p.cfg.Budget.Spend(now, size)
	b = what.AppendTo(b, probe.Stamp{Origin: p.cfg.Host, Series: r.ID, Number: r.number}, p.cfg.Mark)
	p.stats.Sent++
	p.stats.Bytes += size
	if r.late {
		p.stats.Delayed++
		r.late = false
	}
	if r.number++; r.number == r.Count {
		p.Stop(r.ID)
	}
	return b, true
}
