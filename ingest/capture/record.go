package capture

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
)

// Config configures a recording.
type Config struct {
	Path     string      // of the current file; empty: nothing is recorded
	MaxSize  model.Bytes // of a file, which is archived then; 0: no limit
	Keep     int         // number of archived files to keep; 0: all
	Queue    model.Bytes // maximum size of reports that wait for the disk
	Rejected bool        // also record rejected datagrams
}

// DefaultConfig limits files to a size that Wireshark can open.
func DefaultConfig() Config {
	return Config{MaxSize: 256 * model.MiB, Keep: 8, Queue: 16 * model.MiB}
}

// Check returns the first error of the configuration.
func (c *Config) Check() error {
	switch {
	case c.MaxSize != 0 && c.MaxSize < 64*model.KiB:
		return fmt.Errorf("record: files of %v, want at least 64KiB, or 0 for no limit", c.MaxSize)
	case c.Keep < 0:
		return fmt.Errorf("record: keep %d archived files, want 0 (all) or more", c.Keep)
	case c.Queue < 1<<16:
		return fmt.Errorf("record: a queue of %v, want at least 64KiB", c.Queue)
	}
	return nil
}

// Stats are the counters of a Recorder.
// Invariant: Datagrams = Written + Skipped + Shed + Failed + Waiting.
type Stats struct {
	Datagrams uint64 `json:"datagrams"`
	Written   uint64 `json:"written"`
	Skipped   uint64 `json:"skipped"` // rejected ones, without Config.Rejected
	Shed      uint64 `json:"shed"`    // discarded: the disk was too slow
	Failed    uint64 `json:"failed"`  // not written because of a disk error
	Waiting   uint64 `json:"waiting"`
	Files     uint64 `json:"files"` // created
}

// Recorder writes reports into files without blocking sockets: reports that do not
// fit into its queue are shed, the newest first, and counted. It may be used
// concurrently.
type Recorder struct {
	cfg Config
	log *slog.Logger

	mu      sync.Mutex
	waiting batch
	stats   Stats
	wake    chan struct{}

	// Owned by the goroutine that writes.
	writing batch
	file    *file
	err     error         // of the disk; nothing is written until retryAt
	retryAt time.Time     // when a new file is tried
	backoff time.Duration // until the try after that
	missed  uint64        // reports not recorded since err
	open    func(path string) (disk, error)
	now     func() time.Time
}

// After a disk error a new file is tried after firstRetry, then after twice the time
// each, up to lastRetry, if the disk takes retryRoom bytes: on one that is almost
// full every try would leave a short file.
const (
	retryRoom  = 64 << 10
	firstRetry = time.Second
	lastRetry  = 30 * time.Second
)

// batch holds reports back to back in one buffer.
type batch struct {
	entries []entry
	bytes   []byte
}

type entry struct {
	at       model.Time
	kind     source.Kind
	rejected bool
	from, to netip.AddrPort
	size     int
}

// entrySize is about the overhead of an entry in bytes.
const entrySize = 96

// NewRecorder opens a file and starts nothing. It archives an existing file. Run
// or Close must follow.
func NewRecorder(cfg Config, log *slog.Logger) (*Recorder, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	return newRecorder(cfg, log, openPrivate, time.Now)
}

func newRecorder(cfg Config, log *slog.Logger, open func(path string) (disk, error), now func() time.Time) (*Recorder, error) {
	f, err := create(&cfg, open, 0)
	if err != nil {
		return nil, err
	}
	makePrivate(cfg.Path, log)
	return &Recorder{cfg: cfg, log: log, file: f, wake: make(chan struct{}, 1), stats: Stats{Files: 1}, open: open, now: now}, nil
}

// RecordDatagram queues a copy of a datagram: the UDP payload, or with ERSPAN the
// IP payload. taken is false if the collector rejected it.
func (r *Recorder) RecordDatagram(k source.Kind, taken bool, at model.Time, from, to netip.AddrPort, payload []byte) {
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
	if len(w.bytes) >= int(r.cfg.Queue)/4 { // before that the next timer is soon enough
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
}

// writeEvery is the maximum time that reports wait for an idle disk.
const writeEvery = 100 * time.Millisecond

// Run writes until ctx ends, and then the rest of the queue, and closes the file.
// After a disk error, which is logged, it counts reports as failed until a new file
// can be written: it tries that by itself. The error is that of the disk, if it
// lasts until the end.
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

// Close writes the rest of the queue and closes the file, without Run.
func (r *Recorder) Close() error {
	r.writeQueued()
	if err := r.file.close(); r.err == nil {
		r.err = err
	}
	if r.err != nil {
		return fmt.Errorf("record reports in %s: %w", r.cfg.Path, r.err)
	}
	return nil
}

// writeQueued writes the queue to the file. Reports count as written only after a
// flush: the buffer in front of the disk accepts everything.
func (r *Recorder) writeQueued() {
	r.mu.Lock()
	r.writing, r.waiting = r.waiting, batch{r.writing.entries[:0], r.writing.bytes[:0]}
	r.mu.Unlock()
	var done Stats
	if r.err != nil && !r.now().Before(r.retryAt) {
		r.resume(&done)
	}
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
		r.file.abandon()
		r.retryAt, r.backoff = r.now().Add(firstRetry), firstRetry
		r.log.Error("recording failed: reports are counted but not recorded until a file can be written again", "file", r.cfg.Path, "error", r.err)
	}
	all := uint64(len(r.writing.entries))
	if r.err == nil {
		done.Written = all
	}
	r.missed += all - done.Written
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Written += done.Written
	r.stats.Failed += all - done.Written
	r.stats.Files += done.Files
}

// resume tries a new file after a disk error. The one before is archived.
func (r *Recorder) resume(done *Stats) {
	next, err := create(&r.cfg, r.open, retryRoom)
	if err != nil {
		r.err, r.backoff = err, min(2*r.backoff, lastRetry)
		r.retryAt = r.now().Add(r.backoff)
		return
	}
	r.log.Warn("recording continues in a new file", "file", r.cfg.Path, "not_recorded", r.missed)
	r.file, r.err, r.missed = next, nil, 0
	done.Files++
}

// writeEntry writes a report that follows before others of its batch.
func (r *Recorder) writeEntry(e *entry, payload []byte, before uint64, done *Stats) error {
	if r.file.full() {
		if err := r.file.close(); err != nil {
			return err
		}
		done.Written = before
		next, err := create(&r.cfg, r.open, 0)
		if err != nil {
			return err
		}
		r.file = next
		done.Files++
	}
	return r.file.writePacket(e, payload)
}

// Stats returns the current counters.
func (r *Recorder) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	s.Waiting = s.Datagrams - s.Written - s.Skipped - s.Shed - s.Failed
	return s
}
