package lab_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/weft-telemetry/weft/dataplane/lab"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
)

// needsFRR fails a test where FRR is missing.
func needsFRR(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("vtysh"); err != nil {
		t.Fatalf("%v (install it: scripts/need vtysh:frr)", err)
	}
}

// bgpFabric is two leaves with a host each, and two spines.
func bgpFabric(t *testing.T) *topo.Fabric {
	t.Helper()
	f, err := topo.LeafSpine(2, 2, 1, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// routesWithout are the intended routes of a fabric without some links.
func routesWithout(t *testing.T, f *topo.Fabric, down ...int) *topo.Routes {
	t.Helper()
	r, err := topo.NewRoutes(f, topo.RouteConfig{Down: down})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// upBGP builds a lab with BGP, without a collector.
func upBGP(t *testing.T, r *topo.Routes) *lab.Lab {
	t.Helper()
	l, err := lab.Up(lab.Config{
		Routes: r, Agent: agentConfig(t, netip.MustParseAddrPort("127.0.0.1:9")), BGP: true,
		List: func(id model.NodeID) dta.ListID { return dta.ListID(id) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// converge waits until the routes of the lab that is up are those of a fabric without some links.
func converge(t *testing.T, f *topo.Fabric, down ...int) {
	t.Helper()
	l, err := lab.Open(routesWithout(t, f, down...))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Leave()
	if err := l.Converge(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// deliver sends between all hosts, and returns how many packets to a host were sent and received.
func deliver(t *testing.T, l *lab.Lab, to model.NodeID) (sent, received uint64) {
	t.Helper()
	traffic, err := lab.NewTraffic(l, lab.TrafficConfig{UDP: 8, IPv4: true, IPv6: true, Pause: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer traffic.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	traffic.Run(ctx)
	for _, f := range traffic.Flows() {
		if f.To == to {
			sent += f.Sent.Load()
			received += f.Received.Load()
		} else if f.Received.Load() != f.Sent.Load() {
			t.Errorf("%v: %d packets sent, %d received; want all", f.Key, f.Sent.Load(), f.Received.Load())
		}
	}
	return sent, received
}

func delivered(t *testing.T, l *lab.Lab, to model.NodeID, when string) {
	t.Helper()
	if sent, received := deliver(t, l, to); sent == 0 || received != sent {
		t.Errorf("%s: %d packets sent, %d received; want all", when, sent, received)
	}
}

// protocolBGP is RTPROT_BGP of linux/rtnetlink.h.
const protocolBGP = 186

// bgpRoutes counts the routes of a node in the kernel that bgpd has made.
func bgpRoutes(t *testing.T, node string) (n int) {
	t.Helper()
	ns, err := netns.GetFromName("weft-" + node)
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	h, err := netlink.NewHandleAt(ns)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	list, err := h.RouteList(nil, netlink.FAMILY_ALL)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list {
		if r.Protocol == protocolBGP {
			n++
		}
	}
	return n
}

// TestBGPReroutes: switches with FRR learn all paths of equal length, a link that is down is avoided
// without Weft's doing, and faults of a kernel's table are in front of what it has learned.
func TestBGPReroutes(t *testing.T) {
	race.LeaveToPlainRun(t) // sessions end where the daemons are late for them
	needsRoot(t)
	needsFRR(t)
	f := bgpFabric(t)
	r := routesWithout(t, f)
	l := upBGP(t, r)
	defer closeLab(t, l)
	if err := l.Converge(t.Context()); err != nil {
		t.Fatal(err)
	}
	for node, want := range map[string]int{"leaf0": 2, "leaf1": 2, "spine0": 4, "spine1": 4, "h0": 0} {
		if n := bgpRoutes(t, node); n != want { // of IPv4 and IPv6, to the hosts that are not attached
			t.Errorf("%s has %d routes of BGP; want %d", node, n, want)
		}
	}
	leaf0, _ := f.ByName("leaf0")
	spine0, _ := f.ByName("spine0")
	h1, _ := f.ByName("h1")
	delivered(t, l, h1, "converged")

	uplink := model.Port{Node: leaf0, Port: r.NextHops(leaf0, f.Node(h1).IPv4)[0]}
	link := f.Port(uplink).Link
	if err := l.SetLink(uplink, false); err != nil {
		t.Fatal(err)
	}
	converge(t, f, link)
	delivered(t, l, h1, "around a link that is down")
	if err := l.SetLink(uplink, true); err != nil {
		t.Fatal(err)
	}
	converge(t, f)
	delivered(t, l, h1, "with the link up again")

	other, err := lab.Open(routesWithout(t, f, link))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Leave()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := other.Converge(ctx); err == nil || !strings.Contains(err.Error(), "leaf0 forwards to 2 of 4 addresses of hosts as not intended, such as h1 (") {
		t.Errorf("Converge to routes without a link that is up = %v; want an error that names leaf0 and h1", err)
	}

	for _, fault := range []struct {
		name   string
		at     model.NodeID
		all    bool // packets to h1 are lost, or those that spine0 forwards
		inject func() error
	}{
		{"black hole at leaf0", leaf0, true, func() error { return l.Blackhole(leaf0, h1) }},
		{"loop of spine0 and leaf0", spine0, false, func() error {
			return l.Misroute(spine0, h1, f.Port(uplink).Peer.Port)
		}},
	} {
		if err := fault.inject(); err != nil {
			t.Fatal(err)
		}
		if sent, received := deliver(t, l, h1); (received == 0) != fault.all || received >= sent {
			t.Errorf("%s: %d packets sent, %d received; want all of them lost: %v, else some", fault.name, sent, received, fault.all)
		}
		if err := other.RestoreRoute(fault.at, h1); err != nil {
			t.Fatal(err)
		}
		converge(t, f)
		delivered(t, l, h1, fault.name+", repaired")
	}
}

// crashing has the test binary build a lab, say so, and wait.
const crashing = "WEFT_TEST_LAB_CRASHES"

// TestRoutersEndWithTheLab: routers end when the process of the lab is killed, and lab down ends
// those of a lab that runs. Neither leaves files.
func TestRoutersEndWithTheLab(t *testing.T) {
	race.LeaveToPlainRun(t) // beside TestBGPReroutes
	needsRoot(t)
	needsFRR(t)
	r := routesWithout(t, bgpFabric(t))
	if os.Getenv(crashing) != "" {
		l := upBGP(t, r)
		fmt.Println("up")
		<-t.Context().Done()
		closeLab(t, l)
		return
	}
	t.Run("killed", func(t *testing.T) {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestRoutersEndWithTheLab$")
		cmd.Env = append(os.Environ(), crashing+"=1")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "up\n" {
			t.Errorf("the lab says %q, %v; want that it is up", line, err)
		}
		processes := routerProcesses(t)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
		awaitEnd(t, processes)
		if removed, err := lab.Remove(); err != nil || len(removed) != 6 {
			t.Errorf("Remove after a crash = %v, %v; want six namespaces", removed, err)
		}
		noRouterFiles(t)
	})
	t.Run("down", func(t *testing.T) {
		l := upBGP(t, r)
		processes := routerProcesses(t)
		if removed, err := lab.Remove(); err != nil || len(removed) != 6 {
			t.Errorf("Remove of a lab that runs = %v, %v; want six namespaces", removed, err)
		}
		awaitEnd(t, processes)
		noRouterFiles(t)
		if err := l.Close(); err == nil || !strings.Contains(err.Error(), "router weft-leaf0: ") {
			t.Errorf("Close of a lab whose routers were killed = %v; want an error that names them", err)
		}
	})
}

const routerFiles = "/run/weft-frr"

// routerProcesses opens the processes of all routers.
func routerProcesses(t *testing.T) (list []int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(routerFiles, "*", "*.pid"))
	if err != nil || len(files) != 8 {
		t.Fatalf("files of processes %v, %v; want eight", files, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			t.Fatalf("process of %s: %v", name, err)
		}
		t.Cleanup(func() { unix.Close(fd) })
		list = append(list, fd)
	}
	return list
}

// awaitEnd waits until all processes have ended.
func awaitEnd(t *testing.T, processes []int) {
	t.Helper()
	for _, fd := range processes {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 20_000)
		for errors.Is(err, unix.EINTR) {
			n, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 20_000)
		}
		if n != 1 || err != nil {
			t.Fatalf("a router's process has not ended in 20 s: %v", err)
		}
	}
}

func noRouterFiles(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(routerFiles); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is left: %v", routerFiles, err)
	}
}
