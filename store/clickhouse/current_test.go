package clickhouse

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

// openCurrent opens a store on a current server; that of Debian is older.
func openCurrent(t *testing.T, cfg Config) *Store {
	t.Helper()
	s := open(t, cfg)
	t.Cleanup(func() { _ = s.Close() })
	if !s.current {
		t.Skip("the server is older than 24.8: make current-clickhouse tests with a current one")
	}
	return s
}

// layout is how the tables are stored.
func layout(t *testing.T, s *Store) (list []string) {
	t.Helper()
	rows, err := s.conn.Query(t.Context(), `SELECT table || ' ' || name || ' ' || type || ' ' || compression_codec FROM system.columns WHERE database = `+quote(s.cfg.Database)+
		` UNION ALL SELECT name || ' ' || engine_full FROM system.tables WHERE database = `+quote(s.cfg.Database))
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			t.Fatal(err)
		}
		list = append(list, one)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(list)
	return list
}

// TestOlderDatabase opens a database as an older server has it: what is in it stays, the
// tables become those of a current server, and change no more.
func TestOlderDatabase(t *testing.T) {
	cfg := testConfig(t)
	cfg.Retention = store.DefaultRetention()
	fresh := openCurrent(t, cfg)
	want := layout(t, fresh)

	cfg = testConfig(t)
	conn, err := connect(cfg, "")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.Exec(t.Context(), `CREATE DATABASE `+cfg.Database); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if conn, err = connect(cfg, cfg.Database); err != nil {
		t.Fatal(err)
	}
	old := &Store{cfg: cfg, conn: conn}
	old.retention.Store(&cfg.Retention)
	for _, step := range []func(context.Context) error{func(ctx context.Context) error { return old.migrate(ctx, migrations) }, old.readKey, old.readRemoved} {
		if err := step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := appendPorts(t, old, 0, 5); err != nil {
		t.Fatal(err)
	}
	if err := old.Append(t.Context(), &record.Batch{Flows: []record.FlowSlot{{Time: base, Src: "h1", Path: []record.FlowHop{{Switch: "e1", Packets: 7}}}}}); err != nil {
		t.Fatal(err)
	}
	before, err := old.Flows(t.Context(), record.Query{})
	if err != nil {
		t.Fatal(err)
	}

	cfg.Retention = store.DefaultRetention()
	for range 2 {
		s := openCurrent(t, cfg)
		if d := cmp.Diff(want, layout(t, s)); d != "" {
			t.Errorf("tables (- of a new database, + of this one):\n%s", d)
		}
		after, err := s.Flows(t.Context(), record.Query{})
		if d := cmp.Diff(before.Items, after.Items); err != nil || d != "" {
			t.Errorf("flows, %v (- before, + after):\n%s", err, d)
		}
		if got := nodes(t, s); len(got) != 5 {
			t.Errorf("%v; want 5 samples", got)
		}
	}
}

// TestColumnsAreCompressed expects every definition of currentColumns in the tables.
func TestColumnsAreCompressed(t *testing.T) {
	s := openCurrent(t, testConfig(t))
	all := layout(t, s)
	for table, columns := range currentColumns {
		for name, definition := range columns {
			if want := fmt.Sprint(table, " ", name, " ", definition); !slices.Contains(all, want) {
				t.Errorf("no column %s", want)
			}
		}
	}
}

// TestTokens inserts a block twice, as a process whose answer was lost does: its rows and
// what rollups have of them count once.
func TestTokens(t *testing.T) {
	s := openCurrent(t, testConfig(t))
	list := []record.PortSample{{Time: base, Node: "s", Port: 1, Queue: 4096}}
	first := s.allocate(1)
	for range 2 {
		if err := insertBlock(t.Context(), s, &portTable, list, first); err != nil {
			t.Fatal(err)
		}
	}
	other := s.allocate(1) // the same rows in another batch are others
	if err := insertBlock(t.Context(), s, &portTable, list, other); err != nil {
		t.Fatal(err)
	}
	s.done()
	if got := nodes(t, s); len(got) != 2 {
		t.Errorf("%v; want two samples", got)
	}
	steps, err := s.Ports(t.Context(), record.Query{Step: time.Second})
	if err != nil || len(steps.Items) != 1 || steps.Items[0].Samples != 2 {
		t.Errorf("steps %+v, %v; want one of two samples", steps.Items, err)
	}
}

// TestRollupIsCompleted has a block whose rollup was not written: its second insert adds the
// rollup, and no row.
func TestRollupIsCompleted(t *testing.T) {
	s := openCurrent(t, testConfig(t))
	list := []record.PortSample{{Time: base, Node: "s", Port: 1}}
	first := s.allocate(1)
	if err := s.conn.Exec(t.Context(), `DROP TABLE ports_1s_view`); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := insertBlock(t.Context(), s, &portTable, list, first); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if err := s.createView(t.Context(), portView(store.PortSeconds, "1000000000")); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.done()
	steps, err := s.Ports(t.Context(), record.Query{Step: time.Second})
	if got := nodes(t, s); err != nil || len(got) != 1 || len(steps.Items) != 1 || steps.Items[0].Samples != 1 {
		t.Errorf("samples %v, steps %+v, %v; want one of each", got, steps.Items, err)
	}
}

// TestServerDropsWhatNobodyRemoves has rows that arrived long ago: the server drops them, and
// none that arrived now, however old the times in them are.
func TestServerDropsWhatNobodyRemoves(t *testing.T) {
	cfg := testConfig(t)
	const age = time.Hour
	cfg.Retention = store.Retention{store.Ports: age}
	s := openCurrent(t, cfg)
	if err := appendPorts(t, s, 0, 3); err != nil {
		t.Fatal(err)
	}
	for i, ago := range []time.Duration{age + ttlMargin + time.Hour, ttlMargin} {
		seq := s.seq(time.Now().Add(-ago).UnixMicro())
		if err := s.conn.Exec(t.Context(), fmt.Sprintf(`INSERT INTO ports (time, seq, node, port) SELECT %d, %d, 'old%d', 1`, time.Now().UnixNano(), seq, i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.conn.Exec(t.Context(), `OPTIMIZE TABLE ports FINAL`); err != nil {
		t.Fatal(err)
	}
	if got := nodes(t, s); !slices.Equal(got, []string{"old1", "s2", "s1", "s0"}) {
		t.Errorf("%v; want all but old0", got)
	}
	if err := s.SetLimits(nil, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Maintain(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	var with uint64
	if err := s.conn.QueryRow(t.Context(), `SELECT count() FROM system.tables WHERE engine_full LIKE '% TTL %' AND database = `+quote(cfg.Database)).Scan(&with); err != nil || with != 0 {
		t.Errorf("%d tables with a TTL, %v; want none without a retention", with, err)
	}
}
