package ebpf

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/weft-telemetry/weft/model"
)

// slots says which banks CPUs may use, and which wait for their export. The bank of a slot is
// its number modulo banks. The first packet of a slot claims its bank, so that a slot whose
// bank nothing claimed is known to be empty: no program can still be at work on it.
type slots struct {
	mu      sync.Mutex
	started bool
	stopped bool
	offset  int64 // of the wall clock from the monotonic clock; 0: not known yet
	banks   [banks]bankState
	ended   []endedSlot // not yet exported, in the order of time
}

// bankState is what a bank is used for.
type bankState struct {
	next uint64 // the first slot that is not accounted for
	full bool   // until it is exported
}

// endedSlot is a slot to export.
type endedSlot struct {
	slot  uint64
	empty bool // no packet has claimed its bank
}

const (
	// SlotsPerWake is how many slots may end between two calls of Advance and Export, so
	// that as many banks and two more are left while these are exported; without packets,
	// nothing waits for an export but the slots that a first packet has just claimed.
	SlotsPerWake     = banks/2 - 1
	SlotsPerIdleWake = banks - 3
	// maxTick is the longest time in nanoseconds between two ticks: HZ is at least 100.
	maxTick = 10_000_000
)

// clock returns the kernel's monotonic clock at the last tick, and the offset of the wall
// clock from that.
type clock func() (monotonic, offset int64, err error)

func coarseClock() (monotonic, offset int64, err error) {
	var mono, wall unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC_COARSE, &mono); err != nil {
		return 0, 0, fmt.Errorf("ebpf: %w", err)
	}
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &wall); err != nil {
		return 0, 0, fmt.Errorf("ebpf: %w", err)
	}
	return mono.Nano(), wall.Nano() - mono.Nano(), nil
}

// Advance closes the tables of slots that have ended. It returns the time by which packets
// are assigned to slots: that of the last tick. Packets of a slot whose bank still waits
// for its export count as missed.
//
// If the wall clock is set back, slots go on by the time before, until it is reached again.
func (f *Flowset) Advance() (model.Time, error) {
	mono, offset, err := f.clock()
	if err != nil {
		return 0, err
	}
	s := &f.slots
	s.mu.Lock()
	defer s.mu.Unlock()
	// A tick between the two readings makes an offset that is one tick off.
	if s.offset == 0 || offset > s.offset+maxTick {
		s.offset = offset
	}
	now := model.Time(mono + s.offset)
	current := f.slotAt(now)
	f.memory.setClock(uint64(s.offset), current)
	if !s.started {
		for family := range families {
			f.memory.takeSkipped(noBank, family) // packets before are not counted, and so not missed
		}
	}
	for bank := range s.banks {
		switch b := &s.banks[bank]; {
		case !s.started:
			b.next = firstOf(bank, current)
			f.memory.free(bank, b.next)
		case !b.full:
			f.endSlots(bank, current)
		}
	}
	s.started = true
	s.sortEnded()
	return now, nil
}

// endSlots adds the slots of a bank that ended before the current one. Of several that were
// empty it adds the last: the clock may have been set forward by any time.
func (f *Flowset) endSlots(bank int, current uint64) {
	s := &f.slots
	b := &s.banks[bank]
	slot, claimed := f.memory.claimed(bank)
	if !claimed {
		next := firstOf(bank, current)
		if next <= b.next {
			return
		}
		if f.memory.postpone(bank, b.next, next) {
			s.ended = append(s.ended, endedSlot{next - banks, true})
			b.next = next
			return
		}
		slot, _ = f.memory.claimed(bank) // in between; only this side releases it
	}
	if slot > b.next {
		s.ended = append(s.ended, endedSlot{slot - banks, true})
		b.next = slot
	}
	if slot < current {
		f.memory.closeBank(bank)
		s.ended = append(s.ended, endedSlot{slot, false})
		b.full = true
	}
}

// firstOf returns the first slot of a bank that is not before a slot.
func firstOf(bank int, slot uint64) uint64 { return slot + (uint64(bank)-slot)%banks }

func (s *slots) sortEnded() {
	slices.SortFunc(s.ended, func(a, b endedSlot) int { return cmp.Compare(a.slot, b.slot) })
}

// Stop closes all tables: packets from now on count as missed.
func (f *Flowset) Stop() {
	s := &f.slots
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	current := f.memory.control[0].Slot
	for bank := range s.banks {
		b := &s.banks[bank]
		if !s.started || b.full {
			continue
		}
		slot, claimed := f.memory.closeBank(bank)
		if !claimed {
			slot = b.next
		}
		if claimed || slot <= current {
			s.ended = append(s.ended, endedSlot{slot, !claimed})
		}
		b.full = true
	}
	s.sortEnded()
}

// slotAt returns the number of the slot that contains a time: multiples of the slot's
// length since 1970, so that machines with the same clock number them the same.
func (f *Flowset) slotAt(t model.Time) uint64 { return uint64(t) / uint64(f.cfg.Slot) }

// NextSlot returns when the slot after the one that contains a time begins.
func (f *Flowset) NextSlot(t model.Time) model.Time {
	return model.Time((f.slotAt(t) + 1) * uint64(f.cfg.Slot))
}

// takeEnded returns the slots that have ended.
func (s *slots) takeEnded() []endedSlot {
	s.mu.Lock()
	defer s.mu.Unlock()
	ended := s.ended
	s.ended = nil
	return ended
}

// release frees the bank of a slot that was exported, for slots that have not begun: in one that
// has, packets may have been missed.
func (f *Flowset) release(slot uint64) error {
	mono, _, err := f.clock()
	if err != nil {
		return err
	}
	s := &f.slots
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil
	}
	bank := int(slot % banks)
	b := &s.banks[bank]
	b.next = firstOf(bank, f.slotAt(model.Time(mono+s.offset))+1)
	b.full = false
	f.memory.free(bank, b.next)
	return nil
}
