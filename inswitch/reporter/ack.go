package reporter

import (
	"errors"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// ErrCongested is returned for a report that was dropped because the host has
// not sent the datagrams before it.
var ErrCongested = errors.New("reporter: datagram queue is full")

// ErrReplayed is returned for authentic answers to a datagram that this reporter
// did not send, or that were handled before.
var ErrReplayed = errors.New("reporter: answer to no datagram that waits for one")

// HandleAcks handles a datagram that arrived on AckPort. It returns an error if
// it is malformed; answers before the error count. With a key it returns an error
// for answers that are not authenticated with it, and for copies of earlier ones.
func (r *Reporter) HandleAcks(now model.Time, datagram []byte) error {
	if r.cfg.Key != nil {
		acks, err := r.verifyAnswer(datagram)
		if err != nil {
			r.stats.Unverified++
			return err
		}
		datagram = acks
	}
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

// verifyAnswer returns the acknowledgements of an authenticated answer. Each must
// answer a later datagram than the one before: answers that overtake each other
// are lost, as others are in the network.
func (r *Reporter) verifyAnswer(datagram []byte) ([]byte, error) {
	var a dta.Answer
	n, err := a.Parse(datagram)
	if err != nil {
		return nil, err
	}
	if a.KeyID != r.cfg.Key.ID() || len(datagram) < n+dta.MACSize || !r.cfg.Key.Verify(datagram) {
		return nil, dta.ErrMAC
	}
	if a.Reporter != r.cfg.Reporter || a.Start != r.cfg.Start || a.Sent <= r.answered || a.Sent > r.sent {
		return nil, ErrReplayed
	}
	r.answered = a.Sent
	return datagram[n : len(datagram)-dta.MACSize], nil
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
		buf := r.ring[at]
		h := dta.Header{Reporter: r.cfg.Reporter}
		if r.cfg.Key != nil {
			h.Signed, h.KeyID, h.Start, h.Sent = true, r.cfg.Key.ID(), r.cfg.Start, r.stamp(now)
		}
		out := buf[: h.Size() : cap(buf)-r.cfg.trailerSize()]
		h.Seq, h.Count, out = r.history.appendRequested(out)
		h.AppendTo(out[:0])
		if r.cfg.Key != nil {
			out = r.cfg.Key.AppendMAC(buf[:len(out)], out)
		}
		r.ring[at] = out
		r.stats.Resent += uint64(h.Count)
		r.completed(now, at)
	}
}
