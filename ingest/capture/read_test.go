package capture_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/ingest/pcap"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
)

// TestCapturesOfOtherTools: without Weft's interface names, ports and protocols
// identify reports; files are merged in the order of time.
func TestCapturesOfOtherTools(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for i, kind := range []source.Kind{"dta", "int"} {
		cfg := capture.DefaultConfig()
		cfg.Path = filepath.Join(dir, string(kind)+".pcapng")
		var list []seen
		for j := range 10 {
			list = append(list, seen{model.Time(10*j + i), kind, "10.0.0.7:9", []string{"10.0.0.1:40040", "10.0.0.1:40041"}[i], "report"})
		}
		record(t, cfg, list)
		// As if tcpdump had made it: an interface of another name.
		b, err := os.ReadFile(cfg.Path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(cfg.Path, []byte(strings.ReplaceAll(string(b), "weft-", "veth-")), 0o666); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, cfg.Path)
	}
	got, stats := readAll(t, capture.Ports{"dta": []uint16{40040}, "int": []uint16{40041}}, paths...)
	if len(got) != 20 || stats.Kinds["dta"] != 10 || stats.Kinds["int"] != 10 {
		t.Fatalf("%d reports, %+v; want 10 of each", len(got), stats)
	}
	for i := range got {
		if i > 0 && got[i].at < got[i-1].at {
			t.Errorf("%v is after %v", got[i].at, got[i-1].at)
		}
		if want := []source.Kind{"dta", "int"}[got[i].at%10]; got[i].kind != want {
			t.Errorf("report at %v is %v; want %v", got[i].at, got[i].kind, want)
		}
	}
	got, stats = readAll(t, capture.Ports{}, paths...)
	if len(got) != 20 || stats.Kinds[source.Other] != 20 {
		t.Errorf("%d reports, %+v; want 20 unrelated packets", len(got), stats)
	}
}

