package api

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// Range is the time range of a query, by the fabric's clock.
type Range struct {
	From time.Time `query:"from" doc:"Start of the range (inclusive), RFC 3339; default: to minus last"`
	To   time.Time `query:"to" doc:"End of the range (exclusive), RFC 3339; default: now, by the fabric's clock"`
	Last string    `query:"last" maxLength:"16" doc:"Length of the range if from is absent, e.g. 90s; default: 1h"`
}

// Paging selects one page of a list.
type Paging struct {
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"Maximum number of items"`
	After string `query:"after" maxLength:"512" doc:"Value of next from the previous page"`
}

// Page is one page of a list.
type Page[T any] struct {
	Items   []T    `json:"items"`
	Next    string `json:"next,omitempty" doc:"Pass as after to get the next page; absent on the last page. A page with few or no items may still have one"`
	Scanned int    `json:"scanned,omitempty" doc:"Records read for this page"`
	Omitted int    `json:"omitted,omitempty" doc:"Items beyond the limit that no other page contains"`
}

// query converts range and paging to a store query and enforces the limits.
func (s *Server) query(r Range, p Paging) (q record.Query, err error) {
	invalid := func(format string, args ...any) (record.Query, error) {
		return record.Query{}, fmt.Errorf(format+": %w", append(args, ErrInvalid)...)
	}
	q = record.Query{From: r.From, To: r.To, Limit: p.Limit}
	if p.After != "" {
		// The range of the first page: "now" has moved on since.
		if q.From, q.To, q.After, err = decodeCursor(p.After); err != nil {
			return record.Query{}, err
		}
		r = Range{From: q.From}
	}
	if q.To.IsZero() {
		q.To = s.deps.Live.Clock().Now
	}
	if !r.From.IsZero() && r.Last != "" {
		return invalid("range with from and last, want one of them")
	}
	if q.From.IsZero() {
		last := time.Hour
		if r.Last != "" {
			if last, err = time.ParseDuration(r.Last); err != nil || last <= 0 {
				return invalid("last %q, want a duration such as 90s", r.Last)
			}
		}
		q.From = q.To.Add(-last)
	}
	if !q.From.Before(q.To) {
		return invalid("range from %s to %s, want from before to", formatTime(q.From), formatTime(q.To))
	}
	// Times outside the range of int64 nanoseconds would wrap around below.
	if q.From.Year() < 1700 || q.To.Year() > 2200 {
		return invalid("range from %s to %s, want years from 1700 to 2200", formatTime(q.From), formatTime(q.To))
	}
	if d := q.To.Sub(q.From); d > s.cfg.MaxRange {
		return invalid("range of %s, want at most %s", d, s.cfg.MaxRange)
	}
	return q, nil
}

// encodeCursor returns the Next of a page. A store's cursor is valid for the same
// range only, so the range is part of it.
func encodeCursor(q record.Query, next string) string {
	if next == "" {
		return ""
	}
	return strconv.FormatInt(q.From.UnixNano(), 36) + "." + strconv.FormatInt(q.To.UnixNano(), 36) + "." + next
}

// decodeCursor reverses encodeCursor. The store validates its own part.
func decodeCursor(text string) (from, to time.Time, next string, err error) {
	a, rest, _ := strings.Cut(text, ".")
	b, next, ok := strings.Cut(rest, ".")
	x, err1 := strconv.ParseInt(a, 36, 64)
	y, err2 := strconv.ParseInt(b, 36, 64)
	if !ok || next == "" || err1 != nil || err2 != nil {
		return from, to, "", fmt.Errorf("after %q, want the next of a previous page: %w", text, ErrInvalid)
	}
	return time.Unix(0, x).UTC(), time.Unix(0, y).UTC(), next, nil
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// fetchPage is one of the query methods of Records.
type fetchPage[R any] func(context.Context, record.Query) (record.Page[R], error)

// seriesBudget multiplies the scan budget of time series, whose records are only a
// few numbers each.
const seriesBudget = 4

// maxChunk bounds the records of one store query.
const maxChunk = 2000

// walkRecords calls visit for records, newest first, until visit returns false, no
// record is left, or the scan budget is used up. Next continues after the last
// record visited, in the same range; it is empty at the end. Time series have a
// larger budget.
func walkRecords[R any](ctx context.Context, s *Server, f fetchPage[R], q record.Query,
	visit func(*R) bool,
) (next string, scanned int, err error) {
	if q.Limit <= 0 {
		q.Limit = maxChunk
	}
	budget := s.cfg.ScanBudget
	if q.Step > 0 {
		budget *= seriesBudget
	}
	for {
		q.Limit = min(q.Limit, budget-scanned)
		page, err := f(ctx, q)
		if err != nil {
			return "", scanned, err
		}
		for i := range page.Items {
			scanned++
			if visit(&page.Items[i]) {
				continue
			}
			if i == len(page.Items)-1 {
				return page.Next, scanned, nil
			}
			// Only the store can make a cursor: repeat the query with this limit.
			q.Limit = i + 1
			page, err = f(ctx, q)
			return page.Next, scanned, err
		}
		if page.Next == "" || scanned >= budget || scanned > 0 && q.Ends != (record.FlowEnds{}) {
			return page.Next, scanned, nil // with Ends, a store ends a page where older records cost more
		}
		q.After = page.Next
		q.Limit = min(4*q.Limit, maxChunk) // few records match: read more per query
	}
}

// scanPage returns a page of the records for which show returns true.
func scanPage[R, T any](ctx context.Context, s *Server, f fetchPage[R], q record.Query,
	show func(*R) (T, bool),
) (p Page[T], err error) {
	p.Items = []T{}
	want := q.Limit
	p.Next, p.Scanned, err = walkRecords(ctx, s, f, q, func(r *R) bool {
		if item, keep := show(r); keep {
			p.Items = append(p.Items, item)
		}
		return len(p.Items) < want
	})
	p.Next = encodeCursor(q, p.Next)
	if err == nil {
		err = s.checkNodeKnown(q.Node, p.Scanned)
	}
	return p, err
}

// checkNodeKnown returns an error for a node that is neither in the fabric nor in
// any record found: otherwise a typing error would read as "no problem there".
// Records may refer to nodes that are no longer in the fabric.
func (s *Server) checkNodeKnown(node string, found int) error {
	if node == "" || found > 0 {
		return nil
	}
	if _, ok := s.deps.Live.Fabric().ByName(node); !ok {
		return fmt.Errorf("node %q is not in the fabric: %w", node, ErrInvalid)
	}
	return nil
}

// findOne returns the record with the name in the query.
func findOne[R any](ctx context.Context, f fetchPage[R], q record.Query, what string) (*R, error) {
	q.Limit = 1
	page, err := f(ctx, q)
	if err != nil {
		return nil, err
	}
	if len(page.Items) == 0 || q.Name == "" { // an empty name matches any record
		return nil, fmt.Errorf("%s %q: %w", what, q.Name, ErrNotFound)
	}
	return &page.Items[0], nil
}

// flowKey parses a client's flow key; empty text is the zero key.
func flowKey(text string) (model.FlowKey, error) {
	if text == "" {
		return model.FlowKey{}, nil
	}
	k, err := model.ParseFlowKey(text)
	if err != nil {
		return k, fmt.Errorf("%w: %w", err, ErrInvalid)
	}
	return k, nil
}

// flowRef adds the names of the hosts to a flow key.
func (s *Server) flowRef(k model.FlowKey) FlowRef {
	r := FlowRef{Flow: k}
	f := s.deps.Live.Fabric()
	if id, ok := f.ByAddr(k.Src); ok {
		r.Src = f.Node(id).Name
	}
	if id, ok := f.ByAddr(k.Dst); ok {
		r.Dst = f.Node(id).Name
	}
	return r
}
