package embedded_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/store"
	"github.com/weft-telemetry/weft/store/embedded"
)

// TestFilesArePrivate: neither the file nor its logs are readable by other users, also
// if the file was before.
func TestFilesArePrivate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weft.duckdb")
	mode := func(name string) {
		t.Helper()
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v; want no bits of others", name, info.Mode(), err)
		}
	}
	s := open(t, path, testConfig())
	for range 2 {
		mustAppend(t, s, randomBatch(1, 10))
		mode(path)
		mode(path + ".wal")
		if _, err := s.Maintain(context.Background(), base); err != nil { // the log begins again
			t.Fatal(err)
		}
	}
	if _, err := s.Export(context.Background(), filepath.Join(filepath.Dir(path), "out"), store.Flows, time.Time{}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	mode(filepath.Join(filepath.Dir(path), "out", "flows.parquet"))
	mustClose(t, s)
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(foreign, []byte(strings.Repeat("no store\n", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(foreign, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := embedded.Open(foreign, testConfig()); err == nil {
		t.Error("Open of a file that is no store = nil; want an error")
	}
	if info, err := os.Stat(foreign); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode of a file that is no store = %v, %v; want it as it was", info.Mode(), err)
	}
	var log strings.Builder
	cfg := testConfig()
	cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	mustClose(t, open(t, path, cfg))
	mode(path)
	if !strings.Contains(log.String(), path) {
		t.Errorf("log %q; want the file whose mode was changed", log.String())
	}
}
