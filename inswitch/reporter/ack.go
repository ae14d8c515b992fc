package reporter

import (
	"errors"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// ErrCongested is returned for a report that was dropped because the host has
// not sent the datagrams before it.
var ErrCongested = errors.New("reporter: datagram queue is full")

// HandleAcks handles a datagram that arrived on AckPort. It returns an error if
// it is malformed; answers before the error count.
func (r *Reporter) HandleAcks(now model.Time, datagram []byte) error {
	for len(datagram) > 0 {
		var a dta.Ack
		n, err := a.Parse(datagram)
		if err != nil {
			return err
		}
		datagram = datagram[n:]
		r.handleAck(now, a)
	}
	return nil
}

func (r *Reporter) handleAck(now model.Time, a dta.Ack) {
	// Numbers that were not sent yet are an error of the sender; half of the
	// number space counts as not sent yet.
	sent := r.writer.Seq().Sub(a.First)
	if a.Reporter != r.cfg.Reporter || sent <= 0 {
		r.stats.Foreign++
		return
	}
	count := min(a.Count, uint32(sent))
	switch a.Verdict {
	case dta.Stored:
		r.stats.Stored += uint64(count)
		r.history.settleCopies(a.First, count)
		return
	case dta.RateLimited:
		r.resendAfter = now.Add(r.cfg.Backoff)
	}
	r.stats.Refused[min(int(a.Verdict), Verdicts-1)] += uint64(count)
	if a.Verdict != dta.Gap && a.Verdict != dta.RateLimited {
		// The translator would refuse it again.
		r.history.settleCopies(a.First, count)
		return
	}
	known, spent := r.history.requestResend(a.First, count, r.cfg.MaxResends)
	r.stats.NoCopy += uint64(count - known)
	r.stats.Abandoned += uint64(spent)
}

// resend packs the copies that were requested into separate datagrams. Their
// numbers are the old ones, so a datagram holds one contiguous run.
func (r *Reporter) resend(now model.Time) {
	if r.history.requested == 0 {
		return
	}
	if !r.Flush(now) {
		return // the refused reports wait, not the new ones
	}
	for r.history.requested > 0 && r.ready < r.cfg.MaxDatagrams {
		at := (r.oldest + r.ready) % len(r.ring)
		buf := r.ring[at][:dta.HeaderSize]
		var h dta.Header
		h.Reporter = r.cfg.Reporter
		h.Seq, h.Count, buf = r.history.appendRequested(buf)
		h.AppendTo(buf[:0])
		r.ring[at] = buf
		r.stats.Resent += uint64(h.Count)
		r.completed(now, at)
	}
}
