package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
	"github.com/weft-telemetry/weft/store/embedded"
)

// TestDamagedLogCostsItsEnd: a damaged log is set aside, the file and the log's
// readable part stay, and so does the order of commits.
func TestDamagedLogCostsItsEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "weft.duckdb")
	s := open(t, path, testConfig())
	mustAppend(t, s, randomBatch(0, 500))
	if _, err := s.Maintain(context.Background(), base); err != nil { // into the file
		t.Fatal(err)
	}
	const batches = 4
	for i := range batches { // into the log
		mustAppend(t, s, &record.Batch{Losses: []record.Loss{{Time: base, From: "log", Packets: uint64(i)}}, Incidents: []record.Incident{{ID: "one", Begin: base, Updated: base, Summary: fmt.Sprint(i)}}})
	}
	copyOf := filepath.Join(dir, "copy.duckdb")
	copyTo(t, path, copyOf)
	copyTo(t, path+".wal", copyOf+".wal")
	mustClose(t, s)
	info, err := os.Stat(copyOf + ".wal")
	if err != nil {
		t.Fatal(err)
	}
	repaired, most := 0, 0
	for _, at := range []int64{info.Size() * 2 / 3} {
		damaged := filepath.Join(t.TempDir(), "weft.duckdb")
		copyTo(t, copyOf, damaged)
		copyTo(t, copyOf+".wal", damaged+".wal")
		flip(t, damaged+".wal", at)
		s, err := embedded.Open(damaged, repairConfig())
		if err != nil {
			t.Fatalf("log damaged at %d: %v; want a store", at, err)
		}
		s.WaitForSalvage()
		losses, err := s.Losses(context.Background(), record.Query{Node: "log"})
		if err != nil {
			t.Fatal(err)
		}
		flows, err := s.Info(context.Background())
		if err != nil || flows.Kinds[0].Rows != 500 {
			t.Errorf("log damaged at %d: %d flows, %v; want the 500 of the file", at, flows.Kinds[0].Rows, err)
		}
		n := len(losses.Items)
		for i, l := range losses.Items {
			if l.Packets != uint64(n-1-i) {
				t.Fatalf("log damaged at %d: batch %d of %d is %d; want the first ones", at, i, n, l.Packets)
			}
		}
		most = max(most, n)
		if list := s.Repairs(); len(list) > 0 {
			repaired++
			t.Logf("log damaged at %d: %d of %d batches; %v", at, n, batches, list[0])
			if !list[0].LogOnly || len(asideFiles(t, damaged)) != 1 {
				t.Errorf("log damaged at %d: set aside %v; want only the log", at, asideFiles(t, damaged))
			}
		}
		mustAppend(t, s, randomBatch(9, 100))
		mustClose(t, s)
		mustClose(t, open(t, damaged, testConfig()))
	}
	if repaired == 0 || most == 0 {
		t.Errorf("%d logs repaired, with %d batches at most; the test proves nothing", repaired, most)
	}
}

// TestDamageFoundInUse: damage of an open file costs a query, not the appends after
// the next maintenance.
func TestDamageFoundInUse(t *testing.T) {
	t.Parallel()
	path, _ := original(t, t.TempDir(), 2000)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, path, repairConfig())
	defer mustClose(t, s)
	for at := int64(16384); at < info.Size(); at += 65536 {
		flip(t, path, at)
	}
	ctx := context.Background()
	for i := range 2 {
		_ = s.Append(ctx, randomBatch(uint64(100+i), 10)) // may fail until it is repaired
		if _, err := s.Maintain(ctx, base.Add(24*time.Hour)); err != nil {
			t.Errorf("Maintain = %v; want the store repaired", err)
		}
	}
	if len(s.Repairs()) == 0 {
		t.Fatal("the damage was not found; want it found by reading for the retention")
	}
	mustAppend(t, s, randomBatch(200, 10))
	s.WaitForSalvage()
	p, err := s.Flows(ctx, record.Query{From: base.Add(200 * time.Hour)})
	if err != nil || len(p.Items) != 10 {
		t.Errorf("%d flows of the last batch, %v; want 10", len(p.Items), err)
	}
}

