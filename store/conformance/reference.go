package conformance

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

// Reference is a store in memory that scans all records for every query. It has no
// page limit, and its After is the number of items to skip.
type Reference struct {
	Retention store.Retention

	flows     []record.FlowSlot
	losses    []record.Loss
	ports     []record.PortSample
	traces    []record.Trace
	counters  []record.Counter
	diagnoses []record.Diagnosis
	incidents []record.Incident
	// The rollups are individual records here, with the age limits of the rollups.
	rolledPorts    map[time.Duration][]record.PortSample
	rolledCounters map[time.Duration][]record.Counter
}

var _ Store = (*Reference)(nil)

// Append stores the batch.
func (t *Reference) Append(_ context.Context, b *record.Batch) error {
	if err := store.CheckBatch(b); err != nil {
		return err
	}
	t.flows = append(t.flows, b.Flows...)
	t.losses = append(t.losses, b.Losses...)
	t.ports = append(t.ports, b.Ports...)
	t.traces = append(t.traces, b.Traces...)
	t.counters = append(t.counters, b.Counters...)
	t.diagnoses = append(t.diagnoses, b.Diagnoses...)
	for _, r := range b.Incidents {
		if i := slices.IndexFunc(t.incidents, func(o record.Incident) bool { return o.ID == r.ID }); i >= 0 {
			t.incidents[i] = r
		} else {
			t.incidents = append(t.incidents, r)
		}
	}
	if t.rolledPorts == nil {
		t.rolledPorts, t.rolledCounters = map[time.Duration][]record.PortSample{}, map[time.Duration][]record.Counter{}
	}
	for _, step := range []time.Duration{store.Second, store.Minute} {
		t.rolledPorts[step] = append(t.rolledPorts[step], b.Ports...)
		t.rolledCounters[step] = append(t.rolledCounters[step], b.Counters...)
	}
	return nil
}

// Close does nothing.
func (t *Reference) Close() error { return nil }

// Flows answers as a store does.
func (t *Reference) Flows(_ context.Context, q record.Query) (record.Page[record.FlowSlot], error) {
	return pick(store.Flows, t.flows, q, func(r record.FlowSlot) time.Time { return r.Time }, func(r record.FlowSlot) bool {
		passed := slices.ContainsFunc(r.Path, func(h record.FlowHop) bool { return h.Switch == q.Node })
		return within(r.Time, q) && (q.Node == "" || r.Src == q.Node || r.Dst == q.Node || passed) && ofFlow(r.Flow, q)
	})
}

// Losses answers as a store does.
func (t *Reference) Losses(_ context.Context, q record.Query) (record.Page[record.Loss], error) {
	return pick(store.Losses, t.losses, q, func(r record.Loss) time.Time { return r.Time }, func(r record.Loss) bool {
		return within(r.Time, q) && (q.Node == "" || r.From == q.Node || r.To == q.Node) && ofFlow(r.Flow, q)
	})
}

// Traces answers as a store does.
func (t *Reference) Traces(_ context.Context, q record.Query) (record.Page[record.Trace], error) {
	return pick(store.Traces, t.traces, q, func(r record.Trace) time.Time { return r.Time }, func(r record.Trace) bool {
		passed := slices.ContainsFunc(r.Hops, func(h record.TraceHop) bool { return h.Switch == q.Node })
		return within(r.Time, q) && (q.Node == "" || passed) && ofFlow(r.Flow, q) && (q.Name == "" || q.Name == strconv.FormatUint(r.ID, 10)) && (q.End == "" || q.End == r.End) &&
			(q.Why == "" || q.Why == r.Why) && (q.MinLatency == 0 || r.Latency >= q.MinLatency)
	})
}

// Diagnoses answers as a store does.
func (t *Reference) Diagnoses(_ context.Context, q record.Query) (record.Page[record.Diagnosis], error) {
	return pick(store.Diagnoses, t.diagnoses, q, func(r record.Diagnosis) time.Time { return r.Time }, func(r record.Diagnosis) bool {
		return within(r.Time, q) && (q.Node == "" || r.Initial.Node == q.Node) && (q.Port == 0 || r.Initial.Port == q.Port) &&
			ofFlow(r.Victim, q) && (q.Name == "" || r.ID == q.Name)
	})
}

