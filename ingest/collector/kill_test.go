package collector

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/collect/count"
	"github.com/weft-telemetry/weft/collect/keywrite"
	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/collect/region"
	"github.com/weft-telemetry/weft/wire/dta"
)

// childEnv runs the test binary as a separate process, to be killed: flags of a
// child, separated by spaces.
const childEnv = "WEFT_TEST_COLLECTOR"

func TestMain(m *testing.M) {
	if flags := os.Getenv(childEnv); flags != "" {
		if err := child(strings.Fields(flags)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// child runs one of: collect DIR LISTEN, memory DIR CONTROL, translate CONTROL
// LISTEN, where several CONTROL, separated by commas, are replicas. It prints its
// address.
func child(flags []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	cfg := small("")
	at := netip.MustParseAddrPort(flags[2])
	switch flags[0] {
	case "collect":
		cfg.Memory.Dir, cfg.Listen = flags[1], at
	case "memory":
		cfg.Memory.Dir, cfg.RoCE, cfg.Control = flags[1], netip.MustParseAddrPort("127.0.0.1:0"), at
	case "translate":
		cfg.Collectors, cfg.Listen = strings.Split(flags[1], ","), at
		// However busy the machine is, a collector that runs is not left out.
		cfg.Replicas, cfg.Patience = len(cfg.Collectors), time.Hour
	}
	c, err := New(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if flags[0] == "memory" {
		fmt.Println(c.Control())
	} else {
		fmt.Println(c.Addr())
	}
	return c.Run(ctx)
}

// spawn starts a process and returns its address.
func spawn(t *testing.T, flags ...string) (*exec.Cmd, netip.AddrPort) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childEnv+"="+strings.Join(flags, " "))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%v did not start: %v", flags, err)
	}
	return cmd, netip.MustParseAddrPort(strings.TrimSpace(line))
}

func kill(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
}

// end terminates a process, which must not take long.
func end(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("after SIGTERM a process ends with %v; want nil", err)
		}
	case <-time.After(time.Minute):
		t.Error("a process hangs after SIGTERM")
	}
}

// files is a reader of a collector's files, in a separate process.
type files struct {
	values *keywrite.Table
	counts *count.Table
	lists  *list.Table
}

