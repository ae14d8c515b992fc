package simhost

import (
	"fmt"
	"maps"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Sink takes what arrives at the collector: at a time of the collector's
// clock, a datagram of one switch. It must not keep the datagram.
type Sink func(at model.Time, from model.NodeID, datagram []byte)

// Carrier brings datagrams from switches to a sink: Management or InBand.
type Carrier interface {
	// limit is the longest datagram.
	limit() int
	// carry takes a datagram of some reports. It copies what it keeps, and
	// settles the reports with arrived or lose when their fate is known.
	carry(from *Switch, datagram []byte, reports int)
}

// Loss says why a report did not reach the sink. One that the fabric dropped
// has the simulator's reason behind "fabric: ".
type Loss string

// Losses.
const (
	Unconnected Loss = "no carrier"
	Malformed   Loss = "malformed" // by the program
	TooLarge    Loss = "larger than a datagram"
	Managed     Loss = "management network"
	Unroutable  Loss = "no route to the collector"
	Misrouted   Loss = "arrived at another host"
)

// Stats account for the reports and actions of one switch.
// Invariant: Reports = Delivered + Waiting + Underway + all of Lost.
type Stats struct {
	Reports   uint64 // made by programs
	Delivered uint64 // handed to the sink
	Waiting   uint64 // in a datagram that is not full
	Underway  uint64 // carried
	Lost      map[Loss]uint64

	Datagrams uint64      // given to the carrier
	Bytes     model.Bytes // of their payload

	Refused map[Refusal]uint64 // actions not carried out
}

// reporter packs a switch's reports into datagrams.
type reporter struct {
	of      *Switch
	carrier Carrier
	writer  dta.Writer
	buf     []byte
	linger  time.Duration
	due     model.Time // when the datagram at hand must leave, on the switch's clock
	stats   Stats

	inBand map[dta.Seq]int // reports of datagrams underway, by their first
}

func (r *reporter) init(s *Switch, cfg Config) error {
	r.of, r.carrier, r.linger = s, cfg.Carrier, cfg.Linger
	r.stats.Lost, r.stats.Refused = map[Loss]uint64{}, map[Refusal]uint64{}
	if r.carrier == nil {
		return nil
	}
	size := r.carrier.limit()
	if cfg.Datagram > 0 {
		size = min(size, cfg.Datagram)
	}
	if size < dta.HeaderSize {
		return fmt.Errorf("simhost: datagrams of %d bytes, want at least %d", size, dta.HeaderSize)
	}
	r.buf, r.inBand = make([]byte, size), map[dta.Seq]int{}
	r.writer = dta.NewWriter(s.sw.ID, 0)
	r.writer.Begin(r.buf)
	return nil
}

// report takes one report of a program.
func (r *reporter) report(rep *dta.Report) {
	r.stats.Reports++
	if r.carrier == nil {
		r.lose(Unconnected, 1)
		return
	}
	err := r.writer.Add(rep)
	if err == dta.ErrFull {
		r.Flush()
		err = r.writer.Add(rep)
	}
	switch {
	case err == dta.ErrTooLarge:
		r.lose(TooLarge, 1)
	case err != nil:
		r.lose(Malformed, 1)
	case rep.Immediate:
		r.Flush()
	case r.writer.Count() == 1 && r.linger > 0:
		c := r.of.ctx
		r.due = c.Now.Add(r.linger)
		c.After(r.of, r.linger, lingered)
	}
}

// lingered is the timer of a datagram that waited long enough. No program's
// timer is negative.
const lingered = -1

// expire sends the datagram at hand, unless it is a younger one.
func (r *reporter) expire(now model.Time) {
	if now >= r.due {
		r.Flush()
	}
}

// settleReports ends a program's actions.
func (r *reporter) settleReports() {
	if r.linger == 0 && r.carrier != nil {
		r.Flush()
	}
}

// Flush sends the reports that wait for others.
func (r *reporter) Flush() {
	count := r.writer.Count()
	if r.carrier == nil || count == 0 {
		return
	}
	datagram := r.writer.Finish()
	r.stats.Datagrams++
	r.stats.Bytes += model.Bytes(len(datagram))
	r.stats.Underway += uint64(count)
	r.carrier.carry(r.of, datagram, count)
	r.writer.Begin(r.buf)
}

// arrived settles reports that were underway.
func (r *reporter) arrived(reports int) {
	r.stats.Underway -= uint64(reports)
	r.stats.Delivered += uint64(reports)
}

// lostUnderway settles reports that were underway.
func (r *reporter) lostUnderway(why Loss, reports int) {
	r.stats.Underway -= uint64(reports)
	r.lose(why, reports)
}

func (r *reporter) lose(why Loss, reports int) { r.stats.Lost[why] += uint64(reports) }

// Stats returns the present counts.
func (r *reporter) Stats() Stats {
	st := r.stats
	st.Waiting = uint64(r.writer.Count())
	st.Lost, st.Refused = maps.Clone(st.Lost), maps.Clone(st.Refused)
	return st
}
