package hpcc

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/traffic"
)

// singleValue returns a key's only value.
func singleValue(values []string, want string) (string, error) {
	switch len(values) {
	case 0:
		return "", fmt.Errorf("has no value, want %s", want)
	case 1:
		return values[0], nil
	}
	return "", fmt.Errorf("%s has %d values, want one: %s", strings.Join(values, " "), len(values), want)
}

func path(at func(*Config) *string) func(*Config, []string) error {
	return func(c *Config, values []string) error {
		v, err := singleValue(values, "a file name")
		*at(c) = v
		return err
	}
}

func flag(at func(*Config) *bool) func(*Config, []string) error {
	return whole(0, 1, func(c *Config, n uint64) { *at(c) = n == 1 })
}

// whole reads a whole number.
func whole(least, most uint64, set func(*Config, uint64)) func(*Config, []string) error {
	return func(c *Config, values []string) error {
		want := fmt.Sprintf("a whole number from %d to %d", least, most)
		v, err := singleValue(values, want)
		if err != nil {
			return err
		}
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil || n < least || n > most {
			return fmt.Errorf("%q, want %s", v, want)
		}
		set(c, n)
		return nil
	}
}

// decimal reads a number above 0, or from 0 on, and not above most.
func decimal(values []string, zero bool, most float64) (float64, error) {
	want := fmt.Sprintf("a number above 0 and at most %v", most)
	if zero {
		want = fmt.Sprintf("a number from 0 to %v", most)
	}
	v, err := singleValue(values, want)
	if err != nil {
		return 0, err
	}
	x, err := strconv.ParseFloat(v, 64)
	if err != nil || !(x >= 0 && x <= most) || x == 0 && !zero {
		return 0, fmt.Errorf("%q, want %s", v, want)
	}
	return math.Abs(x), nil // -0 is 0
}

func share(zero bool, at func(*Config) *float64) func(*Config, []string) error {
	return func(c *Config, values []string) (err error) {
		*at(c), err = decimal(values, zero, 1)
		return err
	}
}

// micros reads a time in microseconds, at most an hour.
func micros(at func(*Config) *time.Duration) func(*Config, []string) error {
	return func(c *Config, values []string) error {
		x, err := decimal(values, false, time.Hour.Seconds()*1e6)
		*at(c) = max(1, time.Duration(math.Round(x*1e3)))
		return err
	}
}

// timer reads a time in microseconds. The original truncates a fraction.
func timer(at func(*Config) *time.Duration) func(*Config, []string) error {
	return func(c *Config, values []string) error {
		x, err := decimal(values, false, time.Hour.Seconds()*1e6)
		if err == nil && x < 1 {
			return fmt.Errorf("%s, want at least 1: the original uses whole microseconds", values[0])
		}
		*at(c) = time.Duration(x) * time.Microsecond
		return err
	}
}

func seconds(at func(*Config) *model.Time) func(*Config, []string) error {
	return func(c *Config, values []string) error {
		x, err := decimal(values, false, float64(traffic.MaxTime)/1e9)
		*at(c) = max(1, model.Time(math.Round(x*1e9)))
		return err
	}
}

func rate(least model.Rate, at func(*Config) *model.Rate) func(*Config, []string) error {
	return func(c *Config, values []string) error {
		v, err := singleValue(values, "a rate such as 50Mb/s")
		if err != nil {
			return err
		}
		r, err := parseRate(v)
		if err != nil {
			return err
		}
		if r < least {
			return fmt.Errorf("%q, want at least %v", v, least)
		}
		*at(c) = r
		return nil
	}
}

// parseRate reads a rate as the original does: there a capital B means bytes,
// which is never intended.
func parseRate(v string) (model.Rate, error) {
	if strings.Contains(v, "B") {
		return 0, fmt.Errorf("%q counts bytes, want bits such as 50Mb/s", v)
	}
	return model.ParseRate(v)
}

