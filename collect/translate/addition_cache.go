package translate

import (
	"bytes"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/collect/slothash"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// additionCache adds up Key-Increments of a key before they are written, so that keys
// that many switches report cost few operations on the collector's memory. A row holds
// one key; another key of the row, or the end of its wait, writes it.
//
// Paper: section 4 names aggregation of counters at the translator as an extension.
type additionCache struct {
	rows []pendingAddition
	wait time.Duration
}

type pendingAddition struct {
	key   [dta.MaxKey]byte
	len   uint8 // 0: the row is free
	r     dta.Report
	since model.Time
}

func newAdditionCache(rows int, wait time.Duration) (additionCache, error) {
	if rows < 0 || wait < 0 {
		return additionCache{}, fmt.Errorf("translate: %d rows for additions that wait %v, want at least 0", rows, wait)
	}
	return additionCache{make([]pendingAddition, rows), wait}, nil
}

// add adds a report to its row. write is called with what leaves the cache, and must not keep it.
func (c *additionCache) add(now model.Time, r *dta.Report, write func(*dta.Report)) {
	row := &c.rows[slothash.HashKey(r.Key, 0).Slot(0, uint64(len(c.rows)))]
	if row.len > 0 && row.r.Redundancy == r.Redundancy && bytes.Equal(row.key[:row.len], r.Key) {
		row.r.Delta += r.Delta
	} else {
		row.flush(write)
		row.len = uint8(copy(row.key[:], r.Key))
		row.r, row.since = *r, now
		row.r.Data = nil
	}
	if r.Immediate {
		row.r.Immediate = true
		row.flush(write)
	}
}

// flush writes a row, if it has a key.
func (p *pendingAddition) flush(write func(*dta.Report)) {
	if p.len > 0 {
		p.r.Key = p.key[:p.len]
		write(&p.r)
		p.len = 0
	}
}

// flushExpired writes rows whose wait is over, and those from the future: the clock
// was set.
func (c *additionCache) flushExpired(now model.Time, write func(*dta.Report)) {
	for i := range c.rows {
		if p := &c.rows[i]; p.len > 0 && (now.Sub(p.since) >= c.wait || p.since.Sub(now) > time.Second) {
			p.flush(write)
		}
	}
}

// flushAll writes all rows.
func (c *additionCache) flushAll(write func(*dta.Report)) {
	for i := range c.rows {
		c.rows[i].flush(write)
	}
}
