package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/client"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/store/embedded"
	"github.com/weft-telemetry/weft/stream/inproc"
	"github.com/weft-telemetry/weft/wire/dta"
)

// floodedDir is the variable that makes the test binary a service: the folder of its
// topology and store.
const floodedDir = "WEFT_FLOODED_SERVICE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(floodedDir); dir != "" {
		if err := runFlooded(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// addressSpace is what the child may map beyond what it has mapped when it starts:
// the bounds of floodedConfig, and what Go and DuckDB reserve and do not touch. Idle,
// the child has mapped 2.2 GiB more than at its start.
const addressSpace = 4 * model.GiB

// floodedConfig has small bounds. Those of the API stay what they are: nobody attacks
// it here.
func floodedConfig(dir string) (Config, error) {
	cfg := DefaultConfig()
	cfg.Topology, cfg.Store.Path = filepath.Join(dir, "fabric.yaml"), filepath.Join(dir, "weft.duckdb")
	cfg.API.Listen, cfg.Log.Level = "127.0.0.1:0", "error"
	cfg.Controller.FlowMemory, cfg.Controller.TraceMemory, cfg.Controller.DiagnosisMemory = 16*model.MiB, 16*model.MiB, 16*model.MiB
	cfg.Controller.MaxFlows, cfg.API.MaxConnections = 4000, 128
	cfg.Store.Memory, cfg.Store.Hot, cfg.Store.Queue = 64*model.MiB, 8*model.MiB, 20_000
	for key, text := range map[string]string{"dta.listen": "127.0.0.1:0", "int.listen": "", "dta.receive_buffer": "1MiB", "dta.workers": "1", "dta.source_rate_limit": "0"} {
		for i := range settings {
			if settings[i].Key == key {
				if err := settings[i].Set(&cfg, text); err != nil {
					return cfg, err
				}
			}
		}
	}
	f, err := readFabric(&cfg)
	if err != nil {
		return cfg, err
	}
	for _, s := range memoryShares(&cfg, f) {
		cfg.Memory.Limit += s.Bytes // no more than the bounds need
	}
	return cfg, nil
}

// listening is where the child listens.
type listening struct {
	DTA netip.AddrPort
	API string
}

// runFlooded is weft serve with little address space. It answers each line of its
// input by the bytes of its heap that are in use, and writes a profile where the line
// names a file.
func runFlooded(dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	mapped, err := memoryStatus("self", "VmSize")
	if err != nil {
		return err
	}
	limit := uint64(mapped + addressSpace)
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
		return err
	}
	cfg, err := floodedConfig(dir)
	if err != nil {
		return err
	}
	log, _ := cfg.Log.Logger(os.Stderr)
	keep := embedded.DefaultConfig()
	keep.Memory, keep.CacheSize = cfg.Store.Memory, cfg.Store.Hot
	s, err := embedded.Open(cfg.Store.Path, keep)
	if err != nil {
		return err
	}
	stream, err := inproc.New(inproc.DefaultConfig())
	if err != nil {
		return err
	}
	svc, err := New(ctx, cfg, Deps{Store: s, Stream: stream, Log: log})
	if err != nil {
		return errors.Join(err, s.Close())
	}
	if err := json.NewEncoder(os.Stdout).Encode(listening{svc.Reports(), svc.Addr().String()}); err != nil {
		return err
	}
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			fmt.Println(heap())
			if in.Text() != "" {
				writeProfile(in.Text())
			}
		}
	}()
	return errors.Join(svc.Run(ctx), s.Close())
}

func writeProfile(path string) {
	f, err := os.Create(path)
	if err == nil {
		err = errors.Join(pprof.WriteHeapProfile(f), f.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// memoryStatus is a value of a process, such as VmHWM, the most that it had in memory.
func memoryStatus(process, key string) (model.Bytes, error) {
	text, err := os.ReadFile("/proc/" + process + "/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, key+":"); ok {
			n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(v), " kB"))
			return model.Bytes(n) * model.KiB, err
		}
	}
	return 0, fmt.Errorf("/proc/%s/status has no %s", process, key)
}

