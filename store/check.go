package store

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// MaxBody limits the body of a verdict and the frame of a trace, so that a page of
// them is bounded too.
const MaxBody = 1 << 20

// RecordError says which record of a batch is invalid, and why.
type RecordError struct {
	Kind   Kind
	Index  int    // within the records of its kind
	Reason string // one of few, for counters
	Detail string // what is wrong, and what is wanted
}

// Error names the record and the problem.
func (e *RecordError) Error() string {
	return fmt.Sprintf("%s, record %d: %v: %s", e.Kind, e.Index, ErrRecord, e.Detail)
}

// Unwrap makes it an ErrRecord.
func (e *RecordError) Unwrap() error { return ErrRecord }

// CheckBatch returns a RecordError for the first invalid record of a batch. A store
// calls it before it writes anything.
func CheckBatch(b *record.Batch) error {
	var first *RecordError
	checkBatch(b, func(e *RecordError) bool {
		first = e
		return false
	})
	if first != nil {
		return first
	}
	return nil
}

// checkBatch hands every invalid record to bad, until that returns false.
func checkBatch(b *record.Batch, bad func(*RecordError) bool) {
	_ = checkEach(Flows, b.Flows, checkFlow, bad) &&
		checkEach(Losses, b.Losses, checkLoss, bad) &&
		checkEach(Ports, b.Ports, checkPort, bad) &&
		checkEach(Traces, b.Traces, checkTrace, bad) &&
		checkEach(Counters, b.Counters, checkCounter, bad) &&
		checkEach(Diagnoses, b.Diagnoses, checkDiagnosis, bad) &&
		checkEach(Incidents, b.Incidents, checkIncident, bad)
}

func checkEach[T any](kind Kind, records []T, check func(*T) problem, bad func(*RecordError) bool) bool {
	for i := range records {
		if p := check(&records[i]); p.reason != "" && !bad(&RecordError{kind, i, p.reason, p.detail}) {
			return false
		}
	}
	return true
}

// RemoveInvalid removes the invalid records of a batch, in place, and hands each
// one's error to removed.
func RemoveInvalid(b *record.Batch, removed func(*RecordError)) {
	invalid := map[Kind][]bool{}
	checkBatch(b, func(e *RecordError) bool {
		if invalid[e.Kind] == nil {
			invalid[e.Kind] = make([]bool, b.Len())
		}
		invalid[e.Kind][e.Index] = true
		removed(e)
		return true
	})
	b.Flows = keepValid(b.Flows, invalid[Flows])
	b.Losses = keepValid(b.Losses, invalid[Losses])
	b.Ports = keepValid(b.Ports, invalid[Ports])
	b.Traces = keepValid(b.Traces, invalid[Traces])
	b.Counters = keepValid(b.Counters, invalid[Counters])
	b.Diagnoses = keepValid(b.Diagnoses, invalid[Diagnoses])
	b.Incidents = keepValid(b.Incidents, invalid[Incidents])
}

func keepValid[T any](records []T, invalid []bool) []T {
	if invalid == nil {
		return records
	}
	kept := records[:0]
	for i := range records {
		if !invalid[i] {
			kept = append(kept, records[i])
		}
	}
	return kept
}

// problem is why a record is invalid; the zero value: it is valid.
type problem struct{ reason, detail string }

var valid problem

func checkFlow(r *record.FlowSlot) problem {
	for i := range r.Path {
		if c := checkTexts(r.Path[i].Switch); c != valid {
			return c
		}
	}
	return firstProblem(checkTime(r.Time), checkKey(r.Flow), checkTexts(r.Src, r.Dst))
}

func checkLoss(r *record.Loss) problem {
	return firstProblem(checkTime(r.Time), checkKey(r.Flow), checkTexts(r.From, r.To, r.Pattern))
}

func checkPort(r *record.PortSample) problem {
	return firstProblem(checkTime(r.Time), checkTexts(r.Node), checkFinite(r.Paused))
}

func checkTrace(r *record.Trace) problem {
	for i := range r.Hops {
		if c := firstProblem(checkTime(r.Hops[i].Time), checkTexts(r.Hops[i].Switch)); c != valid {
			return c
		}
	}
	return firstProblem(checkTime(r.Time), checkKey(r.Flow), checkTexts(r.End, r.Why), checkSize(r.Frame))
}

func checkCounter(r *record.Counter) problem {
	return firstProblem(checkTime(r.Time), checkTexts(r.Name), checkFinite(r.Flows))
}

func checkDiagnosis(r *record.Diagnosis) problem {
	return firstProblem(checkTime(r.Time), checkKey(r.Victim), checkFinite(r.Confidence), checkBody(r.Body),
		checkTexts(r.ID, r.Anomaly, r.RootCause, r.Initial.Node, r.Initial.Peer))
}

func checkIncident(r *record.Incident) problem {
	end := valid
	if !r.End.IsZero() {
		end = checkTime(r.End)
	}
	if r.ID == "" {
		return problem{"no id", "id is empty"}
	}
	return firstProblem(checkTime(r.Begin), checkTime(r.Updated), end, checkBody(r.Body),
		checkTexts(r.ID, r.Cause, r.Severity, r.Location, r.Summary))
}

func firstProblem(problems ...problem) problem {
	for _, c := range problems {
		if c != valid {
			return c
		}
	}
	return valid
}

// The limits are whole years that int64 holds in nanoseconds and that DuckDB's
// driver accepts; it refuses 1677. Both ends of int64 are months away, so that steps
// and ranges around a record do not overflow, nor reach the values that databases
// use for infinity.
var (
	earliest = time.Date(1678, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2262, 1, 1, 0, 0, 0, -1, time.UTC)
)

func checkTime(t time.Time) problem {
	if t.Before(earliest) || t.After(latest) {
		return problem{"time out of range", fmt.Sprintf("time %s, want one from %s to %s",
			t.UTC().Format(time.RFC3339), earliest.Format(time.RFC3339), latest.Format(time.RFC3339))}
	}
	return valid
}

// checkKey rejects keys that no packet has and whose text cannot be parsed back:
// IPv4 and IPv6 addresses in one key.
func checkKey(k model.FlowKey) problem {
	if !k.IsZero() && !k.V6 && !(k.Src.Is4() && k.Dst.Is4()) {
		return problem{"mixed address families", fmt.Sprintf("flow %s is not of one family", k)}
	}
	return valid
}

// shownText is how many bytes of a text an error contains.
const shownText = 64

func checkTexts(all ...string) problem {
	for _, s := range all {
		if !utf8.ValidString(s) {
			return problem{"not UTF-8", fmt.Sprintf("text %q is not UTF-8", s[:min(len(s), shownText)])}
		}
		if len(s) > MaxBody {
			return problem{"too long", fmt.Sprintf("text of %d bytes, want at most %d", len(s), MaxBody)}
		}
	}
	return valid
}

// checkFinite also rejects values whose sums would overflow.
func checkFinite(v float64) problem {
	if math.IsNaN(v) || math.Abs(v) > 1e100 {
		return problem{"not a number", fmt.Sprintf("value %v, want a number, at most 1e100", v)}
	}
	return valid
}

func checkSize(b []byte) problem {
	if len(b) > MaxBody {
		return problem{"too long", fmt.Sprintf("%d bytes, want at most %d", len(b), MaxBody)}
	}
	return valid
}

func checkBody(b json.RawMessage) problem {
	if len(b) > 0 && !json.Valid(b) {
		return problem{"not JSON", "body is not JSON"}
	}
	return checkSize(b)
}
