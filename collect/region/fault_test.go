package region_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/collect/region"
)

// TestTruncatedFileIsAnError: every kind of access to a file that was truncated is an
// error that names the file, also of a region that only reads, and of the header.
func TestTruncatedFileIsAnError(t *testing.T) {
	const size = 1 << 20
	for name, access := range map[string]func(*region.Region){
		"store":   func(r *region.Region) { region.Store(&r.Words()[size/8-1], 1) },
		"load":    func(r *region.Region) { region.Load(&r.Words()[size/8-1]) },
		"publish": func(r *region.Region) { region.Publish(&r.Words()[size/8-1], 1) },
		"line": func(r *region.Region) {
			w := r.Words()[size/8-8:]
			region.StoreLine((*[8]uint64)(w), new([64]byte), &w[0])
		},
		"copy":         func(r *region.Region) { _ = r.Write(size-4096, make([]byte, 4096)) },
		"bytes":        func(r *region.Region) { _ = r.Write(size-3, []byte{1, 2, 3}) },
		"aligned":      func(r *region.Region) { region.PutAligned(r.Words(), size-32, make([]byte, 32)) },
		"read":         func(r *region.Region) { _ = r.Read(size-4096, make([]byte, 4096)) },
		"fetch add":    func(r *region.Region) { _, _ = r.FetchAdd(size-8, 1) },
		"compare swap": func(r *region.Region) { _, _ = r.CompareSwap(size-8, 0, 1) },
		"counts":       func(r *region.Region) { r.WriterCounters(0).CountWrites(1) },
		"sums":         func(r *region.Region) { r.Counts() },
		"reset":        func(r *region.Region) { r.Reset() },
		"snapshot":     func(r *region.Region) { _ = r.Snapshot(io.Discard) },
		"restore":      func(r *region.Region) { _ = r.Restore(bytes.NewReader(nil)); r.Reset() },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "memory.weft")
			r, err := region.Open(region.Config{Path: path, Kind: "test", Geometry: 1, Size: size})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if err := region.Guard(func() error { access(r); return nil }); err != nil {
				t.Fatalf("before: %v", err)
			}
			if err := os.Truncate(path, 0); err != nil {
				t.Fatal(err)
			}
			err = region.Guard(func() error { access(r); return nil })
			if !errors.Is(err, region.ErrTruncated) || !strings.Contains(err.Error(), path) {
				t.Errorf("Guard = %v; want ErrTruncated with %s", err, path)
			}
		})
	}
}

// TestGuardPassesOtherPanics: a broken invariant of our own is no truncated file.
func TestGuardPassesOtherPanics(t *testing.T) {
	for name, do := range map[string]func() error{
		"panic":       func() error { panic("broken") },
		"nil pointer": func() error { var p *int; *p = 1; return nil },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("Guard returned; want the panic")
				}
			}()
			_ = region.Guard(do)
		})
	}
	want := errors.New("own")
	if err := region.Guard(func() error { return want }); err != want {
		t.Errorf("Guard = %v; want the error of the call", err)
	}
}
