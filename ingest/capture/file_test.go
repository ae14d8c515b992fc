package capture

import (
	"log/slog"
	"net/netip"
	"path/filepath"
	"testing"
)

// TestFullDisk: reports in the buffer do not count as written, also if the disk
// then fails.
func TestFullDisk(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Path = filepath.Join(t.TempDir(), "reports.pcapng")
	r, err := NewRecorder(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	addr := netip.MustParseAddrPort("10.0.0.7:1")
	put := func() {
		r.RecordDatagram("dta", true, 1, addr, addr, make([]byte, 100))
		r.writeQueued()
	}
	put()
	r.file.file.Close() // later writes fail
	put()
	put()
	if st := r.Stats(); st.Written != 1 || st.Failed != 2 || st.Waiting != 0 {
		t.Errorf("stats %+v; want 1 written and 2 failed", st)
	}
	if r.Close() == nil {
		t.Error("Close = nil; want the disk's error")
	}
}
