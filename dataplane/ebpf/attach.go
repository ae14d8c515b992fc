package ebpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/weft-telemetry/weft/model"
)

// Hook is where a program sees packets of an interface.
type Hook string

// Hooks.
const (
	TCX Hook = "tcx" // after the driver and GRO; every interface has it, from kernel 6.6 on
	XDP Hook = "xdp" // in the driver, before the kernel has a buffer for the packet
)

// attachment is the program at an interface.
type attachment struct {
	ifindex int
	link    link.Link
}

// NumberPort gives an interface the number of a port: packets that arrive at it or
// are forwarded to it have this number in the flowset.
func (f *Flowset) NumberPort(ifindex int, port model.PortID) error {
	if err := f.objects.Ports.Put(uint32(ifindex), uint32(port)); err != nil {
		return fmt.Errorf("ebpf: number port %d of interface %d: %w", port, ifindex, err)
	}
	return nil
}

// Attach attaches the program to the ingress of an interface of this network
// namespace. Programs that are there already stay, and see the same packets.
func (f *Flowset) Attach(ifindex int, hook Hook) error {
	var l link.Link
	var err error
	switch hook {
	case TCX:
		l, err = link.AttachTCX(link.TCXOptions{Interface: ifindex, Program: f.objects.FlowsetTcx, Attach: ebpf.AttachTCXIngress})
	case XDP:
		l, err = link.AttachXDP(link.XDPOptions{Interface: ifindex, Program: f.objects.FlowsetXdp, Flags: link.XDPDriverMode})
	default:
		return fmt.Errorf("ebpf: hook %q, want %s or %s", hook, TCX, XDP)
	}
	switch {
	case errors.Is(err, ebpf.ErrNotSupported):
		return fmt.Errorf("ebpf: attach to interface %d: %w; tcx needs kernel 6.6, xdp a driver that has it", ifindex, err)
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("ebpf: attach to interface %d: another XDP program is attached: %w", ifindex, err)
	case err != nil:
		return fmt.Errorf("ebpf: attach to interface %d: %w", ifindex, err)
	}
	f.links = append(f.links, attachment{ifindex, l})
	return nil
}

// DetachAll detaches the program from all interfaces.
func (f *Flowset) DetachAll() (err error) {
	for _, a := range f.links {
		if e := a.link.Close(); e != nil {
			err = errors.Join(err, fmt.Errorf("ebpf: detach from interface %d: %w", a.ifindex, e))
		}
	}
	f.links = nil
	return err
}
