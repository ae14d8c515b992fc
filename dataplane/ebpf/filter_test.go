package ebpf

import (
	"fmt"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/weft-telemetry/weft/model"
)

// haveTCX reports whether this kernel is 6.6 or later.
func haveTCX(t *testing.T) bool {
	t.Helper()
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	major, minor := 0, 0
	if _, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor); err != nil {
		t.Fatal(err)
	}
	return major > 6 || major == 6 && minor >= 6
}

// atInterface returns the names of the filters at the ingress of an interface, and whether
// it has a clsact qdisc.
func atInterface(t *testing.T, ifindex int) (names []string, clsact bool) {
	t.Helper()
	l, err := netlink.LinkByIndex(ifindex)
	if err != nil {
		t.Fatal(err)
	}
	filters, err := netlink.FilterList(l, ingress)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range filters {
		b, ok := f.(*netlink.BpfFilter)
		if !ok {
			names = append(names, f.Type())
			continue
		}
		names = append(names, b.Name)
	}
	qdiscs, err := netlink.QdiscList(l)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range qdiscs {
		clsact = clsact || q.Type() == "clsact"
	}
	return names, clsact
}

func wantAtInterface(t *testing.T, when string, ifindex, filters int, clsact bool) {
	t.Helper()
	if names, has := atInterface(t, ifindex); len(names) != filters || has != clsact {
		t.Errorf("%s: filters %q, clsact %v; want %d filters, clsact %v", when, names, has, filters, clsact)
	}
}

// TestFiltersLeaveNothing attaches by filters, detaches in other ways, and wants neither a
// filter nor a qdisc to be left. What others have is not touched.
func TestFiltersLeaveNothing(t *testing.T) {
	f, cfg, now := newFabric(t), testConfig(), model.Time(1e18)
	own, shared := f.ifindex[1], f.ifindex[2]
	device, err := netlink.LinkByIndex(shared)
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.QdiscAdd(&netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: shared, Parent: netlink.HANDLE_CLSACT, Handle: netlink.MakeHandle(0xffff, 0),
	}}); err != nil {
		t.Fatal(err)
	}
	var peer peerObjectObjects
	if err := loadPeerObjectObjects(&peer, nil); err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	if err := netlink.FilterAdd(&netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: shared, Parent: ingress, Priority: 9, Protocol: unix.ETH_P_ALL},
		Fd:          peer.Nothing.FD(), Name: "another program's", DirectAction: true,
	}); err != nil {
		t.Fatal(err)
	}
	attach := func(kernel *Flowset) {
		t.Helper()
		for _, at := range []int{own, shared} {
			if err := kernel.Attach(at, Clsact); err != nil {
				t.Fatal(err)
			}
		}
		wantAtInterface(t, "attached", own, 1, true)
		wantAtInterface(t, "attached", shared, 2, true)
	}
	first, next := loadTest(t, f, cfg, now), loadTest(t, f, cfg, now)
	attach(first)
	if err := first.DetachAll(); err != nil {
		t.Fatal(err)
	}
	wantAtInterface(t, "detached", own, 0, false)
	wantAtInterface(t, "detached", shared, 1, true)

	attach(first)
	first.links = nil // as if its process had been killed
	attach(next)      // takes its place
	next.links = nil
	// DetachEverywhere would detach agents of other tests.
	if n, err := detachFilters(); err != nil || n != 2 {
		t.Errorf("detachFilters = %d, %v; want 2", n, err)
	}
	wantAtInterface(t, "detached everywhere", own, 0, false)
	wantAtInterface(t, "detached everywhere", shared, 1, true)

	attach(first)
	if err := netlink.LinkDel(device); err != nil {
		t.Fatal(err)
	}
	if err := first.DetachAll(); err != nil {
		t.Errorf("DetachAll after an interface has gone: %v", err)
	}
	wantAtInterface(t, "detached", own, 0, false)
}
