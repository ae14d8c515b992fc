package traffic

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/weft-telemetry/weft/model"
)

// Error is a complaint about a file. Its text is "file:line: what, want …".
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

// readFile reads a file, or a pipe, of at most so many bytes.
func readFile(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, systemError(path, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, systemError(path, err)
	}
	if int64(len(data)) > most {
		return nil, &Error{File: path, Msg: fmt.Sprintf("more than %v, want less", model.Bytes(most))}
	}
	return data, nil
}

func systemError(path string, err error) *Error {
	e := &Error{File: path, Msg: err.Error(), err: err}
	// The path is in front already.
	if pe := (*os.PathError)(nil); errors.As(err, &pe) {
		e.Msg = pe.Op + ": " + pe.Err.Error()
	}
	return e
}

// parseDecimal reads a number, not negative, in the usual forms. Unlike
// strconv it takes neither infinities nor hexadecimal digits.
func parseDecimal(s string) (float64, bool) {
	if strings.Trim(s, "0123456789.eE+-") != "" {
		return 0, false
	}
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil && v >= 0
}
