package filter

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Error says what is wrong with a filter, and where.
type Error struct {
	Text    string // the whole filter
	At, End int    // bytes of Text that are invalid; equal where something is missing
	Problem string // `unknown field "ip.scr"`
	Want    string // what is valid there
}

// Column returns where the error starts, counted from 1 in characters.
func (e *Error) Column() int { return utf8.RuneCountInString(e.Text[:e.At]) + 1 }

// Error returns the error in one line.
func (e *Error) Error() string {
	return fmt.Sprintf("filter: column %d: %s, want %s", e.Column(), e.Problem, e.Want)
}

// Underline returns the filter and below it carets under the invalid part.
func (e *Error) Underline() string {
	plain := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' ' // keep the carets aligned
		}
		return r
	}, e.Text)
	width := max(utf8.RuneCountInString(e.Text[e.At:e.End]), 1)
	return plain + "\n" + strings.Repeat(" ", e.Column()-1) + strings.Repeat("^", width)
}
