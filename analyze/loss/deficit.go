package loss

// deficit is the packets that later hops lack: those in flight, and lost ones.
type deficit struct {
	reported uint64 // of them, those already reported as lost
	// Slots since clean, the last slot at whose end no packet was missing but reported
	// losses: a ring in the array at ends.
	clean       int64
	sent        uint64 // of the hop's packets, those up to the end of clean
	ends        uint32
	head, count uint8
	class       uint8
	// firstLoss and lastLoss bound the reported losses.
	firstLoss, lastLoss int64
}

// slotEnd is what a hop had counted at the end of a slot, and how many of those
// packets later hops lacked.
type slotEnd struct{ packets, missing uint64 }

// maxDated bounds the slots over which a loss is dated; a longer span of
// continuous traffic is dated by its last ones. It is the size of an array of some class.
const (
	maxDated  = 64
	leastEnds = 4
)

// reported returns how many losses were already reported between a hop and the next ones.
func (t *Tracker) reported(h *hop) uint64 {
	if h.deficit == 0 {
		return 0
	}
	return t.deficits[h.deficit-1].reported
}

// takeBack takes back reported losses after a hop that arrived late. What the next hops had
// counted a slot ago the hop has counted by now, and more than it counted cannot have
// arrived or been lost, but for packets of before a restart. At the end of a flowlet nothing
// is newer.
func (t *Tracker) takeBack(list []hop, i int) {
	h := &list[i]
	reported := t.reported(h)
	if reported == 0 {
		return
	}
	arrived := t.after[i]
	for j := range list {
		if next := &list[j]; next.state&hasUp != 0 && int(next.upHop) == i {
			arrived -= next.last
		}
	}
	sent := h.packets + uint64(h.carried)
	if late := min(arrived+reported-min(arrived+reported, sent), reported); late > 0 {
		t.deficits[h.deficit-1].reported -= late
		t.stats.Late += late
	}
}

// noteMissing records the packets missing after a hop at the end of a slot.
func (t *Tracker) noteMissing(h *hop, slot int64, after uint64) {
	if h.packets <= after+t.reported(h) {
		t.endDeficit(h, slot)
		return
	}
	if h.deficit == 0 {
		t.beginDeficit(h, slot)
	}
	d := &t.deficits[h.deficit-1]
	if d.count == maxDated {
		t.forgetSlots(d, 1)
	}
	if int(d.count) == t.ends.capacity(d.class) {
		t.growDeficit(d)
	}
	d.count++
	*t.slotEnd(d, int(d.count)-1) = slotEnd{h.packets, h.packets - after}
}

// slotEnd returns the end of the i-th slot since clean.
func (t *Tracker) slotEnd(d *deficit, i int) *slotEnd {
	return &t.ends.items[int(d.ends)+(int(d.head)+i)&(t.ends.capacity(d.class)-1)]
}

// growDeficit moves a full ring to a larger array, with its oldest slot first.
func (t *Tracker) growDeficit(d *deficit) {
	larger := *d
	larger.ends, larger.head, larger.class = t.ends.alloc(d.class+1), 0, d.class+1
	for i := range int(d.count) {
		*t.slotEnd(&larger, i) = *t.slotEnd(d, i)
	}
	t.ends.release(d.ends, d.class)
	*d = larger
}

// beginDeficit makes a deficit for a hop: no packet was missing at the end of the slot
// before.
func (t *Tracker) beginDeficit(h *hop, slot int64) {
	d := deficit{clean: t.before, sent: h.packets - h.last, ends: t.ends.alloc(0)}
	if h.state&firstNow != 0 {
		d.clean = slot - 1
	}
	if last := len(t.freeDeficits) - 1; last >= 0 {
		h.deficit = t.freeDeficits[last]
		t.freeDeficits = t.freeDeficits[:last]
		t.deficits[h.deficit-1] = d
		return
	}
	t.deficits = append(t.deficits, d)
	h.deficit = uint32(len(t.deficits))
}

// endDeficit notes that no packet is missing at the end of a slot, but reported losses.
func (t *Tracker) endDeficit(h *hop, slot int64) {
	if h.deficit == 0 {
		return
	}
	d := &t.deficits[h.deficit-1]
	if d.reported == 0 {
		t.freeDeficit(h)
		return
	}
	d.clean, d.sent, d.head, d.count = slot, h.packets, 0, 0
}

func (t *Tracker) freeDeficit(h *hop) {
	if h.deficit == 0 {
		return
	}
	d := &t.deficits[h.deficit-1]
	t.ends.release(d.ends, d.class)
	t.freeDeficits = append(t.freeDeficits, h.deficit)
	h.deficit = 0
}

// forgetSlots makes the n-th slot since clean the clean one.
func (t *Tracker) forgetSlots(d *deficit, n int) {
	if n > 0 {
		d.clean, d.sent = d.clean+int64(n), t.slotEnd(d, n-1).packets
		d.head = uint8((int(d.head) + n) & (t.ends.capacity(d.class) - 1))
		d.count -= uint8(n)
	}
}

// reportLoss adds lost packets to the reported ones. It returns the slots in which
// they passed the hop, and how many packets did so from the first of these slots on.
// The earliest losses are reported first: these are from after the last slot at whose
// end no more were missing than had been reported, and until as many were missing
// as are reported now. Where a surplus may hide losses, as many missing packets are
// not counted, but remembered: if it turns out to be smaller, they were lost before.
func (t *Tracker) reportLoss(h *hop, lost uint64) (first, last int64, sent uint64) {
	d := &t.deficits[h.deficit-1] // packets are missing, so there is one
	hidden := uint64(h.surplus)
	resolved, certain := 0, 0
	for i := range int(d.count) {
		switch missing := t.slotEnd(d, i).missing; {
		case missing <= d.reported:
			resolved, certain = i+1, i+1
		case missing <= d.reported+hidden:
			certain = i + 1
		}
	}
	none := d.reported == 0
	d.reported += lost
	first, sent = d.clean+1+int64(certain), h.packets-d.sent
	if certain > 0 {
		sent = h.packets - t.slotEnd(d, certain-1).packets
	}
	last = first
	for i := certain; i < int(d.count); i++ {
		if t.slotEnd(d, i).missing < d.reported+hidden {
			last = d.clean + 2 + int64(i)
		}
	}
	t.forgetSlots(d, resolved)
	if none {
		d.firstLoss, d.lastLoss = first, last
	}
	d.firstLoss, d.lastLoss = min(d.firstLoss, first), max(d.lastLoss, last)
	return first, last, sent
}
