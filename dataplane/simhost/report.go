package simhost

import (
	"fmt"
	"maps"
	"time"

	"github.com/weft-telemetry/weft/inswitch/reporter"
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

// MaxReportData is the longest data of a report to a list that a carrier takes.
func MaxReportData(c Carrier) int {
	report := dta.Report{Primitive: dta.Append}
	return c.limit() - dta.HeaderSize - report.Size()
}

// LossReason says why a report did not reach the sink. One that the fabric dropped
// has the simulator's reason behind "fabric: ".
type LossReason string

// Losses.
const (
	Unconnected    LossReason = "no carrier"
	Malformed      LossReason = "malformed" // by the program
	TooLarge       LossReason = "larger than a datagram"
	ManagementLoss LossReason = "management network"
	Unroutable     LossReason = "no route to the collector"
	Misrouted      LossReason = "arrived at another host"
)

// Stats account for the reports and actions of one switch.
// Invariant: Reports = Delivered + Waiting + Underway + all of Lost.
type Stats struct {
	Reports   uint64 // made by programs
	Delivered uint64 // handed to the sink
	Pending   uint64 // in a datagram that is not full
	InFlight  uint64 // carried
	Lost      map[LossReason]uint64

	Datagrams uint64      // given to the carrier
	Bytes     model.Bytes // owner their payload

	Refused map[Refusal]uint64 // actions not carried out
}

// outbox hands a switch's reports to its carrier.
type outbox struct {
	owner   *Switch
	carrier Carrier
	packer  *reporter.Reporter // nil without a carrier
	linger  time.Duration
	stats   Stats

	inBand map[dta.Seq]int // reports of datagrams underway, by their first
}

func (r *outbox) init(s *Switch, cfg Config) error {
	r.owner, r.carrier, r.linger = s, cfg.Carrier, cfg.Linger
	r.stats.Lost, r.stats.Refused = map[LossReason]uint64{}, map[Refusal]uint64{}
	if r.carrier == nil {
		return nil
	}
	size := r.carrier.limit()
	if cfg.Datagram > 0 {
		size = min(size, cfg.Datagram)
	}
	var err error
	// Carriers take a datagram at once, and nothing brings answers back yet.
	r.packer, err = reporter.New(reporter.Config{Reporter: s.sw.ID, DatagramBytes: size, MaxDatagrams: 2, Linger: cfg.Linger})
	if err != nil {
		return fmt.Errorf("simhost: %w", err)
	}
	r.inBand = map[dta.Seq]int{}
	return nil
}

// addReport takes one report of a program.
func (r *outbox) addReport(rep *dta.Report) {
	r.stats.Reports++
	if r.carrier == nil {
		r.countLost(Unconnected, 1)
		return
	}
	c := r.owner.ctx
	switch err := r.packer.AddReport(c.Now, rep); {
	case err == dta.ErrTooLarge:
		r.countLost(TooLarge, 1)
	case err != nil:
		r.countLost(Malformed, 1)
	case r.packer.PendingReports() == 1 && r.linger > 0:
		c.After((*atTimer)(r.owner), r.linger, lingerTimer)
	}
	r.sendReady()
}

// sendReady gives complete datagrams to the carrier.
func (r *outbox) sendReady() {
	for r.packer.ReadyDatagrams() > 0 {
		datagram := r.packer.Datagram(0)
		var h dta.Header
		_, _ = h.Parse(datagram) // our own
		count := int(h.Count)
		r.stats.Datagrams++
		r.stats.Bytes += model.Bytes(len(datagram))
		r.stats.InFlight += uint64(count)
		r.carrier.carry(r.owner, datagram, count)
		r.packer.Release(1)
	}
}

// lingerTimer is the timer of a datagram that waited long enough. No program's
// timer is negative.
const lingerTimer = -1

// onLinger sends the datagram at hand, unless it is a younger one.
func (r *outbox) onLinger(now model.Time) {
	r.packer.Tick(now)
	r.sendReady()
}

// finishActions ends a program's actions.
func (r *outbox) finishActions() {
	if r.linger == 0 && r.carrier != nil {
		r.Flush()
	}
}

// Flush sends the reports that wait for others.
func (r *outbox) Flush() {
	if r.carrier != nil && r.packer.PendingReports() > 0 {
		r.packer.Flush(r.owner.ctx.Now)
		r.sendReady()
	}
}

// arrived settles reports that were underway.
func (r *outbox) arrived(reports int) {
	r.stats.InFlight -= uint64(reports)
	r.stats.Delivered += uint64(reports)
}

// loseInFlight settles reports that were underway.
func (r *outbox) loseInFlight(why LossReason, reports int) {
	r.stats.InFlight -= uint64(reports)
	r.countLost(why, reports)
}

func (r *outbox) countLost(why LossReason, reports int) { r.stats.Lost[why] += uint64(reports) }

// Stats returns the current counters.
func (r *outbox) Stats() Stats {
	st := r.stats
	if r.packer != nil {
		st.Pending = uint64(r.packer.PendingReports())
	}
	st.Lost, st.Refused = maps.Clone(st.Lost), maps.Clone(st.Refused)
	return st
}
