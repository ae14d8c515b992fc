package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario/live"
)

// probeFlags are the flags of weft probe.
type probeFlags struct {
	targetFlags
	flows, links []string
	suspects     int
	format       string
	inject       string
	pathOnly     bool
	at           time.Duration
	interval     time.Duration
	count        uint32
	wait         time.Duration
	id           string
}

// Limits of a probe, also the API's, and of the flows that one command probes.
const (
	maxProbes        = 1000
	maxProbeInterval = time.Second
	maxProbedFlows   = 16
)

func (a *app) probeCommand() *cobra.Command {
	var f probeFlags
	cmd := &cobra.Command{
		Use:   "probe [FILE]",
		Short: "Send active probes: which packets are dropped, where, and why; link RTTs",
		Long: `Send active probes. Hosts send marked packets, which every switch mirrors, and the
traces of the mirrors answer:

  --flow      whether packets of a flow pass, or are dropped: all of them, at random,
              or certain 5-tuples; where, and with what statistics
  --suspects  the same for flows whose packets were dropped or looped before
  --link      the round-trip time of a link, by the clock of one switch
  --format    the paths of custom packets, also in tunnels

Without any of these it lists the probes that were sent.

With FILE it runs that scenario in the simulator and sends the probes into it.
Otherwise a controller (--server) sends them.

The exit code is 3 if packets are dropped or looped.`,
		Example: `  weft probe --flow 'udp 10.0.0.2:10000 > 10.2.0.2:4791' --server http://127.0.0.1:8080
  weft probe --link 'leaf0>spine1' --count 100
  weft probe examples/traced-blackhole.yaml --suspects 2
  weft probe examples/trace.yaml --flow 'h1>h14' --at 1500us --count 10
  weft probe examples/traced-slow-link.yaml --link 'leaf0>spine1' --link 'leaf0>spine0' --count 500
  weft probe examples/traced-drop.yaml --format 'ip.src == h0,h0 && ip.dst == spine1,h15 && tcp.dstport == 80' --count 10`,
		Args: argumentCount(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(a, cmd, strings.Join(args, "")) },
	}
	f.register(cmd)
	fl := cmd.Flags()
	fl.StringArrayVar(&f.flows, "flow", nil, "flow to probe: a 5-tuple, or two hosts such as 'h0>h9'; repeatable")
	fl.IntVar(&f.suspects, "suspects", 0, "probe up to N flows whose packets were dropped or looped")
	fl.StringVar(&f.inject, "inject", "", "switch at which a flow's probes start (default: the first of its path)")
	fl.BoolVar(&f.pathOnly, "path", false, "with --flow: only trace the path of the flow")
	fl.StringArrayVar(&f.links, "link", nil, "link to measure, e.g. 'leaf0>spine1' or leaf0:Ethernet8; repeatable")
	fl.StringVar(&f.format, "format", "",
		"send custom packets, e.g. 'ip.src == h0 && ip.dst == h9 && udp.dstport == 9'")
	fl.DurationVar(&f.at, "at", 0, "in a scenario: when to send the probes (default: after half of the run)")
	fl.DurationVar(&f.interval, "interval", 20*time.Microsecond, "time between two probes")
	fl.Uint32Var(&f.count, "count", 20, "number of probes per pattern of a flow, per link, per format")
	fl.DurationVar(&f.wait, "wait", time.Minute, "maximum time to wait for a controller's result")
	fl.StringVar(&f.id, "id", "", "show the result of this probe")
	return cmd
}

func (f *probeFlags) check() error {
	switch {
	case f.count < 1 || f.count > maxProbes:
		return usagef("--count %d, want 1 to %d", f.count, maxProbes)
	case f.interval < time.Microsecond || f.interval > maxProbeInterval:
		return usagef("--interval %v, want 1µs to %v", f.interval, maxProbeInterval)
	case f.wait < 0:
		return usagef("--wait %v, want 0 or more", f.wait)
	case f.suspects < 0 || f.suspects > maxProbedFlows:
		return usagef("--suspects %d, want 0 to %d", f.suspects, maxProbedFlows)
	case f.at < 0:
		return usagef("--at %v, want 0 or later", f.at)
	case f.id != "" && f.sends():
		return usagef("--id shows a probe that was sent; want it, or --flow, --suspects, --link and --format")
	case f.pathOnly && len(f.flows) == 0:
		return usagef("--path needs --flow")
	}
	return nil
}

// sends reports whether the command sends probes.
func (f *probeFlags) sends() bool {
	return len(f.flows)+len(f.links)+f.suspects > 0 || f.format != ""
}

func (f *probeFlags) run(a *app, cmd *cobra.Command, file string) error {
	if err := f.check(); err != nil {
		return err
	}
	t, err := f.open(cmd, file, live.StartOptions{Need: "mirror", KeepAllTraces: true})
	if err != nil {
		return err
	}
	defer t.close()
	out := cmd.OutOrStdout()
	switch {
	case t.isScenario() && !f.sends():
		return usagef("nothing to probe, want --flow, --suspects, --link or --format")
	case !t.isScenario() && cmd.Flags().Changed("at"):
		return usagef("--at needs a scenario; a controller sends probes at once")
	case f.id != "":
		p, err := t.Probe(cmd.Context(), f.id)
		if err != nil {
			return t.explain(err)
		}
		return a.printProbes(out, t, []api.Probe{p})
	case !f.sends():
		list, err := t.Probes(cmd.Context())
		if err != nil {
			return t.explain(err)
		}
		return a.listProbes(out, t, list)
	}
	probes, err := f.send(cmd.Context(), t)
	if err != nil {
		return err
	}
	return a.printProbes(out, t, probes)
}

