package store

import (
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/weft-telemetry/weft/model/record"
)

// filters are the query fields that a kind supports. An unsupported filter is an
// error: to ignore it would answer another query.
var filters = map[Kind]struct{ node, port, flow, ends, name, step bool }{
	Flows:     {node: true, flow: true, ends: true},
	Losses:    {node: true, flow: true, ends: true},
	Ports:     {node: true, port: true, step: true},
	Traces:    {node: true, flow: true, name: true},
	Counters:  {name: true, step: true},
	Diagnoses: {node: true, port: true, flow: true, name: true},
	Incidents: {node: true, name: true},
}

// maxStep limits Step: no chart needs fewer points than one per year.
const maxStep = 366 * 24 * time.Hour

// CheckQuery returns an error for an invalid query for records of a kind.
func CheckQuery(kind Kind, q record.Query) error {
	f, known := filters[kind]
	bad := func(format string, args ...any) error {
		return fmt.Errorf("query of %s: %w: %s", kind, ErrQuery, fmt.Sprintf(format, args...))
	}
	switch {
	case !known:
		return bad("unknown kind of records")
	case q.Limit < 0:
		return bad("limit %d, want at least 0", q.Limit)
	case q.Step < 0 || q.Step > maxStep:
		return bad("step %v, want 0 to %v", q.Step, maxStep)
	case q.Step > 0 && !f.step:
		return bad("step is not supported: the records are not a series")
	case q.Node != "" && !f.node:
		return bad("filter node is not supported")
	case q.Port != 0 && !f.port:
		return bad("filter port is not supported")
	case !q.Flow.IsZero() && !f.flow:
		return bad("filter flow is not supported")
	case q.Ends != (record.FlowEnds{}) && !f.ends:
		return bad("filters of addresses and ports are not supported")
	case q.Name != "" && !f.name:
		return bad("filter name is not supported")
	case (q.End != "" || q.Why != "" || q.MinLatency != 0) && kind != Traces:
		return bad("filters end, why and latency are of traces")
	case q.MinLatency < 0:
		return bad("latency of at least %v, want 0 or more", q.MinLatency)
	case !utf8.ValidString(q.Node) || !utf8.ValidString(q.Name) || !utf8.ValidString(q.End) || !utf8.ValidString(q.Why):
		return bad("node %q, name %q, end %q or why %q is not UTF-8", q.Node, q.Name, q.End, q.Why)
	}
	if _, err := strconv.ParseUint(q.Name, 10, 64); kind == Traces && q.Name != "" && err != nil {
		return bad("trace %q, want a number", q.Name)
	}
	return nil
}

// Nanos is the time in nanoseconds since 1970, or the nearest that int64 holds,
// so that a bound such as the year 9999 keeps its meaning.
func Nanos(t time.Time) int64 {
	switch {
	case t.Before(time.Unix(0, math.MinInt64)):
		return math.MinInt64
	case t.After(time.Unix(0, math.MaxInt64)):
		return math.MaxInt64
	}
	return t.UnixNano()
}

// TimeRange is a query's time range in nanoseconds, from first to last. It is
// empty if first is above last.
func TimeRange(q record.Query) (first, last int64) {
	first, last = math.MinInt64, math.MaxInt64
	if !q.From.IsZero() {
		first = Nanos(q.From)
	}
	if !q.To.IsZero() {
		last = Nanos(q.To)
		if last == math.MinInt64 {
			return 1, 0
		}
		last--
	}
	return first, last
}

// Steps of the rollups.
const (
	Second = time.Second
	Minute = time.Minute
)

// StepWidth returns the rollup for the Step of a query and the width of its steps:
// the least multiple of the rollup's step that is no shorter.
func StepWidth(step time.Duration) (rollup, width time.Duration) {
	rollup = Second
	if step >= Minute {
		rollup = Minute
	}
	return rollup, (step + rollup - 1) / rollup * rollup
}

// FloorStep is the start of the step of that width that contains ns, also before
// 1970.
func FloorStep(ns int64, width time.Duration) int64 {
	w := int64(width)
	in := ns % w
	if in < 0 {
		in += w
	}
	if ns-in > ns { // below the least int64
		return math.MinInt64
	}
	return ns - in
}
