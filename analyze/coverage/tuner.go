package coverage

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// TunerConfig says when ports should label more often.
type TunerConfig struct {
	Interval time.Duration // T of the switches
	// Patience is k: a port without a label for k·T labels more often from then
	// on. It is also how long a change is given to take effect.
	Patience int
	// FreshPeriods is for how many times k·T a port must have been fresh before
	// it labels less often again, so that it does not oscillate.
	FreshPeriods int
	MaxShift     uint8
	// Aging selects the AgingDatabase, the method of the paper's prototype, in place of the Tuner.
	Aging bool
}

// DefaultTunerConfig waits for two intervals and steps back after four fresh periods.
func DefaultTunerConfig(interval time.Duration) TunerConfig {
	return TunerConfig{Interval: interval, Patience: 2, FreshPeriods: 4, MaxShift: 6}
}

// IntervalCommand sets how often a port labels: 2^Shift times per interval. It
// holds the whole setting, not a change, so it may be lost, repeated or overtaken
// by an equal one without harm.
type IntervalCommand struct {
	Port  model.Port
	Shift uint8
}

// Tuner is the controller's half of adaptive labelling, the paper's Algorithm
// 3 for all ports at once. Departures: a shift falls only after FreshPeriods, and
// every setting but 0 is sent again in every period, and 0 three times after a
// fall, so that a lost command is repaired.
type Tuner struct {
	cfg     TunerConfig
	ports   map[model.Port]*setting
	next    model.Time
	started bool
}

type setting struct {
	shift  uint8
	fresh  int
	repeat int // periods in which a setting of 0 must still be sent
}

// NewTuner returns a tuner that has changed nothing.
func NewTuner(cfg TunerConfig) (*Tuner, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	return &Tuner{cfg: cfg, ports: map[model.Port]*setting{}}, nil
}

func (c *TunerConfig) check() error {
	if c.Interval <= 0 || c.Patience < 1 || c.FreshPeriods < 1 {
		return fmt.Errorf("coverage: interval %v, patience %d, fresh periods %d; want all above 0",
			c.Interval, c.Patience, c.FreshPeriods)
	}
	return nil
}

// Step checks the ports that carry traffic, at most once in every k·T, and
// returns the commands to send, by port. A port without traffic keeps its
// setting: no packet would carry its labels however often it labelled.
func (t *Tuner) Step(now model.Time, b *PortStates, active []model.Port) (commands []IntervalCommand) {
	period := t.cfg.period()
	if !t.started {
		t.started, t.next = true, now.Add(period)
	}
	if now < t.next {
		return nil
	}
	t.next = now.Add(period)
	for _, p := range active {
		s := t.ports[p]
		if s == nil {
			s = &setting{}
			t.ports[p] = s
		}
		if age, ok := b.Age(p, now); !ok || age > period {
			s.fresh = 0
			s.shift = min(s.shift+1, t.cfg.MaxShift)
		} else if s.fresh++; s.fresh >= t.cfg.FreshPeriods && s.shift > 0 {
			s.fresh = 0
			s.shift--
			s.repeat = 3
		}
	}
	for p, s := range t.ports {
		if s.shift == 0 {
			if s.repeat == 0 {
				continue
			}
			s.repeat--
		}
		commands = append(commands, IntervalCommand{p, s.shift})
	}
	return sortCommands(commands)
}

// sortCommands sorts commands by port: maps have them in any order.
func sortCommands(commands []IntervalCommand) []IntervalCommand {
	slices.SortFunc(commands, func(a, b IntervalCommand) int { return a.Port.Compare(b.Port) })
	return commands
}
