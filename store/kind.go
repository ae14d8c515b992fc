package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Kind is the name of a table: the records of one type, or one rollup of them.
type Kind string

// The kinds. A rollup has the sums of a series in steps of a second or a minute.
const (
	Flows          Kind = "flows"
	Losses         Kind = "losses"
	Ports          Kind = "ports"
	PortSeconds    Kind = "ports_1s"
	PortMinutes    Kind = "ports_1m"
	Traces         Kind = "traces"
	Counters       Kind = "counters"
	CounterSeconds Kind = "counters_1s"
	CounterMinutes Kind = "counters_1m"
	Diagnoses      Kind = "diagnoses"
	Incidents      Kind = "incidents"
)

// Kinds returns all kinds, records before their rollups.
func Kinds() []Kind {
	return []Kind{
		Flows, Losses, Ports, PortSeconds, PortMinutes, Traces,
		Counters, CounterSeconds, CounterMinutes, Diagnoses, Incidents,
	}
}

// ParseKind parses a kind's name.
func ParseKind(s string) (Kind, error) {
	if slices.Contains(Kinds(), Kind(s)) {
		return Kind(s), nil
	}
	var names []string
	for _, k := range Kinds() {
		names = append(names, string(k))
	}
	return "", fmt.Errorf("kind %q, want one of: %s", s, strings.Join(names, ", "))
}

// Retention is the maximum age of records by kind. A kind that is not in it is
// kept without limit. Age counts from the time of a record, and from the last
// update of an incident.
type Retention map[Kind]time.Duration

// DefaultRetention keeps individual records for a day, the rollups for a week and
// for 90 days, and verdicts for 90 days.
func DefaultRetention() Retention {
	const day = 24 * time.Hour
	return Retention{
		Flows: day, Losses: 7 * day, Ports: day, Traces: day, Counters: day,
		PortSeconds: 7 * day, CounterSeconds: 7 * day,
		PortMinutes: 90 * day, CounterMinutes: 90 * day,
		Diagnoses: 90 * day, Incidents: 90 * day,
	}
}

// Check returns an error for kinds that do not exist and ages that are not
// positive.
func (r Retention) Check() error {
	for kind, age := range r {
		if _, err := ParseKind(string(kind)); err != nil {
			return fmt.Errorf("retention: %w", err)
		}
		if age <= 0 {
			return fmt.Errorf("retention of %s is %v, want more than 0", kind, age)
		}
	}
	return nil
}

// Removal counts removed rows, by reason.
type Removal struct {
	Age  uint64 `json:"age"`  // older than the retention
	Size uint64 `json:"size"` // the oldest, because the store was too large
}

// MaintenanceResult is the result of one maintenance run.
type MaintenanceResult struct {
	Removed       map[Kind]Removal
	Merged        uint64 // rows of rollups that were merged into another
	Before, After model.Bytes
	Memory        model.Bytes // used by the engine at the end
}

// Errors a caller branches on.
var (
	// ErrQuery is wrapped by errors about invalid queries.
	ErrQuery = errors.New("bad query")
	// ErrRecord is wrapped by errors about a batch with an invalid record.
	ErrRecord = errors.New("record refused")
	// ErrUnavailable is wrapped if the store itself cannot write, whatever the records
	// are: its disk is full, its file damaged.
	ErrUnavailable = errors.New("store cannot write")
	// ErrBusy is wrapped if too many queries wait already.
	ErrBusy = errors.New("too many queries")
	// ErrClosed is returned by a store that was closed.
	ErrClosed = errors.New("store is closed")
)
