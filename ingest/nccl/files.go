package nccl

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weft-telemetry/weft/wire/nccl"
)

const (
	// maxRead bounds what is read of a growing file at once; the rest is for the next time.
	maxRead = 16 << 20
	// maxDump bounds a file that is written at once: 100,000 entries of the flight recorder.
	maxDump = 64 << 20
	// maxRound bounds what is read of all files at once.
	maxRound = 256 << 20
	// maxEntries bounds the collectives of one file that are read at once.
	maxEntries = 100_000
	// settled is how long ago a dump must have been written, to be wrong if it is not whole.
	settled = time.Second
)

// files follows files and folders. One goroutine reads.
type files struct {
	paths  []string
	known  map[string]*followed
	next   int // of the list of a round: where the last one ended
	counts struct{ notUnderstood, unreadable, tooLong atomic.Uint64 }
}

// followed is a file that was read before.
type followed struct {
	info  os.FileInfo // when it was read
	grows bool        // entries are appended to it
	end   int64       // of the last whole entry
	bad   bool        // the rest cannot be understood
}

func newFiles(paths []string) *files { return &files{paths: paths, known: map[string]*followed{}} }

// read hands what is new to take, and returns for each path of the configuration why it cannot
// be read, or nil. A file that cannot be understood counts for its path.
func (f *files) read(take func(*nccl.Dump)) map[string]error {
	state := map[string]error{}
	of := map[string]string{} // path of the configuration, by file
	var list []string
	for _, path := range f.paths {
		names, err := nccl.Names(path)
		if state[path] = err; errors.Is(err, nccl.ErrMany) {
			f.counts.tooLong.Add(1)
		} else if err != nil {
			f.counts.unreadable.Add(1)
		}
		for _, name := range names {
			if len(list) >= nccl.MaxFiles {
				f.counts.tooLong.Add(1)
				state[path] = nccl.ErrMany
				break
			}
			if _, twice := of[name]; !twice {
				of[name] = path
				list = append(list, name)
			}
		}
	}
	for name := range f.known {
		if _, there := of[name]; !there {
			delete(f.known, name)
		}
	}
	left := int64(maxRound)
	for i := range list {
		at := (f.next + i) % len(list)
		if left <= 0 { // the others come first next time
			f.next = at
			break
		}
		name := list[at]
		n, err := f.readOne(name, take)
		left -= n
		if err != nil {
			state[of[name]] = fmt.Errorf("%s: %w", name, err)
		}
	}
	return state
}

// readOne reads what is new in a file, and returns how much that is.
func (f *files) readOne(name string, take func(*nccl.Dump)) (n int64, err error) {
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO does not block
	if err != nil {
		f.counts.unreadable.Add(1)
		return 0, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	if err != nil {
		f.counts.unreadable.Add(1)
		return 0, err
	}
	was := f.known[name]
	if was == nil || !os.SameFile(was.info, info) || info.Size() < was.end {
		was = &followed{}
		f.known[name] = was
	} else if unchanged(was.info, info) && (!was.grows || was.end >= info.Size() || was.bad) {
		return 0, nil
	} else if !was.grows {
		*was = followed{}
	}
	was.info = info
	if was.bad || info.Size() == 0 {
		return 0, nil
	}
	d, n, err := f.readNew(file, name, was, info.Size())
	switch {
	case errors.Is(err, errLongDump):
		f.counts.tooLong.Add(1)
		return n, err
	case errors.Is(err, io.ErrUnexpectedEOF) && time.Since(info.ModTime()) < settled:
		delete(f.known, name) // it is being written
		return n, nil
	case err != nil:
		f.counts.notUnderstood.Add(1)
		was.bad = was.grows
		return n, err
	}
	take(d)
	return n, nil
}

// unchanged reports whether a file is as it was.
func unchanged(was, now os.FileInfo) bool {
	return was.Size() == now.Size() && was.ModTime().Equal(now.ModTime())
}

var errLongDump = fmt.Errorf("a dump of more than %d bytes", maxDump)

// readNew reads what a file has beyond the last whole entry, or all of one that does not grow.
func (f *files) readNew(file *os.File, name string, was *followed, size int64) (*nccl.Dump, int64, error) {
	if !was.grows {
		rank, err := nccl.RankOfName(name)
		if err != nil {
			return nil, 0, err
		}
		in := &io.LimitedReader{R: file, N: maxDump}
		d, err := nccl.Read(in, rank, maxEntries)
		n := maxDump - in.N
		if in.N <= 0 && (err != nil || !d.Grows) {
			return nil, n, errLongDump
		}
		if err == nil {
			was.grows, was.end = d.Grows, d.End
		}
		return d, n, err
	}
	in := &io.LimitedReader{R: io.NewSectionReader(file, was.end, size-was.end), N: maxRead}
	d, err := nccl.ReadMore(in, maxEntries)
	if err == nil {
		was.end += d.End
	}
	return d, maxRead - in.N, err
}
