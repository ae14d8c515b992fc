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
)

// rollup is a table of sums. A batch adds a row for each series and step that it
// touches, in its own transaction, so a rollup is never behind or ahead of its
// records, and late records need no care; a query adds the rows of a step up,
// and Maintain merges them for good.
type rollup struct {
	of    store.Kind
	step  time.Duration
	key   string // columns that name a series
	merge string // what adds up the other columns
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

type portStep struct {
	time int64
	node string
	port model.PortID
}

// portSums weighs each sample by what it stands for; one that does not say
// stands for itself.
type portSums struct {
	samples                      uint64
	queue, latency, load, paused float64
	queueMax                     model.Bytes
}

type counterStep struct {
	time int64
	name string
}

// counterSums has the most flows of any period: how many of them were the same
// is not known, so this is the most that surely were there.
type counterSums struct {
	packets, bytes uint64
	flows          float64
}

// rollups appends the sums of a batch.
func (a *appending) rollups(b *record.Batch) {
	for kind, r := range rollups {
		switch {
		case r.of == store.Ports && len(b.Ports) > 0:
			a.rows(kind, portRows(b.Ports, r.step))
		case r.of == store.Counters && len(b.Counters) > 0:
			a.rows(kind, counterRows(b.Counters, r.step))
		}
	}
}

func portRows(samples []record.PortSample, step time.Duration) iter.Seq[[]driver.Value] {
	sums := map[portStep]portSums{}
	for i := range samples {
		r := &samples[i]
		at := portStep{store.Floor(r.Time.UnixNano(), step), r.Node, r.Port}
		n := max(r.Samples, 1)
		s, known := sums[at]
		w, deepest := float64(n), max(r.Queue, r.QueueMax)
		s.samples = addUp(s.samples, n)
		s.queue += w * float64(r.Queue)
		s.latency += w * float64(r.Latency)
		s.load += w * float64(r.Load)
		s.paused += w * r.Paused
		if !known || deepest > s.queueMax {
			s.queueMax = deepest
		}
		sums[at] = s
	}
	return func(yield func([]driver.Value) bool) {
		for at, s := range sums {
			if !yield([]driver.Value{time.Unix(0, at.time), at.node, uint16(at.port), s.samples, s.queue, s.latency, s.load, s.paused, int64(s.queueMax)}) {
				return
			}
		}
	}
}

func counterRows(counters []record.Counter, step time.Duration) iter.Seq[[]driver.Value] {
	sums := map[counterStep]counterSums{}
	for i := range counters {
		r := &counters[i]
		at := counterStep{store.Floor(r.Time.UnixNano(), step), r.Name}
		s, known := sums[at]
		s.packets, s.bytes = addUp(s.packets, r.Packets), addUp(s.bytes, r.Bytes)
		if !known || r.Flows > s.flows {
			s.flows = r.Flows
		}
		sums[at] = s
	}
	return func(yield func([]driver.Value) bool) {
		for at, s := range sums {
			if !yield([]driver.Value{time.Unix(0, at.time), at.name, s.packets, s.bytes, s.flows}) {
				return
			}
		}
	}
}

// addUp stays at the largest number rather than begin anew.
func addUp(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return math.MaxUint64
	}
	return sum
}
