package ebpf

import (
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/weft-telemetry/weft/model"
)

// slots says which banks are open, and which wait for their export. The bank of a slot is
// its number modulo banks.
type slots struct {
	mu     sync.Mutex
	offset int64 // of the wall clock from the monotonic clock; 0: not known yet
	banks  [banks]bankState
	full   []uint64 // slots that have ended, in the order of time
}

// bankState is what a bank is used for.
type bankState struct {
	slot uint64
	open bool // for packets of the slot
	full bool // until it is exported
}

const (
	// SlotsAhead is how many slots after the current one are open: Advance may be late by
	// as many.
	SlotsAhead = banks / 2
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

// Advance closes the tables of slots that have ended, and opens those of the current slot
// and of some that follow. It returns the time by which packets are assigned to slots:
// that of the last tick. Packets of a slot without a table, because Export is late, count
// as missed.
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
	for i := range s.banks {
		if b := &s.banks[i]; b.open && b.slot < current {
			f.memory.closeBank(i)
			b.open, b.full = false, true
			s.full = append(s.full, b.slot)
		}
	}
	slices.Sort(s.full)
	for slot := current; slot <= current+SlotsAhead; slot++ {
		if b := &s.banks[slot%banks]; !b.open && !b.full {
			*b = bankState{slot: slot, open: true}
			f.memory.open(slot)
		}
	}
	return now, nil
}

// Stop closes all tables: packets from now on count as missed.
func (f *Flowset) Stop() {
	s := &f.slots
	s.mu.Lock()
	defer s.mu.Unlock()
	now := f.memory.control[0].Slot
	for i := range s.banks {
		b := &s.banks[i]
		if b.open {
			f.memory.closeBank(i)
		}
		if b.open && b.slot <= now {
			b.full = true
			s.full = append(s.full, b.slot)
		}
		b.open = false
	}
	slices.Sort(s.full)
}

// slotAt returns the number of the slot that contains a time: multiples of the slot's
// length since 1970, so that machines with the same clock number them the same.
func (f *Flowset) slotAt(t model.Time) uint64 { return uint64(t) / uint64(f.cfg.Slot) }

// NextSlot returns when the slot after the one that contains a time begins.
func (f *Flowset) NextSlot(t model.Time) model.Time {
	return model.Time((f.slotAt(t) + 1) * uint64(f.cfg.Slot))
}

// takeFull returns the slots that have ended.
func (s *slots) takeFull() []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	full := s.full
	s.full = nil
	return full
}

func (s *slots) release(slot uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.banks[slot%banks].full = false
}