// flooded is a service in a process of its own, and those who report to it.
type flooded struct {
	t      *testing.T
	cfg    Config
	fabric *fabric
	api    *client.Client
	probes string
	cmd    *exec.Cmd
	exited chan struct{}
	in     io.Writer
	out    *bufio.Reader
	conn   net.Conn

	writers map[model.NodeID]*floodWriter
	last    *floodWriter // whose datagram is open; nil: none
	sent    uint64       // datagrams
	window  int          // of those, since they were last read
	flows   int          // of the honest switch
}

// floodWriter makes the datagrams of one reporter.
type floodWriter struct {
	dta.Writer
	buf []byte
}

func startFlooded(t *testing.T) *flooded {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "fabric.yaml"), []byte("generate: {kind: fat-tree, k: 4, rate: 100Gb/s}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := floodedConfig(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := &flooded{t: t, cfg: cfg, exited: make(chan struct{}), writers: map[model.NodeID]*floodWriter{}}
	if s.fabric, err = readFabric(&cfg); err != nil {
		t.Fatal(err)
	}
	s.cmd = exec.Command(os.Args[0])
	s.cmd.Env = append(os.Environ(), floodedDir+"="+dir, "GOTRACEBACK=single")
	s.cmd.Stderr = os.Stderr
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.out = bufio.NewReader(out)
	var at listening
	if err := json.Unmarshal([]byte(s.line()), &at); err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{}
	t.Cleanup(tr.CloseIdleConnections)
	if s.api, err = client.New("http://"+at.API, "", &http.Client{Transport: tr, Timeout: time.Minute}); err != nil {
		t.Fatal(err)
	}
	s.probes = "http://" + at.API + "/healthz"
	if s.conn, err = net.Dial("udp", at.DTA.String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.conn.Close() })
	return s
}

// line is the next line of the child's output.
func (s *flooded) line() string {
	s.t.Helper()
	text, err := s.out.ReadString('\n')
	if err != nil {
		s.t.Fatalf("the service has ended: %v", s.cmd.Wait())
	}
	return strings.TrimSpace(text)
}

// heap is what the child has in use, after a collection.
func (s *flooded) heap() model.Bytes {
	s.t.Helper()
	path := ""
	if dir := os.Getenv("WEFT_FLOOD_PROFILES"); dir != "" {
		path = filepath.Join(dir, strings.ReplaceAll(filepath.Base(s.t.Name()), " ", "_")+".pprof")
	}
	fmt.Fprintln(s.in, path)
	n, err := strconv.Atoi(s.line())
	if err != nil {
		s.t.Fatal(err)
	}
	return model.Bytes(n)
}

