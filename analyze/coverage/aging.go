package coverage

import (
	"time"

	"github.com/weft-telemetry/weft/model"
)

// AgingDatabase is the controller's half of adaptive labelling as the paper's prototype has
// it (section 5), beside the Tuner, which is Algorithm 3. A port without a label for k·T
// gets an entry that times out after k·T, and labels at the highest rate meanwhile, where
// the prototype labels every packet. At the time-out the entry is deleted and the port
// labels once per T again, or is refreshed if there still was no label.
// Departure: a refresh repeats the command, since commands may be lost.
type AgingDatabase struct {
	cfg     TunerConfig
	present map[model.Port]model.Time // when a port was first active
	entries map[model.Port]model.Time // when an entry times out
	lowered map[model.Port]model.Time // the end of an entry, whose command is sent once more
}

// NewAgingDatabase returns a database without entries. FreshPeriods are not used.
func NewAgingDatabase(cfg TunerConfig) (*AgingDatabase, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	return &AgingDatabase{
		cfg: cfg, present: map[model.Port]model.Time{}, entries: map[model.Port]model.Time{},
		lowered: map[model.Port]model.Time{},
	}, nil
}

// Step ends the time-outs that are over, inserts entries of active ports without labels, and
// returns the commands to send, by port. Time-outs are as accurate as calls are frequent.
func (a *AgingDatabase) Step(now model.Time, b *PortStates, active []model.Port) (commands []IntervalCommand) {
	period := a.cfg.period()
	for p, end := range a.entries {
		if now < end {
			continue
		}
		if a.silent(p, now, b) {
			a.entries[p] = now.Add(period)
			commands = append(commands, IntervalCommand{p, a.cfg.MaxShift})
			continue
		}
		delete(a.entries, p)
		a.lowered[p] = now.Add(period)
		commands = append(commands, IntervalCommand{p, 0})
	}
	for p, again := range a.lowered {
		if _, raised := a.entries[p]; raised {
			delete(a.lowered, p)
		} else if now >= again {
			delete(a.lowered, p)
			commands = append(commands, IntervalCommand{p, 0})
		}
	}
	for _, p := range active {
		if _, known := a.present[p]; !known {
			a.present[p] = now
		}
		if _, waits := a.entries[p]; !waits && a.silent(p, now, b) {
			a.entries[p] = now.Add(period)
			commands = append(commands, IntervalCommand{p, a.cfg.MaxShift})
		}
	}
	return sortCommands(commands)
}

// silent reports whether a port had no label for k·T, although it had that long for one.
func (a *AgingDatabase) silent(p model.Port, now model.Time, b *PortStates) bool {
	if age, ok := b.Age(p, now); ok {
		return age > a.cfg.period()
	}
	return now.Sub(a.present[p]) > a.cfg.period()
}

// period is k·T.
func (c *TunerConfig) period() time.Duration { return time.Duration(c.Patience) * c.Interval }
