package agent_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/weft-telemetry/weft/dataplane/agent"
	kernel "github.com/weft-telemetry/weft/dataplane/ebpf"
	"github.com/weft-telemetry/weft/model"
)

// childOf names the interface, and hookOf the hook, in the environment of a process that
// runs an agent until it is killed, or until it starves if starves is set.
const (
	childOf = "WEFT_AGENT_TEST_INTERFACE"
	hookOf  = "WEFT_AGENT_TEST_HOOK"
	starves = "WEFT_AGENT_TEST_STARVES"
)

func TestMain(m *testing.M) {
	if name := os.Getenv(childOf); name != "" {
		if err := runChild(name); err != nil {
			fmt.Println(err)
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func runChild(name string) error {
	cfg := config(name, netip.MustParseAddrPort("127.0.0.1:9"))
	cfg.Interfaces[0].Hook = kernel.Hook(os.Getenv(hookOf))
	a, err := agent.New(cfg)
	if err != nil {
		return err
	}
	fmt.Println("attached")
	if os.Getenv(starves) != "" {
		go starve()
	}
	return a.Run(context.Background())
}

func config(name string, to netip.AddrPort) agent.Config {
	cfg := agent.DefaultConfig()
	cfg.Node, cfg.To = 1, to
	cfg.Interfaces = []agent.Interface{{Name: name, Port: 1, Hook: kernel.TC}}
	return cfg
}

// newInterface moves the test to a network namespace of its own, makes a veth pair there,
// and returns one end.
func newInterface(t *testing.T) (name string, index int) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make interfaces and load eBPF programs")
	}
	runtime.LockOSThread()
	before, err := netns.Get()
	if err != nil {
		t.Fatal(err)
	}
	own, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := netns.Set(before); err != nil {
			t.Fatal(err)
		}
		own.Close()
		before.Close()
		runtime.UnlockOSThread()
	})
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		t.Fatal(err)
	}
	name = "weft0"
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: name + "p"}); err != nil {
		t.Fatal(err)
	}
	l, err := netlink.LinkByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return name, l.Attrs().Index
}

// attached returns how many programs are at the ingress of an interface.
func attached(t *testing.T, index int) int {
	t.Helper()
	device, err := netlink.LinkByIndex(index)
	if err != nil {
		t.Fatal(err)
	}
	filters, err := netlink.FilterList(device, netlink.HANDLE_MIN_INGRESS)
	if err != nil {
		t.Fatal(err)
	}
	r, err := link.QueryPrograms(link.QueryOptions{Target: index, Attach: ebpf.AttachTCXIngress})
	if errors.Is(err, ebpf.ErrNotSupported) || errors.Is(err, unix.EINVAL) {
		return len(filters) // before 6.6
	}
	if err != nil {
		t.Fatal(err)
	}
	return len(filters) + len(r.Programs)
}

// TestKilledAgentLeavesNothing kills an agent's process: the kernel detaches its program.
// Where it is a filter, it stays until the next agent takes its place.
func TestKilledAgentLeavesNothing(t *testing.T) {
	for _, hook := range []kernel.Hook{kernel.TC, kernel.Clsact} {
		t.Run(string(hook), func(t *testing.T) {
			name, index := newInterface(t)
			killAgent(t, name, hook, func() {
				if n := attached(t, index); n != 1 {
					t.Fatalf("%d programs while the agent runs; want 1", n)
				}
			})
			// The next agent takes the place of what is left.
			next := config(name, netip.MustParseAddrPort("127.0.0.1:9"))
			next.Interfaces[0].Hook = hook
			a, err := agent.New(next)
			if err != nil {
				t.Fatal(err)
			}
			if err := a.Close(); err != nil {
				t.Fatal(err)
			}
			awaitAttached(t, index, 0)
		})
	}
}

// killAgent kills a process with an agent once it has attached, and what runs then has ended.
func killAgent(t *testing.T, name string, hook kernel.Hook, run func()) {
	t.Helper()
	child := startAgent(t, name, hook)
	run()
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // killed
}

// startAgent starts a process with an agent, and returns when that has attached.
func startAgent(t *testing.T, name string, hook kernel.Hook, env ...string) *exec.Cmd {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(append(os.Environ(), childOf+"="+name, hookOf+"="+string(hook)), env...)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || strings.TrimSpace(line) != "attached" {
		t.Fatalf("the agent says %q, %v; want attached", line, err)
	}
	return child
}

