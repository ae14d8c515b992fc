package siege

import (
	"bytes"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/client"
	"github.com/weft-telemetry/weft/control/serve"
	"github.com/weft-telemetry/weft/ingest/keyfile"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/file"
	"github.com/weft-telemetry/weft/wire/dta"
)

// token is the operator's.
const token = "an operator's token of the siege"

// service is a child process that serves.
type service struct {
	t      testing.TB
	dir    string
	fabric *topo.Fabric
	clock  *clock
	lists  control.ListPlan
	cmd    *exec.Cmd
	exited chan error
	addresses
	probes string          // address of /healthz alone; empty: it is the API's
	keys   *keyfile.File   // of all nodes; nil: reports have no MAC
	api    *client.Client  // of the operator
	blamed map[string]bool // incidents that a test has complained of
	born   time.Time       // before any incident
}

// during has a subtest be what fails, until the returned function is called.
func (s *service) during(t testing.TB) (end func()) {
	old := s.t
	s.t = t
	return func() { s.t = old }
}

// ownAddress is one of loopback that no other test process uses: a raw socket takes
// all that is sent to its address, and a fixed port is free there.
func ownAddress(net int) string {
	pid := os.Getpid()
	return fmt.Sprintf("127.%d.%d.%d", net, pid>>8&255, pid&255|1)
}

// probeAddress is where /healthz is asked.
func (s *service) probeAddress() string {
	if s.probes != "" {
		return s.probes
	}
	return s.API
}

// mac is what a node signs with; nil: nothing is signed.
func (s *service) mac(id model.NodeID) *dta.MAC {
	if s.keys == nil {
		return nil
	}
	k := s.keys.Keys(s.fabric.Node(id).Name)[0]
	return dta.NewMAC(k.ID, k.Secret[:])
}

// rawSockets reports whether this process may open them.
func rawSockets() bool {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_RAW, syscall.IPPROTO_GRE)
	if err == nil {
		err = syscall.Close(fd)
	}
	return err == nil
}

// hasSetting reports whether a service has a setting.
func hasSetting(key string) bool {
	return slices.ContainsFunc(serve.Settings(), func(s serve.Setting) bool { return s.Key == key })
}

// nodeAddress is the address of a node of the honest fabric.
func nodeAddress(id model.NodeID) netip.Addr {
	return netip.AddrFrom4([4]byte{127, 1, byte(id >> 8), byte(id)})
}

