package capture

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// file is the current file of a recording.
type file struct {
	cfg     *Config
	file    *os.File
	buf     *bufio.Writer
	out     *pcapgo.NgWriter
	devices map[string]int
	packet  []byte
	size    int64
	closed  bool
}

// create makes a file. An existing one is archived, and archived files beyond the
// number to keep are removed.
func create(cfg *Config) (*file, error) {
	if err := archive(cfg.Path); err != nil {
		return nil, err
	}
	if err := removeOldest(cfg.Path, cfg.Keep); err != nil {
		return nil, err
	}
	f, err := os.Create(cfg.Path)
	if err != nil {
		return nil, err
	}
	w := &file{cfg: cfg, file: f, buf: bufio.NewWriterSize(f, 1<<16), devices: map[string]int{}}
	info := pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{
		Application: "weft",
		Comment:     "reports as received; IP and UDP headers are synthetic, except for addresses and ports",
	}}
	name := deviceName("dta", false) // a file without an interface is invalid
	if w.out, err = pcapgo.NewNgWriterInterface(w.buf, device(name), info); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", cfg.Path, err), f.Close())
	}
	w.devices[name] = 0
	return w, nil
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
	w.packet = appendPacket(w.packet[:0], e.kind, e.from, e.to, payload)
	w.size += int64((len(w.packet)+3)&^3 + blockSize)
	return w.out.WritePacket(gopacket.CaptureInfo{
		Timestamp: time.Unix(0, int64(e.at)), CaptureLength: len(w.packet), Length: len(w.packet), InterfaceIndex: id,
	}, w.packet)
}

func (w *file) flush() error { return errors.Join(w.out.Flush(), w.buf.Flush()) }

func (w *file) close() error {
	if w.closed {
		return nil
	}
	w.closed = true
	return errors.Join(w.flush(), w.file.Close())
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
