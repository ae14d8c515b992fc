package ebpf

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/weft-telemetry/weft/inswitch/flowset"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	wire "github.com/weft-telemetry/weft/wire/flowset"
)

// ownNamespace moves the test to a network namespace of its own until it ends.
func ownNamespace(t testing.TB) netns.NsHandle {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to load eBPF programs and make a network namespace")
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
	return own
}

// within runs a function in the test's network namespace, on another goroutine than
// the test's own.
func (f *fabric) within(run func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := netns.Get()
	if err != nil {
		return err
	}
	defer before.Close()
	if err := netns.Set(f.ns); err != nil {
		return err
	}
	return errors.Join(run(), netns.Set(before))
}

// fabric is interfaces and routes of the test's network namespace.
type fabric struct {
	ns      netns.NsHandle
	ifindex []int // of ports 1, 2, …; the first is the loopback interface
	routes  map[netip.Prefix]model.PortID
}

func newFabric(t testing.TB) *fabric {
	t.Helper()
	f := &fabric{ns: ownNamespace(t), ifindex: []int{1}, routes: map[netip.Prefix]model.PortID{}}
	for _, name := range []string{"/proc/sys/net/ipv4/conf/all/forwarding", "/proc/sys/net/ipv6/conf/all/forwarding"} {
		if err := os.WriteFile(name, []byte("1"), 0); err != nil {
			t.Fatal(err)
		}
	}
	setUp(t, "lo")
	for i := 2; i <= 4; i++ {
		name := fmt.Sprintf("port%d", i)
		if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: name}, PeerName: "peer" + name}); err != nil {
			t.Fatal(err)
		}
		setUp(t, "peer"+name)
		f.ifindex = append(f.ifindex, setUp(t, name))
	}
	for i := range 5 { // of six networks the last has no route
		port := model.PortID(2 + i%3)
		f.route(t, netip.MustParsePrefix(fmt.Sprintf("10.%d.0.0/16", i)), port)
		f.route(t, netip.MustParsePrefix(fmt.Sprintf("2001:db8:0:%d::/64", i)), port)
		more := model.PortID(2 + (i+1)%3)
		f.route(t, netip.MustParsePrefix(fmt.Sprintf("10.%d.0.3/32", i)), more)
		f.route(t, netip.MustParsePrefix(fmt.Sprintf("2001:db8:0:%d::3/128", i)), more)
	}
	return f
}

