package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/client"
)

// serverFlags say which controller is asked.
type serverFlags struct{ url, token, ca string }

const defaultServer = "http://127.0.0.1:8080"

func (f *serverFlags) add(cmd *cobra.Command) {
	url := os.Getenv(serverVariable)
	if url == "" {
		url = defaultServer
	}
	cmd.Flags().StringVar(&f.url, "server", url, "the controller's address; WEFT_SERVER sets it, too")
	cmd.Flags().StringVar(&f.token, "token", "", "token for it; WEFT_TOKEN sets it, too")
	cmd.Flags().StringVar(&f.ca, "ca", "", "PEM file of the authority that signed its certificate, if the system does not know it")
}

// wanted tells whether a command asks a controller: it does unless it has a
// scenario to play. What is only for scenarios must not be given then.
func (f *serverFlags) wanted(cmd *cobra.Command, file string, scenarioOnly ...string) (bool, error) {
	asked := cmd.Flags().Changed("server")
	if file != "" && asked {
		return false, usagef("%s and --server: want a scenario to play, or a controller to ask", file)
	}
	if file != "" {
		return false, nil
	}
	for _, name := range scenarioOnly {
		if cmd.Flags().Changed(name) {
			return false, usagef("--%s is for a scenario, want its file; controllers (--server) do not know it", name)
		}
	}
	return true, nil
}

// serverOnly complains of flags that only controllers know.
func serverOnly(cmd *cobra.Command, names ...string) error {
	for _, name := range append(names, "token", "ca") {
		if cmd.Flags().Changed(name) {
			return usagef("--%s is for a controller, not for a scenario; want --server in place of the file", name)
		}
	}
	return nil
}

func (f *serverFlags) client() (*client.Client, error) {
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
			return nil, usagef("--ca %s: no certificate in it, want PEM", f.ca)
		}
		h.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	}
	c, err := client.New(f.url, token, h)
	if err != nil {
		return nil, usageError{err}
	}
	return c, nil
}

// advice adds to an error what to do next.
func (f *serverFlags) advice(err error) error {
	var p *client.Problem
	switch {
	case err == nil:
		return nil
	case errors.As(err, &usageError{}):
		return err
	case !errors.As(err, &p):
		return fmt.Errorf("%w; is weft serve or weft demo running there? --server names another", err)
	case p.Status == http.StatusUnauthorized:
		if f.token == "" && os.Getenv(tokenVariable) == "" {
			return fmt.Errorf("%w; give the operator's token with --token or WEFT_TOKEN", err)
		}
		return fmt.Errorf("%w; it does not know the token that --token or WEFT_TOKEN gives", err)
	case p.Status == http.StatusUnprocessableEntity, p.Status == http.StatusBadRequest:
		return usageError{err}
	}
	return err
}

// spanFlags are a span of time: of a scenario's run, or of a controller's
// records.
type spanFlags struct{ last, from, to string }

func (f *spanFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.last, "last", "", "of a controller: so long before now, by the fabric's clock, such as 90s (default 1h)")
	fl.StringVar(&f.from, "from", "", "begin of the span: of a run 2ms, of a controller 2026-01-02T15:04:05Z")
	fl.StringVar(&f.to, "to", "", "its end, which is not in it; left out: the end of the run, or now")
}

// addOfRecords is add for commands of which only controllers take a span.
func (f *spanFlags) addOfRecords(cmd *cobra.Command, whose string) {
	fl := cmd.Flags()
	fl.StringVar(&f.last, "last", "", whose+"so long before now, by the fabric's clock, such as 90s (default 1h)")
	fl.StringVar(&f.from, "from", "", whose+"begin of the span, such as 2026-01-02T15:04:05Z")
	fl.StringVar(&f.to, "to", "", whose+"its end, which is not in it; left out: now")
}

// ofRun is the span of a scenario's run; to is 0 at its end.
func (f *spanFlags) ofRun() (from, to time.Duration, err error) {
	if f.last != "" {
		return 0, 0, usagef("--last is for a controller, want --from and --to")
	}
	for _, x := range []struct {
		name, text string
		to         *time.Duration
	}{{"from", f.from, &from}, {"to", f.to, &to}} {
		if x.text == "" {
			continue
		}
		if *x.to, err = time.ParseDuration(x.text); err != nil || *x.to < 0 {
			return 0, 0, usagef("--%s %q, want a time of the run such as 2ms", x.name, x.text)
		}
	}
	if to != 0 && to <= from {
		return 0, 0, usagef("--from %v and --to %v, want a span", from, to)
	}
	return from, to, nil
}

// ofRecords is the span of a controller's records.
func (f *spanFlags) ofRecords() (r api.Range, err error) {
	r.Last = f.last
	for _, x := range []struct {
		name, text string
		to         *time.Time
	}{{"from", f.from, &r.From}, {"to", f.to, &r.To}} {
		if x.text == "" {
			continue
		}
		if *x.to, err = time.Parse(time.RFC3339, x.text); err != nil {
			return r, usagef("--%s %q, want a time such as 2026-01-02T15:04:05Z", x.name, x.text)
		}
	}
	return r, nil
}

// clock prints an instant of the fabric's clock.
func clock(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// maxTop is the API's bound, too.
const maxTop = 1000

// checkTop complains of a number of items that no controller answers with.
func checkTop(n int) error {
	if n < 0 || n > maxTop {
		return usagef("--top %d, want 0 (as many as the controller chooses) to %d", n, maxTop)
	}
	return nil
}

// more tells how to go on behind a page.
func more(w io.Writer, next string) {
	if next != "" {
		fmt.Fprintf(w, "\nthere is more: --after %s\n", next)
	}
}

// endpoints names the hosts of a flow.
func endpoints(r api.FlowRef) string {
	return strings.Trim(r.Src+">"+r.Dst, ">")
}
