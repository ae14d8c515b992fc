package core

import (
	"encoding/hex"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/control"
)

// alertFor is how long health reports an event that is over.
const alertFor = 10 * time.Minute

// PanicLog counts recovered panics, and writes some of them to the log. Many
// goroutines may use it.
type PanicLog struct {
	log *slog.Logger

	mu     sync.Mutex
	count  uint64
	last   string
	at     time.Time
	logged time.Time
}

// NewPanicLog makes one without panics.
func NewPanicLog(log *slog.Logger) *PanicLog { return &PanicLog{log: log} }

// Add counts a panic. The log has at most one per second, with the start of the
// report that caused it: one that is sent again and again must not fill the disk.
func (l *PanicLog) Add(p *control.Panic) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	l.at, l.last = now, fmt.Sprintf("%s: %v", p.Where, p.Value)
	if now.Sub(l.logged) < time.Second {
		return
	}
	l.logged = now
	l.log.Error("panic recovered, the service goes on; please report it", "where", p.Where, "list", p.List, "panic", fmt.Sprint(p.Value),
		"data", hex.EncodeToString(p.Data), "panics", l.count, "stack", string(p.Stack))
}

// Count returns how many there were.
func (l *PanicLog) Count() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// alert returns what an operator should know, or nothing.
func (l *PanicLog) alert(now time.Time) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count == 0 || now.Sub(l.at) > alertFor {
		return ""
	}
	return fmt.Sprintf("%d panics were recovered, each cost one report or one step of the analyses; the last in %s; report the log", l.count, l.last)
}