func setUp(t testing.TB, name string) int {
	t.Helper()
	l, err := netlink.LinkByName(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkSetUp(l); err != nil {
		t.Fatal(err)
	}
	return l.Attrs().Index
}

func (f *fabric) route(t testing.TB, to netip.Prefix, port model.PortID) {
	t.Helper()
	dst := &net.IPNet{IP: to.Addr().AsSlice(), Mask: net.CIDRMask(to.Bits(), to.Addr().BitLen())}
	if err := netlink.RouteAdd(&netlink.Route{LinkIndex: f.ifindex[port-1], Dst: dst, Scope: netlink.SCOPE_LINK}); err != nil {
		t.Fatalf("route to %v: %v", to, err)
	}
	f.routes[to] = port
}

// Route is the longest prefix. The kernel forwards no IPv6 packet with an address that is
// valid on one link only, or of a group, whichever of the two it is.
func (f *fabric) Route(key *model.FlowKey) (out model.PortID, ok bool) {
	for _, a := range []netip.Addr{key.Src.Netip(), key.Dst.Netip()} {
		if key.V6 && (a.IsMulticast() || a.IsLinkLocalUnicast() || a.IsLoopback()) {
			return 0, false
		}
	}
	best := -1
	for p, port := range f.routes {
		if p.Contains(key.Dst.Netip()) && p.Addr().Is6() == key.V6 && p.Bits() > best {
			best, out, ok = p.Bits(), port, true
		}
	}
	return out, ok
}

func loadTest(t testing.TB, f *fabric, cfg flowset.Config, now model.Time) *Flowset {
	t.Helper()
	// Time does not move until a test sets it.
	s, err := loadWith(testSwitch, cfg, func() (int64, int64, error) { return 0, int64(now), nil })
	if err != nil {
		t.Fatalf("%+v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	for i, at := range f.ifindex {
		if err := s.NumberPort(at, model.PortID(i+1)); err != nil {
			t.Fatal(err)
		}
	}
	// No packet is counted while tests read.
	s.wait = func() error { return nil }
	s.setTime(t, now)
	return s
}

// setTime sets the clock.
func (s *Flowset) setTime(t testing.TB, now model.Time) {
	t.Helper()
	s.slots.offset = 0 // also a time before
	s.clock = func() (int64, int64, error) { return 0, int64(now), nil }
	if at, err := s.Advance(); err != nil || at != now {
		t.Fatalf("Advance = %v, %v; want %v", at, err, now)
	}
}

// skbContext is the start of struct __sk_buff.
type skbContext struct {
	Len, PktType, Mark, QueueMapping, Protocol, VLANPresent, VLANTCI, VLANProto, Priority uint32
	IngressIfindex, Ifindex, TCIndex                                                      uint32
	CB                                                                                    [5]uint32
	Hash, TCClassid, Data, DataEnd, NAPIID, Family, RemoteIP4, LocalIP4                   uint32
	RemoteIP6, LocalIP6                                                                   [4]uint32
	RemotePort, LocalPort, DataMeta                                                       uint32
	FlowKeys, Tstamp                                                                      uint64
	WireLen, GSOSegs                                                                      uint32
	SK                                                                                    uint64
	GSOSize, TstampType                                                                   uint32
	HWTstamp                                                                              uint64
}

// run passes a frame to the kernel's program as if it had arrived at a port.
func run(t testing.TB, p *ebpf.Program, ctx any, frame []byte) {
	t.Helper()
	if _, err := p.Run(&ebpf.RunOptions{Data: frame, Context: ctx}); err != nil {
		t.Fatalf("run %x: %v", frame, err)
	}
}

func (s *Flowset) runTCX(t testing.TB, ifindex int, segments uint32, frame []byte) {
	t.Helper()
	run(t, s.objects.FlowsetTcx, &skbContext{IngressIfindex: uint32(ifindex), GSOSegs: segments}, frame)
}

// endSlot returns the chunks of the current slot.
func (s *Flowset) endSlot(t testing.TB, now model.Time) (chunks [][]byte) {
	t.Helper()
	s.setTime(t, now)
	e, err := s.Export(func(c []byte) { chunks = append(chunks, slices.Clone(c)) })
	if err != nil {
		t.Fatal(err)
	}
	if e.Inconsistent != 0 || e.Slots != 1 {
		t.Fatalf("Export = %+v; want one slot and none inconsistent", e)
	}
	return chunks
}

// TestFlowsetsEqualReference passes frames of all kinds, good and damaged, to the
// kernel's program and to inswitch/flowset, and compares what they export byte for
// byte.
func TestFlowsetsEqualReference(t *testing.T) {
	for _, hook := range []Hook{TCX, XDP} {
		for name, change := range map[string]func(*flowset.Config){
			"both families": func(*flowset.Config) {},
			"IPv4 alone":    func(c *flowset.Config) { c.IPv6 = flowset.Table{} },
			"IPv6 alone":    func(c *flowset.Config) { c.IPv4 = flowset.Table{} },
			"narrow cells": func(c *flowset.Config) {
				c.IPv4.Layout, c.IPv6.Layout = flowset.NarrowLayout4, flowset.NarrowLayout6
			},
			"no probe mark": func(c *flowset.Config) { c.ProbeMark = 0 },
		} {
			t.Run(string(hook)+" "+name, func(t *testing.T) {
				f, cfg, now := newFabric(t), testConfig(), model.Time(1e18)
				change(&cfg)
				kernel, want := loadTest(t, f, cfg, now), newReference(t, cfg, now, f.Route)
				draw := newFrames(7)
				for range race.Less(30, 6) {
					for range 100 {
						// The kernel's test runs of TCX refuse frames that end in their first IP header.
						least, port := 14+40, 1+draw.IntN(len(f.ifindex))
						if hook == XDP {
							least, port = 14, 1 // and those of XDP cannot name another interface
						}
						frame := draw.next(least)
						if hook == XDP {
							run(t, kernel.objects.FlowsetXdp, nil, frame)
						} else {
							kernel.runTCX(t, f.ifindex[port-1], 0, frame)
						}
						want.frame(model.PortID(port), frame)
					}
					now += model.Time(cfg.Slot)
					compare(t, kernel.endSlot(t, now), want.endSlot(cfg.Slot))
				}
			})
		}
	}
}

func compare(t *testing.T, got, want [][]byte) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("kernel exports %d chunks; want %d", len(got), len(want))
	}
	for i := range got {
		if bytes.Equal(got[i], want[i]) {
			continue
		}
		var g, w wire.Chunk
		_, gotErr := g.Parse(got[i])
		_, wantErr := w.Parse(want[i])
		t.Fatalf("chunk %d:\n%+v %v\nwant\n%+v %v", i, g, gotErr, w, wantErr)
	}
}

// rawSender returns a function that sends frames from an interface.
func rawSender(t testing.TB, name string) func([]byte) {
	t.Helper()
	l, err := netlink.LinkByName(name)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	to := &unix.SockaddrLinklayer{Ifindex: l.Attrs().Index}
	return func(frame []byte) {
		if err := unix.Sendto(fd, frame, 0, to); err != nil {
			t.Fatal(err)
		}
	}
}