// pairs reads a count and as many pairs of a port rate and a value.
func pairs(values []string, set func(r model.Rate, v string) error) error {
	if len(values) == 0 {
		return errors.New("has no value, want a count, then a rate and a value for each")
	}
	n, err := strconv.ParseUint(values[0], 10, 16)
	if err != nil || len(values) != 1+2*int(n) {
		return fmt.Errorf("%q and %d words after it, want a count and as many pairs of rate and value", values[0],
			len(values)-1)
	}
	for i := 1; i < len(values); i += 2 {
		r, err := parseRate(values[i])
		if err != nil {
			return err
		}
		if err := set(r, values[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// depths reads queue depths in KB by port rate.
func depths(at func(*Config) *map[model.Rate]model.Bytes) func(*Config, []string) error {
	return func(c *Config, values []string) error {
		m := make(map[model.Rate]model.Bytes)
		*at(c) = m
		return pairs(values, func(r model.Rate, v string) error {
			n, err := strconv.ParseUint(v, 10, 32)
			if err != nil {
				return fmt.Errorf("%q for %v, want a whole number of KB", v, r)
			}
			m[r] = model.Bytes(n) * model.KB
			return nil
		})
	}
}

func setPmax(c *Config, values []string) error {
	c.Pmax = make(map[model.Rate]float64)
	return pairs(values, func(r model.Rate, v string) error {
		p, err := decimal([]string{v}, true, 1)
		c.Pmax[r] = p
		return err
	})
}

// nodes reads a count and as many node ids. All such keys are of the fork.
func nodes(at func(*Config) *[]model.NodeID) func(*Config, []string) error {
	return hawkeyeOnly(func(c *Config, values []string) error {
		if len(values) == 0 {
			return errors.New("has no value, want a count, then as many node ids")
		}
		n, err := strconv.ParseUint(values[0], 10, 32)
		if err != nil || uint64(len(values)) != 1+n {
			return fmt.Errorf("%q and %d words after it, want a count and as many node ids", values[0], len(values)-1)
		}
		ids, err := parseNodes(values[1:])
		*at(c) = ids
		return err
	})
}

func parseNodes(words []string) (ids []model.NodeID, err error) {
	for _, w := range words {
		id, err := strconv.ParseUint(w, 10, 16)
		if err != nil {
			return nil, fmt.Errorf("node %q, want an id from 0 to %d", w, math.MaxUint16)
		}
		ids = append(ids, model.NodeID(id))
	}
	return ids, nil
}

// hawkeyeOnly marks a key of Hawkeye's fork.
func hawkeyeOnly(set func(*Config, []string) error) func(*Config, []string) error {
	return func(c *Config, values []string) error {
		c.Hawkeye = true
		return set(c, values)
	}
}

func setMode(c *Config, values []string) error {
	err := whole(0, math.MaxUint16, func(c *Config, n uint64) { c.Mode = Mode(n) })(c, values)
	if _, known := modeNames[c.Mode]; err == nil && !known {
		return fmt.Errorf("%d, want 1 (DCQCN), 0 (none), 3 (HPCC), 7 (TIMELY), 8 (DCTCP) or 10 (HPCC-PINT)", int(c.Mode))
	}
	return err
}

// setPauseTime checks a time without using it: a pause lasts until it is
// resumed. A pause of no time would be a resume.
func setPauseTime(_ *Config, values []string) error {
	_, err := decimal(values, false, math.MaxUint32)
	return err
}

func setLinkDown(c *Config, values []string) error {
	if len(values) != 3 {
		return fmt.Errorf("has %d values, want three: microseconds after 2 s and the two nodes", len(values))
	}
	us, err := strconv.ParseUint(values[0], 10, 64)
	if most := uint64(traffic.MaxTime) / 1e4; err != nil || us > most {
		return fmt.Errorf("time %q, want microseconds from 0 to %d", values[0], most)
	}
	ends, err := parseNodes(values[1:])
	if err != nil {
		return err
	}
	c.Down = LinkDown{After: time.Duration(us) * time.Microsecond, A: ends[0], B: ends[1]}
	return nil
}
