package source

import (
	"context"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/ingest/udp"
	"github.com/weft-telemetry/weft/model"
)

// QueueFull is the reason of datagrams that the kernel dropped. A Decoder lists
// it with the count 0; its socket knows the number.
const QueueFull = "queue full"

// ListenUDP opens a UDP socket that gives datagrams to a decoder. It is the
// OpenSocket of most sources.
func ListenUDP(listen netip.AddrPort, d Decoder) (Listener, error) {
	conn, err := udp.Listen(udp.DefaultConfig(listen))
	if err != nil {
		return nil, err
	}
	l := &udpListener{conn: conn, decoder: d}
	l.publishCounters()
	return l, nil
}

type udpListener struct {
	conn     *udp.Conn
	decoder  Decoder
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
			used := l.decoder.Decode(at, from, datagram)
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

// publishCounters takes a snapshot for other goroutines.
func (l *udpListener) publishCounters() {
	c := l.decoder.Counters()
	if i := slices.IndexFunc(c.Losses, func(l Loss) bool { return l.Reason == QueueFull }); i >= 0 {
		c.Losses[i].Count = l.conn.Stats().Dropped
		c.In += c.Losses[i].Count // In is Out and all losses
	}
	l.counters.Store(&c)
}

// Addr is part of Listener.
func (l *udpListener) Addr() netip.AddrPort { return l.conn.Local() }

// Counters is part of Listener.
func (l *udpListener) Counters() Counters { return *l.counters.Load() }

// Close is part of Listener.
func (l *udpListener) Close() error { return l.conn.Close() }
