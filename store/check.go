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

// MaxBody bounds the body of a verdict and the frame of a trace, so that a page
// of them stays bounded too.
const MaxBody = 1 << 20

// CheckBatch says which record of a batch cannot be kept, and why. A store calls
// it before it keeps anything.
func CheckBatch(b *record.Batch) error {
	for _, err := range []error{
		each(Flows, b.Flows, checkFlow),
		each(Losses, b.Losses, checkLoss),
		each(Ports, b.Ports, checkPort),
		each(Traces, b.Traces, checkTrace),
		each(Counters, b.Counters, checkCounter),
		each(Diagnoses, b.Diagnoses, checkDiagnosis),
		each(Incidents, b.Incidents, checkIncident),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func each[T any](kind Kind, records []T, check func(*T) string) error {
	for i := range records {
		if complaint := check(&records[i]); complaint != "" {
			return fmt.Errorf("%s, record %d: %w: %s", kind, i, ErrRecord, complaint)
		}
	}
	return nil
}

func checkFlow(r *record.FlowSlot) string {
	for i := range r.Path {
		if c := texts(r.Path[i].Switch); c != "" {
			return c
		}
	}
	return first(instant(r.Time), key(r.Flow), texts(r.Src, r.Dst))
}

func checkLoss(r *record.Loss) string {
	return first(instant(r.Time), key(r.Flow), texts(r.From, r.To, r.Pattern))
}

func checkPort(r *record.PortSample) string {
	return first(instant(r.Time), texts(r.Node), finite(r.Paused))
}

func checkTrace(r *record.Trace) string {
	for i := range r.Hops {
		if c := first(instant(r.Hops[i].Time), texts(r.Hops[i].Switch)); c != "" {
			return c
		}
	}
	return first(instant(r.Time), key(r.Flow), texts(r.End, r.Why), size(r.Frame))
}

func checkCounter(r *record.Counter) string {
	return first(instant(r.Time), texts(r.Name), finite(r.Flows))
}

func checkDiagnosis(r *record.Diagnosis) string {
	return first(instant(r.Time), key(r.Victim), finite(r.Confidence), body(r.Body),
		texts(r.ID, r.Anomaly, r.RootCause, r.Initial.Node, r.Initial.Peer))
}

func checkIncident(r *record.Incident) string {
	end := ""
	if !r.End.IsZero() {
		end = instant(r.End)
	}
	if r.ID == "" {
		return "it has no id"
	}
	return first(instant(r.Begin), instant(r.Updated), end, body(r.Body),
		texts(r.ID, r.Cause, r.Severity, r.Place, r.Summary))
}

func first(complaints ...string) string {
	for _, c := range complaints {
		if c != "" {
			return c
		}
	}
	return ""
}

// A day is left at both ends, so that steps and ranges around a record never
// leave int64, nor meet the values that databases keep for infinity.
var (
	earliest = time.Unix(0, math.MinInt64).Add(24 * time.Hour)
	latest   = time.Unix(0, math.MaxInt64).Add(-24 * time.Hour)
)

func instant(t time.Time) string {
	if t.Before(earliest) || t.After(latest) {
		return fmt.Sprintf("time %s, want one from %s to %s",
			t.UTC().Format(time.RFC3339), earliest.UTC().Format(time.RFC3339), latest.UTC().Format(time.RFC3339))
	}
	return ""
}

// key refuses what no packet has and what its text would not give back: an IPv4
// key with other addresses.
func key(k model.FlowKey) string {
	if !k.IsZero() && !k.V6 && !(k.Src.Is4() && k.Dst.Is4()) {
		return fmt.Sprintf("flow %s is not of one family", k)
	}
	return ""
}

func texts(all ...string) string {
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

// finite also refuses what would leave the numbers in a sum.
func finite(v float64) string {
	if math.IsNaN(v) || math.Abs(v) > 1e100 {
		return fmt.Sprintf("value %v, want a number, at most 1e100", v)
	}
	return ""
}

func size(b []byte) string {
	if len(b) > MaxBody {
		return fmt.Sprintf("%d bytes, want at most %d", len(b), MaxBody)
	}
	return ""
}

func body(b json.RawMessage) string {
	if len(b) > 0 && !json.Valid(b) {
		return "its body is not JSON"
	}
	return size(b)
}
