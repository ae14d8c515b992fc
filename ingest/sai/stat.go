// Package sai knows the counters of the Switch Abstraction Interface, by the names
// that SONiC's databases have and by the numbers that its high-frequency
// telemetry has, and collects them into the totals of a port.
// Manual: docs/sources.md.
package sai

import (
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
)

// Stat is a counter of a port.
type Stat uint8

// Counters of a port.
const (
	InOctets Stat = iota
	OutOctets
	InUnicast
	InNonUnicast
	OutUnicast
	OutNonUnicast
	InDiscards
	OutDiscards
	InErrors
	OutErrors
	CRCErrors
	FECCorrectable
	FECUncorrectable
	numStats
)

// ClassStat is a counter of one class of a port: of its PFC, its egress queue or its
// ingress priority group.
type ClassStat uint8

// Counters of a class.
const (
	PFCRx ClassStat = iota
	PFCTx
	PFCOn2Off
	PFCRxPause // microseconds
	PFCTxPause // microseconds
	QueueBytes
	QueueDropped
	QueueECNMarked
	QueueWatermark
	GroupWatermark
	GroupHeadroom
	WatchdogState // 1: stormed
	WatchdogDetected
	numClassStats
)

// Totals are the newest values of a port's counters, as they arrive one by one.
type Totals struct {
	port [numStats]uint64
	seen uint32

	class [portstat.NumClasses]struct {
		values [numClassStats]uint64
		seen   uint32
	}
}

// Set sets a counter of the port.
func (t *Totals) Set(s Stat, v uint64) {
	t.port[s] = v
	t.seen |= 1 << s
}

// SetClass sets a counter of a class. Classes that do not exist are ignored: queues beyond
// the eighth carry multicast.
func (t *Totals) SetClass(class int, s ClassStat, v uint64) {
	if class < 0 || class >= len(t.class) {
		return
	}
	c := &t.class[class]
	c.values[s] = v
	c.seen |= 1 << s
}

// Has reports whether a counter was set.
func (t *Totals) Has(s Stat) bool { return t.seen>>s&1 != 0 }

// Counters returns the totals in Weft's form. Pairs of counters are present if both
// are.
func (t *Totals) Counters(c *portstat.Counters) {
	*c = portstat.Counters{}
	v := &t.port
	pair := func(f portstat.Fields, rx, tx Stat, r, s *uint64) {
		if t.Has(rx) && t.Has(tx) {
			c.Has, *r, *s = c.Has|f, v[rx], v[tx]
		}
	}
	one := func(f portstat.Fields, s Stat, to *uint64) {
		if t.Has(s) {
			c.Has, *to = c.Has|f, v[s]
		}
	}
	pair(portstat.HasBytes, InOctets, OutOctets, &c.RxBytes, &c.TxBytes)
	if pair(portstat.HasPackets, InUnicast, OutUnicast, &c.RxPackets, &c.TxPackets); c.Has.All(portstat.HasPackets) {
		c.RxPackets += v[InNonUnicast] // 0 if it is not counted
		c.TxPackets += v[OutNonUnicast]
	}
	pair(portstat.HasDiscards, InDiscards, OutDiscards, &c.RxDiscards, &c.TxDiscards)
	pair(portstat.HasErrors, InErrors, OutErrors, &c.RxErrors, &c.TxErrors)
	one(portstat.HasFCSErrors, CRCErrors, &c.FCSErrors)
	one(portstat.HasFECCorrected, FECCorrectable, &c.FECCorrected)
	one(portstat.HasFECUncorrectable, FECUncorrectable, &c.FECUncorrectable)
	for i := range t.class {
		t.classCounters(i, &c.Class[i])
	}
}

// classFields are the fields of class counters, in the order of ClassStat; the
// watchdog's are two.
var classFields = [numClassStats]portstat.ClassFields{
	PFCRx: portstat.HasRxPauses, PFCTx: portstat.HasTxPauses, PFCOn2Off: portstat.HasRxTransitions,
	PFCRxPause: portstat.HasRxPaused, PFCTxPause: portstat.HasTxPaused,
	QueueBytes: portstat.HasClassBytes, QueueDropped: portstat.HasDropped, QueueECNMarked: portstat.HasECNMarked,
	QueueWatermark: portstat.HasQueueWatermark, GroupWatermark: portstat.HasPGWatermark, GroupHeadroom: portstat.HasHeadroomWatermark,
	WatchdogState: portstat.HasWatchdog,
}

// classCounters sets the counters of a class.
func (t *Totals) classCounters(i int, c *portstat.ClassCounters) {
	k := &t.class[i]
	if k.seen == 0 {
		return
	}
	for s := range numClassStats {
		if k.seen>>s&1 != 0 {
			c.Has |= classFields[s]
		}
	}
	v := &k.values
	c.RxPauses, c.TxPauses, c.RxTransitions = v[PFCRx], v[PFCTx], v[PFCOn2Off]
	c.RxPaused, c.TxPaused = micros(v[PFCRxPause]), micros(v[PFCTxPause])
	c.TxBytes, c.Dropped, c.ECNMarked = v[QueueBytes], v[QueueDropped], v[QueueECNMarked]
	c.QueueWatermark, c.PGWatermark, c.HeadroomWatermark = bytes(v[QueueWatermark]), bytes(v[GroupWatermark]), bytes(v[GroupHeadroom])
	if v[WatchdogState] != 0 {
		c.Watchdog = portstat.Stormed
	}
	c.Storms = v[WatchdogDetected]
}

// maxValue bounds what is converted to signed units: no switch counts up to it.
const maxValue = 1 << 62

func micros(v uint64) time.Duration { return time.Duration(min(v, maxValue/1000)) * time.Microsecond }

func bytes(v uint64) model.Bytes { return model.Bytes(min(v, maxValue)) }
