package embedded_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "github.com/duckdb/duckdb-go/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
	"github.com/weft-telemetry/weft/store/embedded"
)

var base = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// TestReopen finds all records again, continues a walk, and continues sequence
// numbers.
func TestReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weft.duckdb")
	s := open(t, path, testConfig())
	samples := func(from, n int) *record.Batch {
		b := &record.Batch{}
		for i := range n {
			b.Ports = append(b.Ports, record.PortSample{Time: base, Node: "s", Port: 1, Samples: uint64(from + i)})
		}
		return b
	}
	mustAppend(t, s, samples(0, 10))
	first, err := s.Ports(context.Background(), record.Query{Limit: 4})
	if err != nil {
		t.Fatal(err)
	}
	mustClose(t, s)

	s = open(t, path, testConfig())
	defer mustClose(t, s)
	mustAppend(t, s, samples(10, 10))
	rest, err := s.Ports(context.Background(), record.Query{After: first.Next})
	var got []uint64
	for _, r := range append(first.Items, rest.Items...) {
		got = append(got, r.Samples)
	}
	if d := cmp.Diff([]uint64{9, 8, 7, 6, 5, 4, 3, 2, 1, 0}, got); err != nil || d != "" {
		t.Errorf("a walk over a restart, %v (- want, + got):\n%s", err, d)
	}
}

// TestWalkReachesOldRecords: a record of a device without a clock is decades away
// from the others, and a walk with growing windows finds it, once.
func TestWalkReachesOldRecords(t *testing.T) {
	cfg := testConfig()
	cfg.CacheSize = 0
	s := fresh(t, cfg)
	// Pages of two records that are two ninths of a second apart make windows that
	// begin with 4/3 s; times eight, they overflow 63 bits before they are as long
	// as all decades.
	var want []time.Time
	for i := range 5 {
		want = append(want, base.Add(-time.Duration(i)*time.Second*2/9))
	}
	want = append(want, time.Unix(-1, 0).UTC())
	b := &record.Batch{}
	for _, at := range want {
		b.Counters = append(b.Counters, record.Counter{Time: at, Name: "c"})
	}
	mustAppend(t, s, b)
	var got []time.Time
	for q := (record.Query{Limit: 2}); len(got) < 10; {
		page, err := s.Counters(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Items {
			got = append(got, r.Time)
		}
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("times of a walk (- want, + got):\n%s", d)
	}
}

// TestMigrateVersion1 opens a file that the first version wrote:
// testdata/version1.sql has its statements.
func TestMigrateVersion1(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weft.duckdb")
	script, err := os.ReadFile("testdata/version1.sql")
	if err != nil {
		t.Fatal(err)
	}
	run(t, path, string(script))

	s := open(t, path, testConfig())
	defer mustClose(t, s)
	ctx := context.Background()
	ports, err := s.Ports(ctx, record.Query{})
	want := []record.PortSample{{Time: base.Add(1500 * time.Millisecond), Node: "e1", Port: 2, Queue: 300, Latency: 70, Load: 5, Paused: 0.25, Samples: 3}}
	if d := cmp.Diff(want, ports.Items); err != nil || d != "" {
		t.Errorf("samples of version 1, %v (- want, + got):\n%s", err, d)
	}
	steps, err := s.Ports(ctx, record.Query{Step: time.Second})
	want[0].Time, want[0].QueueMax = base.Add(time.Second), 300
	if d := cmp.Diff(want, steps.Items); err != nil || d != "" {
		t.Errorf("steps of version 1, %v (- want, + got):\n%s", err, d)
	}
	incidents, err := s.Incidents(ctx, record.Query{})
	if err != nil || len(incidents.Items) != 1 || incidents.Items[0].ID != "i1" {
		t.Errorf("incidents of version 1: %+v, %v; want i1", incidents.Items, err)
	}
	mustAppend(t, s, &record.Batch{Ports: []record.PortSample{{Time: base, Node: "e1", Port: 2, QueueMax: 9}}})
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	newer := filepath.Join(dir, "newer.duckdb")
	mustClose(t, open(t, newer, testConfig()))
	run(t, newer, `INSERT INTO weft_migrations VALUES (99, 'from the future', now()::TIMESTAMP)`)
	other := filepath.Join(dir, "other.duckdb")
	run(t, other, `CREATE TABLE accounts (name VARCHAR)`)
	text := filepath.Join(dir, "text.duckdb")
	if err := os.WriteFile(text, []byte(strings.Repeat("this is no database\n", 1000)), 0o644); err != nil {
		t.Fatal(err)
	}
	inUse := filepath.Join(dir, "open.duckdb")
	defer mustClose(t, open(t, inUse, testConfig()))
	for path, want := range map[string]error{
		newer: embedded.ErrNewer, other: embedded.ErrForeign, text: embedded.ErrForeign, inUse: embedded.ErrLocked,
		filepath.Join(dir, "no", "such", "folder"): nil, "": nil, ":memory:": nil, dir + "/a?b": nil,
	} {
		s, err := embedded.Open(path, testConfig())
		if err == nil {
			mustClose(t, s)
		}
		if err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("Open(%s) = %v; want an error of %v", path, err, want)
		}
		t.Log(err)
	}
}

