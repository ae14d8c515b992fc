package embedded

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
	"github.com/weft-telemetry/weft/store/recent"
)

// recentCache holds the newest records of each kind, which most queries are about.
// A query of DuckDB costs milliseconds of a core, however small it is; one of
// memory costs microseconds (weft bench serve). Incidents change, and are few:
// they are in incidentCache.
type recentCache struct {
	flows     *recent.Set[record.FlowSlot]
	losses    *recent.Set[record.Loss]
	ports     *recent.Set[record.PortSample]
	traces    *recent.Set[record.Trace]
	counters  *recent.Set[record.Counter]
	diagnoses *recent.Set[record.Diagnosis]

	seconds      *flowSeconds
	portSteps    map[store.Kind]*recent.Steps[portSums]
	counterSteps map[store.Kind]*recent.Steps[counterSums]
}

// cacheParts is the number of parts that CacheSize is divided into.
const cacheParts = 18

// stepSize is about the size of a rollup row in memory, in bytes.
const stepSize = 128

// newRecentCache starts after the newest records in the file, and after those that
// are yet to come from a damaged one.
func (s *Store) newRecentCache() *recentCache {
	coming := int64(math.MinInt64)
	if len(s.pendingRepairs()) > 0 {
		coming = time.Now().UnixNano()
	}
	floor := func(kind store.Kind) int64 { return max(coming, s.boundsOfKind(kind).newest) }
	// Most is for flows, which are by far the most records, and their sums.
	share := s.cfg.CacheSize / cacheParts
	h := &recentCache{
		flows:     recent.New(sized(flowShape, flowTable.size), 5*share, floor(store.Flows)),
		losses:    recent.New(sized(lossShape, lossTable.size), share, floor(store.Losses)),
		ports:     recent.New(sized(portShape, portTable.size), share, floor(store.Ports)),
		traces:    recent.New(sized(traceShape, traceTable.size), share, floor(store.Traces)),
		counters:  recent.New(sized(counterShape, counterTable.size), share, floor(store.Counters)),
		diagnoses: recent.New(sized(diagnosisShape, diagnosisTable.size), share, floor(store.Diagnoses)),

		seconds:   newFlowSeconds(3*share, max(floor(store.Flows), floor(store.Losses))),
		portSteps: map[store.Kind]*recent.Steps[portSums]{}, counterSteps: map[store.Kind]*recent.Steps[counterSums]{},
	}
	for kind, r := range rollups {
		switch r.of {
		case store.Ports:
			h.portSteps[kind] = recent.NewSteps(addPorts, int(share/stepSize), floor(kind))
		case store.Counters:
			h.counterSteps[kind] = recent.NewSteps(addCounters, int(share/stepSize), floor(kind))
		}
	}
	return h
}

func sized[T any](s recent.Shape[T], size func(*T) int) recent.Shape[T] {
	s.Size = size
	return s
}

// addBatch adds a committed batch; seq is the sequence number before the first
// record, which are numbered in the order of Append.
func (h *recentCache) addBatch(b *record.Batch, seq int64, sums batchSums) {
	seq++
	h.flows.AddRecords(b.Flows, seq)
	seq += int64(len(b.Flows))
	h.losses.AddRecords(b.Losses, seq)
	seq += int64(len(b.Losses))
	h.ports.AddRecords(b.Ports, seq)
	seq += int64(len(b.Ports))
	h.traces.AddRecords(b.Traces, seq)
	seq += int64(len(b.Traces))
	h.counters.AddRecords(b.Counters, seq)
	seq += int64(len(b.Counters))
	h.diagnoses.AddRecords(b.Diagnoses, seq)
	for kind, steps := range sums.ports {
		for begin, rows := range steps {
			h.portSteps[kind].AddRows(begin, rows)
		}
	}
	for kind, steps := range sums.counters {
		for begin, rows := range steps {
			h.counterSteps[kind].AddRows(begin, rows)
		}
	}
}

// removeBefore removes what was removed from the tables.
func (h *recentCache) removeBefore(kind store.Kind, before int64) {
	switch kind {
	case store.Flows:
		h.flows.RemoveBefore(before)
		h.seconds.removeBefore(before)
	case store.Losses:
		h.losses.RemoveBefore(before)
		h.seconds.removeBefore(before)
	case store.Ports:
		h.ports.RemoveBefore(before)
	case store.Traces:
		h.traces.RemoveBefore(before)
	case store.Counters:
		h.counters.RemoveBefore(before)
	case store.Diagnoses:
		h.diagnoses.RemoveBefore(before)
	}
	if s := h.portSteps[kind]; s != nil {
		s.RemoveBefore(before)
	}
	if s := h.counterSteps[kind]; s != nil {
		s.RemoveBefore(before)
	}
}

