//go:build vm

package rocev2

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/collect/keywrite"
	"github.com/weft-telemetry/weft/collect/rdma"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/roce"
)

// These tests run in scripts/vm/jobs/rxe: this process is in a network namespace
// beside that of the kernel's RoCE, whose programs onHost starts. peer is
// testdata/peer.c.

// network is a family and how much is lost.
type network struct {
	name             string
	host, weft       string
	fromHost, toHost int // percent of packets that are lost
}

var (
	overIPv4 = network{"IPv4", "10.8.0.1", "10.8.0.2", 0, 0}
	overIPv6 = network{"IPv6", "fd08::1", "fd08::2", 0, 0}
	networks = []network{overIPv4, overIPv6, overIPv4.losing("IPv4 with loss", 10, 10)}
)

func (n network) losing(name string, fromHost, toHost int) network {
	n.name, n.fromHost, n.toHost = name, fromHost, toHost
	return n
}

// onHost is a command in the first network namespace.
func onHost(args ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{"--target", "1", "--net"}, args...)...)
}

// lose sets how much is lost until the test's end.
func (n network) lose(t *testing.T) {
	t.Helper()
	set := func(cmd *exec.Cmd) {
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", cmd, err, out)
		}
	}
	set(onHost("tc", "qdisc", "replace", "dev", "rxe-host", "root", "netem", "loss", fmt.Sprint(n.fromHost, "%")))
	set(exec.Command("tc", "qdisc", "replace", "dev", "rxe-weft", "root", "netem", "loss", fmt.Sprint(n.toHost, "%")))
}

// peer starts a program on the host and returns a function that waits for its
// end.
func peer(t *testing.T, ready bool, args ...string) (wait func()) {
	t.Helper()
	cmd := onHost(append([]string{os.Getenv("PEER")}, args...)...)
	var errors bytes.Buffer
	cmd.Stderr = &errors
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	if ready {
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
			t.Fatalf("peer says %q, %v, %s; want ready", line, err, &errors)
		}
	}
	return func() {
		t.Helper()
		if err := cmd.Wait(); err != nil {
			t.Fatalf("peer %v: %v\n%s", args, err, &errors)
		}
	}
}

func dialRxe(t *testing.T, n network, port int, cmc *CMClientConfig) *Client {
	t.Helper()
	cfg := ClientConfig{
		Name: "tor1", Collector: netip.AddrPortFrom(netip.MustParseAddr(n.host), uint16(port)).String(),
		Local:     netip.AddrPortFrom(netip.MustParseAddr(n.weft), 0),
		Translate: translate.DefaultConfig(), Requester: rdma.DefaultRequesterConfig(), ExchangeTime: 10 * time.Second, CM: cmc,
	}
	cfg.Requester.Window, cfg.Requester.Retries, cfg.Requester.RNRRetries = 256, 1000, 1000
	cfg.Translate.PathWait = time.Minute
	c, err := Dial(t.Context(), cfg, quiet)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestRxeTakesOperations executes 1000 operations of every kind in the memory of a
// verbs program: each once and in order. The program answers every message, so the kernel
// sends as many.
func TestRxeTakesOperations(t *testing.T) {
	const each, kinds = 1000, 6
	for i, n := range networks {
		t.Run(n.name, func(t *testing.T) {
			n.lose(t)
			scheme, err := keywrite.NewScheme(keywrite.DefaultConfig(1 << 16))
			if err != nil {
				t.Fatal(err)
			}
			size := int(scheme.Config().Size())
			file, port := filepath.Join(t.TempDir(), "memory"), 7000+i
			wait := peer(t, true, "collect", n.host, fmt.Sprint(port), file, fmt.Sprint(size))
			c := dialRxe(t, n, port, &CMClientConfig{Plan: &translate.Plan{KeyWrites: []*keywrite.Scheme{scheme}}})
			at, q := c.cm.received[0], c.req
			stop := run(t, c.Run)
			r := rand.New(rand.NewPCG(1, uint64(i)))
			want, received := make([]byte, size), ""
			for op := range kinds * each {
				await(t, "space in the window", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return q.WindowFree() > 8 })
				c.mu.Lock()
				data := make([]byte, 1+r.IntN(64))
				if op%kinds == 1 {
					data = make([]byte, rdma.MTU+1+r.IntN(4*rdma.MTU)) // several packets
				}
				for i := range data {
					data[i] = byte(r.Uint32())
				}
				off := uint64(r.IntN(size - len(data)))
				switch op % kinds {
				case 0, 1:
					q.Write(at.Addr+off, at.RKey, data)
					copy(want[off:], data)
				case 2:
					q.WriteImm(at.Addr+off, at.RKey, data, roce.ImmDt(op))
					copy(want[off:], data)
					received += fmt.Sprintf("immediate %d\n", op)
				case 3:
					off &^= 7
					q.FetchAdd(at.Addr+off, at.RKey, uint64(op)<<30)
					binary.LittleEndian.PutUint64(want[off:], binary.LittleEndian.Uint64(want[off:])+uint64(op)<<30)
				case 4: // every other one finds another value, and changes nothing
					off &^= 7
					was, swap := binary.LittleEndian.Uint64(want[off:]), r.Uint64()
					q.CompareSwap(at.Addr+off, at.RKey, was+uint64(op/kinds%2), swap)
					if op/kinds%2 == 0 {
						binary.LittleEndian.PutUint64(want[off:], swap)
					}
				case 5:
					q.Send(fmt.Appendf(nil, "number %d", op))
					received += fmt.Sprintf("message number %d\n", op)
				}
				c.sendPending(model.TimeOf(time.Now()))
				c.mu.Unlock()
			}
			await(t, "acknowledgements", func() bool { _, st := c.Stats(); return st.Requester.Acked == kinds*each })
			answers := func() rdma.ResponderStats { c.mu.Lock(); defer c.mu.Unlock(); return c.cm.responder.Stats() }
			await(t, "answers", func() bool { return answers().Sends >= 1+each })
			_, st := c.Stats()
			stop()
			wait()
			t.Logf("%+v, answers %+v", st.Requester, answers())
			if n := answers().Sends; n != 1+each {
				t.Errorf("%d messages of the kernel were executed; want one of its memory and %d answers", n, each)
			}
			if st.Requester.Lost != 0 || st.Requester.Connections != 1 || st.Requester.Unexpected != 0 {
				t.Errorf("%+v; want one connection, nothing lost, no unexpected answer", st.Requester)
			}
			if got, err := os.ReadFile(file + ".0"); err != nil || !bytes.Equal(got, want) {
				t.Errorf("memory differs from what was written, %v", err)
			}
			if got, err := os.ReadFile(file + ".received"); err != nil || string(got) != received {
				t.Errorf("%d bytes of messages received, %v; want %d, the same", len(got), err, len(received))
			}
		})
	}
}