// Incidents answers as a store does.
func (t *Reference) Incidents(_ context.Context, q record.Query) (record.Page[record.Incident], error) {
	return pick(store.Incidents, t.incidents, q, func(r record.Incident) time.Time { return r.Begin }, func(r record.Incident) bool {
		empty := !q.From.IsZero() && !q.To.IsZero() && !q.From.Before(q.To)
		wentOn := (q.To.IsZero() || r.Begin.Before(q.To)) && (q.From.IsZero() || r.End.IsZero() || !r.End.Before(q.From))
		return !empty && wentOn && (q.Node == "" || r.Location == q.Node || strings.HasPrefix(r.Location, q.Node+":")) &&
			(q.Name == "" || r.ID == q.Name)
	})
}

// Ports answers as a store does.
func (t *Reference) Ports(_ context.Context, q record.Query) (record.Page[record.PortSample], error) {
	here := func(r record.PortSample) bool {
		return within(r.Time, q) && (q.Node == "" || r.Node == q.Node) && (q.Port == 0 || r.Port == q.Port)
	}
	at := func(r record.PortSample) time.Time { return r.Time }
	if q.Step <= 0 {
		return pick(store.Ports, t.ports, q, at, here)
	}
	type series struct {
		node string
		port model.PortID
	}
	groups, _ := grouped(t.rolledPorts, q.Step, at, func(r record.PortSample) series { return series{r.Node, r.Port} })
	var steps []record.PortSample
	for g, samples := range groups {
		var n, queue, latency, load, paused float64
		deepest := max(samples[0].Queue, samples[0].QueueMax)
		for _, r := range samples {
			w := float64(max(1, r.Samples))
			n += w
			queue += w * float64(r.Queue)
			latency += w * float64(r.Latency)
			load += w * float64(r.Load)
			paused += w * r.Paused
			deepest = max(deepest, r.Queue, r.QueueMax)
		}
		steps = append(steps, record.PortSample{
			Time: time.Unix(0, g.time), Node: g.of.node, Port: g.of.port, Samples: uint64(n),
			Queue: model.Bytes(math.Round(queue / n)), Latency: time.Duration(math.Round(latency / n)),
			Load: model.Rate(math.Round(load / n)), Paused: paused / n, QueueMax: deepest,
		})
	}
	slices.SortFunc(steps, func(a, b record.PortSample) int { // the last of equal times is first
		return cmp.Or(cmp.Compare(b.Node, a.Node), cmp.Compare(b.Port, a.Port))
	})
	return pick(store.Ports, steps, q, at, here)
}

// Counters answers as a store does.
func (t *Reference) Counters(_ context.Context, q record.Query) (record.Page[record.Counter], error) {
	here := func(r record.Counter) bool { return within(r.Time, q) && (q.Name == "" || r.Name == q.Name) }
	at := func(r record.Counter) time.Time { return r.Time }
	if q.Step <= 0 {
		return pick(store.Counters, t.counters, q, at, here)
	}
	groups, width := grouped(t.rolledCounters, q.Step, at, func(r record.Counter) string { return r.Name })
	var steps []record.Counter
	for g, all := range groups {
		sum := record.Counter{Time: time.Unix(0, g.time), Period: width, Name: g.of, Flows: all[0].Flows}
		for _, r := range all {
			sum.Packets += r.Packets
			sum.Bytes += r.Bytes
			sum.Flows = max(sum.Flows, r.Flows)
		}
		steps = append(steps, sum)
	}
	slices.SortFunc(steps, func(a, b record.Counter) int { return cmp.Compare(b.Name, a.Name) })
	return pick(store.Counters, steps, q, at, here)
}

// step is one step of a series.
type step[K comparable] struct {
	time int64
	of   K
}

// grouped sorts records into steps of the width of a Step.
func grouped[T any, K comparable](rolled map[time.Duration][]T, asked time.Duration,
	at func(T) time.Time, key func(T) K,
) (map[step[K]][]T, time.Duration) {
	rollup := time.Second
	if asked >= time.Minute {
		rollup = time.Minute
	}
	width := rollup
	for width < asked {
		width += rollup
	}
	groups := map[step[K]][]T{}
	for _, r := range rolled[rollup] {
		begin := int64(math.Floor(float64(at(r).Unix())/width.Seconds())) * int64(width)
		g := step[K]{begin, key(r)}
		groups[g] = append(groups[g], r)
	}
	return groups, width
}

