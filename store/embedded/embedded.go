package embedded

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/weft-telemetry/weft/store"
)

// Store is an open file. Its methods may be called concurrently: appends and
// maintenance are serialized, queries run concurrently with them.
type Store struct {
	path       string
	cfg        Config
	log        *slog.Logger
	db         *sql.DB       // readers
	key        []byte        // of cursors
	querySlots chan struct{} // a slot for each query of the tables, running or waiting

	limits atomic.Pointer[limits]
	// Written only by appends.
	hot           atomic.Pointer[recentCache]
	ledger        incidentCache
	extents       atomic.Pointer[map[store.Kind]timeBounds]
	recordGaps    map[store.Kind]*atomic.Int64 // nanoseconds between records, last measured
	oversizedRuns atomic.Int32                 // maintenance runs in a row that ended above MaxSize
	flowTexts     textCache
	// flowsNumberedTwice is set once flow_keys may have a flow under two numbers.
	flowsNumberedTwice atomic.Bool
	damaged            atomic.Pointer[error] // found by an append; Maintain repairs it

	repairsLock sync.Mutex // guards the fields below
	repairs     []*Repair
	salvaging   context.CancelFunc // ends the salvage that runs in the background
	salvaged    chan struct{}      // closed when it has ended

	lifetime sync.RWMutex // held for reading by all work, so that Close waits for it
	closed   bool
	unopened error // why a repair left no open file; nil: there is one

	write        sync.Mutex // guards the fields below
	writer       *sql.Conn
	seq          int64
	committedSeq atomic.Int64 // the highest seq committed
	unmerged     map[store.Kind]*unmergedSteps
	flowIDs      flowIDs
	flowBatch    flowBatch
}

// openFiles are the files that this process has open. DuckDB shares one database
// between all openers of the same file in a process, so it would not refuse the
// second; two Stores would assign the same sequence numbers.
var openFiles struct {
	sync.Mutex
	paths map[string]bool
}

func claimFile(path string) bool {
	openFiles.Lock()
	defer openFiles.Unlock()
	if openFiles.paths[path] {
		return false
	}
	if openFiles.paths == nil {
		openFiles.paths = map[string]bool{}
	}
	openFiles.paths[path] = true
	return true
}

func releaseFile(path string) {
	openFiles.Lock()
	defer openFiles.Unlock()
	delete(openFiles.paths, path)
}

// Open opens or creates a file, and migrates its schema to this version. With
// Config.Repair a damaged one is set aside, and a new one begins.
func Open(path string, cfg Config) (_ *Store, err error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("open store %s: %w", path, err)
		}
	}()
	if path == "" || strings.ContainsAny(path, "?%") || strings.HasPrefix(path, ":") {
		return nil, errors.New("invalid path, want a file without ? and % in its path")
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if real, err := filepath.EvalSymlinks(full); err == nil {
		full = real
	}
	if info, err := os.Stat(full); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%w: it is a directory", ErrForeign)
	}
	if info, err := os.Stat(filepath.Dir(full)); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("no directory %s", filepath.Dir(full))
	}
	if !claimFile(full) {
		return nil, fmt.Errorf("%w: this process has it open", ErrLocked)
	}
	s := &Store{path: full, cfg: cfg, querySlots: make(chan struct{}, cfg.Readers+cfg.Waiting), unmerged: map[store.Kind]*unmergedSteps{}, recordGaps: map[store.Kind]*atomic.Int64{}}
	for _, kind := range store.Kinds() {
		s.recordGaps[kind] = &atomic.Int64{}
	}
	s.limits.Store(&limits{maps.Clone(cfg.Retention), cfg.MaxSize})
	if s.log = cfg.Log; s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	createPrivate()
	if err := s.openOrRepair(context.Background()); err != nil {
		releaseFile(full)
		return nil, err
	}
	makePrivate(full, s.log)
	return s, nil
}

