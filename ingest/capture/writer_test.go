package capture

import (
	"bytes"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/ingest/source"
)

// TestWriterIsReadBack: a reader has every datagram with its time, kind and source, and an
// existing file is kept.
func TestWriterIsReadBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "reports.pcapng")
	if err := os.WriteFile(path, []byte("older"), 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := NewWriter(path)
	if err != nil {
		t.Fatal(err)
	}
	from, to := netip.MustParseAddrPort("10.0.0.1:40040"), netip.MustParseAddrPort("192.0.2.1:40040")
	want := []Datagram{
		{Time: 5, Kind: "dta", From: from, Payload: []byte("first")},
		{Time: 7, Kind: "int", From: from, Payload: bytes.Repeat([]byte{1}, 1400)},
		{Time: 9, Kind: "dta", From: from, Payload: []byte{}},
	}
	for i := range want {
		if err := w.WriteDatagram(want[i].Kind, want[i].Time, from, to, want[i].Payload); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.WriteDatagram("dta", 11, from, to, make([]byte, 1<<16)); err == nil || !strings.Contains(err.Error(), "65536 bytes") {
		t.Errorf("a datagram that fits into no packet: error %v; want one with its size", err)
	}
	if w.Datagrams() != 3 {
		t.Errorf("%d datagrams; want 3", w.Datagrams())
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := Open(map[source.Kind][]uint16{}, Input{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var d Datagram
	for _, one := range want {
		if err := r.Next(&d); err != nil {
			t.Fatal(err)
		}
		if d.Time != one.Time || d.Kind != one.Kind || d.From != one.From || !bytes.Equal(d.Payload, one.Payload) {
			t.Errorf("read %v %v %v, %d bytes; want %v %v %v, %d bytes", d.Time, d.Kind, d.From, len(d.Payload), one.Time, one.Kind, one.From, len(one.Payload))
		}
	}
	if err := r.Next(&d); err != io.EOF {
		t.Errorf("after the last datagram: %v; want io.EOF", err)
	}
	if old, err := ArchivedFiles(path); err != nil || len(old) != 1 {
		t.Errorf("archived files %q, %v; want the older one", old, err)
	}
}
