package sonic

import (
	"strconv"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
)

// round is what all ports of a switch have counted at an instant of its clock. It is
// not changed once it is made: targets and exporters share it.
type round struct {
	at    model.Time
	ports []portstat.Counters // by number, from 0
}

// counter is one of a port or of one of its classes, in both of SONiC's forms.
type counter struct {
	name   string // in COUNTERS_DB
	number int    // SAI's, in high-frequency telemetry; -1: none
	value  uint64
}

// Object types of SAI.
const (
	objectPort          = 1
	objectQueue         = 21
	objectPriorityGroup = 26
)

// portCounters appends the counters of a port: those of the interface, and PFC by priority.
func portCounters(list []counter, c *portstat.Counters) []counter {
	list = append(list,
		counter{"SAI_PORT_STAT_IF_IN_OCTETS", 0, c.RxBytes},
		counter{"SAI_PORT_STAT_IF_IN_UCAST_PKTS", 1, c.RxPackets},
		counter{"SAI_PORT_STAT_IF_IN_NON_UCAST_PKTS", 2, 0},
		counter{"SAI_PORT_STAT_IF_IN_DISCARDS", 3, c.RxDiscards},
		counter{"SAI_PORT_STAT_IF_IN_ERRORS", 4, c.RxErrors},
		counter{"SAI_PORT_STAT_IF_OUT_OCTETS", 9, c.TxBytes},
		counter{"SAI_PORT_STAT_IF_OUT_UCAST_PKTS", 10, c.TxPackets},
		counter{"SAI_PORT_STAT_IF_OUT_NON_UCAST_PKTS", 11, 0},
		counter{"SAI_PORT_STAT_IF_OUT_DISCARDS", 12, c.TxDiscards},
		counter{"SAI_PORT_STAT_IF_OUT_ERRORS", 13, c.TxErrors},
		counter{"SAI_PORT_STAT_ETHER_STATS_CRC_ALIGN_ERRORS", -1, c.FCSErrors},
	)
	for i := range c.Class {
		k, prefix := &c.Class[i], "SAI_PORT_STAT_PFC_"+strconv.Itoa(i)
		list = append(list,
			counter{prefix + "_RX_PKTS", 103 + 2*i, k.RxPauses},
			counter{prefix + "_TX_PKTS", 104 + 2*i, k.TxPauses},
			counter{prefix + "_RX_PAUSE_DURATION_US", 135 + 2*i, microseconds(k.RxPaused)},
			counter{prefix + "_TX_PAUSE_DURATION_US", 136 + 2*i, microseconds(k.TxPaused)},
			counter{prefix + "_ON2OFF_RX_PKTS", -1, k.RxTransitions},
		)
	}
	return list
}

// queueCounters appends the counters of an egress queue.
func queueCounters(list []counter, k *portstat.ClassCounters) []counter {
	return append(list,
		counter{"SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES", 0x1b, uint64(k.QueueWatermark)},
		counter{"SAI_QUEUE_STAT_WRED_ECN_MARKED_PACKETS", 0x22, k.ECNMarked},
	)
}

// groupCounters appends the counters of an ingress priority group.
func groupCounters(list []counter, k *portstat.ClassCounters) []counter {
	return append(list,
		counter{"SAI_INGRESS_PRIORITY_GROUP_STAT_SHARED_WATERMARK_BYTES", 5, uint64(k.PGWatermark)},
		counter{"SAI_INGRESS_PRIORITY_GROUP_STAT_XOFF_ROOM_WATERMARK_BYTES", 7, uint64(k.HeadroomWatermark)},
	)
}

func microseconds(d time.Duration) uint64 { return uint64(d / time.Microsecond) }

// table has counters by name, as strings: Redis has nothing else.
func table(list []counter) map[string]string {
	t := make(map[string]string, len(list))
	for _, c := range list {
		t[c.name] = strconv.FormatUint(c.value, 10)
	}
	return t
}
