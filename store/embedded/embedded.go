package embedded

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/weft-telemetry/weft/store"
)

// Store is an open file. Its methods may be called at once from anywhere:
// appends and maintenance take turns, queries run beside them.
type Store struct {
	path string
	cfg  Config
	db   *sql.DB       // readers
	key  []byte        // of cursors
	querySlots chan struct{} // a place for each query of the tables, running or waiting

	limits atomic.Pointer[limits]
	// Written in the turn of appends.
	hot     *recentCache
	ledger  incidentCache
	extents atomic.Pointer[map[store.Kind]timeBounds]
	recordGaps    map[store.Kind]*atomic.Int64 // nanoseconds between records, as last seen
	oversizedRuns  atomic.Int32                 // maintenances in a row that ended too large

	lifetime   sync.RWMutex // held for reading by all work, so that Close waits for it
	closed bool

	write   sync.Mutex // guards what follows
	writer  *sql.Conn
	seq     int64
	committedSeq atomic.Int64 // the highest seq committed
	merged  map[store.Kind]int64
}

// openFiles are the files that this process has open. DuckDB shares one database
// between all who open the same file in a process, so it would not refuse the
// second; two Stores would number their records twice.
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

// Open opens a file or makes it, and brings its schema to this version.
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
		return nil, errors.New("want the path of a file, without ? and %")
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if real, err := filepath.EvalSymlinks(full); err == nil {
		full = real
	}
	if info, err := os.Stat(full); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%w: it is a folder", ErrForeign)
	}
	if info, err := os.Stat(filepath.Dir(full)); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("there is no folder %s", filepath.Dir(full))
	}
	if !claimFile(full) {
		return nil, fmt.Errorf("%w: this process has it open", ErrLocked)
	}
	s := &Store{path: full, cfg: cfg, querySlots: make(chan struct{}, cfg.Readers+cfg.Waiting), merged: map[store.Kind]int64{}, recordGaps: map[store.Kind]*atomic.Int64{}}
	for _, kind := range store.Kinds() {
		s.recordGaps[kind] = &atomic.Int64{}
	}
	s.limits.Store(&limits{maps.Clone(cfg.Retention), cfg.MaxSize})
	if err := s.open(context.Background()); err != nil {
		releaseFile(full)
		return nil, err
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) error {
	connector, err := duckdb.NewConnector(s.path, nil)
	if err != nil {
		return openError(err)
	}
	s.db = sql.OpenDB(connector) // closes the connector with itself
	fail := func(err error) error {
		if s.writer != nil {
			err = errors.Join(err, s.writer.Close())
		}
		return errors.Join(err, s.db.Close())
	}
	if s.writer, err = s.db.Conn(ctx); err != nil {
		return fail(err)
	}
	// Bytes in full: DuckDB's own units are not those of model.Bytes.
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
	if s.key, err = cursorKey(ctx, s.writer); err != nil {
		return fail(err)
	}
	if err := s.writer.QueryRowContext(ctx, lastSeq()).Scan(&s.seq); err != nil {
		return fail(err)
	}
	s.committedSeq.Store(s.seq)
	if err := s.loadTimeBounds(ctx); err != nil {
		return fail(err)
	}
	s.hot = s.newRecentCache()
	if err := s.loadIncidents(ctx, s.cfg.CacheSize/cacheParts); err != nil {
		return fail(err)
	}
	s.db.SetMaxOpenConns(s.cfg.Readers + 1)
	s.db.SetMaxIdleConns(s.cfg.Readers + 1)
	return nil
}

// lastSeq asks for the highest number given so far.
func lastSeq() string {
	var each []string
	for _, kind := range store.Kinds() {
		if _, rollup := rollups[kind]; !rollup {
			each = append(each, `SELECT max(seq) AS seq FROM `+string(kind))
		}
	}
	return `SELECT coalesce(max(seq), 0) FROM (` + strings.Join(each, ` UNION ALL `) + `)`
}

// Close writes everything into the file and closes it. It waits for work under
// way.
func (s *Store) Close() error {
	s.lifetime.Lock()
	defer s.lifetime.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	s.closed = true
	_, err := s.writer.ExecContext(context.Background(), `CHECKPOINT`)
	err = errors.Join(err, s.writer.Close(), s.db.Close())
	releaseFile(s.path)
	if err != nil {
		return fmt.Errorf("close store %s: %w", s.path, err)
	}
	return nil
}

// beginWork is called by all work; leave ends it.
func (s *Store) beginWork() (leave func(), err error) {
	s.lifetime.RLock()
	if s.closed {
		s.lifetime.RUnlock()
		return nil, store.ErrClosed
	}
	return s.lifetime.RUnlock, nil
}

// openError says in Weft's words what DuckDB complains about.
func openError(err error) error {
	text := err.Error()
	switch {
	case strings.Contains(text, "Could not set lock"):
		who := ""
		if _, told, ok := strings.Cut(text, "Conflicting lock is held in "); ok {
			told, _, _ = strings.Cut(told, ". ")
			who = ", " + told
		}
		return fmt.Errorf("%w by another process%s; stop it, or ask its API", ErrLocked, who)
	case strings.Contains(text, "not a valid DuckDB database file"):
		return ErrForeign
	}
	return err
}

func noTransaction(err error) bool { return strings.Contains(err.Error(), "no transaction is active") }
