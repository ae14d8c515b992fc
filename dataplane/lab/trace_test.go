package lab_test

import (
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/dataplane/agent"
	"github.com/weft-telemetry/weft/dataplane/lab"
	"github.com/weft-telemetry/weft/internal/race"
)

// traces are those of the service that match, by the requests of weft trace.
func (w *watched) traces(filter string) []api.TraceSummary {
	w.t.Helper()
	q := api.TracesQuery{Filter: filter}
	q.From, q.To, q.Limit = w.born, time.Now().Add(time.Hour), 1000
	page, err := w.api.Traces(w.t.Context(), q)
	if err != nil {
		w.t.Fatal(err)
	}
	return page.Items
}

// from runs a function in the network namespace of a host.
func (w *watched) from(host string, run func() error) {
	w.t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlock: the thread ends here
		ns, err := netns.GetFromName("weft-" + host)
		if err == nil {
			defer ns.Close()
			err = netns.Set(ns)
		}
		if err == nil {
			err = run()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		w.t.Fatalf("from %s: %v", host, err)
	}
}

// sendMarked sends a datagram with the debug mark in its DSCP field.
func sendMarked(to netip.AddrPort) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }() // a datagram waits for nothing
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_TOS, int(agent.DefaultMirrors().DebugMask)<<2); err != nil {
		return err
	}
	return unix.Sendto(fd, []byte("marked"), 0, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
}

// sendSYN begins a connection and does not wait for it.
func sendSYN(to netip.AddrPort) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }() // nothing was connected
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}); err != unix.EINPROGRESS {
		return fmt.Errorf("connect: %v, want that it is in progress", err)
	}
	return nil
}

// TestMirrorsAreTraces has agents mirror packets of a real fabric to a real service. The path of a
// marked packet, the connection that a black hole swallows, and the sampled packets that it swallows are
// traces there.
func TestMirrorsAreTraces(t *testing.T) {
	race.LeaveToPlainRun(t) // a service that skips time leaves open what was lost
	needsRoot(t)
	mirrors := agent.DefaultMirrors()
	mirrors.SampleOneIn = 20
	w := watch(t, lab.TrafficConfig{UDP: 1, IPv4: true, IPv6: true, Pause: 100 * time.Millisecond}, &mirrors)
	for _, id := range w.fabric.Switches() {
		w.await("agents run", func() bool { return w.lab.Agent(id).Stats().Exported.Slots > 0 })
	}
	to := func(host string, port uint16) netip.AddrPort {
		return netip.AddrPortFrom(w.lab.Addr(w.node(host)), port)
	}

	// One packet at a time: each SYN is a flow of its own, and a flood of them is not what is tested.
	var last time.Time
	eachSecond := func(send func() error) {
		if time.Since(last) > time.Second {
			w.from("h0", send)
			last = time.Now()
		}
	}
	var marked []api.TraceSummary
	w.await("a marked packet of h0 to h7 is a trace", func() bool {
		eachSecond(func() error { return sendMarked(to("h7", 9000)) })
		marked = w.traces("")
		marked = slices.DeleteFunc(marked, func(s api.TraceSummary) bool { return !strings.Contains(s.Why, "debug") || s.End != "arrived" })
		return len(marked) > 0
	})
	path := marked[0].Path
	if len(path) != 3 || path[0] != "leaf0" || !strings.HasPrefix(path[1], "spine") || path[2] != "leaf3" {
		t.Errorf("path %v; want leaf0, a spine and leaf3", path)
	}
	one, err := w.api.Trace(t.Context(), marked[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	if len(one.Hops) != 3 || !strings.Contains(string(one.Frame), "marked") {
		t.Errorf("trace %+v; want three hops, and the packet itself", one)
	}

	leaf := w.node("leaf0")
	if err := w.lab.Blackhole(leaf, w.node("h2")); err != nil {
		t.Fatal(err)
	}
	lost := func(why string, proto string) func() bool {
		return func() bool {
			eachSecond(func() error { return sendSYN(to("h2", 9000)) })
			return slices.ContainsFunc(w.traces(""), func(s api.TraceSummary) bool {
				return s.End == "lost" && slices.Equal(s.Path, []string{"leaf0"}) && strings.Contains(s.Why, why) && strings.Contains(fmt.Sprint(s.Flow), proto)
			})
		}
	}
	w.await("a SYN of h0 to h2 is lost after leaf0", lost("flag", "tcp"))
	w.await("a sampled packet to h2 is lost after leaf0", lost("sample", "udp"))
	if err := w.lab.RestoreRoute(leaf, w.node("h2")); err != nil {
		t.Fatal(err)
	}
	for _, id := range w.fabric.Switches() {
		if s := w.lab.Agent(id).Stats(); s.Mirrors.Lost != 0 || s.Unsent != 0 {
			t.Errorf("%s lost %d mirrors and did not send %d; want none", w.fabric.Node(id).Name, s.Mirrors.Lost, s.Unsent)
		}
	}
}