func (s *Store) open(ctx context.Context) error {
	s.writer = nil
	connector, err := duckdb.NewConnector(s.path, nil)
	if err != nil {
		return openError(err)
	}
	s.db = sql.OpenDB(connector) // also closes the connector
	fail := func(err error) error {
		if s.writer != nil {
			err = errors.Join(err, s.writer.Close())
		}
		return errors.Join(err, s.db.Close())
	}
	if s.writer, err = s.db.Conn(ctx); err != nil {
		return fail(err)
	}
	// In bytes: DuckDB's units differ from those of model.Bytes.
	settings := fmt.Sprintf(`SET memory_limit = '%dB'; SET preserve_insertion_order = false;`, int64(s.cfg.Memory))
	if s.cfg.Threads > 0 {
		settings += fmt.Sprintf(`SET threads = %d;`, s.cfg.Threads)
	}
	if _, err := s.writer.ExecContext(ctx, settings); err != nil {
		return fail(err)
	}
	if err := migrate(ctx, s.writer, migrations); err != nil {
		return fail(err)
	}
	if s.key, err = cursorKey(ctx, s.writer, s.key); err != nil {
		return fail(err)
	}
	if err := s.writer.QueryRowContext(ctx, lastSeq()).Scan(&s.seq); err != nil {
		return fail(err)
	}
	s.committedSeq.Store(s.seq)
	if err := s.loadFlowIDs(ctx); err != nil {
		return fail(err)
	}
	if err := s.loadTimeBounds(ctx); err != nil {
		return fail(err)
	}
	if err := s.loadRepairs(ctx); err != nil {
		return fail(err)
	}
	s.hot.Store(s.newRecentCache())
	if err := s.loadIncidents(ctx, s.cfg.CacheSize/cacheParts); err != nil {
		return fail(err)
	}
	s.db.SetMaxOpenConns(s.cfg.Readers + 1)
	s.db.SetMaxIdleConns(s.cfg.Readers + 1)
	return nil
}

// lastSeq is the query for the highest sequence number so far.
func lastSeq() string {
	var each []string
	for _, kind := range store.Kinds() {
		if _, rollup := rollups[kind]; !rollup {
			each = append(each, `SELECT max(seq) AS seq FROM `+tableOf(kind))
		}
	}
	return `SELECT coalesce(max(seq), 0) FROM (` + strings.Join(each, ` UNION ALL `) + `)`
}

// Close writes everything into the file and closes it. It waits for running work.
// A salvage in the background continues when the file is opened again.
func (s *Store) Close() error {
	s.stopSalvage()
	defer s.stopSalvage() // one that began since then
	s.lifetime.Lock()
	defer s.lifetime.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	s.closed = true
	if s.unopened != nil {
		releaseFile(s.path)
		return nil
	}
	_, err := s.writer.ExecContext(context.Background(), `CHECKPOINT`)
	err = errors.Join(err, s.writer.Close(), s.db.Close())
	releaseFile(s.path)
	if err != nil {
		return fmt.Errorf("close store %s: %w", s.path, err)
	}
	return nil
}

// beginWork registers work, which Close waits for; leave ends it.
func (s *Store) beginWork() (leave func(), err error) {
	s.lifetime.RLock()
	if s.closed {
		s.lifetime.RUnlock()
		return nil, store.ErrClosed
	}
	if err := s.unopened; err != nil {
		s.lifetime.RUnlock()
		return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	return s.lifetime.RUnlock, nil
}

// openError translates DuckDB's errors.
func openError(err error) error {
	text := err.Error()
	switch {
	case strings.Contains(text, "Could not set lock"):
		who := ""
		if _, holder, ok := strings.Cut(text, "Conflicting lock is held in "); ok {
			holder, _, _ = strings.Cut(holder, ". ")
			who = ", " + holder
		}
		return fmt.Errorf("%w by another process%s; stop it, or use its API", ErrLocked, who)
	case strings.Contains(text, "not a valid DuckDB database file"):
		return errNoDatabase
	case newerStorage(text):
		return fmt.Errorf("%w of DuckDB: %w", ErrNewer, err)
	}
	return err
}

func noTransaction(err error) bool { return strings.Contains(err.Error(), "no transaction is active") }
