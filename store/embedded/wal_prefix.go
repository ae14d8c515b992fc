package embedded

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/weft-telemetry/weft/model"
)

// readerMemory is the memory of DuckDB for reading a damaged file.
const readerMemory = 128 * model.MiB

// openReadOnly opens a file that is not changed: not even its log is written into
// it.
func openReadOnly(ctx context.Context, path string) (*sql.DB, error) {
	connector, err := duckdb.NewConnector(fmt.Sprintf("%s?access_mode=READ_ONLY&threads=1&memory_limit=%dB", path, int64(readerMemory)), nil)
	if err != nil {
		return nil, openError(err)
	}
	db := sql.OpenDB(connector)
	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(openError(err), db.Close())
	}
	return db, nil
}

func readable(ctx context.Context, path string) error {
	db, err := openReadOnly(ctx, path)
	if err != nil {
		return err
	}
	return db.Close()
}

// prefixTime limits the search for the readable part of a log.
const prefixTime = 30 * time.Second

// logPrefix is a file with the part of its log before the damage. Its files are
// temporary names of the original.
type logPrefix struct {
	path string // of the file, under another name
	size int64  // of the log
	full int64  // size of the whole log
}

func (p *logPrefix) remove() { _ = os.RemoveAll(filepath.Dir(p.path)) }

// errOtherDamage is returned by readablePrefix if the file is damaged, too.
var errOtherDamage = errors.New("the file is damaged, not only its log")

// readablePrefix finds the longest part of a file's log that can be read: DuckDB
// replays a log that ends early up to its last complete commit, but refuses one
// with damage in it. The file gets a second name, with the part as its log, so that
// the original stays as it is.
func readablePrefix(ctx context.Context, path string) (_ *logPrefix, err error) {
	dir, err := os.MkdirTemp(filepath.Dir(path), ".weft-salvage-*")
	if err != nil {
		return nil, err
	}
	p := &logPrefix{path: filepath.Join(dir, filepath.Base(path))}
	defer func() {
		if err != nil {
			p.remove()
		}
	}()
	if err := os.Link(path, p.path); err != nil { // DuckDB resolves symbolic links
		return nil, err
	}
	if err := readable(ctx, p.path); err != nil {
		return nil, fmt.Errorf("%w: %w", errOtherDamage, err)
	}
	if err := copyFile(logName(path), logName(p.path)); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(logName(p.path), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	info, err := log.Stat()
	if err != nil {
		return nil, err
	}
	p.full = info.Size()
	end := time.Now().Add(prefixTime)
	good, bad := int64(0), p.full+1
	for try := p.full; good+1 < bad; try = good + (bad-good)/2 {
		if err := p.setLog(path, log, try); err != nil {
			return nil, err
		}
		if readable(ctx, p.path) == nil {
			good = try
		} else {
			bad = try
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if time.Now().After(end) {
			break
		}
	}
	p.size = good
	return p, p.setLog(path, log, good)
}

// setLog makes the log the first n bytes of the original.
func (p *logPrefix) setLog(original string, log *os.File, n int64) error {
	info, err := log.Stat()
	if err != nil {
		return err
	}
	if have := info.Size(); have < n {
		from, err := os.Open(logName(original))
		if err != nil {
			return err
		}
		defer from.Close()
		if _, err := io.Copy(io.NewOffsetWriter(log, have), io.NewSectionReader(from, have, n-have)); err != nil {
			return err
		}
	}
	return log.Truncate(n)
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

// hasLog reports whether a file has a log with content.
func hasLog(path string) bool {
	info, err := os.Stat(logName(path))
	return !errors.Is(err, fs.ErrNotExist) && (err != nil || info.Size() > 0)
}
