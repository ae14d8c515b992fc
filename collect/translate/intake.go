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
// Invariant: Reports = Stored + Duplicate + Stale + all of Refused + Denied.
type IntakeStats struct {
	Datagrams       uint64                   `json:"datagrams"`
	DeniedDatagrams uint64                   `json:"denied_datagrams"` // not admitted: see Refusal
	UnknownFormat   uint64                   `json:"unknown_format"`   // datagrams that are neither version 1 or 2 nor the prototype's
	Truncated       uint64                   `json:"truncated"`        // datagrams of version 1 or 2 with a length mismatch
	Reports         uint64                   `json:"reports"`          // parsed from datagrams, or claimed by one that was denied
	Stored          uint64                   `json:"stored"`
	Appended        uint64                   `json:"appended"`  // of Stored, those in lists, which are read once; others are kept by key
	Duplicate       uint64                   `json:"duplicate"` // dropped: already stored
	Stale           uint64                   `json:"stale"`     // dropped: too late to distinguish from a duplicate
	Denied          uint64                   `json:"denied"`    // dropped: not admitted, and not answered
	DeniedBy        [Refusals]uint64         `json:"denied_by"` // the same by Refusal
	Refused         [dta.Unserved + 1]uint64 `json:"refused_by_verdict"`

	Missing   uint64 `json:"missing"`   // skipped sequence numbers: reports lost in transit, unless they arrived Late
	Late      uint64 `json:"late"`      // skipped, and stored later
	Restarts  uint64 `json:"restarts"`  // restarts of reporters
	Reporters uint64 `json:"reporters"` // tracked now; of Intakes with one table only the first counts them
	Untracked uint64 `json:"untracked"` // reports of reporters beyond the limit; duplicates among them are not detected
	Acks      uint64 `json:"acks"`
}

// Intake parses datagrams of version 1 and 2 and of both prototype layouts, asks
// its Gate who may report, tracks each reporter's sequence numbers, and answers
// with NACKs for refused and missing reports. It allocates only for a new
// reporter.
type Intake struct {
	table     *Reporters
	counts    bool      // Stats includes the table
	last      *sequence // of lastID: most datagrams follow one of the same reporter
	lastID    model.NodeID
	untracked sequence // shared by reporters beyond the limit
	gate      Gate     // nil: everything is admitted
	keys      keyRings
	reader    dta.Reader
	head      dta.Header
	report    dta.Report
	other     dta.Report // admitRun
	proto     dta.Prototype
	stats     IntakeStats
}

// NewIntake returns an Intake without a Gate that tracks at most that number of
// reporters.
func NewIntake(reporters int) *Intake { return NewSharedIntake(NewReporters(reporters), nil) }

// NewSharedIntake returns an Intake that shares a table of reporters with others
// and asks a Gate, if that is not nil.
func NewSharedIntake(table *Reporters, gate Gate) *Intake {
	table.mu.Lock()
	defer table.mu.Unlock()
	in := &Intake{table: table, counts: !table.counted, gate: gate}
	table.counted = true
	return in
}

// Stats returns the current counters.
func (in *Intake) Stats() IntakeStats {
	st := in.stats
	if in.counts {
		st.Reporters = uint64(in.table.Len())
	}
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
	in.head = in.reader.Header()
	h := &in.head
	mac, why := in.admit(now, from, h, datagram)
	if why != Admitted {
		in.deny(from, why, claimedReports(h, len(datagram)))
		return answer
	}
	s := in.sequenceOf(now, h)
	defer s.mu.Unlock()
	n, where, missing, why := s.place(now, from, h)
	if why != Admitted {
		in.deny(from, why, claimedReports(h, len(datagram)))
		return answer
	}
	if mac == nil {
		return in.storeDatagram(now, from, n, where, missing, sink, answer)
	}
	start := len(answer)
	answer = dta.Answer{KeyID: h.KeyID, Reporter: h.Reporter, Start: h.Start, Sent: h.Sent}.AppendTo(answer)
	answer = in.storeDatagram(now, from, n, where, missing, sink, answer)
	if len(answer) == start+dta.AnswerSize {
		return answer[:start]
	}
	return mac.AppendMAC(answer, answer[start:])
}

// storeDatagram puts the reports of an admitted datagram into the sink. Their
// numbers are those of s.
func (in *Intake) storeDatagram(now model.Time, from netip.AddrPort, s *numbers, where position, missing int,
	sink Sink, answer []byte,
) []byte {
	h := &in.head
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
	if end := h.Seq + dta.Seq(h.Count); where != far && end.Sub(s.next) > 0 {
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
		if where == far {
			in.stats.Stale += uint64(count)
			continue
		}
		size := len(run) / count
		if count > 1 && seq.Sub(fresh) >= 0 && in.admitRun(now, run, size) && sink.PutRun(now, &in.report, run, count) {
			in.countStored(&in.report, count)
			s.storeRun(seq, count)
			continue
		}
		for i := range dta.Seq(count) {
			if i > 0 {
				_, _ = in.report.Parse(run[int(i)*size:]) // NextRun has validated it
			}
			late := seq.Sub(fresh)+int(i) < 0
			if late && s.stored(seq+i) {
				in.stats.Duplicate++
				continue
			}
			if why := in.admitReport(now, &in.report); why != Admitted {
				in.denyReport(from, why)
				continue
			}
			answer, refused = in.storeReport(now, s, seq+i, late, sink, answer, refused)
		}
	}
	answer = in.appendRefusal(answer, refused)
	if in.reader.Err() != nil {
		in.stats.Truncated++
		if where != far {
			lost := uint32((h.Seq + dta.Seq(h.Count)) - in.reader.Seq())
			answer = in.appendRefusal(answer, dta.Ack{Verdict: dta.Malformed, Reporter: h.Reporter, First: in.reader.Seq(), Count: lost})
		}
	}
	return answer
}

func (in *Intake) countStored(r *dta.Report, count int) {
	in.stats.Stored += uint64(count)
	if r.Primitive == dta.Append {
		in.stats.Appended += uint64(count)
	}
}

// storeReport puts one report into the sink. refused is the answer about the
// reports just before it, which grows or is replaced.
func (in *Intake) storeReport(now model.Time, s *numbers, seq dta.Seq, late bool, sink Sink,
	answer []byte, refused dta.Ack,
) ([]byte, dta.Ack) {
	verdict := sink.Put(now, &in.report)
	if verdict == dta.Stored {
		in.countStored(&in.report, 1)
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

// sequenceOf returns the sequence state of the reporter, locked.
func (in *Intake) sequenceOf(now model.Time, h *dta.Header) *sequence {
	if in.last != nil && in.lastID == h.Reporter && in.last.lock() {
		return in.last
	}
	s := in.table.lock(now, h.Reporter, h.Signed)
	if s == nil {
		in.stats.Untracked += uint64(h.Count)
		return in.untrackedSequence()
	}
	in.last, in.lastID = s, h.Reporter
	return s
}

// untrackedSequence returns a sequence without numbers, locked, for a reporter
// that the table has no place for.
func (in *Intake) untrackedSequence() *sequence {
	in.untracked.mu.Lock()
	in.untracked.started = false
	return &in.untracked
}
