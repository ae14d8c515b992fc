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

// CheckBatch returns an error for the first invalid record of a batch. A store
// calls it before it writes anything.
func CheckBatch(b *record.Batch) error {
	for _, err := range []error{
		checkEach(Flows, b.Flows, checkFlow),
		checkEach(Losses, b.Losses, checkLoss),
		checkEach(Ports, b.Ports, checkPort),
		checkEach(Traces, b.Traces, checkTrace),
		checkEach(Counters, b.Counters, checkCounter),
		checkEach(Diagnoses, b.Diagnoses, checkDiagnosis),
		checkEach(Incidents, b.Incidents, checkIncident),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func checkEach[T any](kind Kind, records []T, check func(*T) string) error {
	for i := range records {
		if problem := check(&records[i]); problem != "" {
			return fmt.Errorf("%s, record %d: %w: %s", kind, i, ErrRecord, problem)
		}
	}
	return nil
}

func checkFlow(r *record.FlowSlot) string {
	for i := range r.Path {
		if c := checkTexts(r.Path[i].Switch); c != "" {
			return c
		}
	}
	return firstProblem(checkTime(r.Time), checkKey(r.Flow), checkTexts(r.Src, r.Dst))
}

func checkLoss(r *record.Loss) string {
	return firstProblem(checkTime(r.Time), checkKey(r.Flow), checkTexts(r.From, r.To, r.Pattern))
}

func checkPort(r *record.PortSample) string {
	return firstProblem(checkTime(r.Time), checkTexts(r.Node), checkFinite(r.Paused))
}

func checkTrace(r *record.Trace) string {
	for i := range r.Hops {
		if c := firstProblem(checkTime(r.Hops[i].Time), checkTexts(r.Hops[i].Switch)); c != "" {
			return c
		}
	}
	return firstProblem(checkTime(r.Time), checkKey(r.Flow), checkTexts(r.End, r.Why), checkSize(r.Frame))
}

func checkCounter(r *record.Counter) string {
	return firstProblem(checkTime(r.Time), checkTexts(r.Name), checkFinite(r.Flows))
}

func checkDiagnosis(r *record.Diagnosis) string {
	return firstProblem(checkTime(r.Time), checkKey(r.Victim), checkFinite(r.Confidence), checkBody(r.Body),
		checkTexts(r.ID, r.Anomaly, r.RootCause, r.Initial.Node, r.Initial.Peer))
}

func checkIncident(r *record.Incident) string {
	end := ""
	if !r.End.IsZero() {
		end = checkTime(r.End)
	}
	if r.ID == "" {
		return "id is empty"
	}
	return firstProblem(checkTime(r.Begin), checkTime(r.Updated), end, checkBody(r.Body),
		checkTexts(r.ID, r.Cause, r.Severity, r.Location, r.Summary))
}

func firstProblem(problems ...string) string {
	for _, c := range problems {
		if c != "" {
			return c
		}
	}
	return ""
}

// The limits are a day from both ends of int64, so that steps and ranges around a
// record never overflow, nor reach the values that databases use for infinity.
var (
	earliest = time.Unix(0, math.MinInt64).Add(24 * time.Hour)
	latest   = time.Unix(0, math.MaxInt64).Add(-24 * time.Hour)
)

func checkTime(t time.Time) string {
	if t.Before(earliest) || t.After(latest) {
		return fmt.Sprintf("time %s, want one from %s to %s",
			t.UTC().Format(time.RFC3339), earliest.UTC().Format(time.RFC3339), latest.UTC().Format(time.RFC3339))
	}
	return ""
}

// checkKey rejects keys that no packet has and whose text cannot be parsed back:
// IPv4 and IPv6 addresses in one key.
func checkKey(k model.FlowKey) string {
	if !k.IsZero() && !k.V6 && !(k.Src.Is4() && k.Dst.Is4()) {
		return fmt.Sprintf("flow %s is not of one family", k)
	}
	return ""
}

func checkTexts(all ...string) string {
	for _, s := range all {
		if !utf8.ValidString(s) {
			return fmt.Sprintf("text %q is not UTF-8", s)
		}
		if len(s) > MaxBody {
			return fmt.Sprintf("text of %d bytes, want at most %d", len(s), MaxBody)
		}
	}
	return ""
}

// checkFinite also rejects values whose sums would overflow.
func checkFinite(v float64) string {
	if math.IsNaN(v) || math.Abs(v) > 1e100 {
		return fmt.Sprintf("value %v, want a number, at most 1e100", v)
	}
	return ""
}

func checkSize(b []byte) string {
	if len(b) > MaxBody {
		return fmt.Sprintf("%d bytes, want at most %d", len(b), MaxBody)
	}
	return ""
}

func checkBody(b json.RawMessage) string {
	if len(b) > 0 && !json.Valid(b) {
		return "body is not JSON"
	}
	return checkSize(b)
}
