package core

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

// isolation writes one batch. A batch that fails is divided until single records
// are left, so that a bad record costs itself. A store that fails whatever it is
// given is at fault, and not the records: then nothing is divided.
type isolation struct {
	ctx      context.Context
	store    Appender
	attempts *atomic.Uint64 // appends that have returned, for any goroutine

	written uint64
	refused []SetAside
	err     error        // of the store itself
	failed  record.Batch // what it has not written

	appends  int
	failures int // appends since the last one that succeeded
	// suspects are the records that failed alone since then, with their errors: they
	// are bad if the store keeps others afterwards.
	suspects record.Batch
	why      []SetAside
}

// Bounds of the search for bad records. Checks find nearly all of them without the
// store, so those that are left are few.
const (
	// maxFailures is how many appends may fail in a row before the store is at fault:
	// dividing 2^18 records leads to a single one after 18, and then to neighbours
	// that the store would have kept if it worked.
	maxFailures = 64
	maxAppends  = 1024 // for one batch: a write must end
)

// write stores what can be stored.
func (p *isolation) write(b *record.Batch) {
	err := p.append(b)
	if err == nil {
		return
	}
	if isStoreFault(err) {
		p.fail(b, err)
		return
	}
	now := time.Now()
	valid := cloneBatch(b) // readers look into the batch that is in flight
	store.RemoveInvalid(&valid, func(e *store.RecordError) {
		p.refused = append(p.refused, SetAside{e.Kind, e.Reason, e.Detail, now})
	})
	if valid.Len() == 0 {
		return
	}
	if len(p.refused) > 0 {
		if err = p.append(&valid); err == nil {
			return
		}
	}
	if isStoreFault(err) || !p.probe(&valid) {
		p.fail(&valid, err)
		return
	}
	p.divide(&valid, err)
	p.settle()
}

// probe writes one record of each kind until the store keeps one, which it removes
// from the batch. A store that keeps none of them is at fault.
func (p *isolation) probe(b *record.Batch) bool {
	for kind := range 7 {
		rest, one := *b, record.Batch{}
		switch kind {
		case 0:
			takeLast(&rest.Ports, &one.Ports)
		case 1:
			takeLast(&rest.Flows, &one.Flows)
		case 2:
			takeLast(&rest.Traces, &one.Traces)
		case 3:
			takeLast(&rest.Counters, &one.Counters)
		case 4:
			takeLast(&rest.Losses, &one.Losses)
		case 5:
			takeLast(&rest.Diagnoses, &one.Diagnoses)
		case 6:
			takeLast(&rest.Incidents, &one.Incidents)
		}
		if one.Len() > 0 && p.append(&one) == nil {
			*b = rest
			return true
		}
	}
	return false
}

func takeLast[T any](from, to *[]T) {
	if n := len(*from); n > 0 {
		*from, *to = (*from)[:n-1], (*from)[n-1:]
	}
}

// divide writes a batch, or its halves. why is the last error.
func (p *isolation) divide(b *record.Batch, why error) {
	n := b.Len()
	if n == 0 {
		return
	}
	if p.err == nil && p.appends >= maxAppends {
		p.err = fmt.Errorf("more than %d appends to find the records that the store refuses: %w", maxAppends, why)
	}
	if p.err != nil {
		p.fail(b, p.err)
		return
	}
	err := p.append(b)
	switch {
	case err == nil:
	case isStoreFault(err) || p.failures > maxFailures:
		p.fail(&p.suspects, err)
		p.fail(b, err)
		p.suspects, p.why = record.Batch{}, nil
	case n == 1:
		p.suspects = joinBatches(p.suspects, b)
		p.why = append(p.why, SetAside{kindOf(b), refusedByStore, err.Error(), time.Now()})
	default:
		left, right := cut(b, n/2)
		p.divide(&left, err)
		p.divide(&right, err)
	}
}

// append gives a batch to the store. A panic of its driver is an error like others:
// the store rolls back, and its locks are released as it unwinds.
func (p *isolation) append(b *record.Batch) (err error) {
	defer func() {
		p.attempts.Add(1)
		if v := recover(); v != nil {
			err = fmt.Errorf("the store panicked: %v", v)
		}
		if err != nil {
			p.failures++
			return
		}
		p.written += uint64(b.Len())
		p.failures = 0
		p.settle()
	}()
	p.appends++
	return p.store.Append(p.ctx, b)
}

// settle refuses the suspects: the store works.
func (p *isolation) settle() {
	p.refused = append(p.refused, p.why...)
	p.suspects, p.why = record.Batch{}, nil
}

// fail leaves a batch unwritten.
func (p *isolation) fail(b *record.Batch, err error) {
	p.failed, p.err = joinBatches(p.failed, b), err
}

// isStoreFault reports whether an error is the store's, whatever the records are.
func isStoreFault(err error) bool {
	for _, class := range []error{
		store.ErrUnavailable, store.ErrClosed, context.Canceled, context.DeadlineExceeded,
		syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS,
	} {
		if errors.Is(err, class) {
			return true
		}
	}
	return false
}

// cut divides a batch after n records. Verdicts are first: they are few, and matter
// most.
func cut(b *record.Batch, n int) (head, tail record.Batch) {
	head.Diagnoses, tail.Diagnoses = cutList(b.Diagnoses, &n)
	head.Incidents, tail.Incidents = cutList(b.Incidents, &n)
	head.Losses, tail.Losses = cutList(b.Losses, &n)
	head.Counters, tail.Counters = cutList(b.Counters, &n)
	head.Traces, tail.Traces = cutList(b.Traces, &n)
	head.Flows, tail.Flows = cutList(b.Flows, &n)
	head.Ports, tail.Ports = cutList(b.Ports, &n)
	return head, tail
}

func cutList[T any](list []T, n *int) (head, tail []T) {
	k := min(*n, len(list))
	*n -= k
	return list[:k], list[k:]
}

// cloneBatch copies the lists of a batch.
func cloneBatch(b *record.Batch) record.Batch { return joinBatches(record.Batch{}, b) }

// joinBatches appends one batch to another.
func joinBatches(a record.Batch, b *record.Batch) record.Batch {
	a.Flows = append(a.Flows, b.Flows...)
	a.Losses = append(a.Losses, b.Losses...)
	a.Ports = append(a.Ports, b.Ports...)
	a.Traces = append(a.Traces, b.Traces...)
	a.Counters = append(a.Counters, b.Counters...)
	a.Diagnoses = append(a.Diagnoses, b.Diagnoses...)
	a.Incidents = append(a.Incidents, b.Incidents...)
	return a
}

// kindOf is the kind of a batch's only record.
func kindOf(b *record.Batch) store.Kind {
	switch {
	case len(b.Flows) > 0:
		return store.Flows
	case len(b.Losses) > 0:
		return store.Losses
	case len(b.Ports) > 0:
		return store.Ports
	case len(b.Traces) > 0:
		return store.Traces
	case len(b.Counters) > 0:
		return store.Counters
	case len(b.Diagnoses) > 0:
		return store.Diagnoses
	}
	return store.Incidents
}
