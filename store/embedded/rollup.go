package embedded

import (
	"database/sql/driver"
	"iter"
	"math"
	"math/bits"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
	"github.com/weft-telemetry/weft/store/recent"
)

// rollup is a table of sums. A batch adds a row for each series and step that it
// has, in its own transaction, so a rollup is always consistent with its records,
// and late records need no special case; a query adds up the rows of a step, and
// Maintain merges them.
type rollup struct {
	of    store.Kind
	step  time.Duration
	key   string // columns that identify a series
	merge string // expressions that add up the other columns
}

const (
	mergePorts = `least(sum(samples), 18446744073709551615)::UBIGINT AS samples, sum(queue_sum) AS queue_sum,
		sum(latency_sum) AS latency_sum, sum(load_sum) AS load_sum, sum(paused_sum) AS paused_sum,
		max(queue_max_bytes) AS queue_max_bytes`
	mergeCounters = `least(sum(packets), 18446744073709551615)::UBIGINT AS packets,
		least(sum(bytes), 18446744073709551615)::UBIGINT AS bytes, max(flows) AS flows`
)

var rollups = map[store.Kind]rollup{
	store.PortSeconds:    {store.Ports, store.Second, `node, port`, mergePorts},
	store.PortMinutes:    {store.Ports, store.Minute, `node, port`, mergePorts},
	store.CounterSeconds: {store.Counters, store.Second, `name`, mergeCounters},
	store.CounterMinutes: {store.Counters, store.Minute, `name`, mergeCounters},
}

// rollupOf finds the rollup of a kind by its step.
func rollupOf(kind store.Kind, step time.Duration) store.Kind {
	for k, r := range rollups {
		if r.of == kind && r.step == step {
			return k
		}
	}
	panic("embedded: no rollup of " + string(kind))
}

// portSums weights each sample by its Samples; 0 counts as 1.
type portSums struct {
	samples                      uint64
	queue, latency, load, paused float64
	queueMax                     model.Bytes
}

func addPorts(to, more *portSums) {
	to.samples = addSaturating(to.samples, more.samples)
	to.queue += more.queue
	to.latency += more.latency
	to.load += more.load
	to.paused += more.paused
	to.queueMax = max(to.queueMax, more.queueMax)
}

func sumPort(r *record.PortSample) (time.Time, recent.Series, portSums) {
	n := max(r.Samples, 1)
	w := float64(n)
	return r.Time, recent.Series{Name: r.Node, Port: r.Port}, portSums{
		samples: n, queue: w * float64(r.Queue), latency: w * float64(r.Latency), load: w * float64(r.Load), paused: w * r.Paused,
		queueMax: max(r.Queue, r.QueueMax),
	}
}

// counterSums has the maximum number of flows of any period: the overlap of two
// periods is unknown, so this is a lower bound of the distinct flows.
type counterSums struct {
	packets, bytes uint64
	flows          float64
}

func addCounters(to, more *counterSums) {
	to.packets, to.bytes, to.flows = addSaturating(to.packets, more.packets), addSaturating(to.bytes, more.bytes), max(to.flows, more.flows)
}

func sumCounter(r *record.Counter) (time.Time, recent.Series, counterSums) {
	return r.Time, recent.Series{Name: r.Name}, counterSums{r.Packets, r.Bytes, r.Flows}
}

// stepSums are the rows that a batch adds to a rollup, by the start of their step.
type stepSums[S any] map[int64][]recent.Row[S]

func sumBySteps[T, S any](records []T, step time.Duration, sum func(*T) (time.Time, recent.Series, S),
	add func(to, more *S),
) stepSums[S] {
	type stepKey struct {
		begin int64
		recent.Series
	}
	steps, rows := stepSums[S]{}, map[stepKey]int{}
	for i := range records {
		at, series, sums := sum(&records[i])
		begin := store.FloorStep(at.UnixNano(), step)
		if row, there := rows[stepKey{begin, series}]; there {
			add(&steps[begin][row].Sums, &sums)
			continue
		}
		rows[stepKey{begin, series}] = len(steps[begin])
		steps[begin] = append(steps[begin], recent.Row[S]{Series: series, Sums: sums})
	}
	return steps
}

// batchSums are the rows that a batch adds to all rollups.
type batchSums struct {
	ports    map[store.Kind]stepSums[portSums]
	counters map[store.Kind]stepSums[counterSums]
}

func newBatchSums(b *record.Batch) batchSums {
	s := batchSums{map[store.Kind]stepSums[portSums]{}, map[store.Kind]stepSums[counterSums]{}}
	for kind, r := range rollups {
		switch r.of {
		case store.Ports:
			s.ports[kind] = sumBySteps(b.Ports, r.step, sumPort, addPorts)
		case store.Counters:
			s.counters[kind] = sumBySteps(b.Counters, r.step, sumCounter, addCounters)
		}
	}
	return s
}

// appendRollups appends the sums of a batch.
func (a *batchAppender) appendRollups(s batchSums) {
	for kind, steps := range s.ports {
		a.appendRows(tableOf(kind), stepRows(steps, func(r *recent.Row[portSums]) []driver.Value {
			return []driver.Value{
				nil, r.Name, uint16(r.Port), r.Sums.samples, r.Sums.queue, r.Sums.latency, r.Sums.load, r.Sums.paused, int64(r.Sums.queueMax),
			}
		}))
	}
	for kind, steps := range s.counters {
		a.appendRows(tableOf(kind), stepRows(steps, func(r *recent.Row[counterSums]) []driver.Value {
			return []driver.Value{nil, r.Name, r.Sums.packets, r.Sums.bytes, r.Sums.flows}
		}))
	}
}

// stepRows are rows of a table; the first column is the step's start.
func stepRows[S any](steps stepSums[S], row func(*recent.Row[S]) []driver.Value) iter.Seq[[]driver.Value] {
	return func(yield func([]driver.Value) bool) {
		for begin, rows := range steps {
			for i := range rows {
				values := row(&rows[i])
				if values[0] = time.Unix(0, begin); !yield(values) {
					return
				}
			}
		}
	}
}

// addSaturating adds and stops at the maximum instead of overflowing.
func addSaturating(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return math.MaxUint64
	}
	return sum
}
