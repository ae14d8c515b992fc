package rdma

import "github.com/weft-telemetry/weft/wire/roce"

// isAtomic reports whether an operation is answered with the previous value of a word.
func isAtomic(op roce.Opcode) bool { return op == roce.FetchAdd || op == roce.CmpSwap }

type atomicResult struct {
	psn   roce.PSN
	valid bool
	was   uint64
}

// MaxAtomics is the number of results that a queue pair keeps: the number of
// outstanding atomic operations of common NICs. A peer that needs the results, as
// Weft does not, may have as many unanswered.
const MaxAtomics = 16

// atomic executes an atomic operation and returns the previous value of its word.
func (r *Responder) atomic(p *roce.Packet) (was uint64, why Refusal, ok bool) {
	if len(p.Payload) != 0 {
		return 0, BadLength, false
	}
	m, off, why, ok := r.locate(p.Atomic.VA, p.Atomic.RKey, 8)
	if !ok {
		return 0, why, false
	}
	if p.Atomic.VA%8 != 0 {
		return 0, Misaligned, false
	}
	var err error
	count := &r.stats.Adds
	if p.BTH.Opcode == roce.FetchAdd {
		was, err = m.FetchAdd(off, p.Atomic.SwapAdd)
	} else {
		count = &r.stats.Swaps
		was, err = m.CompareSwap(off, p.Atomic.Compare, p.Atomic.SwapAdd)
	}
	if err != nil {
		return 0, OutOfBounds, false
	}
	*count++
	return was, 0, true
}

// result returns the result of one of the latest atomic operations, or nil.
func (q *queuePair) result(psn roce.PSN) *uint64 {
	for i := range q.results {
		if x := &q.results[i]; x.valid && x.psn == psn {
			return &x.was
		}
	}
	return nil
}
