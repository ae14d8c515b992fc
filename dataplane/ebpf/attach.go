package ebpf

import (
	"errors"
	"fmt"
	"io"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/weft-telemetry/weft/model"
)

// Hook is where a program sees packets of an interface.
type Hook string

// Hooks.
const (
	// TC is TCX where the kernel has it, and otherwise Clsact.
	TC Hook = "tc"
	// TCX is after the driver and GRO; every interface has it, from kernel 6.6 on.
	TCX Hook = "tcx"
	// Clsact is at the same place, for older kernels. A killed process leaves its filter
	// there, until DetachEverywhere or the next Attach at the interface.
	Clsact Hook = "clsact"
	// XDP is in the driver, before the kernel has a buffer for the packet.
	XDP Hook = "xdp"
)

// Hooks are all of them.
func Hooks() []Hook { return []Hook{TC, TCX, Clsact, XDP} }

// attachment is the program at an interface.
type attachment struct {
	ifindex int
	link    io.Closer
}

// NumberPort gives an interface the number of a port: packets that arrive at it or
// are forwarded to it have this number in the flowset.
func (f *Flowset) NumberPort(ifindex int, port model.PortID) error {
	if err := f.cfg.CheckPort(port); err != nil {
		return err
	}
	return numberPort(f.objects.Ports, ifindex, port)
}

func numberPort(ports *ebpf.Map, ifindex int, port model.PortID) error {
	if err := ports.Put(uint32(ifindex), uint32(port)); err != nil {
		return fmt.Errorf("ebpf: number port %d of interface %d: %w", port, ifindex, err)
	}
	return nil
}

// Attach attaches the program to the ingress of an interface of this network
// namespace. Programs that are there already stay, and see the same packets.
func (f *Flowset) Attach(ifindex int, hook Hook) error {
	l, err := attach(ifindex, hook, f.objects.FlowsetTcx, f.objects.FlowsetXdp, "flowset")
	if err != nil {
		return err
	}
	f.links = append(f.links, attachment{ifindex, l})
	return nil
}

// attach attaches one of two programs, as the hook needs.
func attach(ifindex int, hook Hook, tc, xdp *ebpf.Program, name string) (l io.Closer, err error) {
	switch hook {
	case TC:
		l, err = attachTC(ifindex, ingress, tc, name)
	case TCX:
		l, err = attachTCX(ifindex, ingress, tc)
	case Clsact:
		l, err = attachFilter(ifindex, ingress, tc, name)
	case XDP:
		l, err = link.AttachXDP(link.XDPOptions{Interface: ifindex, Program: xdp, Flags: link.XDPDriverMode})
	default:
		return nil, fmt.Errorf("ebpf: hook %q, want one of %v", hook, Hooks())
	}
	switch {
	case errors.Is(err, ebpf.ErrNotSupported):
		return nil, fmt.Errorf("ebpf: attach to interface %d: %w; tcx needs kernel 6.6 (tc and clsact do not), xdp a driver that has it",
			ifindex, err)
	case errors.Is(err, unix.EBUSY):
		return nil, fmt.Errorf("ebpf: attach to interface %d: another XDP program is attached: %w", ifindex, err)
	case err != nil:
		return nil, fmt.Errorf("ebpf: attach to interface %d: %w", ifindex, err)
	}
	return l, nil
}

// DetachAll detaches the program from all interfaces.
func (f *Flowset) DetachAll() error { return detach(&f.links) }

func detach(links *[]attachment) (err error) {
	for _, a := range *links {
		if e := a.link.Close(); e != nil {
			err = errors.Join(err, fmt.Errorf("ebpf: detach from interface %d: %w", a.ifindex, e))
		}
	}
	*links = nil
	return err
}
