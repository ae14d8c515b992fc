package serve

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/store/embedded"
	"github.com/weft-telemetry/weft/stream/inproc"
)

// BenchmarkIdle is a service whose fabric does not report and whose API nobody asks:
// CPU time per second, of one core, and resident memory.
func BenchmarkIdle(b *testing.B) {
	for _, k := range []int{4, 16, 32} {
		b.Run(fmt.Sprintf("k=%d", k), func(b *testing.B) {
			s, stop := startIdle(b, k)
			defer stop()
			runtime.GC()
			began, used, beats := time.Now(), processTime(b), s.input.beats.Load()
			for b.Loop() {
				time.Sleep(10 * time.Millisecond)
			}
			took, steps := processTime(b)-used, s.input.beats.Load()-beats
			b.ReportMetric(100*float64(took)/float64(time.Since(began)), "%core")
			// On a busy machine there are fewer steps: this says what they cost.
			b.ReportMetric(float64(took.Microseconds())/float64(max(steps, 1)), "µs/step")
			b.ReportMetric(residentMB(b), "MB")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// startIdle starts a service of a fat-tree, and returns when it has worked for a
// while.
func startIdle(b *testing.B, k int) (s *Service, stop func()) {
	b.Helper()
	dir := b.TempDir()
	cfg := DefaultConfig()
	cfg.Topology, cfg.Store.Path = filepath.Join(dir, "fabric.yaml"), filepath.Join(dir, "weft.duckdb")
	if err := os.WriteFile(cfg.Topology, fmt.Appendf(nil, "generate: {kind: fat-tree, k: %d}\n", k), 0o600); err != nil {
		b.Fatal(err)
	}
	cfg.API.Listen = "127.0.0.1:0"
	for i := range settings {
		if settings[i].Key == "dta.listen" || settings[i].Key == "int.listen" {
			if err := settings[i].Set(&cfg, "127.0.0.1:0"); err != nil {
				b.Fatal(err)
			}
		}
	}
	records, err := embedded.Open(cfg.Store.Path, embedded.DefaultConfig())
	if err != nil {
		b.Fatal(err)
	}
	reports, err := inproc.New(inproc.DefaultConfig())
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	s, err = New(ctx, cfg, Deps{Store: records, Stream: reports, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	for s.input.beats.Load() < 1000 {
		time.Sleep(10 * time.Millisecond)
	}
	return s, func() {
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
		if err := records.Close(); err != nil {
			b.Error(err)
		}
	}
}

// processTime is the CPU time of this process.
func processTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// residentMB is the resident memory of this process.
func residentMB(b *testing.B) float64 {
	b.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1000
		}
	}
	return 0
}
