package hostagent

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weft-telemetry/weft/inhost/evidence"
	"github.com/weft-telemetry/weft/model"
)

// host is a host whose connections lose a tenth of their segments.
type host struct {
	connections int
	seconds     uint64
}

func (h *host) read() *evidence.Snapshot {
	h.seconds++
	s := &evidence.Snapshot{Time: time.Now(), Drops: map[string]uint64{"netfilter drop": h.seconds}}
	for i := range h.connections {
		s.Connections = append(s.Connections, evidence.Connection{
			Local: netip.AddrPortFrom(netip.MustParseAddr("10.0.0.2"), uint16(1000+i)), Remote: netip.MustParseAddrPort("10.0.0.3:80"),
			SegmentsSent: 100 * h.seconds, Retransmitted: 10 * h.seconds, BytesAcked: h.seconds,
		})
	}
	return s
}

// TestSlowFlowsAreReported: each slow connection once a minute, at most ten in a second, and
// the log says the same at most once a minute.
func TestSlowFlowsAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &host{connections: 25}
		reported := map[model.FlowKey]int{}
		inSecond := map[int64]int{}
		var log bytes.Buffer
		a, err := New(DefaultConfig(), Deps{
			Read: h.read, Log: slog.New(slog.NewTextHandler(&log, nil)),
			Report: func(_ context.Context, k model.FlowKey) error {
				reported[k]++
				inSecond[time.Now().Unix()]++
				if strings.Contains(k.String(), ":1003 ") {
					return errors.New("not a flow of the fabric")
				}
				return nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 59*time.Second+500*time.Millisecond)
		defer cancel()
		if err := a.Run(ctx); err != nil {
			t.Fatal(err)
		}
		for k, n := range reported {
			if n != 1 {
				t.Errorf("%v was reported %d times in a minute; want once", k, n)
			}
		}
		for at, n := range inSecond {
			if n > 10 {
				t.Errorf("%d reports in second %d; want at most 10", n, at)
			}
		}
		s := a.stats
		if len(reported) != 25 || s.Reported != 24 || s.Refused != 1 || s.Slow != 25*59 || s.Skipped != 15+5 {
			t.Errorf("%d flows, stats %+v; want 25, one of them refused, and 15 and 5 that waited", len(reported), s)
		}
		if n := strings.Count(log.String(), "a firewall of this host"); n != 1 {
			t.Errorf("the log says %d times that a firewall drops packets; want once\n%s", n, &log)
		}
		registry := prometheus.NewPedanticRegistry()
		if err := registry.Register(a); err != nil {
			t.Fatal(err)
		}
		if families, err := registry.Gather(); err != nil || len(families) != 4 {
			t.Errorf("metrics %v, %v; want verdicts, slow connections, requests and drops", families, err)
		}
	})
}

func TestConfig(t *testing.T) {
	good := Deps{Read: (&host{}).read, Log: slog.New(slog.DiscardHandler)}
	for want, change := range map[string]func(*Config, *Deps){
		"every 1ms":        func(c *Config, _ *Deps) { c.Every = time.Millisecond },
		"again after 1ms":  func(c *Config, _ *Deps) { c.Again = time.Millisecond },
		"0 reports":        func(c *Config, _ *Deps) { c.MaxReports = 0 },
		"no reader or log": func(_ *Config, d *Deps) { d.Read = nil },
	} {
		cfg, deps := DefaultConfig(), good
		change(&cfg, &deps)
		if _, err := New(cfg, deps); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: %v; want %q", err, want)
		}
	}
}
