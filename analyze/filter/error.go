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
	At, End int    // bytes of Text that are wrong; equal where something is missing
	Problem string // `unknown field "ip.scr"`
	Want    string // what would be right
}

// Column is where the trouble begins, counted from 1 in characters.
func (e *Error) Column() int { return utf8.RuneCountInString(e.Text[:e.At]) + 1 }

// Error is one line.
func (e *Error) Error() string {
	return fmt.Sprintf("filter: column %d: %s, want %s", e.Column(), e.Problem, e.Want)
}

// Underline is the filter and below it a mark under what is wrong.
func (e *Error) Underline() string {
	plain := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' ' // the mark must stand below
		}
		return r
	}, e.Text)
	width := max(utf8.RuneCountInString(e.Text[e.At:e.End]), 1)
	return plain + "\n" + strings.Repeat(" ", e.Column()-1) + strings.Repeat("^", width)
}
