package core

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// TestLargeRecordsDoNotFillMemory: traces of long paths, and diagnoses with large
// graphs, are shed by their memory while the store writes nothing.
func TestLargeRecordsDoNotFillMemory(t *testing.T) {
	const limit = 1000
	w := NewBatchWriter(&heap{}, time.Hour, limit, slog.New(slog.DiscardHandler))
	for i := range 10 * limit {
		w.Add(&record.Batch{
			Traces:    []record.Trace{{Time: noon, ID: uint64(i), Hops: make([]record.TraceHop, 64), Frame: make([]byte, 128)}},
			Diagnoses: []record.Diagnosis{{Time: noon, ID: fmt.Sprint("d", i), Body: make(json.RawMessage, 64<<10)}},
			Incidents: []record.Incident{{ID: fmt.Sprint("i", i), Begin: noon, Updated: noon, Body: make(json.RawMessage, 64<<10)}},
		})
	}
	sum := 0
	for i := range w.waiting.Traces {
		sum += traceMemory(&w.waiting.Traces[i])
	}
	for i := range w.waiting.Diagnoses {
		sum += diagnosisMemory(&w.waiting.Diagnoses[i])
	}
	for i := range w.waiting.Incidents {
		sum += incidentMemory(&w.waiting.Incidents[i])
	}
	if most := QueueMemory(limit) / 2; model.Bytes(sum) > most {
		t.Errorf("%d bytes of records wait; want at most %v", sum, most)
	}
	s := w.Stats()
	if s.Shed.Traces == 0 || s.Shed.Diagnoses == 0 || s.Shed.Incidents == 0 || s.Waiting != w.waiting.Len() {
		t.Errorf("%+v, %d wait; want some shed of each kind, and an account of all", s, w.waiting.Len())
	}
	if last := w.waiting.Incidents[len(w.waiting.Incidents)-1].ID; last != fmt.Sprint("i", 10*limit-1) {
		t.Errorf("the last incident that waits is %s; want the newest", last)
	}
}
