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

	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/ingest/sources"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// SendConfig holds the destinations and the speed of Send.
type SendConfig struct {
	To    map[source.Kind]netip.AddrPort // reports of other kinds are skipped
	Speed float64                        // relative to real time; 0: as fast as possible
	// Key, if not nil, returns the key that a reporter signs with; nil: it has none.
	// DTA datagrams of reporters with keys are signed anew, because a recorded MAC
	// is that of a send time in the past.
	Key func(reporter model.NodeID) *dta.MAC
}

// Check returns the first error of the configuration.
func (c *SendConfig) Check() error {
	some := false
	for k, to := range c.To {
		if !to.IsValid() {
			continue
		}
		if some = true; protoOf(k) != model.UDP {
			return fmt.Errorf("%v to %v: cannot be sent over UDP, want dta or int", k, to)
		}
	}
	switch {
	case !some:
		return errors.New("no destination, want an address for reports of at least one kind")
	case !(c.Speed >= 0):
		return fmt.Errorf("speed %v, want above 0, or 0 for as fast as possible", c.Speed)
	}
	return nil
}

// SendStats are the counters of Send.
type SendStats struct {
	Datagrams map[source.Kind]uint64 `json:"datagrams"`
	Bytes     uint64                 `json:"bytes"`
	Skipped   map[source.Kind]uint64 `json:"skipped"` // of kinds without a destination
	Span      time.Duration          `json:"span_ns"`
}

// Send sends the reports of a reader to the sockets of another process, each at
// its recorded time. UDP does not report losses; a closed port is an error.
func Send(ctx context.Context, r *Reader, cfg SendConfig) (sent SendStats, err error) {
	if err := cfg.Check(); err != nil {
		return sent, err
	}
	sent.Datagrams, sent.Skipped = map[source.Kind]uint64{}, map[source.Kind]uint64{}
	conns := map[source.Kind]*net.UDPConn{}
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
	signer := newSigner(cfg.Key, model.TimeOf(began))
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
		payload := d.Payload
		if d.Kind == sources.DTA.Kind {
			payload = signer.sign(payload, model.TimeOf(time.Now()))
		}
		_, err := c.Write(payload)
		if errors.Is(err, syscall.ECONNREFUSED) {
			return sent, fmt.Errorf("%v reports to %v: %w; no process listens there", d.Kind, cfg.To[d.Kind], err)
		} else if err != nil {
			return sent, fmt.Errorf("%v reports to %v: %w", d.Kind, cfg.To[d.Kind], err)
		}
		sent.Datagrams[d.Kind]++
		sent.Bytes += uint64(len(payload))
	}
}

// wait waits until real time reaches the recording's. Waits that are shorter than
// a clock tick are postponed to the next report.
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
