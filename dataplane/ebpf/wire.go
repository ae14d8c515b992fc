package ebpf

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/cilium/ebpf"
)

// DropSilently drops a share of the packets that an interface of this network
// namespace sends, at random, until the result is closed. It is a fault, for labs.
func DropSilently(ifindex int, share float64) (io.Closer, error) {
	return attachShare(ifindex, "drop", share, func(p *wireObjectPrograms) *ebpf.Program { return p.DropSilently })
}

// Corrupt inverts a bit of the payload in a share of the packets that an interface of this
// network namespace sends, at random, until the result is closed. It is a fault, for labs.
func Corrupt(ifindex int, share float64) (io.Closer, error) {
	return attachShare(ifindex, "corrupt", share, func(p *wireObjectPrograms) *ebpf.Program { return p.Corrupt })
}

func attachShare(ifindex int, name string, share float64, choose func(*wireObjectPrograms) *ebpf.Program) (io.Closer, error) {
	if !(share > 0 && share <= 1) {
		return nil, fmt.Errorf("ebpf: %s a share of %v, want above 0 and at most 1", name, share)
	}
	return attachWire(ifindex, name, uint32(min(share*(1<<32), math.MaxUint32)), choose)
}

// ForgetHash makes an interface of this network namespace send packets without the hash
// that their socket gave them, as a wire does, until the result is closed.
func ForgetHash(ifindex int) (io.Closer, error) {
	return attachWire(ifindex, "forget-hash", 0, func(p *wireObjectPrograms) *ebpf.Program { return p.ForgetHash })
}

func attachWire(ifindex int, name string, share uint32, choose func(*wireObjectPrograms) *ebpf.Program) (io.Closer, error) {
	spec, err := loadWireObject()
	if err != nil {
		return nil, err
	}
	if err := spec.Variables[wireObjectVarShare].Set(share); err != nil {
		return nil, err
	}
	var o wireObjectObjects
	if err := spec.LoadAndAssign(&o, nil); err != nil {
		return nil, fmt.Errorf("ebpf: interface %d: %w", ifindex, loadError(err))
	}
	l, err := attachTC(ifindex, egress, choose(&o.wireObjectPrograms), name)
	if err != nil {
		return nil, fmt.Errorf("ebpf: interface %d: %w", ifindex, errors.Join(err, o.Close()))
	}
	return l, o.Close() // what is attached keeps the program
}
