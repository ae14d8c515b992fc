package core

import (
	"context"
	"slices"
	"strconv"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model/record"
)

// ReadThrough returns a store's records together with those that still wait to
// be written: incidents in their newest state, and any incident, diagnosis or
// trace that is asked for by id. An event names an incident when it is found: a
// client that asks for it at once must not be answered that there is none.
func (w *BatchWriter) ReadThrough(r api.Records) api.Records { return readThrough{r, w} }

type readThrough struct {
	api.Records
	writer *BatchWriter
}

func (a readThrough) Incidents(ctx context.Context, q record.Query) (record.Page[record.Incident], error) {
	list := func(b *record.Batch) []record.Incident { return b.Incidents }
	id := func(r *record.Incident) string { return r.ID }
	p, err := byIDOrQuery(ctx, a.writer, q, a.Records.Incidents, list, id)
	p.Items = slices.Clone(p.Items)
	for i := range p.Items { // an incident that is open in the store may be closed by now
		if r, ok := findPending(a.writer, p.Items[i].ID, list, id); ok {
			p.Items[i] = r
		}
	}
	return p, err
}

func (a readThrough) Diagnoses(ctx context.Context, q record.Query) (record.Page[record.Diagnosis], error) {
	return byIDOrQuery(ctx, a.writer, q, a.Records.Diagnoses,
		func(b *record.Batch) []record.Diagnosis { return b.Diagnoses },
		func(r *record.Diagnosis) string { return r.ID })
}

func (a readThrough) Traces(ctx context.Context, q record.Query) (record.Page[record.Trace], error) {
	return byIDOrQuery(ctx, a.writer, q, a.Records.Traces,
		func(b *record.Batch) []record.Trace { return b.Traces },
		func(r *record.Trace) string { return strconv.FormatUint(r.ID, 10) })
}

// byIDOrQuery answers a query by id from the records that wait, and any other
// query from the store. Waiting records are searched first: a record only ever
// moves on to the store.
func byIDOrQuery[T any](
	ctx context.Context, w *BatchWriter, q record.Query,
	stored func(context.Context, record.Query) (record.Page[T], error), list func(*record.Batch) []T, id func(*T) string,
) (record.Page[T], error) {
	if q.Name != "" && q == (record.Query{Name: q.Name, Limit: q.Limit}) {
		if r, ok := findPending(w, q.Name, list, id); ok {
			return record.Page[T]{Items: []T{r}}, nil
		}
	}
	return stored(ctx, q)
}

// findPending finds the newest waiting record of an id: a later state of an
// incident replaces the earlier ones.
func findPending[T any](w *BatchWriter, name string, list func(*record.Batch) []T, id func(*T) string) (r T, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range []*record.Batch{&w.waiting, &w.inFlight} {
		all := list(b)
		for i := len(all) - 1; i >= 0; i-- {
			if id(&all[i]) == name {
				return all[i], true
			}
		}
	}
	return r, false
}
