package translate

import (
	"net/netip"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Sink stores the reports of an Intake. Put returns dta.Stored, or why the report
// is refused. Key and Data alias the datagram.
type Sink interface {
	Put(now model.Time, r *dta.Report) dta.Verdict
	// PutRun stores packed reports of one format, as in a datagram; the first is
	// also passed parsed. It stores all or, if they must be put one by one, none,
	// and reports which.
	PutRun(now model.Time, first *dta.Report, run []byte, count int) bool
}

// IntakeStats count every datagram and report received.
// Invariant: Reports = Stored + Duplicate + Stale + all of Refused.
type IntakeStats struct {
	Datagrams     uint64                   `json:"datagrams"`
	UnknownFormat uint64                   `json:"unknown_format"` // datagrams that are neither version 1 nor the prototype's
	Truncated     uint64                   `json:"truncated"`      // datagrams of version 1 with a length mismatch
	Reports       uint64                   `json:"reports"`        // parsed from datagrams
	Stored        uint64                   `json:"stored"`
	Duplicate     uint64                   `json:"duplicate"` // dropped: already stored
	Stale         uint64                   `json:"stale"`     // dropped: too late to distinguish from a duplicate
	Refused       [dta.Unserved + 1]uint64 `json:"refused_by_verdict"`

	Missing   uint64 `json:"missing"`   // skipped sequence numbers: reports lost in transit, unless they arrived Late
	Late      uint64 `json:"late"`      // skipped, and stored later
	Restarts  uint64 `json:"restarts"`  // restarts of reporters
	Reporters uint64 `json:"reporters"` // tracked now
	Untracked uint64 `json:"untracked"` // reports of reporters beyond the limit; duplicates among them are not detected
	Acks      uint64 `json:"acks"`
}

// Intake parses datagrams of version 1 and of both prototype layouts, tracks
// each reporter's sequence numbers, and answers with NACKs for refused and missing
// reports. It allocates only for a new reporter.
type Intake struct {
	most      int
	reporters map[model.NodeID]*sequence
	protos    map[netip.Addr]*sequence
	last      *sequence // of lastID: most datagrams follow one of the same reporter
	lastID    model.NodeID
	untracked sequence // shared by reporters beyond the limit
	reader    dta.Reader
	report    dta.Report
	proto     dta.Prototype
	stats     IntakeStats
}

// DefaultReporters is the default limit of tracked reporters: more than a large
// datacenter has switches. Each takes about 1 KiB.
const DefaultReporters = 1 << 16

// NewIntake returns an Intake that tracks at most that number of reporters.
func NewIntake(reporters int) *Intake {
	return &Intake{most: reporters, reporters: map[model.NodeID]*sequence{}, protos: map[netip.Addr]*sequence{}}
}

// Stats returns the current counters.
func (in *Intake) Stats() IntakeStats {
	st := in.stats
	st.Reporters = uint64(len(in.reporters) + len(in.protos))
	return st
}

// Stored returns the number of stored reports, as in Stats, for callers that need
// it after each datagram.
func (in *Intake) Stored() uint64 { return in.stats.Stored }

// HandleDatagram parses one datagram, puts its reports into the sink, and appends
// the answer to the reporter, if there is one. An answer goes to the reporter's
// address, port dta.AckPort.
func (in *Intake) HandleDatagram(now model.Time, from netip.AddrPort, datagram []byte, sink Sink,
	answer []byte,
) []byte {
	in.stats.Datagrams++
	if err := in.reader.Reset(datagram); err == dta.ErrVersion || err == dta.ErrShort {
		return in.handlePrototype(now, from, datagram, sink, answer)
	} else if err != nil {
		in.stats.UnknownFormat++
		return answer
	}
	h := in.reader.Header()
	s := in.sequenceOf(h.Reporter, h.Count)
	where, missing := s.classify(from, h.Seq, int(h.Count), window)
	switch where {
	case afterGap:
		in.stats.Missing += uint64(missing)
		answer = in.appendRefusal(answer, dta.Ack{Verdict: dta.Gap, Reporter: h.Reporter, First: s.next, Count: uint32(missing)})
	case restarted:
		in.stats.Restarts++
	}
	// From here on next is after the datagram's last number, and the numbers in
	// between are not stored.
	fresh := s.next // numbers before it were seen or skipped
	if end := h.Seq + dta.Seq(h.Count); where != stale && end.Sub(s.next) > 0 {
		s.advance(end)
	}
	refused := dta.Ack{Reporter: h.Reporter}
	for {
		seq := in.reader.Seq()
		run, count := in.reader.NextRun(&in.report)
		if count == 0 {
			break
		}
		in.stats.Reports += uint64(count)
		if where == stale {
			in.stats.Stale += uint64(count)
			continue
		}
		if count > 1 && seq.Sub(fresh) >= 0 && sink.PutRun(now, &in.report, run, count) {
			in.stats.Stored += uint64(count)
			s.storeRun(seq, count)
			continue
		}
		size := len(run) / count
		for i := range dta.Seq(count) {
			if i > 0 {
				_, _ = in.report.Parse(run[int(i)*size:]) // NextRun has validated it
			}
			answer, refused = in.storeReport(now, s, seq+i, seq.Sub(fresh)+int(i) < 0, sink, answer, refused)
		}
	}
	answer = in.appendRefusal(answer, refused)
	if in.reader.Err() != nil {
		in.stats.Truncated++
		if where != stale {
			lost := uint32((h.Seq + dta.Seq(h.Count)) - in.reader.Seq())
			answer = in.appendRefusal(answer, dta.Ack{Verdict: dta.Malformed, Reporter: h.Reporter, First: in.reader.Seq(), Count: lost})
		}
	}
	return answer
}

// storeReport puts one report into the sink, unless it was stored before. refused
// is the answer about the reports just before it, which grows or is replaced.
func (in *Intake) storeReport(now model.Time, s *sequence, seq dta.Seq, late bool, sink Sink,
	answer []byte, refused dta.Ack,
) ([]byte, dta.Ack) {
	if late && s.stored(seq) {
		in.stats.Duplicate++
		return answer, refused
	}
	verdict := sink.Put(now, &in.report)
	if verdict == dta.Stored {
		in.stats.Stored++
		if late {
			in.stats.Late++
		}
		s.store(seq)
		return answer, refused
	}
	in.stats.Refused[verdict]++
	if refused.Count > 0 && refused.Verdict == verdict && refused.First+dta.Seq(refused.Count) == seq {
		refused.Count++
		return answer, refused
	}
	answer = in.appendRefusal(answer, refused)
	return answer, dta.Ack{Verdict: verdict, Reporter: refused.Reporter, First: seq, Count: 1}
}

// appendRefusal appends an answer about at least one report.
func (in *Intake) appendRefusal(answer []byte, a dta.Ack) []byte {
	if a.Count == 0 {
		return answer
	}
	in.stats.Acks++
	return a.AppendTo(answer)
}

// sequenceOf returns the sequence state of a reporter.
func (in *Intake) sequenceOf(id model.NodeID, count uint16) *sequence {
	if in.last != nil && in.lastID == id {
		return in.last
	}
	s, ok := in.reporters[id]
	if !ok {
		if len(in.reporters)+len(in.protos) >= in.most {
			in.stats.Untracked += uint64(count)
			in.untracked = sequence{}
			return &in.untracked
		}
		s = new(sequence)
		in.reporters[id] = s
	}
	in.last, in.lastID = s, id
	return s
}

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
	in.stats.Reports++
	r := &in.proto.Report
	if layout == dta.Base2 || !r.Retransmit {
		in.countVerdict(sink.Put(now, r))
		return answer
	}
	s := in.prototypeSequence(from.Addr())
	if s.started && s.from != from {
		*s = sequence{} // 8 bits cannot show that a reporter restarted
		in.stats.Restarts++
	}
	seq := dta.Seq(in.proto.Seq)
	if s.started {
		seq = s.next + dta.Seq(int32(int8(in.proto.Seq-uint8(s.next))))
	} else {
		seq += 1 << 16 // away from the wraparound, which has no restart
	}
	where, missing := s.classify(from, seq, 1, protoWindow)
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
		in.countVerdict(v)
	case where == afterGap:
		in.countVerdict(v) // one answer is enough: it requests this one as well
	default:
		in.countVerdict(v)
		in.stats.Acks++
		answer = dta.PrototypeAck{Seq: uint8(seq - 1), Nack: true}.AppendTo(answer)
	}
	return answer
}

func (in *Intake) prototypeSequence(a netip.Addr) *sequence {
	s, ok := in.protos[a]
	if !ok {
		if len(in.reporters)+len(in.protos) >= in.most {
			in.stats.Untracked++
			in.untracked = sequence{}
			return &in.untracked
		}
		s = new(sequence)
		in.protos[a] = s
	}
	return s
}

func (in *Intake) countVerdict(v dta.Verdict) {
	if v == dta.Stored {
		in.stats.Stored++
	} else {
		in.stats.Refused[v]++
	}
}
