package ebpf

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Directions of tc, by the parents of its filters.
const (
	ingress uint32 = netlink.HANDLE_MIN_INGRESS
	egress  uint32 = netlink.HANDLE_MIN_EGRESS
)

// attachTCX attaches a program to an interface until the result is closed or the process
// ends.
func attachTCX(ifindex int, direction uint32, p *ebpf.Program) (io.Closer, error) {
	attach := ebpf.AttachTCXIngress
	if direction == egress {
		attach = ebpf.AttachTCXEgress
	}
	return link.AttachTCX(link.TCXOptions{Interface: ifindex, Program: p, Attach: attach})
}

// attachTC is attachTCX, or attachFilter on kernels before 6.6.
func attachTC(ifindex int, direction uint32, p *ebpf.Program, name string) (io.Closer, error) {
	l, err := attachTCX(ifindex, direction, p)
	if errors.Is(err, ebpf.ErrNotSupported) {
		return attachFilter(ifindex, direction, p, name)
	}
	return l, err
}

// filterPrefix begins the names of Weft's filters. madeQdisc ends that of a filter which
// came with its qdisc, so that both can go together, even if the process was killed.
const (
	filterPrefix = "weft-"
	madeQdisc    = "+clsact"
)

// filter is a program as a filter of a clsact qdisc. It stays when the process ends:
// only links belong to a process.
type filter struct {
	device    *netlink.GenericLink
	direction uint32
	program   int
	// tc speaks to the network namespace of the interface, wherever Close is called.
	tc *netlink.Handle
}

// attachFilter attaches a program as a filter in front of those that are there. A filter
// with the same name, which a killed process has left, is replaced.
func attachFilter(ifindex int, direction uint32, p *ebpf.Program, name string) (_ io.Closer, err error) {
	info, err := p.Info()
	if err != nil {
		return nil, err
	}
	id, _ := info.ID() // every kernel with clsact has it
	f := &filter{
		device:    &netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: ifindex}},
		direction: direction, program: int(id),
	}
	if f.tc, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.tc.Close()
		}
	}()
	name = filterPrefix + name
	if err := removeFilters(f.tc, f.device, direction, func(b *netlink.BpfFilter) bool {
		return strings.TrimSuffix(b.Name, madeQdisc) == name
	}); err != nil {
		return nil, err
	}
	qdisc := netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: ifindex, Parent: netlink.HANDLE_CLSACT, Handle: netlink.MakeHandle(0xffff, 0),
	}}
	switch err := f.tc.QdiscAdd(&qdisc); {
	case err == nil:
		name += madeQdisc
	case !errors.Is(err, unix.EEXIST):
		return nil, fmt.Errorf("clsact qdisc: %w", err)
	}
	if err := f.tc.FilterAdd(&netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: ifindex, Parent: direction, Protocol: unix.ETH_P_ALL},
		Fd:          p.FD(), Name: name, DirectAction: true,
	}); err != nil {
		return nil, fmt.Errorf("tc filter: %w", err)
	}
	return f, nil
}

// Close detaches the program. A filter or an interface that is gone is no error.
func (f *filter) Close() error {
	defer f.tc.Close()
	return removeFilters(f.tc, f.device, f.direction, func(b *netlink.BpfFilter) bool { return b.Id == f.program })
}

// removeFilters removes Weft's filters that match, and the qdisc if it came with one of
// them and has no other.
func removeFilters(
	tc *netlink.Handle, device netlink.Link, direction uint32, match func(*netlink.BpfFilter) bool,
) error {
	all, err := tc.FilterList(device, direction)
	if gone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("tc filters: %w", err)
	}
	withQdisc := false
	for _, one := range all {
		b, ok := one.(*netlink.BpfFilter)
		if !ok || !strings.HasPrefix(b.Name, filterPrefix) || !match(b) {
			continue
		}
		if err := tc.FilterDel(b); err != nil && !gone(err) {
			return fmt.Errorf("tc filter %s: %w", b.Name, err)
		}
		withQdisc = withQdisc || strings.HasSuffix(b.Name, madeQdisc)
	}
	if !withQdisc {
		return nil
	}
	for _, d := range []uint32{ingress, egress} {
		if left, err := tc.FilterList(device, d); err != nil || len(left) > 0 {
			return nil // others use the qdisc, or the interface is gone
		}
	}
	if err := tc.QdiscDel(&netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: device.Attrs().Index, Parent: netlink.HANDLE_CLSACT, Handle: netlink.MakeHandle(0xffff, 0),
	}}); err != nil && !gone(err) {
		return fmt.Errorf("clsact qdisc: %w", err)
	}
	return nil
}

// gone reports whether there is no such interface, qdisc or filter any more.
func gone(err error) bool {
	return errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINVAL)
}

// detachFilters removes the filters of all agents at the interfaces of this network
// namespace, and returns how many there were.
func detachFilters() (detached int, err error) {
	tc, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return 0, fmt.Errorf("ebpf: %w", err)
	}
	defer tc.Close()
	devices, err := tc.LinkList()
	if err != nil {
		return 0, fmt.Errorf("ebpf: interfaces: %w", err)
	}
	for _, d := range devices {
		if err := removeFilters(tc, d, ingress, func(b *netlink.BpfFilter) bool {
			detached++
			return true
		}); err != nil {
			return detached, fmt.Errorf("ebpf: interface %s: %w", d.Attrs().Name, err)
		}
	}
	return detached, nil
}
