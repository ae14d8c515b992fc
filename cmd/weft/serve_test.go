package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	mrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/client"
	"github.com/weft-telemetry/weft/internal/testcert"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/mirror"
	"github.com/weft-telemetry/weft/wire/packet"
)

// process is weft serve in a separate process.
type process struct {
	t       *testing.T
	cmd     *exec.Cmd
	api     string // address
	reports string
	done    chan error

	mu  sync.Mutex
	log strings.Builder
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

func (p *process) logged() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

var greeting = regexp.MustCompile(`Console and API: https?://(\S+)/    DTA reports: (\S+)`)

// serveProcess starts weft serve and waits until it listens.
func serveProcess(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command("weft", append([]string{"serve"}, args...)...), done: make(chan error, 1)}
	p.cmd.Dir, p.cmd.Stderr = dir, p
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	line, _ := bufio.NewReader(out).ReadString('\n')
	go func() {
		_, _ = io.Copy(io.Discard, out)
		p.done <- p.cmd.Wait()
	}()
	m := greeting.FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("weft serve says %q and %s", line, p.logged())
	}
	p.api, p.reports = m[1], m[2]
	return p
}

// says waits for a line of the log.
func (p *process) says(text string) {
	p.t.Helper()
	within(p.t, fmt.Sprintf("the log says %q", text), func() bool { return strings.Contains(p.logged(), text) },
		p.logged)
}

func within(t *testing.T, what string, ok func() bool, why func() string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within a minute; %s", what, why())
		}
	}
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const servedFabric = "generate: {kind: fat-tree, k: 4, rate: 100Gb/s}\n"

