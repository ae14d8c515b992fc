package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
)

// Control sequences of every terminal since the VT100; the alternate screen, of every
// one since xterm.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // alternate screen, hidden cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	cursorHome  = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// render draws a snapshot on a screen; with height 0 all of it.
func (v *topView) render(s *topSnapshot, on screen, height int) string {
	var b strings.Builder
	line := func(text, severity string) { fmt.Fprintln(&b, on.paint(on.fit(text), severity)) }
	line(fmt.Sprintf("weft top  %s  health: %s  %s, %d paused  open incidents: %d", s.Time.UTC().Format("15:04:05.000"),
		strings.ReplaceAll(s.Health, "-", " "), plural.Count(len(s.Ports), "port"), s.Paused, len(s.Incidents)), "")
	ports, flows, incidents := v.rows, v.rows, 5
	if height > 0 { // the header, two heads and two empty lines, and the line of keys
		incidents = min(len(s.Incidents), height/6)
		rest := max(height-7-incidents, 2)
		ports = (rest + 1) / 2
		flows = rest - ports
	}
	for i := range s.Incidents[:min(len(s.Incidents), incidents)] {
		in := &s.Incidents[i]
		line(fmt.Sprintf("%-5s %-8s %-11s %s", in.ID, in.Severity, in.Cause, in.Summary), in.Severity)
	}
	if s.NoData != nil {
		printNoData(&b, s.NoData)
		return b.String()
	}
	v.renderPorts(&b, s, on, ports)
	v.renderFlows(&b, s, on, flows)
	return b.String()
}

func (v *topView) renderPorts(b *strings.Builder, s *topSnapshot, on screen, most int) {
	var rows table
	rows.row("PORT (by "+topSorts[v.order].name+")", "LOAD", "RATE", "QUEUE", "LATENCY", "PAUSED", "LOST")
	for i := range s.Ports[:min(len(s.Ports), most)] {
		p := &s.Ports[i]
		queue, latency := "-", "-"
		if p.AgeMs >= 0 {
			queue, latency = model.FormatBytes(model.Bytes(p.QueueBytes)), model.FormatDuration(time.Duration(p.LatencyNs))
		}
		rows.row(p.Name, model.FormatShare(p.LoadShare), model.FormatRate(model.Rate(p.LoadBps)), queue, latency,
			model.FormatShare(p.PausedShare), p.LostPackets)
	}
	fmt.Fprintln(b)
	_ = rows.printOn(b, on, func(string) string { return "" }) // a strings.Builder takes everything
}

func (v *topView) renderFlows(b *strings.Builder, s *topSnapshot, on screen, most int) {
	var rows table
	rows.row("FLOW (last second)", "HOSTS", "RATE", "BYTES", "LOST", "PATH")
	for i := range s.Flows[:min(len(s.Flows), most)] {
		f := &s.Flows[i]
		rows.row(f.Flow, dash(endpoints(f.FlowRef)), model.FormatRate(model.Rate(f.RateBps)), model.FormatBytes(model.Bytes(f.Bytes)),
			f.LostPackets, pathText(f.Path))
	}
	fmt.Fprintln(b)
	_ = rows.printOn(b, on, func(string) string { return "" })
}

// keysLine is the last line of a screen.
const keysLine = "q quit   sort ports by: l load  u queue  p paused  o lost"

// watch redraws a terminal until ctx ends or q is pressed.
func (v *topView) watch(ctx context.Context, in, out *os.File, every time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	restore, err := keysOf(in)
	if err != nil {
		return err
	}
	defer restore()
	fmt.Fprint(out, enterScreen)
	defer fmt.Fprint(out, leaveScreen)
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	keys, ended := make(chan byte), make(chan struct{})
	go func() {
		defer close(ended)
		readKeys(ctx, in, keys)
	}()
	defer func() { // before the terminal is restored: a read would then wait for a line
		cancel()
		<-ended
	}()
	tick := time.NewTicker(every)
	defer tick.Stop()
	var s *topSnapshot
	for fresh := true; ; {
		if fresh {
			if s, err = v.read(ctx); err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return err
			}
		}
		v.draw(s, out)
		fresh = false
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			fresh = true
		case <-resized:
		case k, more := <-keys:
			if !more {
				keys = nil
			} else if k == 'q' || k == 'Q' {
				return nil
			}
			for i := range topSorts {
				if k == topSorts[i].key {
					v.order = i
				}
			}
		}
	}
}

// draw draws a snapshot over the last one, without flicker: each line is cleared to its
// end, and what is below the last.
func (v *topView) draw(s *topSnapshot, out *os.File) {
	v.sort(s)
	on, height := screenOf(out), 24
	if size, err := unix.IoctlGetWinsize(int(out.Fd()), unix.TIOCGWINSZ); err == nil && size.Row > 0 {
		height = int(size.Row)
	}
	lines := strings.Split(strings.TrimRight(v.render(s, on, height), "\n"), "\n")
	lines = append(lines[:min(len(lines), height-1)], on.fit(keysLine))
	fmt.Fprint(out, cursorHome+strings.Join(lines, clearLine+"\n")+clearLine+clearBelow)
}

// keysOf has a terminal hand over keys one by one, without echo. Ctrl-C stays a signal.
func keysOf(in *os.File) (restore func(), err error) {
	before, err := unix.IoctlGetTermios(int(in.Fd()), unix.TCGETS)
	if err != nil {
		return func() {}, nil // not a terminal: there are no keys
	}
	now := *before
	now.Lflag &^= unix.ICANON | unix.ECHO
	now.Cc[unix.VMIN], now.Cc[unix.VTIME] = 0, 1 // a read returns after a tenth of a second
	if err := unix.IoctlSetTermios(int(in.Fd()), unix.TCSETS, &now); err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	return func() { _ = unix.IoctlSetTermios(int(in.Fd()), unix.TCSETS, before) }, nil
}

// readKeys passes keys on until ctx or the input ends.
func readKeys(ctx context.Context, in *os.File, keys chan<- byte) {
	defer close(keys)
	if _, err := unix.IoctlGetTermios(int(in.Fd()), unix.TCGETS); err != nil {
		return
	}
	b := make([]byte, 1)
	for ctx.Err() == nil {
		n, err := unix.Read(int(in.Fd()), b)
		if err != nil && err != unix.EINTR {
			return
		}
		if n == 1 {
			select {
			case keys <- b[0]:
			case <-ctx.Done():
			}
		}
	}
}