// pick returns the matching records, newest first, and among those of one time the
// last appended first.
func pick[T any](kind store.Kind, all []T, q record.Query, at func(T) time.Time,
	is func(T) bool,
) (record.Page[T], error) {
	var page record.Page[T]
	if err := store.CheckQuery(kind, q); err != nil {
		return page, err
	}
	for _, r := range slices.Backward(all) {
		if is(r) {
			page.Items = append(page.Items, r)
		}
	}
	slices.SortStableFunc(page.Items, func(a, b T) int { return at(b).Compare(at(a)) })
	if q.After != "" {
		n, err := strconv.Atoi(q.After)
		if err != nil || n > len(page.Items) {
			return record.Page[T]{}, fmt.Errorf("%w: after %q", store.ErrQuery, q.After)
		}
		page.Items = page.Items[n:]
	}
	if q.Limit > 0 && len(page.Items) > q.Limit {
		before, _ := strconv.Atoi(q.After)
		page.Next, page.Items = strconv.Itoa(before+q.Limit), page.Items[:q.Limit]
	}
	return page, nil
}

func within(t time.Time, q record.Query) bool {
	return (q.From.IsZero() || !t.Before(q.From)) && (q.To.IsZero() || t.Before(q.To))
}

func ofFlow(k model.FlowKey, q record.Query) bool {
	e := q.Ends
	switch {
	case !q.Flow.IsZero() && k != q.Flow,
		e.Src != (model.Addr{}) && e.Src != k.Src, e.Dst != (model.Addr{}) && e.Dst != k.Dst,
		e.SrcPort != 0 && e.SrcPort != k.SrcPort, e.DstPort != 0 && e.DstPort != k.DstPort:
		return false
	}
	return true
}

// Maintain removes records above the retention. A rollup row has the age of its
// step.
func (t *Reference) Maintain(_ context.Context, now time.Time) (store.MaintenanceResult, error) {
	up := store.MaintenanceResult{Removed: map[store.Kind]store.Removal{}}
	expire(t, &up, store.Flows, now, &t.flows, func(r record.FlowSlot) time.Time { return r.Time })
	expire(t, &up, store.Losses, now, &t.losses, func(r record.Loss) time.Time { return r.Time })
	expire(t, &up, store.Ports, now, &t.ports, func(r record.PortSample) time.Time { return r.Time })
	expire(t, &up, store.Traces, now, &t.traces, func(r record.Trace) time.Time { return r.Time })
	expire(t, &up, store.Counters, now, &t.counters, func(r record.Counter) time.Time { return r.Time })
	expire(t, &up, store.Diagnoses, now, &t.diagnoses, func(r record.Diagnosis) time.Time { return r.Time })
	expire(t, &up, store.Incidents, now, &t.incidents, func(r record.Incident) time.Time { return r.Updated })
	for width, kinds := range map[time.Duration][2]store.Kind{
		store.Second: {store.PortSeconds, store.CounterSeconds},
		store.Minute: {store.PortMinutes, store.CounterMinutes},
	} {
		ports, counters := t.rolledPorts[width], t.rolledCounters[width]
		expire(t, &up, kinds[0], now, &ports, func(r record.PortSample) time.Time { return r.Time.Truncate(width) })
		expire(t, &up, kinds[1], now, &counters, func(r record.Counter) time.Time { return r.Time.Truncate(width) })
		if t.rolledPorts != nil {
			t.rolledPorts[width], t.rolledCounters[width] = ports, counters
		}
	}
	return up, nil
}

func expire[T any](t *Reference, up *store.MaintenanceResult, kind store.Kind, now time.Time,
	records *[]T, at func(T) time.Time,
) {
	age, bounded := t.Retention[kind]
	if !bounded {
		return
	}
	before := len(*records)
	*records = slices.DeleteFunc(*records, func(r T) bool { return at(r).Before(now.Add(-age)) })
	up.Removed[kind] = store.Removal{Age: uint64(before - len(*records))}
}
