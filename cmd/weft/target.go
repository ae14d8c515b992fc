package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/client"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario/live"
)

// targetFlags select what a query command queries: a controller (--server), or a
// scenario that runs in this process under the same API.
type targetFlags struct {
	runFlags
	url, token, ca string
	scenarioFile   string
}

const defaultServer = "http://127.0.0.1:8080"

func (f *targetFlags) register(cmd *cobra.Command) {
	url := os.Getenv(serverVariable)
	if url == "" {
		url = defaultServer
	}
	fl := cmd.Flags()
	fl.StringVar(&f.url, "server", url, "URL of the controller; also WEFT_SERVER")
	fl.StringVar(&f.token, "token", "", "API token of the controller; also WEFT_TOKEN")
	fl.StringVar(&f.ca, "ca", "", "PEM file of the CA that signed the controller's certificate")
	fl.StringVar(&f.scenarioFile, "scenario", "",
		"run this scenario in the simulator and query it instead of a controller")
	f.runFlags.register(cmd)
}

// target is what a command queries. A scenario has not run when it is opened:
// finish runs it.
type target struct {
	*client.Client
	flags *targetFlags
	live  *live.Running // nil: a controller
}

// open connects to the controller, or starts the scenario of file or --scenario.
func (f *targetFlags) open(cmd *cobra.Command, file string, o live.StartOptions) (*target, error) {
	switch {
	case file != "" && f.scenarioFile != "":
		return nil, usagef("%s and --scenario %s: want one of them", file, f.scenarioFile)
	case file == "":
		file = f.scenarioFile
	}
	for _, name := range []string{"server", "token", "ca"} {
		if file != "" && cmd.Flags().Changed(name) {
			return nil, usagef("%s and --%s: want a scenario, or a controller", file, name)
		}
	}
	if file == "" {
		for _, name := range []string{"seed", "duration", "quiet"} {
			if cmd.Flags().Changed(name) {
				return nil, usagef("--%s needs a scenario; it has no effect on a controller", name)
			}
		}
		c, err := f.client()
		return &target{Client: c, flags: f}, err
	}
	s, err := f.readScenario(cmd, []string{file})
	if err != nil {
		return nil, err
	}
	bar := newProgressBar(cmd.ErrOrStderr(), f.quiet)
	o.Progress = bar.show
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
	cmd.SetContext(ctx)
	context.AfterFunc(cmd.Context(), stop)
	running, err := live.Start(ctx, s, o)
	if err != nil {
		return nil, usageError{err}
	}
	return &target{Client: running.Client(), flags: f, live: running}, nil
}

// isScenario reports whether the target is a scenario in this process.
func (t *target) isScenario() bool { return t.live != nil }

// finish runs a scenario to its end, so that every record can be queried. It does
// nothing for a controller.
func (t *target) finish(ctx context.Context) error {
	if t.live == nil {
		return nil
	}
	return t.live.Wait(ctx)
}

// close frees the scenario's run.
func (t *target) close() {
	if t.live != nil {
		_ = t.live.Close() // the answer has been printed
	}
}

// clock formats a fabric time: of a scenario since its start, as +2.5ms.
func (t *target) clock(at time.Time) string {
	if t.live == nil {
		return clock(at)
	}
	return "+" + at.Sub(t.live.Start()).String()
}

func (f *targetFlags) client() (*client.Client, error) {
	token := f.token
	if token == "" {
		token = os.Getenv(tokenVariable)
	}
	h := &http.Client{Timeout: 30 * time.Second}
	if f.ca != "" {
		pem, err := os.ReadFile(f.ca)
		if err != nil {
			return nil, usagef("--ca: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, usagef("--ca %s: no certificate found, want PEM", f.ca)
		}
		h.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	}
	c, err := client.New(f.url, token, h)
	if err != nil {
		return nil, usageError{err}
	}
	return c, nil
}

// explain adds to an error of a query what to do next.
func (t *target) explain(err error) error {
	var p *client.Problem
	switch {
	case err == nil:
		return nil
	case errors.As(err, &usageError{}):
		return err
	case !errors.As(err, &p):
		if t.isScenario() {
			return err
		}
		return fmt.Errorf("%w; is weft serve or weft demo running there? --server sets the URL", err)
	case p.Status == http.StatusUnauthorized:
		if t.flags.token == "" && os.Getenv(tokenVariable) == "" {
			return fmt.Errorf("%w; set the API token with --token or WEFT_TOKEN", err)
		}
		return fmt.Errorf("%w; the controller rejects the token of --token or WEFT_TOKEN", err)
	case p.Status == http.StatusUnprocessableEntity, p.Status == http.StatusBadRequest:
		return usageError{err}
	}
	return err
}

// rangeFlags are a time range.
type rangeFlags struct{ last, from, to string }

func (f *rangeFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.last, "last", "", "look back this far from now by the fabric's clock, e.g. 90s (default 1h)")
	fl.StringVar(&f.from, "from", "", "start of the range, e.g. 2026-01-02T15:04:05Z, or 2ms into a scenario")
	fl.StringVar(&f.to, "to", "", "end of the range (exclusive), as --from (default: now, or the end of the scenario)")
}

