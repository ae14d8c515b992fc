package lateness

import (
	"cmp"
	"slices"

	"github.com/weft-telemetry/weft/sim/engine"
)

// contention is what is owed to the packets of a queue, in units: directly to
// parties, and as a density over the transmission times of records.
type contention struct {
	parties map[int32]uint64
	changes []change
}

type change struct {
	record int
	by     int64
}

func (c *contention) give(party int32, amount uint64) {
	if amount == 0 {
		return
	}
	if c.parties == nil {
		c.parties = map[int32]uint64{}
	}
	c.parties[party] += amount
}

// add owes an amount to the packets that are ahead in the queue without pauses;
// if there are none, to those that wait.
func (c *contention) add(k *cause, amount uint64) {
	if amount == 0 {
		return
	}
	q, from, to := k.queue, k.backlog.from, k.backlog.to
	if k.backlog.unpaused <= 0 {
		from = k.first
	}
	c.spread(q, from, to, k.backlog.unpaused, amount)
}

// spread owes an amount to the records from..to of a queue by their transmission
// times, of which total is left in all; 0: all of it.
func (c *contention) spread(q *queue, from, to int, total engine.Time, amount uint64) {
	last, first := q.at(to-1), q.at(from)
	rest := last.work - first.work // without the first
	if total <= 0 {
		total = rest + first.onWire
	}
	left := total - rest
	if left < 0 || left > first.onWire || total <= 0 {
		c.give(last.party, amount) // sizes changed in the queue
		return
	}
	density := amount / uint64(total)
	c.give(last.party, amount-density*uint64(total))
	c.give(first.party, density*uint64(left))
	if from+1 < to && density > 0 {
		c.changes = append(c.changes, change{from + 1, int64(density)}, change{to, -int64(density)})
	}
}

// resolve returns what is owed to each party.
func (c *contention) resolve(q *queue) map[int32]uint64 {
	slices.SortFunc(c.changes, func(a, b change) int { return cmp.Compare(a.record, b.record) })
	density := int64(0)
	for i, x := range c.changes {
		density += x.by
		if density == 0 || i+1 == len(c.changes) {
			continue
		}
		for k := x.record; k < c.changes[i+1].record; k++ {
			r := q.at(k)
			c.give(r.party, uint64(density)*uint64(r.onWire))
		}
	}
	c.changes = nil
	return c.parties
}
