package main

import (
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// screen is what an output can show. The zero screen is a file or a pipe: lines of
// any length, without colour.
type screen struct {
	width  int // in columns; 0: any
	colour bool
}

// screenOf returns the screen of an output, by NO_COLOR and TERM.
func screenOf(w io.Writer) screen {
	f, ok := w.(*os.File)
	if !ok {
		return screen{}
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return screen{}
	}
	return screen{width: int(size.Col), colour: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// fit cuts a line to the screen's width and ends it with an ellipsis.
func (s screen) fit(line string) string {
	if s.width <= 0 || utf8.RuneCountInString(line) <= s.width {
		return line
	}
	n := 0
	for i := range line {
		if n++; n == s.width {
			return strings.TrimRight(line[:i], " ") + "…"
		}
	}
	return line
}

// severityColours are ANSI sequences.
var severityColours = map[string]string{"critical": "\x1b[1;31m", "warning": "\x1b[33m", "notice": "\x1b[2m"}

// paint colours the first occurrence of a severity in a line.
func (s screen) paint(line, severity string) string {
	colour, known := severityColours[severity]
	if !s.colour || !known {
		return line
	}
	return strings.Replace(line, severity, colour+severity+"\x1b[0m", 1)
}

// timeOfDay shortens a time in RFC 3339 to milliseconds of its day; other texts, such
// as the time of a run, stay.
func timeOfDay(text string) string {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return text
	}
	return at.Format("15:04:05.000")
}
