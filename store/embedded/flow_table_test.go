package embedded_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/duckdb/duckdb-go/v2"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

// version4 makes a file of schema version 4.
func version4(t *testing.T, path string) {
	t.Helper()
	script, err := os.ReadFile("testdata/version4.sql")
	if err != nil {
		t.Fatal(err)
	}
	run(t, path, string(script))
}

// TestMigrateVersion4 opens a file that has flows as text and lists: the view has the
// same columns and rows as the table had, and the API the same flows.
func TestMigrateVersion4(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weft.duckdb")
	version4(t, path)
	columns, rows := viewOf(t, path)
	s := open(t, path, testConfig())
	flow := model.NewFlowKey(netip.MustParseAddrPort("10.0.0.2:40000"), netip.MustParseAddrPort("10.0.1.2:80"), model.TCP)
	got, err := s.Flows(context.Background(), record.Query{Flow: flow})
	const slot = 10 * time.Millisecond
	want := []record.FlowSlot{
		{Time: base.Add(slot), Slot: slot, Flow: flow, Src: "h1", Dst: "renamed", Packets: 5, Bytes: math.MaxUint64},
		{
			Time: base.Add(slot), Slot: slot, Flow: flow, Src: "h1", Dst: "h2", Packets: 9, Bytes: 9000, Exact: true,
			Path: []record.FlowHop{{Switch: "e1", Packets: 9}, {Switch: "a1", Packets: 8}, {Switch: "e2", Packets: 7}},
		},
		{
			Time: base, Slot: slot, Flow: flow, Src: "h1", Dst: "h2", Packets: 9, Bytes: 9000, Exact: true,
			Path: []record.FlowHop{{Switch: "e1", Packets: 9}, {Switch: "a1", Packets: 9}, {Switch: "e2", Packets: 9}},
		},
	}
	if d := cmp.Diff(want, got.Items); err != nil || d != "" {
		t.Errorf("flows of version 4, %v (- want, + got):\n%s", err, d)
	}
	more := record.FlowSlot{Time: base.Add(time.Hour), Slot: slot, Flow: flow, Src: "h1", Dst: "h2", Packets: 3, Exact: true, Path: []record.FlowHop{{Switch: "e1", Packets: 2}}}
	mustAppend(t, s, &record.Batch{Flows: []record.FlowSlot{more}})
	mustClose(t, s)
	newColumns, newRows := viewOf(t, path)
	if d := cmp.Diff(columns, newColumns); d != "" {
		t.Errorf("columns of flows (- version 4, + now):\n%s", d)
	}
	if d := cmp.Diff(rows, newRows[:len(rows)]); d != "" || len(newRows) != len(rows)+1 {
		t.Errorf("%d rows of flows, want %d (- version 4, + now):\n%s", len(newRows), len(rows)+1, d)
	}
}

