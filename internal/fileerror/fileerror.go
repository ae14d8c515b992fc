// Package fileerror holds the errors about files that a user wrote, with their
// position: "file:line: what, want …".
package fileerror

import (
	"errors"
	"fmt"
	"os"
)

// Error is an error in a file.
type Error struct {
	File string
	Line int // from 1; 0 if the error concerns no single line
	Msg  string
	err  error // the operating system's error, or nil
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Msg
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
}

func (e *Error) Unwrap() error { return e.err }

// Position is a line of a file. It is zero for values made in Go.
type Position struct {
	File string
	Line int // from 1
}

// Errorf returns an error at this position.
func (p Position) Errorf(format string, args ...any) *Error {
	return Errorf(p.File, p.Line, format, args...)
}

// Errorf returns an error about a line of a file.
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
