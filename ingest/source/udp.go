package source

import (
	"context"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/udp"
	"github.com/weft-telemetry/weft/model"
)

// QueueFull is the reason of datagrams that the kernel dropped. A Decoder lists
// it with the count 0; its socket knows the number.
const QueueFull = "queue full"

// ListenUDP opens a UDP socket that gives datagrams to a decoder, if a guard admits
// them; nil: all. It is the OpenSocket of most sources.
func ListenUDP(listen netip.AddrPort, d Decoder, g Guard) (Listener, error) {
	conn, err := udp.Listen(udp.DefaultConfig(listen))
	if err != nil {
		return nil, err
	}
	l := &udpListener{conn: conn, decoder: d, guard: g}
	l.publishCounters()
	return l, nil
}

type udpListener struct {
	conn     *udp.Conn
	decoder  Decoder
	guard    Guard
	refused  [translate.Refusals]uint64
	counters atomic.Pointer[Counters] // a snapshot
}

// At the end the socket is read until it was idle for drainIdle, and no longer
// than drainLimit. One empty read does not show that the queue is empty: a signal
// may have interrupted it.
const (
	drainIdle  = 10 * time.Millisecond
	drainLimit = time.Second
)

// Run is part of Listener.
func (l *udpListener) Run(ctx context.Context, tap Tap) error {
	var ended, received time.Time
	for {
		if ctx.Err() != nil && ended.IsZero() {
			ended = time.Now()
			received = ended
		}
		n, err := l.conn.Receive(func(from netip.AddrPort, datagram []byte) {
			at := model.TimeOf(time.Now())
			used := l.admit(at, from) && l.decoder.Decode(at, from, datagram)
			if tap != nil {
				tap(at, from, l.conn.Local(), datagram, used)
			}
		})
		l.publishCounters()
		if err != nil {
			return err
		}
		now := time.Now()
		if n > 0 {
			received = now
		}
		if !ended.IsZero() && (now.Sub(received) >= drainIdle || now.Sub(ended) >= drainLimit) {
			return nil
		}
	}
}

// admit reports whether the guard admits a datagram.
func (l *udpListener) admit(at model.Time, from netip.AddrPort) bool {
	if l.guard == nil {
		return true
	}
	a := from.Addr().Unmap()
	why := l.guard.Datagram(at, a)
	if why == translate.Admitted {
		return true
	}
	l.refused[why]++
	l.guard.Refused(a, why, 0)
	return false
}

// publishCounters takes a snapshot for other goroutines. What is lost before the
// decoder are datagrams: In, which counts in the decoder's unit, has none of them.
func (l *udpListener) publishCounters() {
	c := l.decoder.Counters()
	st := l.conn.Stats()
	c.Add(QueueFull, "datagrams dropped by the kernel's socket buffer", st.Dropped)
	c.Add("too long", "datagrams", st.Truncated)
	if l.guard != nil {
		c.Add(translate.AddressNotAllowed.String(), "datagrams", l.refused[translate.AddressNotAllowed])
		c.Add(translate.SourceRateLimit.String(), "datagrams", l.refused[translate.SourceRateLimit])
	}
	l.counters.Store(&c)
}

// Add adds to the count of a reason, which may be new.
func (c *Counters) Add(reason, about string, count uint64) {
	i := slices.IndexFunc(c.Losses, func(l Loss) bool { return l.Reason == reason })
	if i < 0 {
		i = len(c.Losses)
		c.Losses = append(c.Losses, Loss{Reason: reason, About: about})
	}
	c.Losses[i].Count += count
}

// Addr is part of Listener.
func (l *udpListener) Addr() netip.AddrPort { return l.conn.Local() }

// Counters is part of Listener.
func (l *udpListener) Counters() Counters { return *l.counters.Load() }

// Close is part of Listener.
func (l *udpListener) Close() error { return l.conn.Close() }
