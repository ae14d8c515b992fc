package diagnose

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
	"github.com/weft-telemetry/weft/wire/poll"
)

// FuzzReports diagnoses what three switches may claim, however absurd: counts
// that no link carries, times before the switch was built, unknown ports.
// No sender of reports may be able to stop the analysis.
func FuzzReports(f *testing.F) {
	names := []string{"leaf0", "spine0", "leaf1"}
	event := poll.Event{Host: 1, Number: 1}
	b := incast(f, all...)
	b.reports[b.id("leaf1")].Settings = epoch.Settings{CongestionThreshold: 4 * µs, MTU: 4200}
	for _, p := range b.reports[b.id("leaf1")].Ports {
		v := epoch.Intervals{Port: p.Port, Priority: p.Priority, Open: true, Earlier: epoch.Earlier{Count: 3, Start: 90_000, End: 60_000, Total: 9000}}
		v.Add(epoch.Interval{Start: 50_000, Bytes: 70_000})
		b.reports[b.id("leaf1")].Intervals = append(b.reports[b.id("leaf1")].Intervals, v)
	}
	for i := range 2 {
		var records [3][]byte
		for j, name := range names {
			records[j] = encode(f, b.reports[b.id(name)])
		}
		f.Add(records[0], records[1], records[2], int64(now), int64(time.Millisecond), int64(100*µs), i == 0)
		r := b.reports[b.id("leaf1")]
		for j := range r.Flows {
			r.Flows[j].Packets, r.Flows[j].Depth = math.MaxUint32, math.MaxUint64
		}
		for j := range r.FlowBacklogs {
			r.FlowBacklogs[j].Bytes = math.MaxUint64
		}
	}
	f.Fuzz(func(t *testing.T, one, two, three []byte, snapshot, length, took int64, paused bool) {
		in, err := provenance.NewCollector(provenance.DefaultConfig(4))
		if err != nil {
			t.Fatal(err)
		}
		for i, records := range [][]byte{one, two, three} {
			h := epoch.Header{
				Switch: b.id(names[i]), Event: event, Snapshot: model.Time(snapshot),
				EpochLength: time.Duration(length),
			}
			_, _ = in.AddChunk(0, epoch.Chunk{Header: h, Total: 1, Records: records}.AppendTo(nil))
		}
		d, err := New(DefaultConfig(b.intent))
		if err != nil {
			t.Fatal(err)
		}
		e, c := in.Evidence(event), Detection{
			Event: event, Victim: b.flow("h8>h5"), Latency: time.Duration(took),
			HostPaused: paused,
		}
		for _, v := range d.Diagnose(c, e, provenance.Build(e, c.Victim, b.fabric)) {
			if !(v.Confidence >= 0 && v.Confidence <= 1) {
				t.Errorf("confidence %v", v.Confidence)
			}
			if _, err := json.Marshal(v.View(b.fabric)); err != nil {
				t.Error(err)
			}
		}
	})
}

// encode returns the records of a report as a switch sends them.
func encode(t testing.TB, r *provenance.Report) []byte {
	var b epoch.Builder
	if err := b.Reset(epoch.Header{Switch: r.Switch, EpochLength: time.Millisecond}, 60000, 1); err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Ports {
		b.AddPort(p)
	}
	for _, p := range r.PortEpochs {
		b.AddPortEpoch(p)
	}
	for i := range r.Flows {
		b.AddFlow(&r.Flows[i])
	}
	for _, m := range r.Meters {
		b.AddMeter(m)
	}
	for _, p := range r.Pauses {
		b.AddPause(p)
	}
	for i := range r.Intervals {
		b.AddIntervals(&r.Intervals[i])
	}
	b.AddSettings(r.Settings)
	for _, h := range r.PortPairBacklogs {
		b.AddPortPairBacklog(h)
	}
	for i := range r.FlowBacklogs {
		b.AddFlowBacklog(&r.FlowBacklogs[i])
	}
	if n := b.Finish(); n != 1 {
		t.Fatalf("%d chunks; want 1", n)
	}
	var c epoch.Chunk
	if _, err := c.Parse(b.Chunk(0)); err != nil {
		t.Fatal(err)
	}
	return c.Records
}
