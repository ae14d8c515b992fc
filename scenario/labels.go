package scenario

import (
	"strings"
	"time"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/inswitch/label"
)

// labelSpec runs inswitch/label.
type labelSpec struct {
	placement
	Interval time.Duration `yaml:"interval"`
	Rest     time.Duration `yaml:"rest"`
	Odds     labelOdds     `yaml:"odds"`
	MaxHop   uint8         `yaml:"max-hop"`
}

func defaultLabelSpec() *labelSpec {
	c := label.DefaultConfig()
	return &labelSpec{Interval: c.Interval, Rest: c.Rest, Odds: labelOdds{func(int) label.Odds { return c.Odds }}, MaxHop: c.MaxHop}
}

func (s *labelSpec) program(*env) (func(inswitch.Device, uint64) (inswitch.Program, error), error) {
	cfg := label.DefaultConfig()
	cfg.Interval, cfg.Rest, cfg.MaxHop = s.Interval, s.Rest, s.MaxHop
	if err := cfg.Check(); err != nil {
		return nil, s.errorf("", "%s", trimRoom(err))
	}
	cfg.Odds = s.Odds.of(int(s.MaxHop))
	return func(dev inswitch.Device, seed uint64) (inswitch.Program, error) {
		cfg := cfg
		cfg.Seed = seed
		return label.New(cfg, dev)
	}, nil
}

// labelOdds are "always", "linear", "timed" (the paper's F1, F2 and F3), or a
// list of shares for 0, 1, 2 … labels.
type labelOdds struct{ of func(maxHop int) label.Odds }

func (p *labelOdds) decode(v value, what string) error {
	if name, err := v.text(what); err == nil {
		switch strings.ToLower(name) {
		case "always":
			p.of = func(int) label.Odds { return label.Always() }
		case "linear":
			p.of = label.Linear
		case "timed":
			p.of = func(maxHop int) label.Odds { return label.Timed(label.Linear(maxHop)) }
		default:
			return v.errorf("%s %q, want always, linear, timed or a list of shares", what, name)
		}
		return nil
	}
	var shares []share
	if err := decode(v, &shares, what); err != nil {
		return err
	}
	list := make([]float64, len(shares))
	for i, s := range shares {
		list[i] = float64(s)
	}
	odds, err := label.Table(list...)
	if err != nil {
		return v.errorf("%s: %s", what, trimRoom(err))
	}
	p.of = func(int) label.Odds { return odds }
	return nil
}
