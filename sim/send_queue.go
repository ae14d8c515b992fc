package sim

// sendQueue lets flows of a host send one after the other.
type sendQueue struct {
	sending *flow
	waiting []*flow // ready, in order
}

func (h *Host) sendQueue(number uint32) *sendQueue {
	if h.sendQueues == nil {
		h.sendQueues = make(map[uint32]*sendQueue)
	}
	q := h.sendQueues[number]
	if q == nil {
		q = &sendQueue{}
		h.sendQueues[number] = q
	}
	return q
}

// admit reports whether a flow may start now; if not, it starts when those
// before it have sent everything.
func (q *sendQueue) admit(f *flow) bool {
	if q.sending == nil {
		q.sending = f
	}
	if q.sending == f {
		return true
	}
	q.waiting = append(q.waiting, f)
	return false
}

// release starts the next flow when f has sent everything. Later calls for the
// same flow, such as after a retransmission, do nothing.
func (q *sendQueue) release(f *flow) {
	if q.sending != f {
		return
	}
	q.sending = nil
	if len(q.waiting) == 0 {
		return
	}
	q.sending = q.waiting[0]
	q.waiting[0] = nil
	q.waiting = q.waiting[1:]
	f.src.w.startAt(q.sending, f.src.w.now)
}
