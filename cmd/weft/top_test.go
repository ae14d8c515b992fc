package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-telemetry/weft/control/api"
)

// openPTY opens a pseudo-terminal: what the terminal shows, and what a program writes to.
func openPTY(t *testing.T, rows, columns uint16) (terminal, program *os.File) {
	t.Helper()
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close() })
	if err := unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetUint32(int(terminal.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	resize(t, terminal, rows, columns)
	return terminal, program
}

func resize(t *testing.T, terminal *os.File, rows, columns uint16) {
	t.Helper()
	if err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: columns}); err != nil {
		t.Fatal(err)
	}
}

// shownText is everything that a terminal has shown.
type shownText struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{}
}

func (s *shownText) read(terminal *os.File) {
	b := make([]byte, 1<<16)
	for {
		n, err := terminal.Read(b)
		s.mu.Lock()
		s.text.Write(b[:n])
		s.mu.Unlock()
		select {
		case s.more <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// until waits for a text after a position, and returns the position behind it.
func (s *shownText) until(t *testing.T, from int, want string) int {
	t.Helper()
	for deadline := time.After(time.Minute); ; {
		s.mu.Lock()
		all := s.text.String()
		s.mu.Unlock()
		if i := strings.Index(all[from:], want); i >= 0 {
			return from + i + len(want)
		}
		select {
		case <-s.more:
		case <-deadline:
			t.Fatalf("the terminal shows\n%q\nwant %q", all[from:], want)
		}
	}
}

func testSnapshot() *topSnapshot {
	s := &topSnapshot{Time: time.Unix(1_700_000_000, 0), Health: "ok", Paused: 1}
	for i := range 40 {
		s.Ports = append(s.Ports, topPort{
			Name:      fmt.Sprintf("tor%d Ethernet0 → h%d, a name that is longer than a narrow terminal is wide", i, i),
			PortState: api.PortState{LoadShare: float64(i) / 40, QueueBytes: int64(1000 - i), LostPackets: uint64(i % 3)},
		})
	}
	s.Incidents = []api.Incident{{ID: "i7", Severity: "critical", Cause: "loop", Summary: "packets loop"}}
	return s
}

// TestTopOnATerminal: top draws on a real terminal, sorts by keys, follows its size, and leaves the
// terminal as it was.
func TestTopOnATerminal(t *testing.T) {
	terminal, program := openPTY(t, 20, 80)
	before, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	shown := &shownText{more: make(chan struct{}, 1)}
	go shown.read(terminal)
	v := topView{rows: 20, read: func(context.Context) (*topSnapshot, error) { return testSnapshot(), nil }}
	done := make(chan error, 1)
	go func() { done <- v.watch(t.Context(), program, program, time.Hour) }()
	at := shown.until(t, 0, enterScreen)
	at = shown.until(t, at, "open incidents: 1")
	at = shown.until(t, at, "PORT (by load)")
	at = shown.until(t, at, "tor39")
	at = shown.until(t, at, "q quit")
	press := func(key string) {
		if _, err := terminal.WriteString(key); err != nil {
			t.Fatal(err)
		}
	}
	press("u")
	at = shown.until(t, at, "PORT (by queue)")
	at = shown.until(t, at, "tor0 ")
	press("p")
	at = shown.until(t, at, "PORT (by paused)")
	resize(t, terminal, 10, 40)
	press("o")
	start := at
	at = shown.until(t, at, "PORT (by lost)")
	at = shown.until(t, at, clearBelow)
	shown.mu.Lock()
	screen := shown.text.String()[start:at]
	shown.mu.Unlock()
	screen = screen[strings.LastIndex(screen, cursorHome)+len(cursorHome):]
	lines := strings.Split(strings.NewReplacer(clearLine, "", clearBelow, "").Replace(screen), "\r\n")
	if len(lines) > 10 {
		t.Errorf("%d lines on a terminal of 10:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	for _, line := range lines {
		plain := strings.NewReplacer("\x1b[1;31m", "", "\x1b[0m", "").Replace(line)
		if n := len([]rune(plain)); n > 40 {
			t.Errorf("a line of %d columns on a terminal of 40: %q", n, plain)
		}
	}
	press("q")
	if err := <-done; err != nil {
		t.Errorf("watch() = %v; want nil after q", err)
	}
	shown.until(t, at, leaveScreen)
	if after, err := unix.IoctlGetTermios(int(program.Fd()), unix.TCGETS); err != nil || *after != *before {
		t.Errorf("terminal settings %+v, %v; want those before, %+v", after, err, before)
	}
}

// TestTopEndsWithItsContext: Ctrl-C ends the context, not the terminal.
func TestTopEndsWithItsContext(t *testing.T) {
	terminal, program := openPTY(t, 24, 80)
	shown := &shownText{more: make(chan struct{}, 1)}
	go shown.read(terminal)
	ctx, cancel := context.WithCancel(t.Context())
	v := topView{rows: 20, read: func(context.Context) (*topSnapshot, error) { return testSnapshot(), nil }}
	done := make(chan error, 1)
	go func() { done <- v.watch(ctx, program, program, time.Hour) }()
	at := shown.until(t, 0, "q quit")
	cancel()
	if err := <-done; err != nil {
		t.Errorf("watch() = %v; want nil", err)
	}
	shown.until(t, at, leaveScreen)
}
