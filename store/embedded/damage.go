package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrDamaged is wrapped if a file or its write-ahead log cannot be read.
var ErrDamaged = errors.New("the store is damaged")

// openedIntact are the errors of opening that say nothing about the content of a
// file: it is not to be set aside for them.
var openedIntact = []error{
	ErrLocked, ErrNewer, ErrForeign, context.Canceled, context.DeadlineExceeded,
	fs.ErrPermission, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM,
	syscall.EAGAIN, syscall.ENOENT, // no more threads; the directory is gone
}

// damagedAtOpen reports whether an error of opening means that the content of a
// file or of its log is damaged. DuckDB returns texts only.
func damagedAtOpen(err error) bool {
	if err == nil {
		return false
	}
	for _, other := range openedIntact {
		if errors.Is(err, other) {
			return false
		}
		if no, ok := other.(syscall.Errno); ok && strings.Contains(strings.ToLower(err.Error()), no.Error()) {
			return false
		}
	}
	return !strings.Contains(err.Error(), "Permission denied") && !strings.Contains(err.Error(), "Parser Error") && !outOfMemory(err)
}

func outOfMemory(err error) bool {
	return strings.Contains(err.Error(), "Out of Memory") || strings.Contains(err.Error(), "bad_alloc")
}

// damagedInUse reports whether an error of an open file means damage. A file is set
// aside for it while it works, so the error must say so.
func damagedInUse(err error) bool {
	if err == nil || outOfMemory(err) {
		return false
	}
	for _, text := range []string{
		"Corrupt database file", "Corrupt WAL", "does not match stored checksum", "Could not read enough bytes",
		"Serialization Error", "Failed to deserialize",
	} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

// invalidated reports whether DuckDB refuses all work until the file is opened
// again, after an error that left its memory inconsistent.
func invalidated(err error) bool {
	return err != nil && strings.Contains(err.Error(), "has been invalidated")
}

// unavailable reports whether an error is the store's, not that of a record.
func unavailable(err error) bool {
	if damagedInUse(err) || invalidated(err) || outOfMemory(err) || diskFull(err) {
		return true
	}
	for _, text := range []string{"IO Error", "FATAL Error", "INTERNAL Error", "TransactionContext Error"} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

// maxStorageVersion is far above any version of DuckDB's file format: a higher
// number is a damaged header, not a newer DuckDB.
const maxStorageVersion = 10_000

// newerStorage reports whether DuckDB's error is about a file of a newer DuckDB.
func newerStorage(text string) bool {
	_, rest, found := strings.Cut(text, "with version number ")
	number, _, _ := strings.Cut(rest, ",")
	v, err := strconv.ParseUint(number, 10, 64)
	return found && err == nil && v <= maxStorageVersion
}

// hasOurContent reports whether a file that is no database for DuckDB was a store:
// it has the name of our table of migrations, or only zeros, which is what is left
// of a file after some crashes of a machine.
func hasOurContent(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	ours, zeros := []byte(migrationsTable), true
	buf := make([]byte, 1<<20)
	kept := 0 // the end of the block before, which may have the start of the name
	for {
		n, err := f.Read(buf[kept:])
		block := buf[:kept+n]
		if bytes.Contains(block, ours) {
			return true, nil
		}
		zeros = zeros && len(bytes.Trim(block, "\x00")) == 0
		if err == io.EOF {
			return zeros, nil
		} else if err != nil {
			return false, err
		}
		kept = copy(buf, block[max(0, len(block)-len(ours)+1):])
	}
}

// asideTimeFormat is the format of the time in the name of a file that was set
// aside.
const asideTimeFormat = "20060102T150405Z"

// asideName is an unused name for a damaged file and its log.
func asideName(path string, now time.Time) string {
	for at := now.UTC(); ; at = at.Add(time.Second) {
		name := path + ".damaged-" + at.Format(asideTimeFormat)
		_, err1 := os.Lstat(name)
		_, err2 := os.Lstat(logName(name))
		if errors.Is(err1, fs.ErrNotExist) && errors.Is(err2, fs.ErrNotExist) {
			return name
		}
	}
}

// logName is the name of a file's write-ahead log.
func logName(path string) string { return path + ".wal" }

// setAside renames a file and its log. The log follows its file: if the process
// ends between the two, the log of no file is set aside by the next.
func setAside(path string, now time.Time) (aside string, err error) {
	aside = asideName(path, now)
	if err := os.Rename(path, aside); err != nil {
		return "", fmt.Errorf("set the damaged file aside: %w", err)
	}
	if err := os.Rename(logName(path), logName(aside)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("set the log of the damaged file aside: %w", err)
	}
	return aside, nil
}

// putBack undoes setAside; what has begun in place of the file is removed.
func putBack(aside, path string) error {
	if err := os.Remove(logName(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(logName(aside), logName(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(aside, path)
}
