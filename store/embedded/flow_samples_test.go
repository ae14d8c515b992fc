package embedded_test

import (
	"context"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// TestMigrateVersion6 opens a file whose flows have no samples: old flows have none, and
// new ones keep theirs, in the table, in sums and in the view.
func TestMigrateVersion6(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "weft.duckdb")
	mustClose(t, open(t, path, testConfig()))
	run(t, path, `DROP VIEW flows; ALTER TABLE flow_rows DROP COLUMN samples; CREATE VIEW flows AS FROM flow_rows;
		DELETE FROM weft_migrations WHERE version > 6`)
	run(t, path, `INSERT INTO flow_keys VALUES (1, 'tcp 10.0.0.2:40000 > 10.0.1.2:80', '10.0.0.2', '10.0.1.2', 40000, 80, 6, 'h1', 'h2');
		INSERT INTO flow_paths VALUES (1, 1000000000, true, false, ['e1']);
		INSERT INTO flow_rows VALUES ('2026-03-01 12:00:00', 1, 1, 1, 9, 9000, 0, NULL)`)

	s := open(t, path, testConfig())
	flow := model.NewFlowKey(netip.MustParseAddrPort("10.0.0.2:40000"), netip.MustParseAddrPort("10.0.1.2:80"), model.TCP)
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	list := []record.FlowSlot{
		{Time: at.Add(time.Second), Slot: time.Second, Flow: flow, Src: "h1", Dst: "h2", Packets: 512, Bytes: 5e5, Samples: 2, Path: []record.FlowHop{{Switch: "e1", Packets: 512}}},
		{Time: at, Slot: time.Second, Flow: flow, Src: "h1", Dst: "h2", Packets: 9, Bytes: 9000, Exact: true, Path: []record.FlowHop{{Switch: "e1", Packets: 9}}},
	}
	mustAppend(t, s, &record.Batch{Flows: list[:1]})
	mustClose(t, s)
	s = open(t, path, testConfig())
	got, err := s.Flows(ctx, record.Query{})
	if d := cmp.Diff(list, got.Items); err != nil || d != "" {
		t.Errorf("flows, %v (- want, + got):\n%s", err, d)
	}
	sums, err := s.FlowSums(ctx, record.FlowSumQuery{From: at, To: at.Add(time.Minute), Sort: record.ByBytes})
	if err != nil || len(sums.Items) != 1 || sums.Items[0].Samples != 2 || sums.Items[0].Exact {
		t.Errorf("sums are %+v, %v; want one flow with 2 samples", sums.Items, err)
	}
	mustClose(t, s)
	db := sqlOpen(t, path)
	defer db.Close()
	if d := cmp.Diff([]string{"0", "2"}, texts(t, db, `SELECT samples::VARCHAR FROM flows ORDER BY seq`)); d != "" {
		t.Errorf("samples in the view (- want, + got):\n%s", d)
	}
}