func openFiles(t *testing.T, dir string) files {
	t.Helper()
	view := func(name string) *region.Region {
		r, err := region.View(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		return r
	}
	values, err1 := keywrite.View(view("key-write-4.weft"))
	counts, err2 := count.View(view("key-increment.weft"))
	lists, err3 := list.View(view("append-0.weft"))
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	return files{values, counts, lists}
}

func (f files) head(id uint32) uint64 { h, _ := f.lists.Head(id); return h }

// stored reports whether flow i of reports has its value and its count.
func (f files) stored(i int) bool {
	key := fmt.Appendf(nil, "flow %d", i)
	p, _ := f.values.HashKey(key)
	want, _ := f.values.AppendSlot(nil, p, word(i))
	got := make([]byte, len(want))
	found := false
	for n := range 2 {
		found = found || f.values.Region().Read(f.values.Offset(p, n), got) == nil && string(got) == string(want)
	}
	q, _ := f.counts.HashKey(key)
	least := ^uint64(0)
	for n := range 4 {
		least = min(least, region.Load(&f.counts.Region().Words()[f.counts.Offset(q, n)/8]))
	}
	return found && least >= uint64(i)
}

// checkEntries checks that the newest entries of a list are complete, in order,
// and unique.
func (f files) checkEntries(t *testing.T, id uint32) {
	t.Helper()
	h, seen := f.head(id), map[uint32]bool{}
	for pos := h - 128; pos < h; pos++ {
		entry := make([]byte, 8)
		spans, _, err := f.lists.BatchParts(id, pos, entry)
		if err != nil || f.lists.Region().Read(spans[0].Offset, entry) != nil {
			t.Fatal(err)
		}
		a, b := binary.BigEndian.Uint32(entry), binary.BigEndian.Uint32(entry[4:])
		if a != b || a%8 != id || seen[a] {
			t.Fatalf("entry %d is %x; want a number of list %d, twice, that no entry before has", pos, entry, id)
		}
		seen[a] = true
	}
}

const known = 200

// prepare stores reports that must survive before anything is killed.
func prepare(t *testing.T, f files, addr netip.AddrPort) {
	t.Helper()
	first := newReporter(t, 1, addr)
	for _, r := range reports(known) {
		if r.Primitive == dta.KeyWrite || r.Primitive == dta.KeyIncrement {
			first.add(r)
		}
	}
	first.flush()
	await(t, "the known reports", func() bool { return f.stored(known - 1) })
}

// load reports to an address until the returned function is called, with or
// without a process that listens there.
func load(t *testing.T, addr netip.AddrPort) (stop func()) {
	var wg sync.WaitGroup
	stopped := make(chan struct{})
	wg.Go(func() {
		s := newReporter(t, 2, addr)
		for i := 0; ; i++ {
			select {
			case <-stopped:
				return
			default:
			}
			s.add(dta.Report{Primitive: dta.Append, Retransmit: true, List: dta.ListID(i % 8), Data: append(word(i), word(i)...)})
			s.add(dta.Report{Primitive: dta.KeyIncrement, Retransmit: true, Redundancy: 4, Key: []byte("load"), Delta: 1})
			if i%16 == 0 {
				s.answers()
			}
		}
	})
	return func() { close(stopped); wg.Wait() }
}

// survives checks the invariants after a kill, and that the load continues.
func (f files) survives(t *testing.T, who string, atKill uint64) {
	t.Helper()
	after := f.head(3)
	if after < atKill {
		t.Fatalf("%s killed: list 3 went back from %d to %d entries", who, atKill, after)
	}
	for i := range known {
		if !f.stored(i) {
			t.Fatalf("%s killed: flow %d is forgotten", who, i)
		}
	}
	await(t, "the load to continue after a kill of the "+who, func() bool { return f.head(3) > after+100 })
}

// TestKilledCollectorKeepsItsMemory kills a collector with reports in flight and
// starts another on its files: queries still find what was stored, heads of lists
// and counters only grow, and the reporter continues.
func TestKilledCollectorKeepsItsMemory(t *testing.T) {
	dir := t.TempDir()
	cmd, addr := spawn(t, "collect", dir, "127.0.0.1:0")
	f := openFiles(t, dir)
	prepare(t, f, addr)
	stop := load(t, addr)
	defer stop()
	for range 2 {
		before := f.head(3)
		await(t, "load", func() bool { return f.head(3) > before+100 })
		kill(t, cmd)
		atKill := f.head(3)
		cmd, _ = spawn(t, "collect", dir, addr.String())
		f.survives(t, "collector", atKill)
	}
	f.checkEntries(t, 3)
	end(t, cmd)
}

// TestKilledTranslatorAndCollector does the same with RDMA: one process
// translates, another has the memory, and each is killed in turn. Queue pairs are
// set up again in both cases.
func TestKilledTranslatorAndCollector(t *testing.T) {
	dir := t.TempDir()
	memory, control := spawn(t, "memory", dir, "127.0.0.1:0")
	translator, addr := spawn(t, "translate", control.String(), "127.0.0.1:0")
	f := openFiles(t, dir)
	prepare(t, f, addr)
	stop := load(t, addr)
	defer stop()
	for range 2 {
		before := f.head(3)
		await(t, "load", func() bool { return f.head(3) > before+100 })
		kill(t, translator)
		atKill := f.head(3)
		translator, _ = spawn(t, "translate", control.String(), addr.String())
		f.survives(t, "translator", atKill)

		kill(t, memory)
		atKill = f.head(3)
		memory, _ = spawn(t, "memory", dir, control.String())
		f.survives(t, "collector", atKill)
	}
	f.checkEntries(t, 3)
	end(t, translator)
	end(t, memory)
}
