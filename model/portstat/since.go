package portstat

import "errors"

// ErrReset is returned for totals below earlier ones: the switch restarted, or
// an operator cleared its counters. What it counted in between is unknown.
var ErrReset = errors.New("counters were reset")

// Since sets c to what was counted between two totals of one port: differences of
// counters that both have, watermarks and states of the newer. Totals must be
// free of wraps: Extend removes those of 32-bit counters. On ErrReset, c has no
// fields.
func (c *Counters) Since(older, newer *Counters) error {
	*c = Counters{Has: newer.Has & older.Has, DropReasons: newer.DropReasons & older.DropReasons}
	reset := false
	diff := func(present bool, dst *uint64, from, to uint64) {
		switch {
		case !present:
		case to < from:
			reset = true
		default:
			*dst = to - from
		}
	}
	port := [...]struct {
		field    Fields
		dst      *uint64
		from, to uint64
	}{
		{HasBytes, &c.RxBytes, older.RxBytes, newer.RxBytes},
		{HasBytes, &c.TxBytes, older.TxBytes, newer.TxBytes},
		{HasPackets, &c.RxPackets, older.RxPackets, newer.RxPackets},
		{HasPackets, &c.TxPackets, older.TxPackets, newer.TxPackets},
		{HasDiscards, &c.RxDiscards, older.RxDiscards, newer.RxDiscards},
		{HasDiscards, &c.TxDiscards, older.TxDiscards, newer.TxDiscards},
		{HasErrors, &c.RxErrors, older.RxErrors, newer.RxErrors},
		{HasErrors, &c.TxErrors, older.TxErrors, newer.TxErrors},
		{HasFCSErrors, &c.FCSErrors, older.FCSErrors, newer.FCSErrors},
		{HasFECCorrected, &c.FECCorrected, older.FECCorrected, newer.FECCorrected},
		{HasFECUncorrectable, &c.FECUncorrectable, older.FECUncorrectable, newer.FECUncorrectable},
	}
	for i := range port {
		diff(c.Has.All(port[i].field), port[i].dst, port[i].from, port[i].to)
	}
	for r := range NumReasons {
		diff(c.DropReasons.Has(r), &c.Drops[r], older.Drops[r], newer.Drops[r])
	}
	for i := range c.Class {
		if !c.Class[i].since(&older.Class[i], &newer.Class[i]) {
			reset = true
		}
	}
	if reset {
		*c = Counters{}
		return ErrReset
	}
	return nil
}

// newest are the fields of a class that are no totals.
const newest = HasQueueWatermark | HasPGWatermark | HasHeadroomWatermark | HasWatchdog

// since is Since for one class, and reports whether no counter was reset.
func (c *ClassCounters) since(older, newer *ClassCounters) bool {
	*c = ClassCounters{
		Has:            newer.Has & (older.Has | newest),
		QueueWatermark: newer.QueueWatermark, PGWatermark: newer.PGWatermark, HeadroomWatermark: newer.HeadroomWatermark,
		Watchdog: newer.Watchdog,
	}
	ok := true
	totals := [...]struct {
		field    ClassFields
		dst      *uint64
		from, to uint64
	}{
		{HasRxPauses, &c.RxPauses, older.RxPauses, newer.RxPauses},
		{HasTxPauses, &c.TxPauses, older.TxPauses, newer.TxPauses},
		{HasRxTransitions, &c.RxTransitions, older.RxTransitions, newer.RxTransitions},
		{HasClassBytes, &c.TxBytes, older.TxBytes, newer.TxBytes},
		{HasDropped, &c.Dropped, older.Dropped, newer.Dropped},
		{HasECNMarked, &c.ECNMarked, older.ECNMarked, newer.ECNMarked},
	}
	for i := range totals {
		if t := &totals[i]; c.Has.All(t.field) {
			*t.dst, ok = t.to-t.from, ok && t.to >= t.from
		}
	}
	if c.Has.All(HasRxPaused) {
		c.RxPaused, ok = newer.RxPaused-older.RxPaused, ok && newer.RxPaused >= older.RxPaused
	}
	if c.Has.All(HasTxPaused) {
		c.TxPaused, ok = newer.TxPaused-older.TxPaused, ok && newer.TxPaused >= older.TxPaused
	}
	if c.Has.All(HasWatchdog) && older.Has.All(HasWatchdog) {
		c.Storms, ok = newer.Storms-older.Storms, ok && newer.Storms >= older.Storms
	}
	return ok
}

// Extend returns the total of a 32-bit counter that read raw, after the total
// before it. A counter that wrapped more than once in between is not seen.
func Extend(before uint64, raw uint32) uint64 {
	return before + uint64(raw-uint32(before))
}
