package ebpf

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
)

// Drops counts the packets that the kernel drops, in all network namespaces, by the
// kernel's own reason. It needs Linux 5.17.
type Drops struct {
	objects dropsObjectObjects
	link    link.Link
	names   map[uint32]string
}

// otherReasons are those of subsystems that number their own.
const otherReasons = "of another subsystem"

// WatchDrops counts from now on, until Close.
func WatchDrops() (_ *Drops, err error) {
	d := &Drops{}
	if d.names, err = dropReasons(); err != nil {
		return nil, fmt.Errorf("ebpf: reasons of drops: %w", err)
	}
	if err := loadDropsObjectObjects(&d.objects, nil); err != nil {
		return nil, fmt.Errorf("ebpf: drops: %w", loadError(err))
	}
	d.link, err = link.AttachRawTracepoint(link.RawTracepointOptions{Name: "kfree_skb", Program: d.objects.CountDrop})
	if err != nil {
		return nil, fmt.Errorf("ebpf: drops: %w", errors.Join(loadError(err), d.objects.Close()))
	}
	return d, nil
}

// dropReasons reads the names of this kernel's reasons.
func dropReasons() (map[uint32]string, error) {
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		return nil, err
	}
	var reasons *btf.Enum
	if err := kernel.TypeByName("skb_drop_reason", &reasons); err != nil {
		return nil, fmt.Errorf("this kernel gives none, want Linux 5.17: %w", err)
	}
	names := map[uint32]string{}
	for _, v := range reasons.Values {
		name, ok := strings.CutPrefix(v.Name, "SKB_DROP_REASON_")
		if _, known := names[uint32(v.Value)]; ok && !known {
			names[uint32(v.Value)] = strings.ReplaceAll(strings.ToLower(name), "_", " ")
		}
	}
	return names, nil
}

// Counts returns the packets dropped since WatchDrops, by reason.
func (d *Drops) Counts() (map[string]uint64, error) {
	counts := map[string]uint64{}
	var reason uint32
	var cpus []uint64
	each := d.objects.Drops.Iterate()
	for each.Next(&reason, &cpus) {
		sum := uint64(0)
		for _, n := range cpus {
			sum += n
		}
		if sum == 0 {
			continue
		}
		counts[d.name(reason)] += sum
	}
	return counts, each.Err()
}

func (d *Drops) name(reason uint32) string {
	if reason == d.objects.Drops.MaxEntries()-1 {
		return otherReasons
	}
	if name, ok := d.names[reason]; ok {
		return name
	}
	return fmt.Sprintf("reason %d", reason)
}

// Close detaches the program.
func (d *Drops) Close() error { return errors.Join(d.link.Close(), d.objects.Close()) }
