package translate

import (
	"net/netip"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// handlePrototype parses a datagram of one report. Its 8-bit sequence numbers are
// used only in the long layout, and there only for retransmittable reports, as in
// the prototype.
func (in *Intake) handlePrototype(now model.Time, from netip.AddrPort, datagram []byte, sink Sink,
	answer []byte,
) []byte {
	layout, err := dta.DetectLayout(datagram)
	if err == nil {
		_, err = in.proto.Parse(datagram, layout)
	}
	if err != nil {
		in.stats.UnknownFormat++
		return answer
	}
	if in.gate != nil {
		if why := in.gate.Prototype(now, from, len(datagram)); why != Admitted {
			in.deny(from, why, 1)
			return answer
		}
	}
	in.stats.Reports++
	r := &in.proto.Report
	if layout == dta.Base2 || !r.Retransmit {
		in.countVerdict(r, sink.Put(now, r))
		return answer
	}
	s := in.table.lockPrototype(now, from.Addr())
	if s == nil {
		in.stats.Untracked++
		s = in.untrackedSequence()
	}
	defer s.mu.Unlock()
	if s.started && s.from != from {
		s.started = false // 8 bits cannot show that a reporter restarted
		in.stats.Restarts++
	}
	seq := dta.Seq(in.proto.Seq)
	if s.started {
		seq = s.next + dta.Seq(int32(int8(in.proto.Seq-uint8(s.next))))
	} else {
		seq += 1 << 16 // away from the wraparound, which has no restart
		s.begin(now, from, seq)
	}
	s.received = now
	where, missing := s.locate(seq, protoWindow)
	if where == afterGap {
		in.stats.Missing += uint64(missing)
		in.stats.Acks++
		answer = dta.PrototypeAck{Seq: uint8(s.next - 1), Nack: true}.AppendTo(answer)
	}
	if where == withinWindow && s.stored(seq) {
		in.stats.Duplicate++
		return answer
	}
	if end := seq + 1; end.Sub(s.next) > 0 {
		s.advance(end)
	}
	switch v := sink.Put(now, r); {
	case v == dta.Stored:
		if where == withinWindow {
			in.stats.Late++
		}
		s.store(seq)
		in.countVerdict(r, v)
	case where == afterGap:
		in.countVerdict(r, v) // one answer is enough: it requests this one as well
	default:
		in.countVerdict(r, v)
		in.stats.Acks++
		answer = dta.PrototypeAck{Seq: uint8(seq - 1), Nack: true}.AppendTo(answer)
	}
	return answer
}

func (in *Intake) countVerdict(r *dta.Report, v dta.Verdict) {
	if v == dta.Stored {
		in.countStored(r, 1)
	} else {
		in.stats.Refused[v]++
	}
}
