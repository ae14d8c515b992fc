package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/dataplane/sonic"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/topo"
)

// speakFlags say what simulated switches export instead of Weft's reports.
type speakFlags struct {
	speak  string
	gnmi   string // address of the first target
	otlp   string // address of a collector
	export sonic.Config
}

func (f *speakFlags) register(cmd *cobra.Command, needs string) {
	fl := cmd.Flags()
	fl.StringVar(&f.speak, "speak", "", needs+"sonic, what switches export instead of Weft's reports")
	fl.StringVar(&f.gnmi, "gnmi", "", "with --speak: gNMI target of the first switch, such as 127.0.0.1:50051; others have the ports after it")
	fl.StringVar(&f.otlp, "otlp", "", "with --speak: OTLP collector of high-frequency telemetry, HOST:PORT of gRPC")
	fl.DurationVar(&f.export.Interval, "counters", f.export.Interval, "with --speak: interval of interface counters, by sFlow and gNMI")
	fl.DurationVar(&f.export.HighFrequency, "otlp-interval", f.export.HighFrequency, "with --otlp: interval of high-frequency telemetry")
	fl.Uint32Var(&f.export.Sampling, "sampling", f.export.Sampling, "with --speak: packets to one sample")
	knownValues(cmd, "speak", "sonic")
}

// onlyWithSpeak are the flags that need --speak.
var onlyWithSpeak = []string{"counters", "sampling", "gnmi", "otlp", "otlp-interval"}

func (f *speakFlags) check() error {
	switch {
	case f.export.Interval < time.Millisecond || f.export.Interval > time.Hour:
		return usagef("--counters %v, want 1ms to 1h", f.export.Interval)
	case f.export.HighFrequency < time.Millisecond || f.export.HighFrequency > time.Hour:
		return usagef("--otlp-interval %v, want 1ms to 1h", f.export.HighFrequency)
	case f.export.Sampling < 1 || f.export.Sampling > 1<<24:
		return usagef("--sampling %d, want 1 to %d", f.export.Sampling, 1<<24)
	}
	if a, err := netip.ParseAddrPort(f.gnmi); f.gnmi != "" && (err != nil || !a.Addr().IsLoopback()) {
		return usagef("--gnmi %q, want a loopback address and a port, such as 127.0.0.1:50051: targets have no TLS", f.gnmi)
	}
	if _, port, err := net.SplitHostPort(f.otlp); f.otlp != "" && (err != nil || port == "") {
		return usagef("--otlp %q, want HOST:PORT, such as 127.0.0.1:4317", f.otlp)
	}
	return nil
}

// speech is what runs beside a fabric that speaks: servers and clients of its switches.
type speech struct {
	out   sonic.Outlets
	close func() error // may be called twice
}

// open opens ports and connections, and serves them until ctx ends or close is called.
func (f *speakFlags) open(ctx context.Context, fabric *topo.Fabric) (*speech, error) {
	s := &speech{}
	ctx, cancel := context.WithCancel(ctx)
	var (
		all sync.WaitGroup
		mu  sync.Mutex
		bad error
	)
	run := func(service func(context.Context) error) {
		all.Go(func() {
			err := service(ctx)
			mu.Lock()
			defer mu.Unlock()
			bad = errors.Join(bad, err)
		})
	}
	s.close = sync.OnceValue(func() error {
		cancel()
		all.Wait()
		return bad
	})
	if f.gnmi != "" {
		first, err := netip.ParseAddrPort(f.gnmi)
		if err == nil {
			s.out.Targets, err = sonic.ListenTargets(fabric, first)
		}
		if err != nil {
			return nil, errors.Join(usagef("--gnmi: %v", err), s.close())
		}
		run(s.out.Targets.Run)
	}
	if f.otlp != "" {
		var err error
		if s.out.Metrics, err = sonic.NewMetrics(fabric, f.otlp); err != nil {
			return nil, errors.Join(usagef("--otlp: %v", err), s.close())
		}
		run(s.out.Metrics.Run)
	}
	return s, nil
}

// print says where targets are, as a service's configuration needs it.
func (s *speech) print(w io.Writer, waits bool) {
	if s.out.Targets == nil {
		return
	}
	fmt.Fprintf(w, "gnmi:\n  tls: off\n  targets: %s\n\n", strings.Join(s.out.Targets.List(), ","))
	if waits {
		fmt.Fprintln(w, "The scenario starts when every target has a subscriber.")
	}
}

// awaitSubscribers waits until every gNMI target has a subscriber: counters that no client
// reads are lost.
func (s *speech) awaitSubscribers(ctx context.Context) error {
	if s.out.Targets == nil {
		return nil
	}
	return s.out.Targets.AwaitSubscribers(ctx)
}

// spokenRun is what left by gNMI and OTLP.
type spokenRun struct {
	Targets      []string            `json:"gnmi_targets,omitempty"`
	SkippedGNMI  uint64              `json:"gnmi_rounds_skipped,omitempty"`
	OTLPRequests *sonic.MetricsStats `json:"otlp_requests,omitempty"`
}

func (s *speech) result() (r spokenRun) {
	if s.out.Targets != nil {
		r.Targets, r.SkippedGNMI = s.out.Targets.List(), s.out.Targets.Skipped()
	}
	if s.out.Metrics != nil {
		stats := s.out.Metrics.Stats()
		r.OTLPRequests = &stats
	}
	return r
}

// text continues the sentence about datagrams.
func (r *spokenRun) text() string {
	text := ""
	if len(r.Targets) > 0 {
		text += fmt.Sprintf("; %s by gNMI, %s skipped for slow subscribers", plural.Count(len(r.Targets), "target"), plural.Count(r.SkippedGNMI, "round"))
	}
	if o := r.OTLPRequests; o != nil {
		text += fmt.Sprintf("; %s by OTLP, %d failed, %d skipped", plural.Count(o.Sent, "request"), o.Failed, o.Skipped)
	}
	return text
}