// send sends the probes and waits for their results.
func (f *probeFlags) send(ctx context.Context, t *target) ([]api.Probe, error) {
	if t.isScenario() {
		at := f.at
		if at == 0 {
			at = t.live.Duration() / 2
		}
		// Links and formats can be checked before the run.
		if _, err := f.requests(ctx, t, false); err != nil {
			return nil, err
		}
		if err := t.live.RunUntil(ctx, at); err != nil {
			return nil, err
		}
	}
	requests, err := f.requests(ctx, t, true)
	if err != nil {
		return nil, err
	}
	var list []api.Probe
	for _, r := range requests {
		p, err := t.StartProbe(ctx, r)
		if err != nil {
			return nil, t.explain(err)
		}
		list = append(list, p)
	}
	for i := range list {
		if list[i], err = f.await(ctx, t, list[i]); err != nil {
			return nil, t.explain(err)
		}
	}
	return list, nil
}

// requests returns the probes that the flags ask for; those of flows only if the
// flows can be known.
func (f *probeFlags) requests(ctx context.Context, t *target, withFlows bool) (list []api.ProbeRequest, err error) {
	add := func(r api.ProbeRequest) {
		r.Count, r.IntervalUs = int(f.count), int(f.interval.Microseconds())
		list = append(list, r)
	}
	if withFlows {
		keys, err := f.probedFlows(ctx, t)
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			if f.pathOnly {
				add(api.ProbeRequest{Kind: "flow", Flow: key})
			} else {
				add(api.ProbeRequest{Kind: "pattern", Flow: key, At: f.inject})
			}
		}
	}
	for _, name := range f.links {
		ref, err := t.findPort(ctx, name)
		if err != nil {
			return nil, err
		}
		add(api.ProbeRequest{Kind: "link", Link: &ref})
	}
	if f.format != "" {
		add(api.ProbeRequest{Kind: "format", Format: f.format})
	}
	return list, nil
}

// probedFlows returns the flows of --flow and --suspects, each once.
func (f *probeFlags) probedFlows(ctx context.Context, t *target) (keys []model.FlowKey, err error) {
	r, err := (&rangeFlags{}).parse(t)
	if err != nil {
		return nil, err
	}
	for _, name := range f.flows {
		list, err := t.flowsNamed(ctx, name, r)
		if err != nil {
			return nil, err
		}
		keys = append(keys, list...)
	}
	left := f.suspects
	for _, end := range []string{traceLost, "looped"} {
		if left == 0 {
			break
		}
		page, err := t.matchingTraces(ctx, api.TracesQuery{Range: r, End: end, Paging: api.Paging{Limit: maxTop}})
		if err != nil {
			return nil, t.explain(err)
		}
		for _, one := range slices.Backward(page.Items) { // oldest first
			if key := one.Flow.Flow; left > 0 && !slices.Contains(keys, key) {
				keys = append(keys, key)
				left--
			}
		}
	}
	return keys[:min(len(keys), maxProbedFlows)], nil
}

// probeStep is the simulated time between two queries for a probe's result, and
// maxProbeTime the longest time that it may take.
const (
	probeStep    = time.Millisecond
	maxProbeTime = time.Minute
)

// await waits for a probe's result.
func (f *probeFlags) await(ctx context.Context, t *target, p api.Probe) (_ api.Probe, err error) {
	deadline := time.Now().Add(f.wait)
	at := time.Duration(0) // of the run
	if t.isScenario() {
		clock, err := t.Clock(ctx)
		if err != nil {
			return p, err
		}
		at = clock.Now.Sub(t.live.Start())
	}
	for waited := time.Duration(0); err == nil && p.End == nil; waited += probeStep {
		switch {
		case t.isScenario() && waited < maxProbeTime:
			at += probeStep
			err = t.live.RunUntil(ctx, at)
		case !t.isScenario() && time.Now().Before(deadline):
			time.Sleep(pollInterval)
		default:
			return p, nil
		}
		if err == nil {
			p, err = t.Probe(ctx, p.ID)
		}
	}
	return p, err
}

// probeError returns the error of probes that failed or have not ended, and
// errFault if packets were lost.
func probeError(list []api.Probe) error {
	var errs []error
	lost := false
	for i := range list {
		p := &list[i]
		switch {
		case p.State == "failed":
			errs = append(errs, fmt.Errorf("probe %s: %s", p.ID, p.Error))
		case p.End == nil:
			errs = append(errs, fmt.Errorf("probe %s has not ended; query it with --id %s", p.ID, p.ID))
		case p.Outcome != "":
			lost = lost || p.Outcome != "passed" && p.Outcome != "unreached"
		case p.LostAt != nil || p.Lost > 0 || p.Arrived == 0 && p.Sent > 0:
			lost = true
		}
	}
	if len(errs) == 0 && lost {
		return errFault
	}
	return errors.Join(errs...)
}