// resident is what the child has in memory, or the most that it had.
func (s *flooded) resident(key string) model.Bytes {
	s.t.Helper()
	n, err := memoryStatus(strconv.Itoa(s.cmd.Process.Pid), key)
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// report sends a report of a node, in a datagram with others of it.
func (s *flooded) report(from model.NodeID, list dta.ListID, data []byte) {
	s.t.Helper()
	w := s.writers[from]
	if w == nil {
		w = &floodWriter{Writer: dta.NewWriter(from, 1), buf: make([]byte, 1472)}
		s.writers[from] = w
	}
	if s.last != w {
		s.flush()
		w.Begin(w.buf)
		s.last = w
	}
	r := &dta.Report{Primitive: dta.Append, List: list, Data: data}
	if err := w.AddReport(r); err != nil {
		s.flush()
		w.Begin(w.buf)
		s.last = w
		if err := w.AddReport(r); err != nil {
			s.t.Fatal(err)
		}
	}
}

// maxWindow is how many datagrams any kernel queues.
const maxWindow = 64

// flush sends the datagram that is open, and waits when a window of them is on its way.
func (s *flooded) flush() {
	s.t.Helper()
	if s.last == nil {
		return
	}
	b := s.last.Finish()
	s.last = nil
	if _, err := s.conn.Write(b); err != nil {
		s.t.Fatal(err)
	}
	s.sent++
	if s.window++; s.window%maxWindow == 0 {
		s.wait("received", s.isReceived)
	}
	if s.window >= 8*maxWindow {
		s.settle()
	}
}

// settle waits until everything that was sent has been received and read.
func (s *flooded) settle() {
	s.t.Helper()
	s.flush()
	s.window = 0
	s.wait("read", s.isRead)
}

// wait waits until something has happened to everything that was sent.
func (s *flooded) wait(what string, ok func() bool) {
	s.t.Helper()
	for end := time.Now().Add(3 * time.Minute); !ok(); time.Sleep(200 * time.Microsecond) {
		if time.Now().After(end) {
			s.t.Fatalf("%d datagrams are not %s within three minutes: %+v", s.sent, what, s.health().Stages)
		}
	}
}

// isReceived reports whether everything that was sent has arrived.
func (s *flooded) isReceived() bool {
	st, _ := stage(s.health(), "transport")
	return st.In >= s.sent
}

// isRead reports whether everything that was sent has been read.
func (s *flooded) isRead() bool {
	h := s.health()
	received, _ := stage(h, "transport")
	taken, _ := stage(h, "translator")
	read, lost := stage(h, "memory")
	return received.In >= s.sent && read.Out+lost["overwritten"] >= taken.Out
}

func (s *flooded) health() api.Health {
	s.t.Helper()
	h, err := s.api.Health(s.t.Context())
	if err != nil {
		s.t.Fatalf("the health is not answered: %v", err)
	}
	return h
}

// alive fails the test if a probe is not answered.
func (s *flooded) alive() {
	s.t.Helper()
	r, err := http.Get(s.probes)
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		s.t.Errorf("/healthz = %s; want 200", r.Status)
	}
	if h := s.health(); h.State != "ok" && h.State != "degraded" {
		s.t.Errorf("health %s, %q; want ok or degraded", h.State, h.Alerts)
	}
}

// TestMemoryLimitHoldsInFloods floods a service of small bounds with everything that
// a switch or host may report, and more, in a process with little address space. It
// stays alive, within memory.limit, and analyses what others report.
func TestMemoryLimitHoldsInFloods(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("limits and /proc of Linux")
	}
	s := startFlooded(t)
	unused := model.Bytes(0) // bounds of the API, which is not flooded
	for _, share := range memoryShares(&s.cfg, s.fabric) {
		if strings.HasSuffix(share.Name, "of the API") {
			unused += share.Bytes
		}
	}
	limit := s.cfg.Memory.Limit - unused
	s.honest()
	idle := s.heap()
	t.Logf("memory.limit %v, %v of it for the API; idle: %v mapped, %v in memory, heap %v", s.cfg.Memory.Limit, unused, s.resident("VmSize"), s.resident("VmRSS"), idle)
	for _, kind := range floods {
		t.Run(kind.name, func(t *testing.T) {
			defer func(old *testing.T) { s.t = old }(s.t)
			s.t = t
			before := s.heap() // earlier floods have left what they may
			began := time.Now()
			kind.send(s)
			s.settle()
			used := s.heap()
			s.alive()
			lost := map[string]uint64{}
			for _, name := range []string{"translator", "analyzers", "store"} {
				_, losses := stage(s.health(), name)
				for reason, n := range losses {
					if n > 0 {
						lost[reason] += n
					}
				}
			}
			t.Logf("%v, %d datagrams in all; heap %v, %v in memory, at most %v; lost %v", time.Since(began).Round(time.Millisecond), s.sent, used, s.resident("VmRSS"), s.resident("VmHWM"), lost)
			if share := kind.bound(s); used > before+share && !race.Enabled {
				t.Errorf("%v of the heap in use, %v before; want no more than the bound of %v in addition", used, before, share)
			}
			if kind.lost != "" && lost[kind.lost] == 0 {
				t.Errorf("none is counted as %q; want what is beyond the bound", kind.lost)
			}
			s.honest()
		})
	}
	// The race detector multiplies what a process has in memory.
	if most := s.resident("VmHWM"); most > limit && !race.Enabled {
		t.Errorf("%v in memory at most; want no more than %v", most, limit)
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("the service: %v; want an orderly end", err)
	}
}
