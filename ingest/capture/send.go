package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// SendConfig says where reports go and how fast.
type SendConfig struct {
	To    [NumKinds]netip.AddrPort // by kind; the zero value: they are left out
	Speed float64                  // recorded seconds in one of the wall; 0: as fast as can be
}

// Check complains about the first thing that cannot work.
func (c *SendConfig) Check() error {
	some := false
	for k, to := range c.To {
		if !to.IsValid() {
			continue
		}
		if some = true; Kind(k) != DTA && Kind(k) != INT {
			return fmt.Errorf("%v to %v: no socket takes it from another, want dta or int", Kind(k), to)
		}
	}
	switch {
	case !some:
		return errors.New("nowhere to send to, want an address for reports of one kind")
	case !(c.Speed >= 0):
		return fmt.Errorf("speed %v, want above 0, or 0 for as fast as can be", c.Speed)
	}
	return nil
}

// SendStats accounts for what Send did.
type SendStats struct {
	Datagrams [NumKinds]uint64 `json:"datagrams"`
	Bytes     uint64           `json:"bytes"`
	Skipped      [NumKinds]uint64 `json:"left"` // of kinds that go nowhere
	Span      time.Duration    `json:"span_ns"`
}

// Send sends what a reader reads to sockets of others, each report when its time
// has come. UDP tells of no loss; that nobody listens is an error.
func Send(ctx context.Context, r *Reader, cfg SendConfig) (sent SendStats, err error) {
	if err := cfg.Check(); err != nil {
		return sent, err
	}
	var conns [NumKinds]*net.UDPConn
	for k, to := range cfg.To {
		if !to.IsValid() {
			continue
		}
		if conns[k], err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to)); err != nil {
			return sent, err
		}
		defer conns[k].Close()
	}
	var d Datagram
	var first, last model.Time
	began := time.Now()
	for n := 0; ; n++ {
		if err := r.Next(&d); err == io.EOF {
			return sent, nil
		} else if err != nil {
			return sent, err
		}
		if n == 0 {
			first = d.Time
		}
		last = max(first, last, d.Time)
		sent.Span = last.Sub(first)
		if err := wait(ctx, began, sent.Span, cfg.Speed); err != nil {
			return sent, err
		}
		c := conns[d.Kind]
		if c == nil {
			sent.Skipped[d.Kind]++
			continue
		}
		_, err := c.Write(d.Payload)
		if errors.Is(err, syscall.ECONNREFUSED) {
			return sent, fmt.Errorf("%v reports to %v: %w; nobody listens there", d.Kind, cfg.To[d.Kind], err)
		} else if err != nil {
			return sent, fmt.Errorf("%v reports to %v: %w", d.Kind, cfg.To[d.Kind], err)
		}
		sent.Datagrams[d.Kind]++
		sent.Bytes += uint64(len(d.Payload))
	}
}

// wait lets the wall's time come to the recording's. Waits that are shorter than
// a clock's tick are left for the next report.
func wait(ctx context.Context, began time.Time, span time.Duration, speed float64) error {
	if speed == 0 {
		return ctx.Err()
	}
	rest := time.Duration(float64(span)/speed) - time.Since(began)
	if rest < time.Millisecond {
		return ctx.Err()
	}
	t := time.NewTimer(rest)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