// TestRxeWrites has a verbs program execute 1000 operations of every kind in Weft's
// memory. A kernel that retries 7 times only must not fail by chance, so with loss most
// are lost one way: of requests, which were not executed, and of answers, which were.
func TestRxeWrites(t *testing.T) {
	const each = 1000
	for i, n := range []network{
		overIPv4, overIPv6, overIPv4.losing("IPv4 with loss of requests", 10, 2), overIPv4.losing("IPv4 with loss of answers", 2, 10),
	} {
		t.Run(n.name, func(t *testing.T) {
			n.lose(t)
			m := memory(t)
			var immediate []uint32
			s := serveRxe(t, n, m, func(p dta.Primitive, v uint32) { immediate = append(immediate, uint32(p)<<28|v) })
			file := filepath.Join(t.TempDir(), fmt.Sprint("memory", i))
			peer(t, false, "write", n.weft, fmt.Sprint(s.cmPort()), file, fmt.Sprint(each), n.host)()
			await(t, "the end of the connection", func() bool { return s.Stats().Peers == 0 })
			want, err := os.ReadFile(file)
			var got bytes.Buffer
			dump(t, &got, m.KeyWrites[0])
			if err != nil || !bytes.Equal(got.Bytes(), want) {
				t.Errorf("memory differs from what the peer wrote, %v", err)
			}
			st := s.Stats()
			t.Logf("%+v %+v", st.Responder, st.CM)
			if r := st.Responder; r.Writes != 3*each || r.Adds != each || r.Swaps != each || r.Refused[rdma.BadICRC] != 0 {
				t.Errorf("%+v; want %d writes, and %d additions and swaps", r, 3*each, each)
			}
			for k, v := range immediate {
				if want := uint32(5*k + 2); v != want {
					t.Fatalf("immediate data %d is %d; want %d", k, v, want)
				}
			}
			if len(immediate) != each {
				t.Errorf("%d immediate data; want %d", len(immediate), each)
			}
		})
	}
}

func serveRxe(t *testing.T, n network, m *translate.Memory, notify func(dta.Primitive, uint32)) *Server {
	t.Helper()
	a := netip.MustParseAddr(n.weft)
	s, err := NewServer(ServerConfig{RoCE: listening(a), Control: netip.AddrPortFrom(a, 0), Unauthenticated: true}, m, notify, quiet)
	if err != nil {
		t.Fatal(err)
	}
	run(t, s.Run)
	return s
}

