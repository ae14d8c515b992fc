package ebpf

import (
	"sync"

	"github.com/weft-telemetry/weft/model"
)

// slots says which bank is filled, which are full, and which are free.
type slots struct {
	mu      sync.Mutex
	begun   bool
	current slot
	free    []int
	full    []slot // in the order of time
}

// slot is an interval of the clock and its bank.
type slot struct {
	bank   int // noBank: its packets were missed
	number uint32
	start  model.Time
}

func (s *slots) init() {
	s.current.bank = noBank
	for b := range banks {
		s.free = append(s.free, b)
	}
}

// BeginSlot ends the current slot and begins the one that contains now: CPUs fill
// the next table from their next packet on. If no table is free, because Export is
// late, packets count as missed until one is. If the clock was set back, the slot
// continues until its end is reached again.
func (f *Flowset) BeginSlot(now model.Time) {
	s := &f.slots
	s.mu.Lock()
	defer s.mu.Unlock()
	next := slot{bank: noBank, number: f.slotAt(now), start: f.startOf(now)}
	if s.begun && next.start <= s.current.start {
		return
	}
	s.begun = true
	if len(s.free) > 0 {
		next.bank = s.free[0]
		s.free = s.free[1:]
	}
	f.memory.setBank(next.bank)
	if s.current.bank != noBank {
		s.full = append(s.full, s.current)
	}
	s.current = next
}

// startOf returns when the slot that contains a time began.
func (f *Flowset) startOf(t model.Time) model.Time {
	length := model.Time(f.cfg.Slot)
	return t - ((t%length)+length)%length
}

// slotAt returns the number of the slot that contains a time: multiples of the slot's
// length since 1970, so that hosts with the same clock number them the same.
func (f *Flowset) slotAt(t model.Time) uint32 {
	return uint32(int64(f.startOf(t)) / int64(f.cfg.Slot))
}

// NextSlot returns when the slot after the one that contains a time begins.
func (f *Flowset) NextSlot(t model.Time) model.Time {
	return f.startOf(t) + model.Time(f.cfg.Slot)
}

// takeFull returns the slots that have ended.
func (s *slots) takeFull() []slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	full := s.full
	s.full = nil
	return full
}

func (s *slots) release(bank int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, bank)
}
