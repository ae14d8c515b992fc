package capture

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Config says what is recorded and where.
type Config struct {
	Path     string      // of the file that is being written; empty: nothing is recorded
	MaxSize  model.Bytes // of a file, which then becomes an old one; 0: no bound
	Keep     int         // old files, the newest; 0: all
	Queue    model.Bytes // reports that may wait for the disk
	Rejected bool        // also what was received and not taken
}

// DefaultConfig keeps files of a size that Wireshark still opens.
func DefaultConfig() Config {
	return Config{MaxSize: 256 * model.MiB, Keep: 8, Queue: 16 * model.MiB}
}

// Check complains about the first thing that cannot work.
func (c *Config) Check() error {
	switch {
	case c.MaxSize != 0 && c.MaxSize < 64*model.KiB:
		return fmt.Errorf("record: files of %v, want at least 64KiB, or 0 for no bound", c.MaxSize)
	case c.Keep < 0:
		return fmt.Errorf("record: %d old files kept, want 0 (all) or more", c.Keep)
	case c.Queue < 1<<16:
		return fmt.Errorf("record: a queue of %v, want at least 64KiB", c.Queue)
	}
	return nil
}

// Stats account for what a Recorder was shown.
// Invariant: Datagrams = Written + Left + Shed + Failed + Waiting.
type Stats struct {
	Datagrams uint64 `json:"datagrams"`
	Written   uint64 `json:"written"`
	Skipped      uint64 `json:"left"`   // rejected ones, which were not asked for
	Shed      uint64 `json:"shed"`   // the disk was too slow
	Failed    uint64 `json:"failed"` // the disk refused them
	Waiting   uint64 `json:"waiting"`
	Files     uint64 `json:"files"` // begun
}

// Recorder writes reports into files without making sockets wait: what does not
// fit into its queue is shed, the newest first, and counted. Many goroutines may
// use it.
type Recorder struct {
	cfg Config
	log *slog.Logger

	mu      sync.Mutex
	waiting batch
	stats   Stats
	wake    chan struct{}

	// Of the goroutine that writes.
	writing batch
	file    *file
	err     error // the first; nothing is written after it
}

// batch is reports, one after another in one piece of memory.
type batch struct {
	entries []entry
	bytes   []byte
}

type entry struct {
	at       model.Time
	kind     Kind
	rejected bool
	from, to netip.AddrPort
	size     int
}

// entrySize is about what an entry takes beside its bytes.
const entrySize = 96

// NewRecorder opens a file and starts nothing. A file that is there becomes an
// old one. Run or Close must follow.
func NewRecorder(cfg Config, log *slog.Logger) (*Recorder, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	f, err := create(&cfg)
	if err != nil {
		return nil, err
	}
	return &Recorder{cfg: cfg, log: log, file: f, wake: make(chan struct{}, 1), stats: Stats{Files: 1}}, nil
}

// RecordDatagram takes a copy of what came from one address to another at an instant:
// the payload of UDP, or of ERSPAN what follows the IP header. Taken says
// whether any use was made of it.
func (r *Recorder) RecordDatagram(k Kind, taken bool, at model.Time, from, to netip.AddrPort, payload []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Datagrams++
	w := &r.waiting
	switch {
	case !taken && !r.cfg.Rejected:
		r.stats.Skipped++
		return
	case len(payload) > maxPayload || len(w.bytes)+len(payload)+entrySize*len(w.entries) > int(r.cfg.Queue):
		r.stats.Shed++
		return
	}
	w.entries = append(w.entries, entry{at, k, !taken, from, to, len(payload)})
	w.bytes = append(w.bytes, payload...)
	if len(w.bytes) >= int(r.cfg.Queue)/4 { // before that the next look is soon enough
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
}

// writeEvery is how long reports wait for the disk at most, if it is idle.
const writeEvery = 100 * time.Millisecond

// Run writes until ctx ends, and then what is left, and closes the file. The
// error is the first that the disk gave, which is also logged when it happens; a
// Recorder goes on after it, to count.
func (r *Recorder) Run(ctx context.Context) error {
	t := time.NewTicker(writeEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return r.Close()
		case <-t.C:
		case <-r.wake:
		}
		r.writeQueued()
	}
}

// Close writes what is left and closes the file, without Run.
func (r *Recorder) Close() error {
	r.writeQueued()
	err := r.file.close()
	if r.err == nil {
		r.err = err
	}
	if r.err != nil {
		return fmt.Errorf("record reports in %s: %w", r.cfg.Path, r.err)
	}
	return nil
}

// writeQueued brings what waits to the file. What the disk has not taken is not
// written: the buffer before it takes everything.
func (r *Recorder) writeQueued() {
	r.mu.Lock()
	r.writing, r.waiting = r.waiting, batch{r.writing.entries[:0], r.writing.bytes[:0]}
	r.mu.Unlock()
	var done Stats
	rest, before := r.writing.bytes, r.err
	for i := range r.writing.entries {
		e := &r.writing.entries[i]
		if r.err == nil {
			r.err = r.writeEntry(e, rest[:e.size], uint64(i), &done)
		}
		rest = rest[e.size:]
	}
	if r.err == nil {
		r.err = r.file.flush()
	}
	if r.err != nil && before == nil {
		r.log.Error("the recording failed: what comes from here on is counted, not recorded", "file", r.cfg.Path, "error", r.err)
	}
	all := uint64(len(r.writing.entries))
	if r.err == nil {
		done.Written = all
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Written += done.Written
	r.stats.Failed += all - done.Written
	r.stats.Files += done.Files
}

// put writes a report behind so many of its batch.
func (r *Recorder) writeEntry(e *entry, payload []byte, before uint64, done *Stats) error {
	if r.file.full() {
		if err := r.file.close(); err != nil {
			return err
		}
		done.Written = before
		next, err := create(&r.cfg)
		if err != nil {
			return err
		}
		r.file = next
		done.Files++
	}
	return r.file.writePacket(e, payload)
}

// Stats returns the present counts.
func (r *Recorder) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	s.Waiting = s.Datagrams - s.Written - s.Skipped - s.Shed - s.Failed
	return s
}