// TestRxeHoldsAllPrimitives translates reports of all primitives into the memories of
// a verbs program, which are byte for byte those of a collector with the same
// reports.
func TestRxeHoldsAllPrimitives(t *testing.T) {
	for i, n := range networks {
		t.Run(n.name, func(t *testing.T) {
			n.lose(t)
			local := memory(t)
			file, port := filepath.Join(t.TempDir(), "memory"), 7100+i
			args := []string{"collect", n.host, fmt.Sprint(port), file}
			for _, r := range local.Regions() {
				args = append(args, fmt.Sprint(r.Size()))
			}
			wait := peer(t, true, args...)
			c := dialRxe(t, n, port, &CMClientConfig{Plan: local.Plan()})
			stop := run(t, c.Run)
			out, err := translate.NewLocalWriter(local, 0, false, nil)
			if err != nil {
				t.Fatal(err)
			}
			cfg := translate.DefaultConfig()
			cfg.PathWait = time.Minute
			direct, err := translate.New(cfg, out.Plan, out)
			if err != nil {
				t.Fatal(err)
			}
			now := model.TimeOf(time.Now())
			for k := range 250 {
				batch := reports(k, k+1)
				await(t, "space in the window", func() bool { return c.Admit(&batch[0]) == dta.Stored })
				c.Put(now, batch)
				direct.Put(now, batch)
			}
			c.Drain(now)
			direct.Drain(now)
			await(t, "acknowledgements", func() bool {
				_, st := c.Stats()
				return st.Requester.Acked == st.Requester.Writes+st.Requester.Adds
			})
			_, st := c.Stats()
			stop()
			wait()
			t.Logf("%+v", st.Requester)
			if st.Requester.Lost != 0 || st.Remote.Dropped != 0 {
				t.Errorf("%+v; want nothing lost", st)
			}
			for k, r := range local.Regions() {
				want := make([]byte, r.Size())
				if err := r.Read(0, want); err != nil {
					t.Fatal(err)
				}
				if got, err := os.ReadFile(fmt.Sprint(file, ".", k)); err != nil || !bytes.Equal(got, want) {
					t.Errorf("memory %d, %s, differs, %v", k, r.Header().Kind, err)
				}
			}
		})
	}
}

// TestRxeRping connects with rping of rdmacm-utils, in both directions. It then
// speaks a protocol of its own, which Weft does not.
func TestRxeRping(t *testing.T) {
	for _, n := range networks[:2] {
		t.Run(n.name+" client", func(t *testing.T) {
			n.lose(t)
			s := serveRxe(t, n, memory(t), nil)
			log := rping(t, "-c", "-a", n.weft, "-p", fmt.Sprint(s.cmPort()), "-C", "1")
			await(t, "rping -c to connect", func() bool { return log.has("ESTABLISHED") })
			await(t, "the last message of the handshake", func() bool { return s.Stats().CM.Admitted > 0 })
			if st := s.Stats(); st.CM.Requests == 0 || st.CM.Admitted != 1 || st.CM.Malformed != 0 {
				t.Errorf("%+v; want one connection", st.CM)
			}
		})
		t.Run(n.name+" server", func(t *testing.T) {
			n.lose(t)
			log := rping(t, "-s", "-a", n.host, "-p", "7200")
			scheme, err := keywrite.NewScheme(keywrite.DefaultConfig(1 << 16))
			if err != nil {
				t.Fatal(err)
			}
			cfg := ClientConfig{
				Name: "tor1", Collector: netip.AddrPortFrom(netip.MustParseAddr(n.host), 7200).String(),
				Local: netip.AddrPortFrom(netip.MustParseAddr(n.weft), 0), Translate: translate.DefaultConfig(),
				Requester: rdma.DefaultRequesterConfig(), ExchangeTime: time.Minute,
				CM: &CMClientConfig{
					Plan:    &translate.Plan{KeyWrites: []*keywrite.Scheme{scheme}},
					Regions: []rdma.Region{{Addr: 1 << 40, Length: 1 << 20, RKey: 5}},
				},
			}
			var c *Client
			await(t, "rping -s", func() bool { // it may not listen yet
				c, err = Dial(t.Context(), cfg, quiet)
				return err == nil
			})
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			await(t, "rping -s to see a connection that ends", func() bool { return log.has("ESTABLISHED") && log.has("DISCONNECT") })
		})
	}
}

// rpingLog is what an rping that may still run has printed.
type rpingLog struct {
	mu  sync.Mutex
	out []byte
}

func (l *rpingLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out = append(l.out, p...)
	return len(p), nil
}

func (l *rpingLog) has(word string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Contains(l.out, []byte(word))
}

// rping starts it on the host. Nothing waits for its end, which may never come: it
// waits for answers that Weft does not give. It prints line by line: what it keeps until
// its end would be lost.
func rping(t *testing.T, args ...string) *rpingLog {
	t.Helper()
	log := &rpingLog{}
	cmd := onHost(append([]string{"stdbuf", "-oL", "rping", "-d"}, args...)...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = log, log, time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it fails: that is no answer it knows
		close(ended)
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Log("rping cannot be killed")
		}
		if t.Failed() {
			log.mu.Lock()
			defer log.mu.Unlock()
			t.Logf("rping %v: %s", args, log.out)
		}
	})
	return log
}
