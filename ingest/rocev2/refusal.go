package rocev2

import (
	"cmp"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"
)

// Refusal is the reason why a setup connection ended without a queue pair.
type Refusal uint8

// The refusals.
const (
	AddressNotAllowed Refusal = iota // the source is not in the allowed prefixes
	Displaced                        // newer connections took its place before it was authenticated
	TimedOut                         // the exchange took too long
	Malformed                        // not a message of the exchange, or ended inside it
	BadVersion                       // another version of the exchange
	NoKey                            // no key offered where one is needed
	UnknownName                      // the key file has no such name
	UnknownKey                       // the name has no key of this id
	WrongProof                       // made without the key, replayed or altered
	AnotherSource                    // packets would come from another address than the exchange
	NameInUse                        // the name is connected from another address, and no key shows the same owner
	TooMany                          // the limit of translators
	BadRequest                       // the responder cannot serve it
	refusals
)

var refusalNames = [refusals]string{
	"address not allowed", "displaced before authentication", "timed out", "malformed message", "unknown version",
	"no key", "unknown name", "unknown key", "wrong proof", "packets from another address", "name in use",
	"too many translators", "bad request",
}

// String names the refusal.
func (r Refusal) String() string { return refusalNames[r] }

// Refusals returns all reasons.
func Refusals() (all []Refusal) {
	for r := range refusals {
		all = append(all, r)
	}
	return all
}

// refusedError says why a translator was refused.
type refusedError struct {
	why    Refusal
	detail string
}

func (e *refusedError) Error() string {
	if e.detail == "" {
		return e.why.String()
	}
	return e.why.String() + ": " + e.detail
}

// refuseMessage gives an error of reading or writing a message its reason.
func refuseMessage(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &refusedError{why: TimedOut}
	}
	return &refusedError{Malformed, err.Error()}
}

// maxSources is the number of source addresses with counts of their own: the
// least recently refused is forgotten. logInterval is the minimum time between
// two log lines about refusals.
const (
	maxSources  = 256
	logInterval = time.Second
)

// SourceRefusals are the refusals of one source address.
type SourceRefusals struct {
	Source netip.Addr `json:"source"`
	Count  uint64     `json:"count"`
	Last   string     `json:"last_reason"`
}

// refusalLog counts refusals by reason and source, and logs some of them. It may
// be used concurrently.
type refusalLog struct {
	log *slog.Logger

	mu       sync.Mutex // guards all below
	byReason [refusals]uint64
	sources  []SourceRefusals // the most recently refused last
	logged   time.Time
	unlogged uint64
}

func (l *refusalLog) refuse(now time.Time, from netip.Addr, name string, err *refusedError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byReason[err.why]++
	s := SourceRefusals{Source: from}
	if i := slices.IndexFunc(l.sources, func(s SourceRefusals) bool { return s.Source == from }); i >= 0 {
		s = l.sources[i]
		l.sources = slices.Delete(l.sources, i, i+1)
	} else if len(l.sources) == maxSources {
		l.sources = slices.Delete(l.sources, 0, 1)
	}
	s.Count++
	s.Last = err.why.String()
	l.sources = append(l.sources, s)
	if now.Sub(l.logged) < logInterval && !l.logged.IsZero() {
		l.unlogged++
		return
	}
	l.log.Warn("refused a translator", "from", from, "name", name, "error", err, "refused_since_last_line", l.unlogged)
	l.logged, l.unlogged = now, 0
}

// counts returns the refusals by reason, and by source, the most refused first.
func (l *refusalLog) counts() ([refusals]uint64, []SourceRefusals) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sources := slices.Clone(l.sources)
	slices.SortStableFunc(sources, func(a, b SourceRefusals) int { return cmp.Compare(b.Count, a.Count) })
	return l.byReason, sources
}
