package clickhouse

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store/embedded"
	"github.com/weft-telemetry/weft/store/transfer"
)

// TestCopy copies a DuckDB file into ClickHouse and back.
func TestCopy(t *testing.T) {
	file := func(name string) *embedded.Store {
		s, err := embedded.Open(filepath.Join(t.TempDir(), name), embedded.DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	first, last := file("first.duckdb"), file("last.duckdb")
	b := &record.Batch{}
	for i := range 200 {
		at := base.Add(time.Duration(i/3) * time.Millisecond)
		b.Flows = append(b.Flows, record.FlowSlot{Time: at, Slot: 1e7, Src: "h1", Dst: "h2", Packets: uint64(i), Bytes: uint64(i * 100), Path: []record.FlowHop{{Switch: "e1", Packets: uint64(i)}}})
		b.Ports = append(b.Ports, record.PortSample{Time: at, Node: "e1", Port: model.PortID(i % 4), Queue: model.Bytes(i)})
		b.Incidents = append(b.Incidents, record.Incident{ID: at.String(), Begin: at, Updated: at, Body: []byte(`{"a":1}`)})
	}
	if err := first.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	cfg := testConfig(t)
	middle := open(t, cfg)
	defer middle.Close() //nolint:errcheck // nothing is left
	for _, step := range []struct {
		from transfer.Source
		to   transfer.Target
	}{{first, middle}, {middle, last}} {
		if _, err := transfer.Copy(t.Context(), step.from, step.to); err != nil {
			t.Fatal(err)
		}
	}
	q := record.Query{Limit: 1000}
	wantFlows, err1 := first.Flows(t.Context(), q)
	gotFlows, err2 := last.Flows(t.Context(), q)
	if d := cmp.Diff(wantFlows.Items, gotFlows.Items, cmpopts.EquateEmpty()); err1 != nil || err2 != nil || d != "" || len(gotFlows.Items) != 200 {
		t.Errorf("flows, %v, %v (- first, + last):\n%s", err1, err2, d)
	}
	wantPorts, err1 := first.Ports(t.Context(), record.Query{Step: time.Second})
	gotPorts, err2 := last.Ports(t.Context(), record.Query{Step: time.Second})
	if d := cmp.Diff(wantPorts.Items, gotPorts.Items); err1 != nil || err2 != nil || d != "" || len(gotPorts.Items) != 4 {
		t.Errorf("ports, %v, %v (- first, + last):\n%s", err1, err2, d)
	}
	wantSums, err1 := first.FlowSums(t.Context(), record.FlowSumQuery{Sort: record.ByBytes})
	gotSums, err2 := middle.FlowSums(t.Context(), record.FlowSumQuery{Sort: record.ByBytes})
	if d := cmp.Diff(wantSums, gotSums, cmpopts.EquateEmpty()); err1 != nil || err2 != nil || d != "" {
		t.Errorf("sums, %v, %v (- DuckDB, + ClickHouse):\n%s", err1, err2, d)
	}
}
