package serve

import (
	"testing"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
)

// TestCounterQueueIsBounded: what does not fit is counted, what fits comes out in order.
func TestCounterQueueIsBounded(t *testing.T) {
	var q counterQueue
	const extra = 100
	for i := range maxSamples + extra {
		q.addSample(&portstat.Sample{Bytes: uint32(i)})
	}
	for i := range maxReadings + extra {
		q.addReading(&portstat.Reading{Counters: portstat.Counters{RxBytes: uint64(i)}})
	}
	for i := range maxFlows + extra {
		q.addFlow(&portstat.FlowRecord{Bytes: uint64(i)})
	}
	if st := q.stage(); st.Losses[0].Count != 3*extra || st.Queued != maxReadings+maxSamples+maxFlows {
		t.Errorf("%+v; want %d shed and the rest queued", st, 3*extra)
	}
	nextReading, nextSample, nextFlow := uint64(0), uint32(0), uint64(0)
	n := q.poll(func(r *portstat.Reading) {
		if r.RxBytes != nextReading {
			t.Fatalf("reading %d; want %d", r.RxBytes, nextReading)
		}
		nextReading++
	}, func(s *portstat.Sample) {
		if s.Bytes != nextSample {
			t.Fatalf("sample %d; want %d", s.Bytes, nextSample)
		}
		nextSample++
	}, func(r *portstat.FlowRecord) {
		if r.Bytes != nextFlow {
			t.Fatalf("flow record %d; want %d", r.Bytes, nextFlow)
		}
		nextFlow++
	})
	if st := q.stage(); n != maxReadings+maxSamples+maxFlows || st.Queued != 0 || st.In != st.Out+3*extra {
		t.Errorf("%d handed over, %+v; want all that was queued", n, st)
	}
	if size := counterQueueMemory; size < 16*model.MiB || size > 256*model.MiB {
		t.Errorf("a full queue takes %v; want the size of its records", size)
	}
}
