package simhost

import (
	"fmt"
	"maps"
	"time"

	"github.com/weft-telemetry/weft/inswitch/reporter"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Sink receives datagrams at the collector: the time of the collector's clock,
// the switch and its datagram. It must not keep the datagram.
type Sink func(at model.Time, from model.NodeID, datagram []byte)

// Carrier transports datagrams from switches to a sink: Management or InBand.
type Carrier interface {
	// limit is the longest datagram.
	limit() int
	// carry transports a datagram of some reports. It copies what it keeps, and
	// settles the reports with arrived or loseInFlight when their fate is
	// known.
	carry(from *Switch, datagram []byte, reports int)
}

// MaxReportData returns the longest data of an Append report that a carrier
// takes without a key. With one it is dta.SignedOverhead less.
func MaxReportData(c Carrier) int {
	report := dta.Report{Primitive: dta.Append}
	return c.limit() - dta.HeaderSize - report.Size()
}

// LossReason is why a report did not reach the sink. For a drop in the fabric
// it is "fabric: " and the simulator's reason.
type LossReason string

// Reasons for a loss.
const (
	Unconnected    LossReason = "no carrier"
	Malformed      LossReason = "malformed" // by the program
	TooLarge       LossReason = "larger than a datagram"
	ManagementLoss LossReason = "management network"
	Unroutable     LossReason = "no route to the collector"
	Misrouted      LossReason = "misrouted to another host"
)

// Stats are the counters of one switch's reports and actions. Invariant:
// Reports = Delivered + Pending + InFlight + the sum of Lost.
type Stats struct {
	Reports   uint64 // made by programs
	Delivered uint64 // passed to the sink
	Pending   uint64 // in a datagram that is not full
	InFlight  uint64 // in the carrier
	Lost      map[LossReason]uint64

	Datagrams uint64      // given to the carrier
	Bytes     model.Bytes // of their payload

	Refused map[Refusal]uint64 // actions not executed
}

// outbox passes a switch's reports to its carrier.
type outbox struct {
	owner   *Switch
	carrier Carrier
	packer  *reporter.Reporter // nil without a carrier
	linger  time.Duration
	stats   Stats

	inBand map[dta.Seq]int // reports of datagrams in flight, by their first number
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
	// Carriers take a datagram at once, and no answers are carried back.
	packing := reporter.Config{
		Reporter: s.sw.ID, DatagramBytes: size, MaxDatagrams: 2,
		Linger: cfg.Linger,
		Start:  1, // a run begins at 0 and has no restarts
	}
	if cfg.Key != nil {
		packing.Key = cfg.Key(s.sw.ID)
	}
	r.packer, err = reporter.New(packing)
	if err != nil {
		return fmt.Errorf("simhost: %w", err)
	}
	r.inBand = map[dta.Seq]int{}
	return nil
}

// addReport packs one report of a program.
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

// sendReady passes complete datagrams to the carrier.
func (r *outbox) sendReady() {
	for r.packer.ReadyDatagrams() > 0 {
		datagram := r.packer.Datagram(0)
		var h dta.Header
		_, _ = h.Parse(datagram) // our own, so it parses
		count := int(h.Count)
		r.stats.Datagrams++
		r.stats.Bytes += model.Bytes(len(datagram))
		r.stats.InFlight += uint64(count)
		r.carrier.carry(r.owner, datagram, count)
		r.packer.Release(1)
	}
}

// lingerTimer is the timer that sends a datagram after Config.Linger. No
// program's timer is negative.
const lingerTimer = -1

// onLinger sends the current datagram, unless it is a newer one.
func (r *outbox) onLinger(now model.Time) {
	r.packer.Tick(now)
	r.sendReady()
}

// finishActions ends the execution of a program's actions.
func (r *outbox) finishActions() {
	if r.linger == 0 && r.carrier != nil {
		r.Flush()
	}
}

// Flush sends the pending reports.
func (r *outbox) Flush() {
	if r.carrier != nil && r.packer.PendingReports() > 0 {
		r.packer.Flush(r.owner.ctx.Now)
		r.sendReady()
	}
}

// arrived settles reports that were in flight as delivered.
func (r *outbox) arrived(reports int) {
	r.stats.InFlight -= uint64(reports)
	r.stats.Delivered += uint64(reports)
}

// loseInFlight settles reports that were in flight as lost.
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