// TestCollectorGone runs an agent without a collector: what it cannot report is counted,
// and nothing waits.
func TestCollectorGone(t *testing.T) {
	name, index := newInterface(t)
	closed, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	to := closed.LocalAddr().(*net.UDPAddr).AddrPort()
	closed.Close()
	a, err := agent.New(config(name, to))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	for began := time.Now(); a.Stats().Unsent < 3; time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > 20*time.Second {
			t.Fatalf("%+v; want reports that were not sent", a.Stats())
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Run: %v", err)
	}
	s := a.Stats()
	if s.Reporter.Packed < s.Unsent || s.Exported.Slots < 3 {
		t.Errorf("%+v; want unsent reports among those of three slots or more", s)
	}
	if n := attached(t, index); n != 0 {
		t.Errorf("%d programs after Run; want 0", n)
	}
}

// TestIdleAgentHardlyWorks counts what an agent without traffic does: it wakes once for five
// slots, waits for no program of the kernel's, and sends at most one datagram a slot. The
// kernel counts how often its threads go to sleep: 2 times a slot, and 8 times when the agent
// waited at each wake. CPU time is printed alone, as other work of the machine changes it.
func TestIdleAgentHardlyWorks(t *testing.T) {
	name, _ := newInterface(t)
	sink, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	a, err := agent.New(config(name, sink.LocalAddr().(*net.UDPAddr).AddrPort()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	for a.Stats().Exported.Slots < 10 {
		time.Sleep(10 * time.Millisecond)
	}
	before, usage, began := a.Stats(), ownUsage(t), time.Now()
	for a.Stats().Exported.Slots < before.Exported.Slots+200 {
		time.Sleep(250 * time.Millisecond)
	}
	after, used, took := a.Stats(), ownUsage(t), time.Since(began)
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	slots, wakes, datagrams := after.Exported.Slots-before.Exported.Slots, after.Wakes-before.Wakes, after.Datagrams-before.Datagrams
	if wakes > slots/5+1 || datagrams > slots || after.Exported.Waits != 0 {
		t.Errorf("%d wakes, %d datagrams and %d waits for %d idle slots; want a wake for five of them, at most a datagram each, and no wait",
			wakes, datagrams, after.Exported.Waits, slots)
	}
	if s := a.Stats(); s.Exported.Chunks != 4*s.Exported.Slots || s.Bytes > 1000*model.Bytes(s.Exported.Slots) {
		t.Errorf("%d chunks and %v for %d idle slots; want four each, and at most 1000 bytes", s.Exported.Chunks, s.Bytes, s.Exported.Slots)
	}
	sleeps := uint64(used.Nvcsw - usage.Nvcsw)
	if sleeps > 4*slots {
		t.Errorf("threads went to sleep %d times in %d slots; want at most four times each", sleeps, slots)
	}
	spent := time.Duration(used.Utime.Nano() + used.Stime.Nano() - usage.Utime.Nano() - usage.Stime.Nano())
	t.Logf("%d slots: %d wakes, %d sleeps of threads, %d datagrams; %v of CPU in %v: %.2f %% of a core", slots, wakes, sleeps, datagrams,
		spent, took.Round(time.Millisecond), 100*spent.Seconds()/took.Seconds())
}

// ownUsage is what the kernel counted of this process.
func ownUsage(t *testing.T) (u unix.Rusage) {
	t.Helper()
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return u
}

// TestNewRefuses checks the complaints about a configuration.
func TestNewRefuses(t *testing.T) {
	to := netip.MustParseAddrPort("127.0.0.1:9")
	for want, change := range map[string]func(*agent.Config){
		"no interface": func(c *agent.Config) { c.Interfaces = nil },
		"collector":    func(c *agent.Config) { c.To = netip.AddrPort{} },
		"queue of 0":   func(c *agent.Config) { c.Queue = 0 },
		"one port":     func(c *agent.Config) { c.Interfaces = append(c.Interfaces, c.Interfaces[0]) },
		"slot":         func(c *agent.Config) { c.Flowset.Slot = time.Minute },
	} {
		cfg := config("lo", to)
		change(&cfg)
		if _, err := agent.New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New(%+v) = %v; want an error with %q", cfg.Interfaces, err, want)
		}
	}
}
