package capture

import (
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
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

// smallDisk is a disk of a few bytes: a write that does not fit is cut, as by a full
// file system.
type smallDisk struct{ free int64 }

type smallFile struct {
	*os.File
	disk *smallDisk
}

func (d *smallDisk) open(path string) (disk, error) {
	f, err := openPrivate(path)
	if err != nil {
		return nil, err
	}
	return &smallFile{f.(*os.File), d}, nil
}

func (f *smallFile) Write(b []byte) (int, error) {
	n := min(int64(len(b)), f.disk.free)
	f.disk.free -= n
	wrote, err := f.File.Write(b[:n])
	if err == nil && n < int64(len(b)) {
		err = syscall.ENOSPC
	}
	return wrote, err
}

func (f *smallFile) Truncate(size int64) error {
	if info, err := f.Stat(); err == nil {
		f.disk.free += info.Size() - size
	}
	return f.File.Truncate(size)
}

// TestRecordingResumesAfterAFullDisk: the recording continues by itself when there is
// room, every file is valid, and every report is in one of them or counted.
func TestRecordingResumesAfterAFullDisk(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Path, cfg.Keep = filepath.Join(t.TempDir(), "reports.pcapng"), 0
	small := &smallDisk{free: 10_000}
	now := time.Unix(1, 0)
	var log strings.Builder
	r, err := newRecorder(cfg, slog.New(slog.NewTextHandler(&log, nil)), small.open, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	addr := netip.MustParseAddrPort("10.0.0.7:1")
	sent := 0
	put := func(n int) {
		for range n {
			r.RecordDatagram("dta", true, model.Time(sent), addr, addr, make([]byte, 1000))
			sent++
		}
		r.writeQueued()
	}
	put(5)
	put(20) // fills the disk in the middle of a block
	full := r.Stats()
	if full.Written != 5 || full.Failed != 20 {
		t.Errorf("stats %+v; want 5 written and 20 failed", full)
	}
	for range 10 { // several tries without room
		now = now.Add(lastRetry)
		put(1)
	}
	if st := r.Stats(); st.Written != 5 || st.Failed != 30 {
		t.Errorf("stats %+v; want 30 failed while the disk is full", st)
	}
	small.free = 1 << 20
	put(1) // the next try is not yet due
	now = now.Add(lastRetry)
	put(7)
	if err := r.Close(); err != nil {
		t.Errorf("Close = %v; want nil, because the recording continued", err)
	}
	st := r.Stats()
	if st.Written != 12 || st.Failed != 31 || st.Files != 2 || st.Datagrams != uint64(sent) {
		t.Errorf("stats %+v; want 12 written, 31 failed, 2 files", st)
	}
	if n := strings.Count(log.String(), "recording failed"); n != 1 || !strings.Contains(log.String(), "not_recorded=31") {
		t.Errorf("log %q; want the failure once, and 31 not recorded", log.String())
	}
	old, err := ArchivedFiles(cfg.Path)
	if err != nil || len(old) != 1 {
		t.Fatalf("archived %v, %v; want one file", old, err)
	}
	for path, want := range map[string]uint64{old[0]: 5, cfg.Path: 7} {
		sum, err := Summarize(Ports{}, Input{Path: path})
		if err != nil || len(sum.Broken) > 0 || sum.Packets != want {
			t.Errorf("%s: %d packets, %v, %v; want %d, and nothing broken", path, sum.Packets, sum.Broken, err, want)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v; want 0600", path, info.Mode(), err)
		}
	}
}

// TestRecordingOnAFullFileSystem is the same with a file system of the kernel.
func TestRecordingOnAFullFileSystem(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("cannot mount a small file system here: %v", err)
	}
	defer func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	}()
	cfg := DefaultConfig()
	cfg.Path, cfg.Keep = filepath.Join(dir, "reports.pcapng"), 0
	now := time.Unix(1, 0)
	r, err := newRecorder(cfg, slog.New(slog.DiscardHandler), openPrivate, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	addr := netip.MustParseAddrPort("10.0.0.7:1")
	put := func(n int) {
		for range n {
			r.RecordDatagram("dta", true, 1, addr, addr, make([]byte, 1000))
		}
		r.writeQueued()
	}
	put(10)
	hog := filepath.Join(dir, "hog")
	if err := os.WriteFile(hog, make([]byte, 1<<20), 0o600); err == nil {
		t.Fatal("the file system is larger than 256 KiB")
	}
	for range 5 {
		now = now.Add(lastRetry)
		put(100)
	}
	if err := os.Remove(hog); err != nil {
		t.Fatal(err)
	}
	now = now.Add(lastRetry)
	put(10)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	st := r.Stats()
	if st.Failed == 0 || st.Written < 20 || st.Written+st.Failed != st.Datagrams {
		t.Errorf("stats %+v; want some failed, and at least 20 written", st)
	}
	old, err := ArchivedFiles(cfg.Path)
	if err != nil {
		t.Fatal(err)
	}
	var packets uint64
	for _, path := range append(old, cfg.Path) {
		sum, err := Summarize(Ports{}, Input{Path: path})
		if err != nil || len(sum.Broken) > 0 {
			t.Errorf("%s: %v, %v; want a valid file", path, sum.Broken, err)
		}
		packets += sum.Packets
	}
	if packets != st.Written {
		t.Errorf("%d packets in the files; want the %d that count as written", packets, st.Written)
	}
}
