package collector

import (
	"bufio"
	"context"
	"encoding/binary"
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

const (
	childDir    = "WEFT_TEST_COLLECTOR_DIR"
	childListen = "WEFT_TEST_COLLECTOR_LISTEN"
)

// TestMain lets the test binary be a collector of its own, to be killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := child(dir, os.Getenv(childListen)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func child(dir, listen string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	cfg := small(dir)
	cfg.Listen = netip.MustParseAddrPort(listen)
	c, err := New(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	fmt.Println(c.Addr())
	return c.Run(ctx)
}

// spawn starts a collector process and returns where it listens.
func spawn(t *testing.T, dir, listen string) (*exec.Cmd, netip.AddrPort) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childDir+"="+dir, childListen+"="+listen)
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
		t.Fatalf("the collector did not start: %v", err)
	}
	return cmd, netip.MustParseAddrPort(strings.TrimSpace(line))
}

// TestKilledCollectorAnswersAsBefore kills a collector with reports under way
// and starts another on its files: what was stored answers, heads of lists and
// counters only grow, and the reporter goes on.
func TestKilledCollectorAnswersAsBefore(t *testing.T) {
	dir := t.TempDir()
	cmd, addr := spawn(t, dir, "127.0.0.1:0")
	view := func(name string) *region.Region {
		r, err := region.View(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		return r
	}
	values, err := keywrite.View(view("key-write-4.weft"))
	if err != nil {
		t.Fatal(err)
	}
	counts, err := count.View(view("key-increment.weft"))
	if err != nil {
		t.Fatal(err)
	}
	lists, err := list.View(view("append-0.weft"))
	if err != nil {
		t.Fatal(err)
	}
	head := func(id uint32) uint64 { h, _ := lists.Head(id); return h }

	// Some reports whose fate is known before anything is killed.
	const known = 200
	first := newSource(t, 1, addr)
	for _, r := range reports(known) {
		if r.Primitive == dta.KeyWrite || r.Primitive == dta.KeyIncrement {
			first.add(r)
		}
	}
	first.flush()
	stored := func(i int) bool {
		key := fmt.Appendf(nil, "flow %d", i)
		p, _ := values.Place(key)
		want, _ := values.AppendSlot(nil, p, word(i))
		got := make([]byte, len(want))
		for n := range 2 {
			if values.Region().Read(values.Offset(p, n), got) == nil && string(got) == string(want) {
				return true
			}
		}
		return false
	}
	sum := func(i int) uint64 {
		p, _ := counts.Place(fmt.Appendf(nil, "flow %d", i))
		least := ^uint64(0)
		for n := range 4 {
			least = min(least, region.Load(&counts.Region().Words()[counts.Offset(p, n)/8]))
		}
		return least
	}
	await(t, "the known reports", func() bool { return stored(known-1) && sum(known-1) >= known-1 })

	// Load that goes on while the collector dies.
	var load sync.WaitGroup
	stop := make(chan struct{})
	load.Go(func() {
		s := newSource(t, 2, addr)
		for i := 0; ; i++ {
			select {
			case <-stop:
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
	defer load.Wait()
	defer close(stop)

	for round := range 2 {
		before := head(3)
		await(t, "load", func() bool { return head(3) > before+100 })
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		atKill := head(3)
		cmd, addr = spawn(t, dir, addr.String())
		after := head(3)
		if after < atKill {
			t.Fatalf("round %d: list 3 went back from %d to %d entries", round, atKill, after)
		}
		for i := range known {
			if !stored(i) || sum(i) < uint64(i) {
				t.Fatalf("round %d: flow %d is forgotten or counts %d", round, i, sum(i))
			}
		}
		await(t, "the load to go on", func() bool { return head(3) > after+100 })
	}
	// Every entry is whole, where it belongs, and there once.
	h, seen := head(3), map[uint32]bool{}
	for pos := h - 128; pos < h; pos++ {
		entry := make([]byte, 8)
		spans, _, err := lists.Spans(3, pos, entry)
		if err != nil || lists.Region().Read(spans[0].Offset, entry) != nil {
			t.Fatal(err)
		}
		a, b := binary.BigEndian.Uint32(entry), binary.BigEndian.Uint32(entry[4:])
		if a != b || a%8 != 3 || seen[a] {
			t.Fatalf("entry %d is %x; want a number of list 3, twice, that no entry before has", pos, entry)
		}
		seen[a] = true
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("after SIGTERM the collector ends with %v; want nil", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the collector hangs after SIGTERM")
	}
}
