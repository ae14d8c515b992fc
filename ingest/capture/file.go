package capture

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/weft-telemetry/weft/ingest/sources"
)

// disk is what a recording needs of a file.
type disk interface {
	io.WriteCloser
	Truncate(size int64) error
}

// openPrivate opens a new file that only its owner can read: it has the headers of
// packets.
func openPrivate(path string) (disk, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return f, f.Chmod(0o600) // of an empty one that was there
}

// file is the current file of a recording.
type file struct {
	cfg     *Config
	file    disk
	written int64 // bytes that the disk took
	whole   int64 // bytes of whole blocks among them
	buf     *bufio.Writer
	out     *pcapgo.NgWriter
	devices map[string]int
	packet  []byte
	size    int64
	closed  bool
}

// create makes a file. An existing one is archived, and archived files beyond the
// number to keep are removed. It fails if the disk does not take room bytes.
func create(cfg *Config, open func(path string) (disk, error), room int) (*file, error) {
	if err := archive(cfg.Path); err != nil {
		return nil, err
	}
	if err := removeOldest(cfg.Path, cfg.Keep); err != nil {
		return nil, err
	}
	f, err := open(cfg.Path)
	if err != nil {
		return nil, err
	}
	if room > 0 {
		_, err := f.Write(make([]byte, room))
		if err := errors.Join(err, f.Truncate(0)); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	w := &file{cfg: cfg, file: f, devices: map[string]int{}}
	w.buf = bufio.NewWriterSize(w, 1<<16)
	info := pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{
		Application: "weft",
		Comment:     "reports as received; IP and UDP headers are synthetic, except for addresses and ports",
	}}
	name := deviceName(sources.DTA.Kind, false) // a file without an interface is invalid
	if w.out, err = pcapgo.NewNgWriterInterface(w.buf, device(name), info); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", cfg.Path, err), f.Close())
	}
	w.devices[name] = 0
	if err := w.flush(); err != nil { // a full disk takes an empty file, but no header
		w.abandon()
		return nil, fmt.Errorf("%s: %w", cfg.Path, err)
	}
	return w, nil
}

// Write writes to the disk, and counts.
func (w *file) Write(b []byte) (int, error) {
	n, err := w.file.Write(b)
	w.written += int64(n)
	return n, err
}

// abandon closes the file after an error. It ends with its last whole block: a part
// of one would make the file invalid.
func (w *file) abandon() {
	if w.closed {
		return
	}
	w.closed = true
	_ = w.file.Truncate(w.whole)
	_ = w.file.Close()
}

func device(name string) pcapgo.NgInterface {
	return pcapgo.NgInterface{Name: name, LinkType: layers.LinkTypeRaw, TimestampResolution: 9}
}

// full reports whether the file has reached its maximum size.
func (w *file) full() bool { return w.cfg.MaxSize > 0 && w.size >= int64(w.cfg.MaxSize) }

// blockSize is the overhead of a pcapng block.
const blockSize = 32

func (w *file) writePacket(e *entry, payload []byte) error {
	name := deviceName(e.kind, e.rejected)
	id, known := w.devices[name]
	if !known {
		var err error
		if id, err = w.out.AddInterface(device(name)); err != nil {
			return err
		}
		w.devices[name] = id
	}
	w.packet = AppendPacket(w.packet[:0], e.kind, e.from, e.to, payload)
	w.size += int64((len(w.packet)+3)&^3 + blockSize)
	return w.out.WritePacket(gopacket.CaptureInfo{
		Timestamp: time.Unix(0, int64(e.at)), CaptureLength: len(w.packet), Length: len(w.packet), InterfaceIndex: id,
	}, w.packet)
}

// flush writes everything to the disk. The file then ends with a whole block.
func (w *file) flush() error {
	if err := errors.Join(w.out.Flush(), w.buf.Flush()); err != nil {
		return err
	}
	w.whole = w.written
	return nil
}

func (w *file) close() error {
	if w.closed {
		return nil
	}
	if err := w.flush(); err != nil {
		w.abandon()
		return err
	}
	w.closed = true
	return w.file.Close()
}

// archiveTimeFormat is the format of the last write time in an archived file's
// name. Names sort like times.
const archiveTimeFormat = "20060102T150405.000000000"

// archive renames the file of a path, if there is one: reports.pcapng becomes
// reports-20261115T101500.000000000.pcapng. An empty one is not archived.
func archive(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0:
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file, want the path of one", path)
	}
	before, after := archiveNameParts(path)
	for at := info.ModTime().UTC(); ; at = at.Add(1) {
		old := before + at.Format(archiveTimeFormat) + after
		if _, err := os.Lstat(old); errors.Is(err, fs.ErrNotExist) {
			return os.Rename(path, old)
		} else if err != nil {
			return err
		}
	}
}

// archiveNameParts returns the parts before and after the time in the name of an
// archived file.
func archiveNameParts(path string) (before, after string) {
	after = filepath.Ext(path)
	return strings.TrimSuffix(path, after) + "-", after
}

// removeOldest removes the oldest archived files of a path beyond a number; 0
// keeps all.
func removeOldest(path string, keep int) error {
	if keep == 0 {
		return nil
	}
	old, err := ArchivedFiles(path)
	if err != nil {
		return err
	}
	for len(old) > keep {
		if err := os.Remove(old[0]); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		old = old[1:]
	}
	return nil
}

// ArchivedFiles lists the archived files of a recording, the oldest first.
func ArchivedFiles(path string) ([]string, error) {
	list, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	before, after := archiveNameParts(filepath.Base(path))
	var old []string
	for _, e := range list {
		at, ok := strings.CutPrefix(e.Name(), before)
		at, ok2 := strings.CutSuffix(at, after)
		if _, err := time.Parse(archiveTimeFormat, at); ok && ok2 && err == nil {
			old = append(old, filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	slices.Sort(old)
	return old, nil
}

// makePrivate takes the bits of other users from the archived files of a recording
// that earlier versions made.
func makePrivate(path string, log *slog.Logger) {
	old, _ := ArchivedFiles(path) // create has read the directory
	for _, name := range old {
		info, err := os.Lstat(name)
		if err != nil || info.Mode().Perm()&0o077 == 0 || !info.Mode().IsRegular() {
			continue
		}
		if err := os.Chmod(name, info.Mode().Perm()&^0o077); err != nil {
			log.Warn("other users may read a recording", "file", name, "error", err)
			continue
		}
		log.Info("other users can no longer read a recording", "file", name, "mode", info.Mode().Perm())
	}
}
