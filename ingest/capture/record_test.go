package capture_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func addr(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

// seen is one expected report.
type seen struct {
	at       model.Time
	kind     source.Kind
	from, to string
	payload  string
}

func readAll(t *testing.T, ports capture.Ports, paths ...string) (list []seen, stats capture.ReadStats) {
	t.Helper()
	var in []capture.Input
	for _, p := range paths {
		in = append(in, capture.Input{Path: p})
	}
	r, err := capture.Open(ports, in...)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		var d capture.Datagram
		if err := r.Next(&d); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, seen{d.Time, d.Kind, d.From.String(), d.To.String(), string(d.Payload)})
	}
	if len(r.TruncatedFiles()) > 0 {
		t.Fatal(r.TruncatedFiles())
	}
	return list, r.Stats()
}

func record(t *testing.T, cfg capture.Config, list []seen, rejected ...int) capture.Stats {
	t.Helper()
	r, err := capture.NewRecorder(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range list {
		taken := true
		for _, n := range rejected {
			taken = taken && n != i
		}
		r.RecordDatagram(s.kind, taken, s.at, addr(s.from), addr(s.to), []byte(s.payload))
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return r.Stats()
}

// reports are of every kind and both families, on arbitrary ports.
var reports = []seen{
	{1e18, "dta", "10.0.0.7:40041", "192.0.2.1:1234", "first"},
	{1e18 + 1, "int", "[2001:db8::7]:7", "[2001:db8::1]:1235", "second"},
	{1e18 + 2, "erspan", "10.0.0.7:0", "192.0.2.1:0", "\x00\x00\x88\xbe in GRE"},
	{1e18 + 3, "dta", "10.0.0.8:40041", "192.0.2.1:1234", ""},
}

// TestRecordingRoundTrip: reports of every kind are read as they were recorded,
// from any port; rejected ones are recorded only if configured.
func TestRecordingRoundTrip(t *testing.T) {
	cfg := capture.DefaultConfig()
	cfg.Path = filepath.Join(t.TempDir(), "reports.pcapng")
	st := record(t, cfg, reports, 3)
	if st.Written != 3 || st.Skipped != 1 || st.Waiting != 0 {
		t.Errorf("stats %+v; want 3 written and 1 left", st)
	}
	got, _ := readAll(t, capture.Ports{}, cfg.Path)
	if len(got) != 3 {
		t.Fatalf("%d reports; want 3", len(got))
	}
	for i := range got {
		if got[i] != reports[i] {
			t.Errorf("report %d: %+v; want %+v", i, got[i], reports[i])
		}
	}
	cfg.Rejected = true
	record(t, cfg, reports, 3)
	got, stats := readAll(t, capture.Ports{"dta": []uint16{1234}}, cfg.Path)
	if len(got) != 3 || stats.Rejected != 1 || stats.Packets != 4 {
		t.Errorf("%d reports, stats %+v; want 3, and 1 rejected of 4", len(got), stats)
	}
}

// TestTsharkReadsRecordings: names, times and ports are those of the reports.
func TestTsharkReadsRecordings(t *testing.T) {
	tshark, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("no tshark here; make test installs it")
	}
	cfg := capture.DefaultConfig()
	cfg.Path, cfg.Rejected = filepath.Join(t.TempDir(), "reports.pcapng"), true
	record(t, cfg, reports, 3)
	out, err := exec.Command(tshark, "-r", cfg.Path, "-T", "fields", "-e", "frame.interface_name", "-e", "frame.time_epoch", "-e", "udp.dstport", "-e", "_ws.malformed", "-o", "ip.check_checksum:TRUE").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"weft-dta\t1000000000.000000000\t1234", "weft-int\t1000000000.000000001\t1235", "weft-erspan\t1000000000.000000002", "weft-dta-rejected\t1000000000.000000003\t1234"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("tshark says\n%swant %q in it", out, want)
		}
	}
}

// TestFileRotation: a full file is archived, the oldest are removed, and an
// existing recording is not overwritten. All files that are left are read in order.
func TestFileRotation(t *testing.T) {
	cfg := capture.DefaultConfig()
	cfg.Path, cfg.MaxSize, cfg.Keep = filepath.Join(t.TempDir(), "reports.pcapng"), 64*model.KiB, 3
	var list []seen
	for i := range 400 {
		list = append(list, seen{model.Time(i), "dta", "10.0.0.7:1", "10.0.0.1:2", strings.Repeat("x", 1000)})
	}
	st := record(t, cfg, list)
	if st.Files != 7 { // 62 reports of 1,064 bytes fill one
		t.Errorf("%d files; want 7", st.Files)
	}
	record(t, cfg, list[:1])
	old, err := capture.ArchivedFiles(cfg.Path)
	if err != nil || len(old) != 3 {
		t.Fatalf("old files %v, %v; want 3", old, err)
	}
	got, _ := readAll(t, capture.Ports{}, append(old, cfg.Path)...)
	want := append([]seen{list[0]}, list[248:]...) // the new one, and the last of the earlier ones
	if len(got) != len(want) {
		t.Fatalf("%d reports; want %d", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("report %d is of %v; want %v", i, got[i].at, want[i].at)
		}
	}
}

