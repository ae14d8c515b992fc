// Package fileerror is how all rooms complain about a file that a user wrote:
// "file:line: what, want …".
package fileerror

import (
	"errors"
	"fmt"
	"os"
)

// Error is a complaint about a file.
type Error struct {
	File string
	Line int // from 1; 0 where no line is to blame
	Msg  string
	err  error // what the system said, if it did
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Msg
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
}

func (e *Error) Unwrap() error { return e.err }

// Position is where in a file something stands. It is zero for what was made in
// Go.
type Position struct {
	File string
	Line int // from 1
}

// Errorf complains about what stands there.
func (p Position) Errorf(format string, args ...any) *Error {
	return Errorf(p.File, p.Line, format, args...)
}

// Errorf complains about a line.
func Errorf(file string, line int, format string, args ...any) *Error {
	return &Error{File: file, Line: line, Msg: fmt.Sprintf(format, args...)}
}

// FromOS is what the system said about a file.
func FromOS(path string, err error) *Error {
	e := &Error{File: path, Msg: err.Error(), err: err}
	// The path is in front already.
	if pe := (*os.PathError)(nil); errors.As(err, &pe) {
		e.Msg = pe.Op + ": " + pe.Err.Error()
	}
	return e
}
