package nccl

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/ingest/source"
)

// lastTry is the longest wait after failures: the wait doubles from one to the next. Half of it
// is random, so that services that fail together are not asked together.
const lastTry = time.Minute

// follower is the Listener of NCCL.
type follower struct {
	cfg     *Config
	decoder *decoder
	files   *files

	unreachable, notUnderstood, noJSON, tooLong atomic.Uint64

	mu   sync.Mutex
	away map[string]string // what cannot be read, with the reason
}

func newFollower(c *Config, d *decoder) *follower {
	return &follower{cfg: c, decoder: d, files: newFiles(c.Files), away: map[string]string{}}
}

// Run is part of source.Listener.
func (l *follower) Run(ctx context.Context, _ source.Tap) error {
	var all sync.WaitGroup
	if len(l.cfg.Files) > 0 {
		all.Go(func() { l.repeat(ctx, l.readFiles) })
	}
	for _, address := range l.cfg.RAS {
		all.Go(func() { l.repeat(ctx, func() bool { return l.ask(ctx, address) }) })
	}
	all.Wait()
	return nil
}

// repeat calls try every interval, less often while it fails.
func (l *follower) repeat(ctx context.Context, try func() bool) {
	wait := l.cfg.Interval
	for {
		pause := l.cfg.Interval
		if try() {
			wait = l.cfg.Interval
		} else {
			wait = min(2*wait, max(lastTry, l.cfg.Interval))
			pause = wait/2 + rand.N(wait/2+1)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// ask asks a RAS service once.
func (l *follower) ask(ctx context.Context, address string) bool {
	d, err := askRAS(ctx, address, l.cfg.Timeout)
	if ctx.Err() != nil {
		return false
	}
	var dial *net.OpError
	switch {
	case err == nil:
		l.decoder.add(d)
	case errors.Is(err, errNoJSON):
		l.noJSON.Add(1)
	case errors.Is(err, errTooLong):
		l.tooLong.Add(1)
	case errors.As(err, &dial) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded):
		l.unreachable.Add(1)
	default:
		l.notUnderstood.Add(1)
	}
	l.setAway("RAS service "+address, err)
	return err == nil
}

// readFiles reads what is new in all files.
func (l *follower) readFiles() bool {
	for path, err := range l.files.read(l.decoder.add) {
		l.setAway(path, err)
	}
	return true // a folder that is missing may come at any time, and costs little to look for
}

// setAway notes whether something can be read.
func (l *follower) setAway(what string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		delete(l.away, what)
		return
	}
	l.away[what] = err.Error()
}

// maxAway bounds what Alerts names.
const maxAway = 8

// Alerts returns what cannot be read at present, for people.
func (l *follower) Alerts() (list []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for what, why := range l.away {
		list = append(list, fmt.Sprintf("NCCL: %s is away: %.200s", what, why))
	}
	slices.Sort(list)
	if more := len(list) - maxAway; more > 0 {
		list = append(list[:maxAway], fmt.Sprintf("NCCL: %d more are away", more))
	}
	return list
}

// Addr is part of source.Listener. There is no address to send to.
func (l *follower) Addr() netip.AddrPort { return netip.AddrPort{} }

// Counters is part of source.Listener.
func (l *follower) Counters() source.Counters {
	c := l.decoder.Counters()
	f := &l.files.counts
	c.Add("unreachable", "questions to RAS services that got no answer, or not in time", l.unreachable.Load())
	c.Add("no JSON", "answers of RAS services before NCCL 2.28.7, which have text alone", l.noJSON.Load())
	c.Add("not understood", "answers of RAS services, and files from there on", l.notUnderstood.Load()+f.notUnderstood.Load())
	c.Add("unreadable", "attempts to read a file or folder that is missing or forbidden", f.unreadable.Load())
	c.Add("too long", "reports, dumps and folders beyond their bounds", l.tooLong.Load()+f.tooLong.Load())
	return c
}

// Close is part of source.Listener.
func (l *follower) Close() error { return nil }
