package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// findingsExit is the exit code of weft replay when it has found incidents.
const findingsExit = 3

// runWeft runs a command of this program to its end, and returns its CPU time.
func runWeft(ctx context.Context, args ...string) (time.Duration, error) {
	program, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, program, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !(errors.As(err, &exit) && exit.ExitCode() == findingsExit) {
		return 0, fmt.Errorf("weft %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

// weftProcess is a process of this program that serves.
type weftProcess struct {
	name string
	cmd  *exec.Cmd
	log  chan string // its lines
}

func startServe(ctx context.Context, name string, args ...string) (*weftProcess, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &weftProcess{name: name, cmd: exec.CommandContext(ctx, program, args...), log: make(chan string, 64)}
	out, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.log)
		for s := bufio.NewScanner(out); s.Scan(); {
			select {
			case p.log <- s.Text():
			default: // wait has found its line
			}
		}
	}()
	return p, nil
}

// wait waits for a line of the log that contains a text.
func (p *weftProcess) wait(ctx context.Context, text string) (string, error) {
	var last string
	for {
		select {
		case line, ok := <-p.log:
			switch {
			case !ok:
				return "", fmt.Errorf("weft serve (%s) ended before it logged %q: %s", p.name, text, last)
			case strings.Contains(line, text):
				return line, nil
			}
			last = line
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// used is the CPU time of the process so far.
func (p *weftProcess) used() (time.Duration, error) {
	// The kernel's number of the CPU clock of a process: MAKE_PROCESS_CPUCLOCK(pid, CPUCLOCK_SCHED).
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^p.cmd.Process.Pid<<3|2), &t); err != nil {
		return 0, fmt.Errorf("CPU time of weft serve (%s): %w", p.name, err)
	}
	return time.Duration(t.Nano()), nil
}

// end ends a process as an operator does.
func (p *weftProcess) end() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	for range p.log {
	}
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("weft serve (%s): %w", p.name, err)
	}
	return nil
}
