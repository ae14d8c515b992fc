package translate

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/collect/slothash"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// HeavyKeys is a standing query on Key-Increments: report every key whose sum over all
// reporters reaches a bound within a period, once a period and as soon as it does.
// The answers are Match entries without a path, and the collector's program is
// notified of each.
//
// Paper: section 4 names the discovery of network-wide heavy hitters at the translator as
// an extension, without a design.
type HeavyKeys struct {
	Above  uint64        // the least sum that is reported, at least 1
	Period time.Duration // after which sums begin at zero
	List   dta.ListID    // with entries of at least MatchSize(0) bytes
}

// Sizes of a query's memory, 1.5 MiB. The sketch counts no key too low, and too high by more than
// 0.0083 % of what all keys have in a period with a probability of e^-4 at most; the
// table holds the keys that were reported, of which there are no more than the
// sum of all keys divided by the bound.
const (
	heavyCells  = 1 << 17
	heavyCopies = 4
	heavyTable  = 1 << 16
)

// Check returns an error for a list that cannot hold the answers.
func (q HeavyKeys) Check(plan *Plan) error {
	if q.Above < 1 || q.Period <= 0 {
		return fmt.Errorf("translate: heavy keys from %d on in %v, want at least 1 and a period", q.Above, q.Period)
	}
	if plan.Counts == nil {
		return fmt.Errorf("translate: heavy keys need memory for counters")
	}
	i, id := plan.listIndex(q.List)
	if i < 0 {
		return fmt.Errorf("translate: heavy keys go to list %d, which does not exist", q.List)
	}
	if class, _ := plan.Lists[i].Class(id); class.Entry < MatchSize(0) {
		return fmt.Errorf("translate: heavy keys go to list %d with entries of %d bytes, want at least %d", q.List, class.Entry, MatchSize(0))
	}
	return nil
}

// heavySums are the sums of one HeavyKeys query in the current period.
type heavySums struct {
	HeavyKeys
	cells    []uint64
	reported []uint64 // fingerprints of keys, open addressing; 0 is free
	used     int
	began    model.Time
}

func newHeavySums(q HeavyKeys) heavySums {
	return heavySums{HeavyKeys: q, cells: make([]uint64, heavyCells), reported: make([]uint64, heavyTable)}
}

// add adds to a key's sum. It returns the sum, and whether the key is to be reported;
// full means that it is and cannot be remembered.
func (h *heavySums) add(now model.Time, key []byte, delta uint64) (sum uint64, report, full bool) {
	if passed := now.Sub(h.began); passed >= h.Period || passed < 0 {
		clear(h.cells)
		clear(h.reported)
		h.used, h.began = 0, now
	}
	hash := slothash.HashKey(key, 0)
	sum = ^uint64(0)
	for n := range heavyCopies {
		c := &h.cells[hash.Cell(n, heavyCells)]
		*c += delta
		sum = min(sum, *c)
	}
	if sum < h.Above {
		return sum, false, false
	}
	mark := hash.Checksum().Bits(^uint64(0))
	for i := mark % heavyTable; ; i = (i + 1) % heavyTable {
		switch {
		case h.reported[i] == mark:
			return sum, false, false
		case h.reported[i] != 0:
		case h.used == heavyTable*3/4:
			return sum, false, true
		default:
			h.reported[i] = mark
			h.used++
			return sum, true, false
		}
	}
}

// checkHeavy lets the queries see a Key-Increment.
func (t *Translator) checkHeavy(now model.Time, r *dta.Report) {
	for i := range t.heavy {
		h := &t.heavy[i]
		sum, report, full := h.add(now, r.Key, r.Delta)
		if full {
			t.stats.HeavyUnreported++
		}
		if report {
			t.stats.Heavy++
			t.match = Match{Key: r.Key, Sum: sum}.AppendTo(t.match[:0])
			t.addEntry(now, h.List, t.match, true)
		}
	}
}