// TestServeSignals runs weft serve with TLS and a token: SIGHUP applies settings that
// can change, an invalid file changes nothing, and SIGTERM stops the service.
func TestServeSignals(t *testing.T) {
	dir := t.TempDir()
	config := func(more string) {
		put(t, dir, "serve.yaml", `topology: fabric.yaml
dta: {listen: "127.0.0.1:0"}
api: {listen: "127.0.0.1:0", token_file: token, tls_cert: cert.pem, tls_key: key.pem}
`+more)
	}
	config("")
	put(t, dir, "fabric.yaml", servedFabric)
	put(t, dir, "token", "the-first-token-of-all\n")
	_, _, first := testcert.Write(t, dir, 1)
	p := serveProcess(t, dir, "--config", "serve.yaml")
	ask := func(token string, roots *x509.CertPool) error {
		tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
		defer tr.CloseIdleConnections()
		c, err := client.New("https://"+p.api, token, &http.Client{Transport: tr, Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Clock(t.Context())
		return err
	}
	if err := ask("the-first-token-of-all", first); err != nil {
		t.Fatal(err)
	}
	if ask("", first) == nil || ask("the-second-token-of-all", first) == nil {
		t.Error("queries without the token are answered")
	}

	put(t, dir, "token", "the-second-token-of-all\n")
	_, _, second := testcert.Write(t, dir, 2)
	config("store: {queue: 5000, retention: {flows: 1h}}\nlog: {level: debug}\n")
	p.signal(syscall.SIGHUP)
	p.says("configuration reloaded")
	p.says(`keys=[store.queue]`)
	if err := ask("the-second-token-of-all", second); err != nil {
		t.Errorf("with the new token and certificate: %v", err)
	}
	if ask("the-first-token-of-all", second) == nil || ask("the-second-token-of-all", first) == nil {
		t.Error("the old token, or the old certificate, is still accepted")
	}

	for name, tc := range map[string]struct {
		wrong func()
		says  string
	}{
		"unknown key": {func() { config("log: {levle: info}\n") }, "serve.yaml:4: unknown key log.levle"},
		"no YAML":     {func() { config("{{{\n") }, "serve.yaml:4"},
		"certificate": {func() { config(""); put(t, dir, "key.pem", "nothing") }, "read certificate"},
		"other nodes": {func() {
			testcert.Write(t, dir, 3)
			put(t, dir, "fabric.yaml",
				"generate: {kind: fat-tree, k: 2}\n")
		}, "nodes or links have changed"},
	} {
		config("")
		put(t, dir, "fabric.yaml", servedFabric)
		_, _, second = testcert.Write(t, dir, 4)
		p.signal(syscall.SIGHUP)
		within(t, "a good configuration", func() bool { return ask("the-second-token-of-all", second) == nil },
			p.logged)
		tc.wrong()
		p.signal(syscall.SIGHUP)
		p.says(tc.says)
		if err := ask("the-second-token-of-all", second); err != nil {
			t.Errorf("%s: the valid configuration is lost: %v", name, err)
		}
	}
	p.signal(syscall.SIGTERM)
	if err := <-p.done; err != nil {
		t.Errorf("SIGTERM: %v; want it to end without an error; %s", err, p.logged())
	}
	p.says("all received reports are analysed and stored")
}

// mirrors reports one packet of each of n flows.
func mirrors(t *testing.T, to string, from, n int) {
	t.Helper()
	conn, err := net.Dial("udp", to)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	w := dta.NewWriter(16, dta.Seq(from))
	fabric, err := topo.FatTree(4, topo.DefaultLinks()) // servedFabric
	if err != nil {
		t.Fatal(err)
	}
	list := control.DefaultListPlan(fabric).Mirrors.First
	for i := from; i < from+n; i++ {
		b := packet.Ethernet{Type: packet.TypeIPv4}.AppendTo(nil)
		ip := packet.IPv4{
			Length: 20 + 8 + 32, ID: uint16(i), TTL: 63, Proto: model.UDP, Src: 10<<24 | 2,
			Dst: 10<<24 | uint32(i),
		}
		ip.Checksum = ip.Sum()
		b = packet.UDP{SrcPort: 1000, DstPort: 4791, Length: 8 + 32}.AppendTo(ip.AppendTo(b))
		m := mirror.Mirror{
			Reasons: mirror.Debug, Switch: 16, In: 1, Out: 2, Time: model.TimeOf(time.Now()),
			Frame: append(b, make([]byte, 32)...),
		}
		m.Length = uint16(len(m.Frame))
		w.Begin(make([]byte, 1472))
		if err := w.AddReport(&dta.Report{Primitive: dta.Append, List: list, Data: m.AppendTo(nil)}); err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write(w.Finish()) // the service may have been killed
	}
}

// TestServeKilled kills weft serve at random times: the next process shows every
// record that its API has shown before. WEFT_KILLS sets the number of kills (5).
func TestServeKilled(t *testing.T) {
	kills := 5
	if text := os.Getenv("WEFT_KILLS"); text != "" {
		if _, err := fmt.Sscan(text, &kills); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	put(t, dir, "fabric.yaml", servedFabric)
	rng := mrand.New(mrand.NewPCG(1, 2))
	shown, sent := map[string]bool{}, 1
	for kill := range kills {
		p := serveProcess(t, dir, "--topology", "fabric.yaml", "--dta-listen", "127.0.0.1:0", "--api-listen",
			"127.0.0.1:0")
		c, err := client.New("http://"+p.api, "", &http.Client{
			Transport: &http.Transport{DisableKeepAlives: true},
			Timeout:   time.Minute,
		})
		if err != nil {
			t.Fatal(err)
		}
		now := map[string]bool{}
		for one, err := range client.All(func(after string) (api.Page[api.TraceSummary], error) {
			return c.Traces(t.Context(), api.TracesQuery{Paging: api.Paging{Limit: 1000, After: after}})
		}) {
			if err != nil {
				t.Fatalf("after kill %d: %v; %s", kill, err, p.logged())
			}
			now[one.Flow.Flow.String()] = true
		}
		for flow := range shown {
			if !now[flow] {
				t.Fatalf("after kill %d the trace of %s is gone, that was shown before", kill, flow)
			}
		}
		born := time.Now()
		die := born.Add(time.Duration(rng.IntN(1200)) * time.Millisecond)
		for time.Now().Before(die) || len(shown) < 20 { // less proves little
			mirrors(t, p.reports, sent, 20)
			sent += 20
			time.Sleep(20 * time.Millisecond)
			page, err := c.Traces(t.Context(), api.TracesQuery{})
			if err != nil {
				t.Fatal(err)
			}
			for _, one := range page.Items {
				shown[one.Flow.Flow.String()] = true
			}
			if time.Since(born) > time.Minute {
				t.Fatalf("%d traces are shown after a minute; want 20", len(shown))
			}
		}
		p.signal(syscall.SIGKILL)
		<-p.done
	}
	t.Logf("%d kills, %d mirrors sent, %d traces shown and kept", kills, sent-1, len(shown))
}