// prepare writes the configuration of a service for the honest fabric: free ports
// of loopback, an operator's token, the address of every node, and the settings
// that are given.
func prepare(t testing.TB, settings map[string]string) *service {
	t.Helper()
	dir := t.TempDir()
	doc, err := file.Parse("fabric.yaml", []byte("generate: {kind: fat-tree, k: 4, rate: 1Gb/s}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := file.Write(&out, file.YAML, doc); err != nil {
		t.Fatal(err)
	}
	s := &service{t: t, dir: dir, born: time.Now().Add(-time.Minute), blamed: map[string]bool{}, fabric: doc.Fabric, lists: control.DefaultListPlan(doc.Fabric)}
	if s.clock, err = openClock(s.path("clock")); err != nil {
		t.Fatal(err)
	}
	s.write("fabric.yaml", out.String())
	s.write("token", token)
	all := map[string]string{
		"topology": s.path("fabric.yaml"), "store.path": s.path("weft.duckdb"), "api.listen": "127.0.0.1:0",
		"api.token_file": s.path("token"), "dta.listen": "127.0.0.1:0", "int.listen": "127.0.0.1:0",
		"dta.workers": "2", "store.hot": "32MiB", "store.memory": "256MiB", "log.format": "json",
		// A machine of two cores that also runs the fabric and its attackers delays
		// what is honest: the analyses wait for it.
		"controller.report_timeout": "2s", "controller.slot": slot.String(),
	}
	if rawSockets() {
		all["erspan.listen"] = ownAddress(78)
	}
	if hasSetting("api.health_listen") {
		s.probes = ownAddress(79) + ":8081"
		all["api.health_listen"] = s.probes
	}
	for k, v := range settings {
		all[k] = v
	}
	if all["dta.require"] != "" {
		var names []string
		for _, n := range doc.Fabric.Nodes() {
			names = append(names, n.Name)
		}
		s.keys = keyfile.Generate(names, nil)
		if err := s.keys.Write(s.path("keys")); err != nil {
			t.Fatal(err)
		}
		all["dta.keys"] = s.path("keys")
	}
	sections := map[string][]string{}
	for k, v := range all {
		section, key, nested := strings.Cut(k, ".")
		if !nested {
			section, key = "", k
		}
		sections[section] = append(sections[section], fmt.Sprintf("%s: %q", key, v))
	}
	var y strings.Builder
	for name, lines := range sections {
		indent := ""
		if name != "" {
			fmt.Fprintf(&y, "%s:\n", name)
			indent = "  "
		}
		for _, l := range lines {
			fmt.Fprintf(&y, "%s%s\n", indent, l)
		}
		if name == "" {
			y.WriteString("\n")
		}
	}
	y.WriteString("switches:\n")
	for _, n := range doc.Fabric.Nodes() {
		if n.Role.IsSwitch() {
			fmt.Fprintf(&y, "  - {name: %s, address: %q}\n", n.Name, nodeAddress(n.ID))
		}
	}
	s.write("serve.yaml", y.String())
	t.Cleanup(s.kill)
	return s
}

// replaceListen sets the addresses of sections of a configuration.
func replaceListen(text string, addresses map[string]string) string {
	var out strings.Builder
	section := ""
	for line := range strings.Lines(text) {
		if name, ok := strings.CutSuffix(strings.TrimSpace(line), ":"); ok {
			section = name
		}
		if a := addresses[section]; a != "" && strings.HasPrefix(line, "  listen:") {
			line = fmt.Sprintf("  listen: %q\n", a)
		}
		out.WriteString(line)
	}
	return out.String()
}

func (s *service) path(name string) string { return filepath.Join(s.dir, name) }

func (s *service) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(s.path(name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// client is the operator's, with connections of its own.
func (s *service) client() *client.Client {
	tr := &http.Transport{}
	s.t.Cleanup(tr.CloseIdleConnections)
	c, err := client.New("http://"+s.API, token, &http.Client{Transport: tr, Timeout: time.Minute})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// patience is the limit of waiting, by the fabric's clock and by this host's: a busy
// machine slows the fabric, and what it waits for.
const patience = time.Minute

// waiting limits a wait.
type waiting struct {
	wall, fabric time.Time
}

func (s *service) waiting() waiting {
	return waiting{time.Now().Add(patience), s.clock.now().Add(patience)}
}

// over reports whether patience has ended. A fabric that stands still does not extend
// it for ever.
func (w waiting) over(s *service) bool {
	now := time.Now()
	return now.After(w.wall) && s.clock.now().After(w.fabric) || now.After(w.wall.Add(4*patience))
}

// eventually waits until something is so. A service that ends meanwhile fails the
// test.
func (s *service) eventually(what string, ok func() bool) {
	s.t.Helper()
	for w := s.waiting(); !ok(); time.Sleep(100 * time.Millisecond) {
		s.alive()
		if w.over(s) {
			s.t.Fatalf("%s: not within %v\n%s", what, patience, s.logTail())
		}
	}
}

// alive fails the test if the process has ended.
func (s *service) alive() {
	s.t.Helper()
	select {
	case err := <-s.exited:
		s.exited <- err
		s.t.Fatalf("the service has ended: %v\n%s", err, s.logTail())
	default:
	}
}

// health is what /api/v1/health says.
func (s *service) health() api.Health {
	s.t.Helper()
	h, err := s.api.Health(s.t.Context())
	if err != nil {
		s.alive()
		s.t.Fatal(err)
	}
	return h
}

// stage is one of the pipeline's, and its losses by reason.
func stage(h api.Health, name string) (api.Stage, map[string]uint64) {
	for _, st := range h.Stages {
		if st.Name == name {
			lost := map[string]uint64{}
			for _, l := range st.Losses {
				lost[l.Reason] = l.Count
			}
			return st, lost
		}
	}
	return api.Stage{}, nil
}
