package embedded_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
	"github.com/weft-telemetry/weft/store/embedded"
)

// TestUndamagedFileIsSalvagedCompletely: a repair loses nothing that can be read,
// also of an older schema.
func TestUndamagedFileIsSalvagedCompletely(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, want := original(t, dir, 2000)
	to := filepath.Join(dir, "new.duckdb")
	r, err := embedded.RepairFile(context.Background(), path, to, testConfig())
	if err != nil || r.Lost != 0 || r.Running {
		t.Fatalf("RepairFile = %+v, %v; want nothing lost", r, err)
	}
	got := tableRows(t, to)
	if isPart(t, got, want) != isPart(t, want, want) {
		t.Errorf("%d rows salvaged; want all %d", isPart(t, got, want), isPart(t, want, want))
	}
	if _, err := embedded.RepairFile(context.Background(), path, to, testConfig()); err == nil {
		t.Error("RepairFile wrote to an existing file")
	}
	script, err := os.ReadFile("testdata/version1.sql")
	if err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(dir, "old.duckdb")
	run(t, old, string(script))
	if r, err = embedded.RepairFile(context.Background(), old, old, testConfig()); err != nil || r.Lost != 0 || r.Salvaged == 0 {
		t.Errorf("RepairFile of version 1 = %+v, %v; want all rows", r, err)
	}
	if list := asideFiles(t, old); len(list) != 1 {
		t.Errorf("files set aside: %v; want one", list)
	}
}

// TestDamagedFileDoesNotPreventTheStart flips bytes at several places: the store
// opens, takes records, and has nothing that the original does not have; the
// original is set aside and stays as it is.
func TestDamagedFileDoesNotPreventTheStart(t *testing.T) {
	t.Parallel()
	path, want := original(t, t.TempDir(), 2000)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	repaired := 0
	// The header, the state of the database, and two blocks.
	for i, at := range []int64{8, 4096, 12288, info.Size() - 64} {
		damaged := filepath.Join(t.TempDir(), "weft.duckdb")
		copyTo(t, path, damaged)
		flip(t, damaged, at)
		before, err := os.ReadFile(damaged)
		if err != nil {
			t.Fatal(err)
		}
		s, err := embedded.Open(damaged, repairConfig())
		if err != nil {
			t.Fatalf("bytes at %d: %v; want a store", at, err)
		}
		mustAppend(t, s, &record.Batch{Flows: []record.FlowSlot{{Time: base}}, Incidents: []record.Incident{{ID: "i999999", Begin: base, Updated: base}}})
		if i%2 == 0 { // also found by maintenance, if it was not at the start
			if _, err := s.Maintain(context.Background(), base); err != nil {
				t.Errorf("bytes at %d: Maintain = %v", at, err)
			}
		}
		s.WaitForSalvage()
		repairs := s.Repairs()
		mustClose(t, s)
		if len(repairs) == 0 {
			continue
		}
		repaired++
		got := tableRows(t, damaged)
		got[store.Flows] = without(got[store.Flows], want[store.Flows])
		got[store.Incidents] = without(got[store.Incidents], want[store.Incidents])
		n := isPart(t, got, want)
		t.Logf("bytes at %d: %v; %d rows", at, repairs[0], n)
		aside, err := os.ReadFile(repairs[0].File)
		if err != nil || string(aside) != string(before) && i%2 != 0 {
			t.Errorf("bytes at %d: the file set aside was changed, %v", at, err)
		}
	}
	if repaired == 0 {
		t.Error("no place was noticed; the test proves nothing")
	}
}

// without removes the rows that the test itself appended.
func without(got, original map[string]int) map[string]int {
	for text := range got {
		if original[text] == 0 && (strings.Contains(text, "i999999") || strings.Contains(text, base.Format(time.DateTime))) {
			delete(got, text)
		}
	}
	return got
}

// TestDamageOfOneTableCostsOneTable searches for a place whose damage hits one table:
// all others are salvaged completely, and of that one what CheckFile can read.
func TestDamageOfOneTableCostsOneTable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, want := original(t, dir, 2000)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	r := newRand(2)
	for range 50 {
		damaged := filepath.Join(t.TempDir(), "weft.duckdb")
		copyTo(t, path, damaged)
		flip(t, damaged, r.Int64N(info.Size()))
		check, err := embedded.CheckFile(context.Background(), damaged)
		if err != nil {
			t.Fatal(err)
		}
		var hit []embedded.TableCheck
		for _, table := range check.Tables {
			if table.Damage != "" {
				hit = append(hit, table)
			}
		}
		if check.Damage != "" || len(hit) != 1 || want[store.Kind(hit[0].Table)] == nil {
			continue
		}
		result, err := embedded.RepairFile(context.Background(), damaged, damaged, testConfig())
		if err != nil {
			t.Fatal(err)
		}
		got := tableRows(t, damaged)
		isPart(t, got, want)
		for kind := range want {
			if string(kind) != hit[0].Table && len(got[kind]) != len(want[kind]) {
				t.Errorf("%s has %d rows; want all %d, because only %s is damaged", kind, len(got[kind]), len(want[kind]), hit[0].Table)
			}
		}
		if n := len(got[store.Kind(hit[0].Table)]); uint64(n)+result.Lost < uint64(len(want[store.Kind(hit[0].Table)])) {
			t.Errorf("%s has %d rows, %d lost; the original has %d", hit[0].Table, n, result.Lost, len(want[store.Kind(hit[0].Table)]))
		}
		t.Logf("%+v: %v", hit[0], result)
		return
	}
	t.Fatal("no damage of one table was found in 50 places")
}
