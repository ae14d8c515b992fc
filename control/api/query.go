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

// Range is the time that a question is about, by the fabric's clock.
type Range struct {
	From time.Time `query:"from" doc:"RFC 3339; it is in the range. Where absent, Last before To"`
	To   time.Time `query:"to" doc:"RFC 3339; it is not in the range. Where absent, the fabric's present"`
	Last string    `query:"last" maxLength:"16" doc:"Length of the range where From is absent, as in 90s; 1h by default"`
}

// Paging is the part of an answer that is wanted.
type Paging struct {
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"Most items of the answer"`
	After string `query:"after" maxLength:"512" doc:"Next of the answer before"`
}

// Console is one answer of a list.
type Page[T any] struct {
	Items   []T    `json:"items"`
	Next    string `json:"next,omitempty" doc:"To ask for what comes after; absent at the end. A page may be short, or empty, and have one"`
	Scanned int    `json:"scanned,omitempty" doc:"Records that were read for this page"`
	Omitted int    `json:"dropped,omitempty" doc:"Items beyond the limit that no further page has"`
}

// query reads range and paging and holds them to the limits.
func (s *Server) query(r Range, p Paging) (q record.Query, err error) {
	invalid := func(format string, args ...any) (record.Query, error) {
		return record.Query{}, fmt.Errorf(format+": %w", append(args, ErrInvalid)...)
	}
	q = record.Query{From: r.From, To: r.To, Limit: p.Limit}
	if p.After != "" {
		// The range of the first page: the present has moved on since.
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
	// Instants that nanoseconds cannot hold would wrap around below.
	if q.From.Year() < 1700 || q.To.Year() > 2200 {
		return invalid("range from %s to %s, want years from 1700 to 2200", formatTime(q.From), formatTime(q.To))
	}
	if d := q.To.Sub(q.From); d > s.cfg.MaxRange {
		return invalid("range of %s, want at most %s", d, s.cfg.MaxRange)
	}
	return q, nil
}

// encodeCursor makes the Next of an answer: a store's cursor is good for the same
// range only, so the range goes with it.
func encodeCursor(q record.Query, next string) string {
	if next == "" {
		return ""
	}
	return strconv.FormatInt(q.From.UnixNano(), 36) + "." + strconv.FormatInt(q.To.UnixNano(), 36) + "." + next
}

// decodeCursor reads what encodeCursor made. The store looks at the rest.
func decodeCursor(text string) (from, to time.Time, next string, err error) {
	a, rest, _ := strings.Cut(text, ".")
	b, next, ok := strings.Cut(rest, ".")
	x, err1 := strconv.ParseInt(a, 36, 64)
	y, err2 := strconv.ParseInt(b, 36, 64)
	if !ok || next == "" || err1 != nil || err2 != nil {
		return from, to, "", fmt.Errorf("after %q is not the next of an answer: %w", text, ErrInvalid)
	}
	return time.Unix(0, x).UTC(), time.Unix(0, y).UTC(), next, nil
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// fetchPage is one of the typed queries of Records.
type fetchPage[R any] func(context.Context, record.Query) (record.Page[R], error)

// seriesBudget is how many times more records an answer may read where they are
// a few numbers each.
const seriesBudget = 4

// maxChunk is how many records are read at once, at most.
const maxChunk = 2000

// walkRecords gives records to visit, newest first, until it returns false, there are
// no more, or the budget of one answer is used up. Next goes on after the last
// record visited, in the same range; it is empty at the end. Steps of a series
// are a few numbers each, so an answer may read more of them.
func walkRecords[R any](ctx context.Context, s *Server, f fetchPage[R], q record.Query, visit func(*R) bool) (next string, scanned int, err error) {
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
			// The cursor is the store's to make: ask again for so many.
			q.Limit = i + 1
			page, err = f(ctx, q)
			return page.Next, scanned, err
		}
		if page.Next == "" || scanned >= budget || scanned > 0 && q.Ends != (record.Ends{}) {
			return page.Next, scanned, nil // withTrace ends, a store ends a page where older records cost more
		}
		q.After = page.Next
		q.Limit = min(4*q.Limit, maxChunk) // few match: read more at once
	}
}

// scanPage makes a page of the records that show keeps.
func scanPage[R, T any](ctx context.Context, s *Server, f fetchPage[R], q record.Query, show func(*R) (T, bool)) (p Page[T], err error) {
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

// checkNodeKnown complains of a node that neither the fabric nor one of the records
// has that were found for it: without, a slip of the pen would read as "nothing
// is wrong there". Records may well name a node that the fabric has no more.
func (s *Server) checkNodeKnown(node string, found int) error {
	if node == "" || found > 0 {
		return nil
	}
	if _, ok := s.deps.Live.Fabric().ByName(node); !ok {
		return fmt.Errorf("node %q, want one of the fabric: %w", node, ErrInvalid)
	}
	return nil
}

// findOne finds the record that a query names.
func findOne[R any](ctx context.Context, f fetchPage[R], q record.Query, what string) (*R, error) {
	q.Limit = 1
	page, err := f(ctx, q)
	if err != nil {
		return nil, err
	}
	if len(page.Items) == 0 || q.Name == "" { // no name asks for any
		return nil, fmt.Errorf("%s %q: %w", what, q.Name, ErrNotFound)
	}
	return &page.Items[0], nil
}

// flowKey reads a key of a client; the empty text names no flow.
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

// flowRef names the hosts at the ends of a flow.
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