// TestSecondProcess opens a file from another process while this one has it open.
func TestSecondProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weft.duckdb")
	defer mustClose(t, open(t, path, testConfig()))
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "WEFT_STORE_TEST=open", "WEFT_STORE_FILE="+path)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "the file is in use by another process") {
		t.Errorf("a second process = %v, %s; want an error that names the first", err, out)
	}
	t.Logf("%s", out)
}

// TestEvict removes the oldest records when there are too many.
func TestEvict(t *testing.T) {
	if testing.Short() {
		t.Skip("writes some 20 MB")
	}
	cfg := testConfig()
	cfg.MaxSize = 10 * 1 << 20
	s := fresh(t, cfg)
	const frames = 4000
	frame := make([]byte, 4096)
	r := newRand(1)
	for i := range 6 {
		b := &record.Batch{Incidents: []record.Incident{{ID: "stays", Begin: base, Updated: base}}}
		for j := range frames / 6 {
			for k := range frame {
				frame[k] = byte(r.Uint32())
			}
			b.Traces = append(b.Traces, record.Trace{Time: base.Add(time.Duration(i*frames/6+j) * time.Second), Frame: append([]byte(nil), frame...)})
		}
		mustAppend(t, s, b)
	}
	up, err := s.Maintain(context.Background(), base)
	t.Logf("%+v, %v", up, err)
	if err != nil || up.Before <= cfg.MaxSize || up.After > cfg.MaxSize || up.Removed[store.Traces].Size == 0 {
		t.Fatalf("Maintain = %+v, %v; want the size to fall to %v", up, err, cfg.MaxSize)
	}
	traces, err := s.Traces(context.Background(), record.Query{Limit: 1})
	if err != nil || len(traces.Items) != 1 || !traces.Items[0].Time.Equal(base.Add((6*(frames/6)-1+3)*time.Second)) {
		t.Errorf("the newest trace is %v, %v; want the last appended", traces.Items[0].Time, err)
	}
	if p, err := s.Incidents(context.Background(), record.Query{}); err != nil || len(p.Items) != 1 {
		t.Errorf("%d incidents, %v; want the one to stay", len(p.Items), err)
	}
}

// TestEvictReachesVerdicts: verdicts are evicted last, but they are evicted if they
// use the space, although individual records keep arriving.
func TestEvictReachesVerdicts(t *testing.T) {
	if testing.Short() {
		t.Skip("writes some 20 MB")
	}
	cfg := testConfig()
	cfg.MaxSize = 10 * 1 << 20
	s := fresh(t, cfg)
	r := newRand(1)
	const incidents = 4000
	b := &record.Batch{}
	for i := range incidents {
		body := make([]byte, 0, 5000)
		for body = append(body, '"'); len(body) < 4096; {
			body = strconv.AppendUint(body, r.Uint64(), 36)
		}
		at := base.Add(time.Duration(i) * time.Second)
		b.Incidents = append(b.Incidents, record.Incident{ID: "i" + strconv.Itoa(i), Begin: at, Updated: at, Body: append(body, '"')})
	}
	mustAppend(t, s, b)
	var up store.MaintenanceResult
	for range 2 * 3 * 2 { // maintenance runs that end too large, for each group of kinds, twice
		b := &record.Batch{}
		for i := range 1000 { // enough that never all are the oldest
			b.Flows = append(b.Flows, record.FlowSlot{Time: base.Add(time.Duration(i) * time.Second)})
		}
		mustAppend(t, s, b)
		var err error
		if up, err = s.Maintain(context.Background(), base); err != nil {
			t.Fatal(err)
		}
	}
	if up.After > cfg.MaxSize {
		t.Errorf("the store has %v at last; want at most %v", up.After, cfg.MaxSize)
	}
	p, err := s.Incidents(context.Background(), record.Query{Limit: 1})
	if err != nil || len(p.Items) != 1 || p.Items[0].ID != "i"+strconv.Itoa(incidents-1) {
		t.Errorf("the newest incident is %v, %v; want the last appended", p.Items, err)
	}
}

