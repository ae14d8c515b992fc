package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

// Store is a database of records. It may be used concurrently, and by several processes.
type Store struct {
	cfg    Config
	conn   driver.Conn
	key    []byte // seals cursors
	closed atomic.Bool

	current bool // what the server is: current.go

	writing sync.Mutex // held by Append
	mu      sync.Mutex
	handle  int64 // the lowest bits of seq; differs among processes, most likely
	tick    int64 // the last one that was used
	pending int64 // first tick of the batch that is written; 0: none is

	retention atomic.Pointer[store.Retention]
	removed   atomic.Pointer[map[store.Kind][]removedRows]
}

// handleBits are the lowest bits of seq.
const handleBits = 10

// Open connects to the servers and brings the tables to this version.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	conn, err := connect(cfg, "") // the database may not exist yet
	if err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg, conn: conn, handle: rand.Int64N(1 << handleBits)}
	s.retention.Store(&cfg.Retention)
	err = errors.Join(s.createDatabase(ctx), conn.Close())
	if err == nil {
		s.conn, err = connect(cfg, cfg.Database)
	}
	if err != nil {
		return nil, fmt.Errorf("clickhouse: %v: %w", cfg.Addresses, err)
	}
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return s.migrate(ctx, migrations) }, s.modernize, s.setTTLs, s.readKey, s.readRemoved,
	} {
		if err = step(ctx); err != nil {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("clickhouse: database %s: %w", cfg.Database, err), s.conn.Close())
	}
	return s, nil
}

func connect(cfg Config, database string) (driver.Conn, error) {
	var settings driver.Settings
	if cfg.Cluster != "" {
		settings = clusterSettings
	}
	return driver.Open(&driver.Options{
		Settings: settings,
		Addr:     cfg.Addresses, Auth: driver.Auth{Database: database, Username: cfg.User, Password: cfg.Password}, TLS: cfg.TLS,
		DialTimeout: cfg.Timeout, ReadTimeout: cfg.Timeout, MaxOpenConns: 16, MaxIdleConns: 8,
	})
}

// Close ends the connections.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return store.ErrClosed
	}
	s.writing.Lock() // after the batch that is written
	defer s.writing.Unlock()
	return s.conn.Close()
}

// usable returns why the store cannot be used.
func (s *Store) usable(ctx context.Context) error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	return ctx.Err()
}

// A seq is the time of arrival in microseconds, or one more than the last, and the
// handle of the process.

func now() int64 { return time.Now().UnixMicro() }

// allocate returns the first of n ticks for a batch. Until done is called no walk has
// later ones.
func (s *Store) allocate(n int) (first int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first = max(s.tick, now()) + 1
	s.tick, s.pending = first+int64(n)-1, first
	return first
}

func (s *Store) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = 0
}

// bound is the highest seq of a walk that begins: this process writes none below it
// later.
func (s *Store) bound() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending != 0 {
		return (s.pending - 1) << handleBits
	}
	s.tick = max(s.tick, now())
	return s.tick<<handleBits | (1<<handleBits - 1)
}

func (s *Store) seq(tick int64) int64 { return tick<<handleBits | s.handle }

// pageLimit is the number of records of a page.
func (s *Store) pageLimit(asked int) int {
	if asked <= 0 || asked > s.cfg.MaxPage {
		return s.cfg.MaxPage
	}
	return asked
}

// start checks a query and returns its cursor, or that of the first page.
func (s *Store) start(ctx context.Context, kind store.Kind, q record.Query) (c store.Cursor, err error) {
	if err := s.usable(ctx); err != nil {
		return c, err
	}
	if err := store.CheckQuery(kind, q); err != nil {
		return c, err
	}
	if q.After == "" {
		return store.Cursor{Bound: s.bound()}, nil
	}
	return store.Unseal(s.key, kind, q)
}