// utc is a time as DuckDB returns it.
func utc(t time.Time) time.Time { return time.Unix(0, t.UnixNano()).UTC() }

var flowShape = recent.Shape[record.FlowSlot]{
	Time:       func(r *record.FlowSlot) time.Time { return r.Time },
	Flow:       func(r *record.FlowSlot) *model.FlowKey { return &r.Flow },
	ByEndpoint: true,
	CloneAll:   cloneFlows,
	Matches: func(r *record.FlowSlot, q *record.Query) bool {
		return ofFlow(q, &r.Flow) && (q.Node == "" || q.Node == r.Src || q.Node == r.Dst ||
			slices.ContainsFunc(r.Path, func(h record.FlowHop) bool { return h.Switch == q.Node }))
	},
}

// hopsAtOnce is the number of hops that are allocated together: few enough that the
// flows that share them leave memory at about the same time.
const hopsAtOnce = 1024

// cloneFlows copies flows; their paths share memory.
func cloneFlows(left int) func(*record.FlowSlot) {
	var free []record.FlowHop
	return func(r *record.FlowSlot) {
		r.Time = utc(r.Time)
		if left--; len(r.Path) == 0 {
			r.Path = nil
			return
		}
		n := len(free)
		if cap(free)-n < len(r.Path) {
			free, n = make([]record.FlowHop, 0, max(min(hopsAtOnce, (left+1)*len(r.Path)), len(r.Path))), 0
		}
		free = append(free, r.Path...)
		r.Path = free[n:len(free):len(free)]
	}
}

var lossShape = recent.Shape[record.Loss]{
	Time:       func(r *record.Loss) time.Time { return r.Time },
	Flow:       func(r *record.Loss) *model.FlowKey { return &r.Flow },
	ByEndpoint: true,
	Clone:      func(r *record.Loss) { r.Time = utc(r.Time) },
	Matches: func(r *record.Loss, q *record.Query) bool {
		return ofFlow(q, &r.Flow) && (q.Node == "" || q.Node == r.From || q.Node == r.To)
	},
}

var portShape = recent.Shape[record.PortSample]{
	Time:  func(r *record.PortSample) time.Time { return r.Time },
	Clone: func(r *record.PortSample) { r.Time = utc(r.Time) },
	Matches: func(r *record.PortSample, q *record.Query) bool {
		return (q.Port == 0 || q.Port == r.Port) && (q.Node == "" || q.Node == r.Node)
	},
}

var traceShape = recent.Shape[record.Trace]{
	Time: func(r *record.Trace) time.Time { return r.Time },
	Flow: func(r *record.Trace) *model.FlowKey { return &r.Flow },
	Clone: func(r *record.Trace) {
		r.Time = utc(r.Time)
		r.Hops, r.Frame = append([]record.TraceHop(nil), r.Hops...), append([]byte(nil), r.Frame...)
		for i := range r.Hops {
			r.Hops[i].Time = utc(r.Hops[i].Time)
		}
	},
	Matches: func(r *record.Trace, q *record.Query) bool {
		return ofFlow(q, &r.Flow) && (q.Name == "" || isTrace(r.ID, q.Name)) && (q.End == "" || q.End == r.End) &&
			(q.Why == "" || q.Why == r.Why) && (q.MinLatency == 0 || r.Latency >= q.MinLatency) &&
			(q.Node == "" || slices.ContainsFunc(r.Hops, func(h record.TraceHop) bool { return h.Switch == q.Node }))
	},
}

// isTrace parses a name that store.CheckQuery has verified to be a number.
func isTrace(id uint64, name string) bool {
	n, err := strconv.ParseUint(name, 10, 64)
	return err == nil && n == id
}

var counterShape = recent.Shape[record.Counter]{
	Time:    func(r *record.Counter) time.Time { return r.Time },
	Clone:   func(r *record.Counter) { r.Time = utc(r.Time) },
	Matches: func(r *record.Counter, q *record.Query) bool { return q.Name == "" || q.Name == r.Name },
}

var diagnosisShape = recent.Shape[record.Diagnosis]{
	Time: func(r *record.Diagnosis) time.Time { return r.Time },
	Flow: func(r *record.Diagnosis) *model.FlowKey { return &r.Victim },
	Clone: func(r *record.Diagnosis) {
		r.Time, r.Body = utc(r.Time), append([]byte(nil), r.Body...)
	},
	Matches: func(r *record.Diagnosis, q *record.Query) bool {
		return ofFlow(q, &r.Victim) && (q.Node == "" || q.Node == r.Initial.Node) &&
			(q.Port == 0 || q.Port == r.Initial.Port) && (q.Name == "" || q.Name == r.ID)
	},
}

func ofFlow(q *record.Query, k *model.FlowKey) bool {
	return (q.Flow.IsZero() || q.Flow == *k) && q.Ends.Match(k)
}
