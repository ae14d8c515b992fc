// Package reading turns the totals that switches export into readings of
// intervals. It notices restarts, cleared counters and values that no link could
// have counted, and makes no reading of them. All sources of counters share it.
package reading

import (
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
)

// Outcome is the fate of totals.
type Outcome uint8

// Outcomes.
const (
	Baseline    Outcome = iota // the first of a port: readings begin with the next
	Made                       // a reading
	Late                       // not newer than those before
	Reset                      // lower than those before: a restart, or cleared counters
	Implausible                // more than the link carries in the interval
	outcomes
)

// Stats are the totals of a Tracker by outcome.
type Stats [outcomes]uint64

// Tracker holds the newest totals of ports. It is for one goroutine. Its user asks
// it about ports of the topology alone, which bounds it.
type Tracker struct {
	source portstat.Source
	rate   func(model.Port) model.Rate
	ports  map[model.Port]*totals
	stats  Stats
}

type totals struct {
	at       model.Time
	counters portstat.Counters
}

// NewTracker makes a tracker of a source. rate returns the rate of a port's link; 0:
// not known, and nothing is implausible.
func NewTracker(source portstat.Source, rate func(model.Port) model.Rate) *Tracker {
	return &Tracker{source: source, rate: rate, ports: map[model.Port]*totals{}}
}

// Add takes totals that a port had at a time of the switch's clock. If they make a
// reading, r has it.
func (t *Tracker) Add(p model.Port, at model.Time, now *portstat.Counters, r *portstat.Reading) Outcome {
	o := t.add(p, at, now, r)
	t.stats[o]++
	return o
}

func (t *Tracker) add(p model.Port, at model.Time, now *portstat.Counters, r *portstat.Reading) Outcome {
	old := t.ports[p]
	if old == nil {
		t.ports[p] = &totals{at, *now}
		return Baseline
	}
	if at <= old.at {
		return Late
	}
	*r = portstat.Reading{Port: p, From: old.at, To: at, Source: t.source}
	err := r.Since(&old.counters, now)
	old.at, old.counters = at, *now
	switch {
	case err != nil:
		return Reset
	case !t.plausible(r):
		*r = portstat.Reading{}
		return Implausible
	}
	return Made
}

// Forget drops the totals of a port: the next are a baseline.
func (t *Tracker) Forget(p model.Port) { delete(t.ports, p) }

// Stats returns the current counters.
func (t *Tracker) Stats() Stats { return t.stats }

// tolerance is by how much the instants of two totals may be wrong together: agents read
// counters up to a second before they send them.
const tolerance = 2 * time.Second

// minFrame is the shortest frame on a wire, with preamble and gap.
const minFrame = 84

// plausible reports whether the port's link can have carried what a reading has, and
// cuts paused times to the interval: they cannot be longer, but their instants are
// not exact.
func (t *Tracker) plausible(r *portstat.Reading) bool {
	interval := r.Interval()
	for i := range r.Class {
		c := &r.Class[i]
		if c.RxPaused > interval+tolerance || c.TxPaused > interval+tolerance {
			return false
		}
		c.RxPaused, c.TxPaused = min(c.RxPaused, interval), min(c.TxPaused, interval)
	}
	rate := t.rate(r.Port)
	if rate <= 0 {
		return true
	}
	most := float64(rate) / 8 * (interval + tolerance).Seconds()
	bytes, packets := uint64(most), uint64(most/minFrame)
	for _, n := range [...]uint64{r.RxBytes, r.TxBytes} {
		if n > bytes {
			return false
		}
	}
	// More packets than fit are dropped only where several ports send to one: as many
	// as the largest switches have.
	for _, n := range [...]uint64{r.RxPackets, r.TxPackets, r.RxErrors, r.TxErrors, r.FCSErrors, r.RxDiscards, r.TxDiscards / maxFanIn} {
		if n > packets {
			return false
		}
	}
	return true
}

// maxFanIn is how many ports may send to one.
const maxFanIn = 1024