// TestQueueIsBounded: reports that the disk is too slow for are shed and counted,
// and Run writes the rest.
func TestQueueIsBounded(t *testing.T) {
	cfg := capture.DefaultConfig()
	cfg.Path, cfg.Queue = filepath.Join(t.TempDir(), "reports.pcapng"), 64*model.KiB
	r, err := capture.NewRecorder(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	payload := make([]byte, 1000)
	for i := range 100 { // Run has not started yet
		r.RecordDatagram("dta", true, model.Time(i), addr("10.0.0.7:1"), addr("10.0.0.1:2"), payload)
	}
	r.RecordDatagram("dta", true, 100, addr("10.0.0.7:1"), addr("10.0.0.1:2"), make([]byte, 1<<17))
	before := r.Stats()
	if before.Shed < 30 || before.Shed+before.Waiting != 101 {
		t.Errorf("stats %+v; want some 40 of 101 shed", before)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := r.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if st := r.Stats(); st.Written != before.Waiting {
		t.Errorf("%d written; want all %d that waited", st.Written, before.Waiting)
	}
}

// TestDiskErrors: an error is logged once, and lost reports are counted.
func TestDiskErrors(t *testing.T) {
	dir := t.TempDir()
	cfg := capture.DefaultConfig()
	cfg.Path, cfg.MaxSize = filepath.Join(dir, "sub", "reports.pcapng"), 64*model.KiB
	if _, err := capture.NewRecorder(cfg, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a file in a missing directory was created")
	}
	if err := os.Mkdir(filepath.Dir(cfg.Path), 0o777); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	r, err := capture.NewRecorder(cfg, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	if err := os.RemoveAll(filepath.Dir(cfg.Path)); err != nil { // the next file cannot be made
		t.Fatal(err)
	}
	for range 100 {
		r.RecordDatagram("dta", true, 1, addr("10.0.0.7:1"), addr("10.0.0.1:2"), make([]byte, 1000))
	}
	go func() { done <- r.Run(ctx) }()
	for r.Stats().Waiting > 0 { // it is counted while the recorder runs
		time.Sleep(time.Millisecond)
	}
	if st := r.Stats(); st.Failed != 38 || st.Written != 62 {
		t.Errorf("stats %+v; want 62 written and 38 failed", st)
	}
	r.RecordDatagram("dta", true, 1, addr("10.0.0.7:1"), addr("10.0.0.1:2"), make([]byte, 1000))
	end()
	if err := <-done; err == nil || !strings.Contains(err.Error(), cfg.Path) {
		t.Errorf("Run = %v; want an error with the path", err)
	}
	if got := log.String(); strings.Count(got, "recording failed") != 1 || !strings.Contains(got, cfg.Path) {
		t.Errorf("log %q; want the failure once, with the path", got)
	}
	if st := r.Stats(); st.Failed != 39 {
		t.Errorf("stats %+v; want the report after it failed too", st)
	}
}

// TestDatagramAllocs: recording does not allocate on the receive path.
func TestDatagramAllocs(t *testing.T) {
	cfg := capture.DefaultConfig()
	cfg.Path = filepath.Join(t.TempDir(), "reports.pcapng")
	r, err := capture.NewRecorder(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	payload, from, to := bytes.Repeat([]byte{1}, 1000), addr("10.0.0.7:1"), addr("10.0.0.1:2")
	put := func() { r.RecordDatagram("dta", true, 1, from, to, payload) }
	for range 2 { // both halves of the queue get their memory
		for range 1000 {
			put()
		}
		_ = r.Close() // the second has no file to write to
	}
	if n := testing.AllocsPerRun(100, put); n != 0 {
		t.Errorf("Datagram allocates %v times", n)
	}
	if st := r.Stats(); st.Shed > 0 || st.Waiting != 101 {
		t.Errorf("stats %+v; want 101 that wait", st)
	}
}

func BenchmarkDatagram(b *testing.B) {
	cfg := capture.DefaultConfig()
	cfg.Path, cfg.MaxSize, cfg.Keep = filepath.Join(b.TempDir(), "reports.pcapng"), 16*model.MiB, 1
	r, err := capture.NewRecorder(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	payload, from, to := bytes.Repeat([]byte{1}, 1000), addr("10.0.0.7:1"), addr("10.0.0.1:2")
	b.SetBytes(int64(len(payload)))
	for b.Loop() {
		r.RecordDatagram("dta", true, 1, from, to, payload)
	}
	cancel()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
	st := r.Stats()
	b.ReportMetric(100*float64(st.Shed)/float64(st.Datagrams), "%shed")
}
