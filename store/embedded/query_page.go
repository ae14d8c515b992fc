package embedded

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
	"github.com/weft-telemetry/weft/store/recent"
)

// pageWalk collects one page of records.
type pageWalk[T any] struct {
	*Store
	*table[T]
	asked record.Query
	limit int
	page  record.Page[T]
	bytes int
	last  recent.Position // of the last item
	bound int64           // the highest sequence number of the walk
}

// startAt returns the position where the page starts, and sets the bound of the
// walk.
func (w *pageWalk[T]) startAt() (before recent.Position, err error) {
	w.bound = w.committedSeq.Load()
	if w.asked.After == "" {
		return recent.Position{Time: math.MaxInt64, Seq: math.MaxInt64}, nil
	}
	from, err := store.Unseal(w.key, w.kind, w.asked)
	w.bound = from.Bound
	return recent.Position{Time: from.Time, Seq: from.Seq}, err
}

func (w *pageWalk[T]) collect(ctx context.Context, hot *recent.Set[T]) error {
	before, err := w.startAt()
	if err != nil {
		return err
	}
	first, last := store.TimeRange(w.asked)
	if last = min(last, before.Time); first > last {
		return nil
	}
	view := hot.View()
	if w.addFromMemory(view.NewestFirst(&w.asked, before, first, last)) {
		return nil
	}
	e := w.boundsOfKind(w.kind)
	first, last = max(clamp(first), e.oldest), min(clamp(min(last, view.Floor())), e.newest)
	if first <= last && len(w.page.Items) > 0 && w.asked.Ends != (record.FlowEnds{}) {
		// One endpoint may have few records in a long range. The records in memory
		// are returned at once; the next page reads the table.
		w.seal()
		return nil
	}
	return w.readTable(ctx, before, first, last)
}

// addFromMemory adds records from memory, and reports whether the page is full.
func (w *pageWalk[T]) addFromMemory(records iter.Seq2[recent.Position, *T]) (ended bool) {
	for at, r := range records {
		if at.Seq > w.bound {
			continue
		}
		if w.full() {
			return true
		}
		w.addItem(r, at)
	}
	return false
}

// full reports whether the page is full, which is when there is one more record
// than its limit, and seals it then.
func (w *pageWalk[T]) full() bool {
	if len(w.page.Items) < w.limit && w.bytes < int(w.cfg.MaxAnswer) {
		return false
	}
	w.seal()
	return true
}

// seal ends the page after its last item.
func (w *pageWalk[T]) seal() {
	w.page.Next = store.Cursor{Time: w.last.Time, Seq: w.last.Seq, Bound: w.bound}.Seal(w.key, w.kind, w.asked)
}

func (w *pageWalk[T]) addItem(r *T, at recent.Position) {
	w.bytes += w.size(r)
	if n := len(w.page.Items); n == cap(w.page.Items) {
		// Grow in few steps to a long page: records are large, and copying them is
		// most of the work if they come from memory.
		w.page.Items = slices.Grow(w.page.Items, min(max(3*n, 64), max(w.limit-n, 1)))
	}
	w.page.Items = append(w.page.Items, *r)
	w.last = at
}

// conditions returns the conditions of the whole query.
func (w *pageWalk[T]) conditions(before recent.Position) *conditions {
	where := filter(w.kind, w.asked)
	where.and(fmt.Sprintf(`seq <= %d`, w.bound))
	if w.asked.After != "" {
		where.and(fmt.Sprintf(`(time, seq) < (make_timestamp_ns(%d), %d)`, before.Time, before.Seq))
	}
	return where
}

// A table is read backwards in time in windows. The first one is as long as the
// previous page's records of the same number were apart, within these bounds, and
// each further one is eight times as long. The cost of a page then depends on its
// length, not on its range, as DuckDB skips row groups by their times; and usually
// one window is enough, which matters because a query costs DuckDB more than some
// rows.
const (
	leastLook = int64(time.Second)
	mostLook  = 64 * leastLook
)

// firstWindow is the length of the first window for n more records.
func (w *pageWalk[T]) firstWindow(n int) int64 {
	gap := w.recordGaps[w.kind].Load()
	if w.filtered() || gap > mostLook/int64(n) {
		return mostLook
	}
	return max(2*gap*int64(n), leastLook)
}

