package embedded_test

import (
	"context"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

// TestFileTakesWhatTheCheckAccepts: a time that passes the check of a batch is one
// that DuckDB's driver takes, or a record with it would cost its batch a second try.
func TestFileTakesWhatTheCheckAccepts(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "weft.duckdb"), testConfig())
	defer mustClose(t, s)
	accepted := 0
	for _, at := range []time.Time{
		time.Unix(0, math.MinInt64),
		time.Unix(0, math.MinInt64).Add(25 * time.Hour),
		time.Date(1677, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
		time.Date(1678, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Date(1678, 1, 1, 0, 0, 0, 0, time.UTC).In(time.FixedZone("west", -12*3600)),
		time.Unix(0, 0),
		time.Date(2261, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
		time.Date(2261, 12, 31, 23, 59, 59, 999_999_999, time.UTC).In(time.FixedZone("east", 14*3600)),
		time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC),
		time.Unix(0, math.MaxInt64).Add(-25 * time.Hour),
		time.Unix(0, math.MaxInt64),
	} {
		b := record.Batch{
			Flows: []record.FlowSlot{{Time: at}}, Losses: []record.Loss{{Time: at}}, Ports: []record.PortSample{{Time: at}},
			Traces: []record.Trace{{Time: at, Hops: []record.TraceHop{{Time: at}}}}, Counters: []record.Counter{{Time: at}},
			Diagnoses: []record.Diagnosis{{Time: at, ID: "d1"}},
			Incidents: []record.Incident{{ID: "i1", Begin: at, Updated: at, End: at}},
		}
		if store.CheckBatch(&b) != nil {
			continue
		}
		accepted++
		if err := s.Append(context.Background(), &b); err != nil {
			t.Errorf("Append of records of %v, which the check accepts = %v", at, err)
		}
	}
	if accepted != 5 {
		t.Errorf("%d times are accepted; want those from 1678 to 2261, 5", accepted)
	}
}
