package core

import (
	"context"
	"slices"
	"strconv"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model/record"
)

// ReadThrough returns a store's records, incidents in their newest state and, by their
// ids, also those that still wait for the store. An event tells of an incident the moment it is found: who then
// asks for it, or for a diagnosis or trace that it names, must not hear that
// there is none.
func (k *BatchWriter) ReadThrough(r api.Records) api.Records { return readThrough{r, k} }

type readThrough struct {
	api.Records
	keeper *BatchWriter
}

func (a readThrough) Incidents(ctx context.Context, q record.Query) (record.Page[record.Incident], error) {
	list := func(b *record.Batch) []record.Incident { return b.Incidents }
	id := func(r *record.Incident) string { return r.ID }
	p, err := byIDOrQuery(ctx, a.keeper, q, a.Records.Incidents, list, id)
	p.Items = slices.Clone(p.Items)
	for i := range p.Items { // what a store still takes for open may be over
		if r, ok := findPending(a.keeper, p.Items[i].ID, list, id); ok {
			p.Items[i] = r
		}
	}
	return p, err
}

func (a readThrough) Diagnoses(ctx context.Context, q record.Query) (record.Page[record.Diagnosis], error) {
	return byIDOrQuery(ctx, a.keeper, q, a.Records.Diagnoses,
		func(b *record.Batch) []record.Diagnosis { return b.Diagnoses },
		func(r *record.Diagnosis) string { return r.ID })
}

func (a readThrough) Traces(ctx context.Context, q record.Query) (record.Page[record.Trace], error) {
	return byIDOrQuery(ctx, a.keeper, q, a.Records.Traces,
		func(b *record.Batch) []record.Trace { return b.Traces },
		func(r *record.Trace) string { return strconv.FormatUint(r.ID, 10) })
}

// byIDOrQuery answers a query by id with what waits, and any other with what stored
// does. What waits is looked at first: it only ever moves on to the store.
func byIDOrQuery[T any](
	ctx context.Context, k *BatchWriter, q record.Query,
	stored func(context.Context, record.Query) (record.Page[T], error), list func(*record.Batch) []T, id func(*T) string,
) (record.Page[T], error) {
	if q.Name != "" && q == (record.Query{Name: q.Name, Limit: q.Limit}) {
		if r, ok := findPending(k, q.Name, list, id); ok {
			return record.Page[T]{Items: []T{r}}, nil
		}
	}
	return stored(ctx, q)
}

// findPending finds the newest of its id: a later state of an incident replaces the
// ones before.
func findPending[T any](k *BatchWriter, name string, list func(*record.Batch) []T, id func(*T) string) (r T, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, b := range []*record.Batch{&k.waiting, &k.inFlight} {
		all := list(b)
		for i := len(all) - 1; i >= 0; i-- {
			if id(&all[i]) == name {
				return all[i], true
			}
		}
	}
	return r, false
}