// TestTruncatedFile: the packets before the end are read, and the error is reported.
func TestTruncatedFile(t *testing.T) {
	cfg := capture.DefaultConfig()
	cfg.Path = filepath.Join(t.TempDir(), "reports.pcapng")
	record(t, cfg, reports)
	info, err := os.Stat(cfg.Path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(cfg.Path, info.Size()-5); err != nil {
		t.Fatal(err)
	}
	r, err := capture.Open(capture.Ports{}, capture.Input{Path: cfg.Path})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	n := 0
	for d := (capture.Datagram{}); r.Next(&d) == nil; n++ {
	}
	if n != 3 || len(r.TruncatedFiles()) != 1 || !errors.Is(r.TruncatedFiles()[0], pcap.ErrCorrupt) {
		t.Errorf("%d reports, %v; want 3 and an error", n, r.TruncatedFiles())
	}
	if _, err := capture.Open(capture.Ports{}, capture.Input{Path: "read_test.go"}); !errors.Is(err, pcap.ErrFormat) {
		t.Errorf("Open of a text = %v; want %v", err, pcap.ErrFormat)
	}
}

// TestSPANFile: in a file of mirrored frames every packet is one.
func TestSPANFile(t *testing.T) {
	cfg := capture.DefaultConfig()
	cfg.Path = filepath.Join(t.TempDir(), "span.pcapng")
	record(t, cfg, reports)
	r, err := capture.Open(capture.Ports{}, capture.Input{Path: cfg.Path, Switch: "leaf0"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for i, want := range reports {
		var d capture.Datagram
		if err := r.Next(&d); err != nil {
			t.Fatal(err)
		}
		if d.Kind != source.SPAN || d.Switch != "leaf0" || d.Frame || d.Time != want.at || !strings.HasSuffix(string(d.Payload), want.payload) {
			t.Errorf("packet %d: %+v", i, d)
		}
	}
}

// TestSendKeepsTheSpeed sends a recording to a socket: all of one kind, in order,
// no faster than configured.
func TestSendKeepsTheSpeed(t *testing.T) {
	cfg := capture.DefaultConfig()
	cfg.Path = filepath.Join(t.TempDir(), "reports.pcapng")
	var list []seen
	for i := range 20 {
		kind := source.Kind("dta")
		if i%4 == 3 {
			kind = "int"
		}
		list = append(list, seen{model.Time(i) * 10e6, kind, "10.0.0.7:1", "10.0.0.1:2", string(rune('a' + i))})
	}
	record(t, cfg, list)
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	send := func(speed float64, kind source.Kind, to netip.AddrPort) (capture.SendStats, error) {
		r, err := capture.Open(capture.Ports{}, capture.Input{Path: cfg.Path})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		c := capture.SendConfig{Speed: speed}
		c.To = map[source.Kind]netip.AddrPort{kind: to}
		return capture.Send(t.Context(), r, c)
	}
	here := conn.LocalAddr().(*net.UDPAddr).AddrPort()
	began := time.Now()
	sent, err := send(2, "dta", here)
	if err != nil || sent.Datagrams["dta"] != 15 || sent.Skipped["int"] != 5 {
		t.Fatalf("Send = %+v, %v; want 15 reports sent and 5 left", sent, err)
	}
	// The last is 190 ms after the first, 95 at twice the speed.
	if took := time.Since(began); took < 90*time.Millisecond {
		t.Errorf("sent within %v; want it to take 95ms", took)
	}
	b := make([]byte, 10)
	for i, want := range list {
		if want.kind != "dta" {
			continue
		}
		if n, err := conn.Read(b); err != nil || string(b[:n]) != want.payload {
			t.Fatalf("report %d: %q, %v; want %q", i, b[:n], err, want.payload)
		}
	}
	if _, err := send(0, "erspan", here); err == nil {
		t.Error("mirrors were sent to a socket of UDP")
	}
	conn.Close()
	if _, err := send(0, "dta", here); err == nil || !strings.Contains(err.Error(), "no process listens") {
		t.Errorf("Send to a closed port = %v; want an error that says so", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := capture.Open(capture.Ports{}, capture.Input{Path: cfg.Path})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c := capture.SendConfig{Speed: 1}
	c.To = map[source.Kind]netip.AddrPort{"dta": here}
	if _, err := capture.Send(ctx, r, c); !errors.Is(err, context.Canceled) {
		t.Errorf("Send after its context's end = %v", err)
	}
}

// FuzzReader: for every input the reader ends, and every packet is counted.
func FuzzReader(f *testing.F) {
	cfg := capture.DefaultConfig()
	cfg.Rejected = true
	cfg.Path = filepath.Join(f.TempDir(), "reports.pcapng")
	r, err := capture.NewRecorder(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		f.Fatal(err)
	}
	for i, s := range reports {
		r.RecordDatagram(s.kind, i > 0, s.at, addr(s.from), addr(s.to), []byte(s.payload))
	}
	if err := r.Close(); err != nil {
		f.Fatal(err)
	}
	b, err := os.ReadFile(cfg.Path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, in []byte) {
		path := filepath.Join(t.TempDir(), "in")
		if err := os.WriteFile(path, in, 0o666); err != nil {
			t.Fatal(err)
		}
		r, err := capture.Open(capture.Ports{"dta": []uint16{40040}}, capture.Input{Path: path})
		if err != nil {
			return
		}
		defer r.Close()
		n := uint64(0)
		var d capture.Datagram
		for ; ; n++ {
			if err := r.Next(&d); err != nil {
				if err != io.EOF && len(r.TruncatedFiles()) == 0 && n > uint64(len(in)) {
					t.Fatalf("more packets than bytes: %v", err)
				}
				break
			}
			if d.Kind != source.Other && (!d.From.IsValid() || len(d.Payload) > len(in)) {
				t.Fatalf("datagram %+v", d)
			}
		}
		st := r.Stats()
		sum := st.Rejected
		for _, k := range st.Kinds {
			sum += k
		}
		if sum != st.Packets || st.Packets != n+st.Rejected {
			t.Fatalf("%d given out, stats %+v", n, st)
		}
	})
}

// A capture that Wireshark compressed is read as it was.
func TestCompressedFile(t *testing.T) {
	plain, err := os.ReadFile("../../examples/recording/reports.pcapng")
	if err != nil {
		t.Fatal(err)
	}
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if _, err := w.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, data := range map[string][]byte{"whole.gz": zipped.Bytes(), "cut.gz": zipped.Bytes()[:zipped.Len()/2]} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := capture.Summarize(capture.Ports{}, capture.Input{Path: "../../examples/recording/reports.pcapng"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := capture.Summarize(capture.Ports{}, capture.Input{Path: filepath.Join(dir, "whole.gz")})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" || want.Packets == 0 {
		t.Errorf("compressed (-plain +compressed):\n%s", diff)
	}
	cut, err := capture.Summarize(capture.Ports{}, capture.Input{Path: filepath.Join(dir, "cut.gz")})
	if err != nil || len(cut.Broken) != 1 || cut.Packets == 0 || cut.Packets >= want.Packets {
		t.Errorf("half of a compressed file: %d of %d packets, broken %v, %v; want some, and one broken file", cut.Packets, want.Packets, cut.Broken, err)
	}
}
