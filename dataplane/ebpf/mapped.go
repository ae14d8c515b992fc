package ebpf

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// mapped is the memory of the kernel's maps.
type mapped struct {
	control []flowsetObjectControl
	skipped []flowsetObjectSkipped
	filter  []uint64
	counts  []uint64
	sums4   []flowsetObjectSum4
	sums6   []flowsetObjectSum6

	regions [][]byte
}

func (m *mapped) mapAll(maps *flowsetObjectMaps) (err error) {
	if m.control, err = mapArray[flowsetObjectControl](m, maps.Control); err != nil {
		return err
	}
	if m.skipped, err = mapArray[flowsetObjectSkipped](m, maps.Skipped); err != nil {
		return err
	}
	if m.filter, err = mapArray[uint64](m, maps.Filter); err != nil {
		return err
	}
	if m.counts, err = mapArray[uint64](m, maps.Counts); err != nil {
		return err
	}
	if m.sums4, err = mapArray[flowsetObjectSum4](m, maps.Sums4); err != nil {
		return err
	}
	m.sums6, err = mapArray[flowsetObjectSum6](m, maps.Sums6)
	return err
}

// mapArray maps the values of an array. The kernel keeps them at multiples of eight
// bytes; all types here have such a size.
func mapArray[T any](m *mapped, from *ebpf.Map) ([]T, error) {
	var one T
	size, entries := int(unsafe.Sizeof(one)), int(from.MaxEntries())
	if size%8 != 0 || size != int(from.ValueSize()) {
		panic(fmt.Sprintf("ebpf: values of %d bytes in %v, want %d", from.ValueSize(), from, size))
	}
	region, err := unix.Mmap(from.FD(), 0, size*entries, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map memory of %v: %w", from, err)
	}
	m.regions = append(m.regions, region)
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(region))), entries), nil
}

func (m *mapped) unmap() {
	for _, r := range m.regions {
		_ = unix.Munmap(r) // it was mapped
	}
	*m = mapped{}
}

// setClock sets the offset of the wall clock from the monotonic clock, and the slot that
// it is in.
func (m *mapped) setClock(offset, slot uint64) {
	atomic.StoreUint64(&m.control[0].Offset, offset)
	atomic.StoreUint64(&m.control[0].Slot, slot)
}

// freeFrom is FREE of flowset.c.
const freeFrom = 1 << 63

// bankWord is the state of a bank, which CPUs change when they claim it.
func (m *mapped) bankWord(bank int) *uint64 { return &m.control[0].Bank[bank] }

// free lets CPUs claim a bank for the first slot with a packet, from a slot on.
func (m *mapped) free(bank int, from uint64) { atomic.StoreUint64(m.bankWord(bank), freeFrom|from) }

// postpone is free for a bank that no CPU has claimed. It reports whether none has.
func (m *mapped) postpone(bank int, before, from uint64) bool {
	return atomic.CompareAndSwapUint64(m.bankWord(bank), freeFrom|before, freeFrom|from)
}

// claimed returns the slot that a bank was claimed for.
func (m *mapped) claimed(bank int) (slot uint64, is bool) {
	return claimedFor(atomic.LoadUint64(m.bankWord(bank)))
}

// closeBank ends the use of a bank, and returns the slot that it was claimed for.
func (m *mapped) closeBank(bank int) (slot uint64, was bool) {
	return claimedFor(atomic.SwapUint64(m.bankWord(bank), 0))
}

func claimedFor(word uint64) (slot uint64, is bool) {
	return word - 1, word != 0 && word&freeFrom == 0
}

// takeSkipped returns and clears the counts of packets that are in no table of a bank.
func (m *mapped) takeSkipped(bank, family int) (unkeyed, probes uint64) {
	s := &m.skipped[bank*families+family]
	return atomic.SwapUint64(&s.Unkeyed, 0), atomic.SwapUint64(&s.Probes, 0)
}

// membarrierGlobal is MEMBARRIER_CMD_GLOBAL of linux/membarrier.h.
const membarrierGlobal = 1

// waitForReaders returns when every program that was running has ended: it runs
// inside an RCU read-side critical section, and MEMBARRIER_CMD_GLOBAL waits for a
// grace period.
func waitForReaders() error {
	if _, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, membarrierGlobal, 0, 0); errno != 0 {
		return fmt.Errorf("membarrier: %w", errno)
	}
	return nil
}