// TestRepairIsTriedAgain: a repair that fails costs what is appended meanwhile, and
// neither the store nor its history.
func TestRepairIsTriedAgain(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path, want := original(t, dir, 2000)
	s := open(t, path, repairConfig())
	s.MarkDamaged()
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	for range 2 {
		if _, err := s.Maintain(ctx, base); err == nil {
			t.Fatal("Maintain = nil without the directory; want an error")
		}
		if err := s.Append(ctx, randomBatch(100, 10)); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("Append = %v; want ErrUnavailable", err)
		}
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Maintain(ctx, base); err != nil {
		t.Fatalf("Maintain = %v; want the store open again", err)
	}
	mustAppend(t, s, randomBatch(200, 10))
	s.WaitForSalvage()
	mustClose(t, s)
	if got := tableRows(t, path); len(got[store.Flows]) != len(want[store.Flows])+10 {
		t.Errorf("%d flows; want the %d of before and 10", len(got[store.Flows]), len(want[store.Flows]))
	}
}

// TestSalvageContinuesAfterARestart: rows arrive once, also if the process ends
// meanwhile; numbers of verdicts are there from the start.
func TestSalvageContinuesAfterARestart(t *testing.T) {
	t.Parallel()
	path, want := original(t, t.TempDir(), 8300)
	flip(t, path, 0) // nothing but the header, or DuckDB does not look at it
	flip(t, path, 8)
	s, err := embedded.Open(path, repairConfig())
	if err != nil {
		t.Fatal(err)
	}
	repairs := s.Repairs()
	if len(repairs) != 1 {
		t.Fatalf("repairs %v; want one", repairs)
	}
	mustClose(t, s)
	// The header is mended behind the back of the store, so that all can be read.
	flip(t, repairs[0].File, 8)
	flip(t, repairs[0].File, 0)
	s = open(t, path, repairConfig())
	p, err := s.Incidents(context.Background(), record.Query{})
	if err != nil || len(p.Items) == 0 {
		t.Fatalf("%d incidents at the start, %v; want those of the damaged file", len(p.Items), err)
	}
	mustClose(t, s) // somewhere in the middle
	s = open(t, path, repairConfig())
	s.WaitForSalvage()
	list := s.Repairs()
	mustClose(t, s)
	if n := isPart(t, tableRows(t, path), want); n != isPart(t, want, want) {
		t.Errorf("%v; %d rows, want all %d", list, n, isPart(t, want, want))
	}
}

// TestRepairIsNotForced: without Repair a damaged file is an error that says what to
// do, and files that are not damaged are never set aside.
func TestRepairIsNotForced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, _ := original(t, dir, 2000)
	flip(t, path, 4096)
	flip(t, path, 8192)
	_, err := embedded.Open(path, testConfig())
	if !errors.Is(err, embedded.ErrDamaged) || !strings.Contains(err.Error(), "weft store repair "+path) {
		t.Errorf("Open = %v; want ErrDamaged and the command to run", err)
	}
	for _, text := range []string{"Thread constructor failed: Resource temporarily unavailable", "std::bad_alloc", "IO Error: Cannot open file: No such file or directory"} {
		if embedded.DamagedAtOpen(errors.New(text)) {
			t.Errorf("%q is taken for damage of the file", text)
		}
	}
	newer := filepath.Join(dir, "newer.duckdb")
	mustClose(t, open(t, newer, testConfig()))
	run(t, newer, `INSERT INTO weft_migrations VALUES (99, 'from the future', now()::TIMESTAMP)`)
	other := filepath.Join(dir, "other.duckdb")
	run(t, other, `CREATE TABLE accounts (name VARCHAR)`)
	text := filepath.Join(dir, "text.duckdb")
	if err := os.WriteFile(text, []byte(strings.Repeat("this is no database\n", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{newer, other, text} {
		if s, err := embedded.Open(path, repairConfig()); err == nil {
			mustClose(t, s)
			t.Errorf("Open(%s) = nil; want an error", path)
		}
	}
	if list, _ := filepath.Glob(filepath.Join(dir, "*.damaged-*")); len(list) > 0 {
		t.Errorf("set aside: %v; want nothing", list)
	}
	zeros := filepath.Join(dir, "zeros.duckdb") // left by a crash of the machine
	if err := os.WriteFile(zeros, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	mustClose(t, open(t, zeros, repairConfig()))
	if list := asideFiles(t, zeros); len(list) != 1 {
		t.Errorf("set aside: %v; want the file of zeros", list)
	}
}
