package sai

import "strings"

// portNames are the counters of a port in SONiC's COUNTERS table, without their
// common prefix.
var portNames = map[string]Stat{
	"IF_IN_OCTETS": InOctets, "IF_OUT_OCTETS": OutOctets,
	"IF_IN_UCAST_PKTS": InUnicast, "IF_OUT_UCAST_PKTS": OutUnicast,
	"IF_IN_NON_UCAST_PKTS": InNonUnicast, "IF_OUT_NON_UCAST_PKTS": OutNonUnicast,
	"IF_IN_DISCARDS": InDiscards, "IF_OUT_DISCARDS": OutDiscards,
	"IF_IN_ERRORS": InErrors, "IF_OUT_ERRORS": OutErrors,
	"ETHER_STATS_CRC_ALIGN_ERRORS": CRCErrors,
	"IF_IN_FEC_CORRECTABLE_FRAMES": FECCorrectable, "IF_IN_FEC_NOT_CORRECTABLE_FRAMES": FECUncorrectable,
}

// pfcNames are the counters of a priority: what follows PFC_n_.
var pfcNames = map[string]ClassStat{
	"RX_PKTS": PFCRx, "TX_PKTS": PFCTx, "ON2OFF_RX_PKTS": PFCOn2Off,
	"RX_PAUSE_DURATION_US": PFCRxPause, "TX_PAUSE_DURATION_US": PFCTxPause,
}

// classNames are the counters of queues, priority groups and watchdogs.
var classNames = map[string]ClassStat{
	"SAI_QUEUE_STAT_BYTES": QueueBytes, "SAI_QUEUE_STAT_DROPPED_PACKETS": QueueDropped,
	"SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS": QueueECNMarked, "SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES": QueueWatermark,
	"SAI_INGRESS_PRIORITY_GROUP_STAT_SHARED_WATERMARK_BYTES":    GroupWatermark,
	"SAI_INGRESS_PRIORITY_GROUP_STAT_XOFF_ROOM_WATERMARK_BYTES": GroupHeadroom,
	"PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED":                      WatchdogDetected,
}

const (
	portPrefix = "SAI_PORT_STAT_"
	pfcPrefix  = "PFC_"
	// Watchdog is the name of the watchdog's state, which is a word.
	Watchdog = "PFC_WD_STATUS"
	// Stormed is the word of a queue that the watchdog found paused for too long.
	Stormed = "stormed"
)

// Names are the names of all port counters, for subscriptions by field.
func Names() []string {
	list := make([]string, 0, len(portNames)+8*len(pfcNames))
	for name := range portNames {
		list = append(list, portPrefix+name)
	}
	for class := range 8 {
		for name := range pfcNames {
			list = append(list, portPrefix+pfcPrefix+string(rune('0'+class))+"_"+name)
		}
	}
	return list
}

// SetByName sets a counter of a port by its name, and reports whether it is one that
// Weft uses. It allocates nothing.
func (t *Totals) SetByName(name []byte, v uint64) bool {
	if len(name) < len(portPrefix) || string(name[:len(portPrefix)]) != portPrefix {
		return false
	}
	name = name[len(portPrefix):]
	if s, ok := portNames[string(name)]; ok {
		t.Set(s, v)
		return true
	}
	if len(name) < len(pfcPrefix)+2 || string(name[:len(pfcPrefix)]) != pfcPrefix || name[len(pfcPrefix)+1] != '_' {
		return false
	}
	rest := name[len(pfcPrefix):]
	s, ok := pfcNames[string(rest[2:])]
	if ok {
		t.SetClass(int(rest[0])-'0', s, v)
	}
	return ok
}

// SetClassByName sets a counter of a queue, a priority group or a watchdog by its name.
func (t *Totals) SetClassByName(class int, name []byte, v uint64) bool {
	s, ok := classNames[string(name)]
	if ok {
		t.SetClass(class, s, v)
	}
	return ok
}

// SplitObject splits the name of a queue or priority group into that of its port and its
// number: "Ethernet68:3", "Ethernet68|3" or "Ethernet68:3:periodic".
func SplitObject(name string) (port string, number int, ok bool) {
	i := strings.IndexAny(name, ":|")
	if i <= 0 || i+1 >= len(name) {
		return name, 0, false
	}
	port, rest := name[:i], name[i+1:]
	if j := strings.IndexAny(rest, ":|"); j >= 0 {
		rest = rest[:j]
	}
	if len(rest) == 0 || len(rest) > 3 {
		return port, 0, false
	}
	for _, c := range []byte(rest) {
		if c < '0' || c > '9' {
			return port, 0, false
		}
		number = 10*number + int(c-'0')
	}
	return port, number, true
}