// parse returns the range of a target. Without flags it is the whole run of a
// scenario, and the API's default of a controller.
func (f *rangeFlags) parse(t *target) (r api.Range, err error) {
	r.Last = f.last
	if t.isScenario() && f.last == "" {
		r.From = t.live.Start()
	}
	for _, x := range []struct {
		name, text string
		to         *time.Time
	}{{"from", f.from, &r.From}, {"to", f.to, &r.To}} {
		if x.text == "" {
			continue
		}
		if *x.to, err = time.Parse(time.RFC3339, x.text); err == nil {
			continue
		}
		d, err := time.ParseDuration(x.text)
		switch {
		case !t.isScenario():
			return r, usagef("--%s %q, want a time such as 2026-01-02T15:04:05Z", x.name, x.text)
		case err != nil || d < 0:
			return r, usagef("--%s %q, want a time since the scenario's start such as 2ms", x.name, x.text)
		}
		*x.to = t.live.Start().Add(d)
	}
	if !r.To.IsZero() && !r.From.Before(r.To) {
		return r, usagef("--from %s and --to %s, want --from before --to", f.from, f.to)
	}
	return r, nil
}

// clock formats a fabric time.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// maxTop is also the API's limit.
const maxTop = 1000

// checkTop rejects a number of items that no controller returns.
func checkTop(n int) error {
	if n < 0 || n > maxTop {
		return usagef("--top %d, want 1 to %d, or 0 for the controller's default", n, maxTop)
	}
	return nil
}

// checkPagedTop is checkTop of a list that a command reads in pages.
func checkPagedTop(n int) error {
	if n < 0 || n > maxPages*maxTop {
		return usagef("--top %d, want 1 to %d, or 0 for the controller's default", n, maxPages*maxTop)
	}
	return nil
}

// afterHelp describes --after of every command that prints pages.
const afterHelp = "page token: continue after a previous page"

// printNext prints how to get the next page.
func printNext(w io.Writer, next string) {
	if next != "" {
		fmt.Fprintf(w, "\nthere are more; continue with --after %s\n", next)
	}
}

// endpoints formats the hosts of a flow.
func endpoints(r api.FlowRef) string {
	if r.Src == "" && r.Dst == "" {
		return ""
	}
	return dash(r.Src) + " → " + dash(r.Dst)
}

// flowsNamed returns the flows that text names: a 5-tuple, or two hosts as h0>h9
// for all flows between them that were counted or traced in the range.
func (t *target) flowsNamed(ctx context.Context, text string, r api.Range) ([]model.FlowKey, error) {
	key, err := model.ParseFlowKey(text)
	if err == nil {
		return []model.FlowKey{key}, nil
	}
	src, dst, ok := strings.Cut(text, ">")
	if src, dst = strings.TrimSpace(src), strings.TrimSpace(dst); !ok || src == "" || dst == "" || strings.ContainsAny(text, " :") {
		return nil, usagef("--flow: %w, or two hosts such as h0>h9", err)
	}
	filter := fmt.Sprintf("ip.src == %s && ip.dst == %s", src, dst)
	var keys []model.FlowKey
	seen := map[model.FlowKey]bool{}
	add := func(k model.FlowKey) {
		if !seen[k] {
			seen[k] = true
			keys = append(keys, k)
		}
	}
	flows, err := t.Flows(ctx, api.FlowsQuery{Range: r, Filter: filter})
	if err != nil {
		return nil, t.explain(err)
	}
	for i := range flows.Items {
		add(flows.Items[i].Flow)
	}
	traces, err := t.matchingTraces(ctx, api.TracesQuery{Range: r, Filter: filter, Paging: api.Paging{Limit: maxTop}})
	if err != nil {
		return nil, t.explain(err)
	}
	for i := range traces.Items {
		add(traces.Items[i].Flow.Flow)
	}
	if len(keys) == 0 {
		return nil, usagef("--flow %s: no flow between these hosts was counted or traced; want a 5-tuple such as %q",
			text,
			"udp 10.0.0.2:10000 > 10.2.0.2:4791")
	}
	return keys, nil
}

// dash formats an absent value.
func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