// TestLargeAnswer ends pages early if the records are large.
func TestLargeAnswer(t *testing.T) {
	cfg := testConfig()
	cfg.MaxAnswer = 1 << 20
	s := fresh(t, cfg)
	b := &record.Batch{}
	for range 10 {
		b.Traces = append(b.Traces, record.Trace{Time: base, Frame: make([]byte, 300<<10)})
	}
	mustAppend(t, s, b)
	var sizes []int
	for q := (record.Query{}); ; {
		p, err := s.Traces(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, len(p.Items))
		if q.After = p.Next; p.Next == "" {
			break
		}
	}
	if d := cmp.Diff([]int{4, 4, 2}, sizes); d != "" {
		t.Errorf("pages of 10 records of 300 KiB with answers of 1 MiB (- want, + got):\n%s", d)
	}
}

// TestQueryTime aborts a query that takes too long.
func TestQueryTime(t *testing.T) {
	cfg := testConfig()
	cfg.QueryTime, cfg.CacheSize = time.Nanosecond, 0 // memory would answer in time
	s := fresh(t, cfg)
	if err := s.Append(context.Background(), &record.Batch{Flows: []record.FlowSlot{{Time: time.Unix(1, 0)}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Flows(context.Background(), record.Query{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Flows with a nanosecond of time = %v; want context.DeadlineExceeded", err)
	}
}

// TestDocumentedSQL runs the statements of docs/store.md.
func TestDocumentedSQL(t *testing.T) {
	page, err := os.ReadFile("../../docs/store.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```sql\n")
	script, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("docs/store.md has no SQL")
	}
	path := filepath.Join(t.TempDir(), "weft.duckdb")
	s := open(t, path, testConfig())
	mustAppend(t, s, &record.Batch{Ports: []record.PortSample{{Time: base, Node: "e1", Port: 1, Queue: 5}}, Counters: []record.Counter{{Time: base, Name: "c"}}})
	mustClose(t, s)
	for _, view := range []string{"port_seconds", "port_minutes", "counter_seconds", "counter_minutes"} {
		script += "SELECT * FROM " + view + ";"
	}
	run(t, path, script)
}

func TestExport(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "it's out")
	s := fresh(t, testConfig())
	b := &record.Batch{}
	for i := range 10 {
		b.Ports = append(b.Ports, record.PortSample{Time: base.Add(time.Duration(i)*time.Second + 1), Node: "s", Port: 1, Queue: 8})
	}
	mustAppend(t, s, b)
	mustAppend(t, s, b)
	for _, kind := range store.Kinds() {
		want := map[store.Kind]uint64{store.Ports: 6, store.PortSeconds: 2, store.PortMinutes: 0}[kind]
		rows, err := s.Export(context.Background(), dir, kind, base.Add(2*time.Second+1), base.Add(5*time.Second))
		if err != nil || rows != want {
			t.Errorf("Export of %s = %d, %v; want %d", kind, rows, err, want)
		}
	}
	db := sqlOpen(t, "")
	defer db.Close()
	var n, oldest int64
	query := `SELECT count(*), min(epoch_ns(time)) FROM '` + strings.ReplaceAll(dir, "'", "''") + `/ports.parquet'`
	if err := db.QueryRow(query).Scan(&n, &oldest); err != nil || n != 6 || oldest != base.Add(2*time.Second+1).UnixNano() {
		t.Errorf("the file has %d rows from %d, %v; want 6 from %d", n, oldest, err, base.Add(2*time.Second+1).UnixNano())
	}
	names, _ := filepath.Glob(filepath.Join(dir, ".weft*"))
	if len(names) != 0 {
		t.Errorf("halves of files are left: %v", names)
	}
}

// run executes a script on a file that no Store has open.
func run(t *testing.T, path, script string) {
	t.Helper()
	db := sqlOpen(t, path)
	if _, err := db.Exec(script); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func sqlOpen(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("duckdb", path)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func mustAppend(t testing.TB, s *embedded.Store, b *record.Batch) {
	t.Helper()
	if err := s.Append(context.Background(), b); err != nil {
		t.Fatal(err)
	}
}

func mustClose(t testing.TB, s *embedded.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