// viewOf returns the names and types of the columns of flows that schema version 4 has,
// and its rows as text, by sequence number.
func viewOf(t testing.TB, path string) (columns, rows []string) {
	t.Helper()
	db, err := sql.Open("duckdb", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	return texts(t, db, `SELECT column_name || ' ' || column_type FROM (DESCRIBE flows) WHERE column_name <> 'samples'`), texts(t, db, `SELECT t::VARCHAR FROM (SELECT COLUMNS(c -> c <> 'samples') FROM flows ORDER BY seq) t`)
}

func texts(t testing.TB, db *sql.DB, query string) (all []string) {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		all = append(all, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// textRow is the row of a flow as schema version 4 stored it.
func textRow(r *record.FlowSlot, seq int64) []driver.Value {
	switches, packets := make([]any, len(r.Path)), make([]any, len(r.Path))
	for i, h := range r.Path {
		switches[i], packets[i] = h.Switch, h.Packets
	}
	src, dst := r.Flow.Src.String(), r.Flow.Dst.String()
	if r.Flow.V6 && r.Flow.Src.Is4() {
		src = "::ffff:" + src
	}
	if r.Flow.V6 && r.Flow.Dst.Is4() {
		dst = "::ffff:" + dst
	}
	if r.Flow.IsZero() {
		src, dst = "", ""
	}
	return []driver.Value{
		r.Time.UTC(), seq, int64(r.Slot), r.Flow.String(), src, dst, r.Flow.SrcPort, r.Flow.DstPort, uint8(r.Flow.Proto),
		r.Src, r.Dst, r.Packets, r.Bytes, r.Exact, switches, packets,
	}
}

// TestFlowColumnsEqualTextRows: any batches, read from the file, are what a table of
// text and lists has, also with so few numbers in memory that flows get new ones.
func TestFlowColumnsEqualTextRows(t *testing.T) {
	path, other := filepath.Join(t.TempDir(), "weft.duckdb"), filepath.Join(t.TempDir(), "text.duckdb")
	s := open(t, path, testConfig())
	defer mustClose(t, s)
	version4(t, other)
	run(t, other, `DELETE FROM flows`)
	db, text := sqlOpen(t, path), sqlOpen(t, other)
	defer db.Close()
	defer text.Close()
	conn, err := text.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	seq := int64(0)
	names := rapid.SampledFrom([]string{"", "e1", "a1", "h1", "é", "x'; --"})
	counts := rapid.OneOf(rapid.Uint64Range(0, 300), rapid.SampledFrom([]uint64{1 << 63, math.MaxUint64}))
	hops := rapid.Custom(func(t *rapid.T) record.FlowHop {
		return record.FlowHop{Switch: names.Draw(t, "switch"), Packets: counts.Draw(t, "hop packets")}
	})
	flows := rapid.Custom(func(t *rapid.T) record.FlowSlot {
		ends := rapid.SampledFrom([][2]string{{"10.0.0.2", "10.0.1.2"}, {"2001:db8::1", "2001:db8::2"}, {"::ffff:10.0.0.2", "::ffff:10.0.1.2"}}).Draw(t, "ends")
		at := netip.AddrPortFrom(netip.MustParseAddr(ends[0]), uint16(rapid.IntRange(0, 6).Draw(t, "port")))
		r := record.FlowSlot{
			Time: base.Add(time.Duration(rapid.IntRange(-1e9, 1e9).Draw(t, "ns"))), Slot: time.Duration(rapid.IntRange(0, 1).Draw(t, "slot")),
			Flow: model.NewFlowKey(at, netip.AddrPortFrom(netip.MustParseAddr(ends[1]), 80), model.TCP), Src: names.Draw(t, "src"), Dst: names.Draw(t, "dst"),
			Packets: counts.Draw(t, "packets"), Bytes: counts.Draw(t, "bytes"), Exact: rapid.Bool().Draw(t, "exact"),
			Path: rapid.SliceOfN(hops, 0, 10).Draw(t, "path"),
		}
		if rapid.Bool().Draw(t, "equal hops") {
			for i := range r.Path {
				r.Path[i].Packets = r.Packets - uint64(rapid.IntRange(0, int(min(r.Packets, 256))).Draw(t, "less"))
			}
		}
		return r
	})
	rapid.Check(t, func(rt *rapid.T) {
		first := seq
		s.SetMaxNumbered(rapid.IntRange(1, 20).Draw(rt, "numbers in memory"))
		var rows [][]driver.Value
		for range rapid.IntRange(1, 3).Draw(rt, "batches") {
			b := record.Batch{Flows: rapid.SliceOfN(flows, 0, 30).Draw(rt, "flows")}
			mustAppend(t, s, &b)
			for i := range b.Flows {
				seq++
				rows = append(rows, textRow(&b.Flows[i], seq))
			}
		}
		if err := conn.Raw(func(c any) error {
			to, err := duckdb.NewAppenderFromConn(c.(driver.Conn), "", "flows")
			for _, row := range rows {
				err = errors.Join(err, to.AppendRow(row...))
			}
			return errors.Join(err, to.Close())
		}); err != nil {
			rt.Fatal(err)
		}
		query := fmt.Sprintf(`SELECT t::VARCHAR FROM (SELECT COLUMNS(c -> c <> 'samples') FROM flows WHERE seq > %d ORDER BY seq) t`, first)
		got, want := texts(t, db, query), texts(t, text, query)
		if len(want) != len(rows) || !slices.Equal(got, want) {
			rt.Fatalf("flows (- text rows, + columns):\n%s", cmp.Diff(want, got))
		}
	})
}

// flowsFrom makes n records of different flows at a time.
func flowsFrom(at time.Time, first, n int) *record.Batch {
	b := &record.Batch{}
	for i := range n {
		b.Flows = append(b.Flows, record.FlowSlot{
			Time: at, Flow: model.FlowKey{Src: model.Addr4(1), Dst: model.Addr4(2), SrcPort: uint16(first + i), Proto: model.UDP}, Src: "h1", Dst: "h2",
			Packets: uint64(first + i), Path: []record.FlowHop{{Switch: fmt.Sprint("e", (first+i)%7), Packets: uint64(first + i)}},
		})
	}
	return b
}

// TestFlowNumbersArePruned: retention also removes the flows and paths that no row has,
// and those that return get numbers again.
func TestFlowNumbersArePruned(t *testing.T) {
	cfg := testConfig()
	cfg.CacheSize, cfg.MaxPage, cfg.Retention = 0, 1000, store.Retention{store.Flows: time.Hour}
	path := filepath.Join(t.TempDir(), "weft.duckdb")
	s := open(t, path, cfg)
	for hour := range 4 {
		mustAppend(t, s, flowsFrom(base.Add(time.Duration(hour)*time.Hour), 100*hour, 100))
		if _, err := s.Maintain(context.Background(), base.Add(time.Duration(hour)*time.Hour+time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	if flows, paths := s.NumberedRows(t.Context()); flows != 100 || paths > 7+7 {
		t.Errorf("%d flows and %d paths are stored; want 100 of the last hour and its paths", flows, paths)
	}
	at := base.Add(5 * time.Hour)
	if _, err := s.Maintain(context.Background(), at); err != nil {
		t.Fatal(err)
	}
	if flows, paths := s.NumberedRows(t.Context()); flows != 0 || paths != 0 {
		t.Errorf("%d flows and %d paths are stored after all rows expired; want none", flows, paths)
	}
	want := flowsFrom(at, 300, 100)
	mustAppend(t, s, want)
	got, err := s.Flows(context.Background(), record.Query{})
	slices.Reverse(got.Items)
	if d := cmp.Diff(want.Flows, got.Items); err != nil || d != "" {
		t.Errorf("flows that return, %v (- want, + got):\n%s", err, d)
	}
	mustClose(t, s)
}

// TestFailedAppendForgetsItsNumbers: the flows of a batch that was not stored are
// stored with the next one.
func TestFailedAppendForgetsItsNumbers(t *testing.T) {
	cfg := testConfig()
	cfg.CacheSize = 0
	path := filepath.Join(t.TempDir(), "weft.duckdb")
	s := open(t, path, cfg)
	defer mustClose(t, s)
	db := sqlOpen(t, path) // the same database, within this process
	defer db.Close()
	alter := func(statement string) {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	b := flowsFrom(base, 0, 10)
	b.Counters = []record.Counter{{Time: base, Name: "c"}}
	alter(`ALTER TABLE counters RENAME TO hidden`)
	if err := s.Append(context.Background(), b); err == nil || !strings.Contains(err.Error(), "counters") {
		t.Fatalf("Append without a table = %v; want an error", err)
	}
	alter(`ALTER TABLE hidden RENAME TO counters`)
	mustAppend(t, s, b)
	got, err := s.Flows(context.Background(), record.Query{})
	slices.Reverse(got.Items)
	if d := cmp.Diff(b.Flows, got.Items); err != nil || d != "" {
		t.Errorf("flows, %v (- want, + got):\n%s", err, d)
	}
}
