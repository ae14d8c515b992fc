package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/weft-telemetry/weft/store"
)

// FileCheck is the result of CheckFile.
type FileCheck struct {
	File   string       `json:"file"`
	Damage string       `json:"damage,omitempty"` // of the file or its log as a whole
	Tables []TableCheck `json:"tables"`           // none if the file cannot be opened
}

// TableCheck is the state of one table.
type TableCheck struct {
	Table   string `json:"table"`
	Rows    uint64 `json:"rows"`             // that can be read
	Damaged uint64 `json:"damaged"`          // rows that cannot, at most
	Damage  string `json:"damage,omitempty"` // DuckDB's words, the first
}

// Intact reports whether everything could be read.
func (c *FileCheck) Intact() bool {
	for i := range c.Tables {
		if c.Tables[i].Damage != "" {
			return false
		}
	}
	return c.Damage == ""
}

// CheckFile reads all of a file that no process has open, without changing it. An
// error means that it could not be checked; damage is no error.
func CheckFile(ctx context.Context, path string) (*FileCheck, error) {
	c := &FileCheck{File: path, Tables: []TableCheck{}}
	f, err := openSource(ctx, path, time.Now())
	if errors.Is(err, ErrDamaged) {
		c.Damage = err.Error()
		return c, nil
	} else if err != nil {
		return nil, err
	}
	defer f.close()
	if f.prefix != nil {
		c.Damage = fmt.Sprintf("log: %d of %d bytes can be read", f.prefix.size, f.prefix.full)
	}
	tables := []string{migrationsTable, "weft_key"}
	for _, kind := range store.Kinds() {
		tables = append(tables, f.table(kind))
	}
	if f.texts != nil {
		tables = append(tables, flowKeys, flowPaths)
	}
	for _, table := range tables {
		t := TableCheck{Table: table}
		end, err := f.rows(ctx, table)
		if err != nil && ctx.Err() == nil {
			t.Damage = err.Error()
		}
		for from := int64(0); from < end; from += checkRows {
			f.check(ctx, &t, from, min(from+checkRows, end))
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c.Tables = append(c.Tables, t)
	}
	return c, nil
}

// checkRows is the number of rows that are read at once.
const checkRows = rowGroup

// check reads the rows of a range: each block that is read is compared with its
// checksum.
func (f *damagedFile) check(ctx context.Context, t *TableCheck, from, to int64) {
	var rows uint64
	var sum any // so that all columns are read
	err := f.db.QueryRowContext(ctx, fmt.Sprintf(`SELECT count(*), bit_xor(hash(t)) FROM %s t WHERE rowid >= %d AND rowid < %d`,
		t.Table, from, to)).Scan(&rows, &sum)
	if invalidated(err) {
		err = errors.Join(err, f.reopen(ctx))
	}
	if err == nil {
		t.Rows += rows
		return
	}
	if t.Damage == "" {
		t.Damage = err.Error()
	}
	if to-from <= leastRange || ctx.Err() != nil {
		t.Damaged += uint64(to - from)
		return
	}
	middle := from + (to-from)/2
	f.check(ctx, t, from, middle)
	f.check(ctx, t, middle, to)
}

// openSource opens a file of a path for reading, if it is a store.
func openSource(ctx context.Context, path string, until time.Time) (*damagedFile, error) {
	full, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(full); err != nil {
		return nil, err
	} else if info.IsDir() {
		return nil, fmt.Errorf("open store %s: %w: it is a directory", path, ErrForeign)
	}
	if !claimFile(full) {
		return nil, fmt.Errorf("open store %s: %w: this process has it open", path, ErrLocked)
	}
	defer releaseFile(full)
	f, err := openDamaged(ctx, full, until)
	if err != nil {
		s := Store{path: full}
		return nil, fmt.Errorf("open store %s: %w", path, s.damageOf(err))
	}
	var ours int
	err = f.db.QueryRowContext(ctx, `SELECT count(*) FROM duckdb_tables() WHERE table_name = ?`, migrationsTable).Scan(&ours)
	if err == nil && ours == 0 {
		err = ErrForeign
	}
	if err != nil {
		f.close()
		return nil, fmt.Errorf("open store %s: %w", path, err)
	}
	return f, nil
}

// RepairFile salvages a file that no process has open into a new one. The damaged
// file stays as it is if to is another path; with the same path it is set aside
// first, as a Store with Config.Repair does.
func RepairFile(ctx context.Context, path, to string, cfg Config) (r Repair, err error) {
	f, err := openSource(ctx, path, time.Now())
	if err == nil {
		f.close()
	} else if !errors.Is(err, ErrDamaged) {
		return r, err
	}
	r = Repair{Time: time.Now(), File: path, Cause: "weft store repair", Running: true}
	if to == path {
		if r.File, err = setAside(path, r.Time); err != nil {
			return r, err
		}
	}
	if _, err := os.Stat(to); err == nil {
		return r, fmt.Errorf("repair store %s: %s exists, want a new file", path, to)
	}
	cfg.Repair = false
	s, err := Open(to, cfg)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.noteRepair(ctx, &r); err != nil {
		return r, err
	}
	note := s.repairs[len(s.repairs)-1]
	note.File = r.File // also of another directory
	err = s.salvageKinds(ctx, note, salvageOrder, s.beginWrite)
	if err = s.damageOf(err); errors.Is(err, ErrDamaged) || errors.Is(err, errNoDatabase) {
		note.Problem, err = "no more can be read: "+err.Error(), nil
	}
	note.Running = err != nil
	return *note, err
}
