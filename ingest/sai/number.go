package sai

// Object types of SAI, by which high-frequency telemetry numbers counters.
const (
	TypePort          = 1
	TypeQueue         = 21
	TypePriorityGroup = 26
)

// portNumbers are SAI_PORT_STAT.
var portNumbers = map[uint32]Stat{
	0: InOctets, 1: InUnicast, 2: InNonUnicast, 3: InDiscards, 4: InErrors,
	9: OutOctets, 10: OutUnicast, 11: OutNonUnicast, 12: OutDiscards, 13: OutErrors,
}

// The first numbers of priority 0; each priority has two, received and sent.
const (
	firstPFC   = 103
	firstPause = 135 // microseconds
)

// queueNumbers are SAI_QUEUE_STAT, groupNumbers SAI_INGRESS_PRIORITY_GROUP_STAT.
var (
	queueNumbers = map[uint32]ClassStat{1: QueueBytes, 2: QueueDropped, 0x1b: QueueWatermark, 0x22: QueueECNMarked}
	groupNumbers = map[uint32]ClassStat{5: GroupWatermark, 7: GroupHeadroom}
)

// SetByNumber sets a counter by its SAI numbers, of a class if the object has one, and
// reports whether it is one that Weft uses.
func (t *Totals) SetByNumber(object, stat uint32, class int, v uint64) bool {
	switch object {
	case TypePort:
		if s, ok := portNumbers[stat]; ok {
			t.Set(s, v)
			return true
		}
		for _, f := range [...]struct {
			first  uint32
			rx, tx ClassStat
		}{{firstPFC, PFCRx, PFCTx}, {firstPause, PFCRxPause, PFCTxPause}} {
			if n := stat - f.first; n < 16 {
				t.SetClass(int(n/2), [...]ClassStat{f.rx, f.tx}[n%2], v)
				return true
			}
		}
	case TypeQueue:
		s, ok := queueNumbers[stat]
		if ok {
			t.SetClass(class, s, v)
		}
		return ok
	case TypePriorityGroup:
		s, ok := groupNumbers[stat]
		if ok {
			t.SetClass(class, s, v)
		}
		return ok
	}
	return false
}