// noteGap records the average distance of the n records of a page that was read
// from its table, starting at a time.
func (w *pageWalk[T]) noteGap(from int64, n int) {
	if n > 0 && !w.filtered() {
		w.recordGaps[w.kind].Store((from - w.last.Time) / int64(n))
	}
}

// readTable reads the table backwards from last to first.
func (w *pageWalk[T]) readTable(ctx context.Context, before recent.Position, first, last int64) error {
	where := w.conditions(before)
	have := len(w.page.Items)
	window := w.firstWindow(max(w.limit-have, 0) + 1)
	defer func(from int64) { w.noteGap(from, len(w.page.Items)-have) }(last)
	for ; first <= last && w.page.Next == ""; window = 8 * min(window, math.MaxInt64/8) {
		low := first
		// A device without a clock reports times of 1970, and times may be
		// centuries apart: more nanoseconds than an int64 holds.
		if uint64(last)-uint64(first) > uint64(window) {
			low = last - window
		}
		part := conditions{slices.Clone(where.all), where.args}
		part.between(low, last)
		found := w.selective()
		if !found {
			// A page at its limit needs one more record to know whether there is a
			// next page.
			var err error
			if found, err = w.narrowTime(ctx, &part, max(w.limit-len(w.page.Items), 0)+1); err != nil {
				return err
			}
		}
		if found {
			if err := w.readRows(ctx, &part); err != nil {
				return err
			}
		}
		last = low - 1
	}
	return nil
}

// selective reports whether few records of a time window can match: DuckDB finds
// them by one column, and decompresses the other columns for those only.
func (w *pageWalk[T]) selective() bool { return !w.asked.Flow.IsZero() || w.asked.Name != "" }

// filtered reports whether the query has a filter besides time.
func (w *pageWalk[T]) filtered() bool {
	return w.selective() || w.asked.Node != "" || w.asked.End != "" || w.asked.Why != "" || w.asked.MinLatency > 0 || w.asked.Port != 0 || w.asked.Ends != record.FlowEnds{}
}

// readRows adds the records that match the conditions.
func (w *pageWalk[T]) readRows(ctx context.Context, where *conditions) error {
	if w.read != nil {
		return w.read(ctx, w, where)
	}
	query := fmt.Sprintf(`SELECT time, seq, %s FROM %s WHERE %s`, w.columns, tableOf(w.kind), where.sql()) + w.newest()
	return w.queryRows(ctx, query, where.args, func(rows *sql.Rows) error {
		if w.full() {
			return errEnough
		}
		var r T
		var at recordPosition
		if err := w.scan(rows, &r, &at); err != nil {
			return err
		}
		w.addItem(&r, recent.Position{Time: at.time.UnixNano(), Seq: at.seq})
		return nil
	})
}

// newest orders the rows that are left for the page, and one more.
func (w *pageWalk[T]) newest() string {
	return fmt.Sprintf(` ORDER BY time DESC, seq DESC LIMIT %d`, max(w.limit-len(w.page.Items), 0)+1)
}

// narrowTime finds the time of the n-th newest record and restricts the conditions
// to it and later. DuckDB finds it from the times alone in a few milliseconds,
// while it would decompress every column of a long table to sort by time and seq
// (weft bench store). Records that are removed between the two queries are the
// oldest, so none in the middle is lost.
func (w *pageWalk[T]) narrowTime(ctx context.Context, where *conditions, n int) (found bool, err error) {
	var oldest *int64
	query := fmt.Sprintf(`SELECT epoch_ns(min(time)) FROM (SELECT time FROM %s WHERE %s ORDER BY time DESC LIMIT %d)`, tableOf(w.kind), where.sql(), n)
	err = w.queryRows(ctx, query, where.args, func(rows *sql.Rows) error { return rows.Scan(&oldest) })
	if err != nil || oldest == nil {
		return false, err
	}
	where.and(fmt.Sprintf(`time >= make_timestamp_ns(%d)`, *oldest))
	return true, nil
}
