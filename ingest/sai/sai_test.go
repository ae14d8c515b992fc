package sai

import (
	"fmt"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model/portstat"
)

func TestCountersByName(t *testing.T) {
	var tot Totals
	for name, v := range map[string]uint64{
		"SAI_PORT_STAT_IF_IN_OCTETS": 1000, "SAI_PORT_STAT_IF_OUT_OCTETS": 2000,
		"SAI_PORT_STAT_IF_IN_UCAST_PKTS": 10, "SAI_PORT_STAT_IF_OUT_UCAST_PKTS": 20, "SAI_PORT_STAT_IF_IN_NON_UCAST_PKTS": 3,
		"SAI_PORT_STAT_IF_IN_DISCARDS": 5, // without those sent: no pair
		"SAI_PORT_STAT_PFC_3_RX_PKTS":  7, "SAI_PORT_STAT_PFC_3_RX_PAUSE_DURATION_US": 1500, "SAI_PORT_STAT_PFC_4_TX_PKTS": 8,
	} {
		if !tot.SetByName([]byte(name), v) {
			t.Errorf("%s is not known", name)
		}
	}
	if !tot.SetClassByName(3, []byte("SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES"), 4096) || !tot.SetClassByName(3, []byte("PFC_WD_QUEUE_STATS_DEADLOCK_DETECTED"), 2) {
		t.Error("a queue's counter is not known")
	}
	tot.SetClass(3, WatchdogState, 1)
	tot.SetClassByName(12, []byte("SAI_QUEUE_STAT_BYTES"), 9) // multicast
	for _, name := range []string{"SAI_PORT_STAT_IF_IN_VLAN_DISCARDS", "SAI_PORT_STAT_PFC_", "SAI_PORT_STAT_PFC_3", "SAI_PORT_STAT_PFC_33_RX_PKTS", "IF_IN_OCTETS", ""} {
		if tot.SetByName([]byte(name), 1) {
			t.Errorf("%q is a known counter", name)
		}
	}
	want := portstat.Counters{Has: portstat.HasBytes | portstat.HasPackets, RxBytes: 1000, TxBytes: 2000, RxPackets: 13, TxPackets: 20}
	want.Class[3] = portstat.ClassCounters{
		Has:      portstat.HasRxPauses | portstat.HasRxPaused | portstat.HasQueueWatermark | portstat.HasWatchdog,
		RxPauses: 7, RxPaused: 1500 * time.Microsecond, QueueWatermark: 4096, Watchdog: portstat.Stormed, Storms: 2,
	}
	want.Class[4] = portstat.ClassCounters{Has: portstat.HasTxPauses, TxPauses: 8}
	var got portstat.Counters
	if tot.Counters(&got); got != want {
		t.Errorf("Counters = %+v; want %+v", got, want)
	}
}

func TestEveryNameIsKnown(t *testing.T) {
	names := Names()
	for _, name := range names {
		if !new(Totals).SetByName([]byte(name), 1) {
			t.Errorf("%s is not known", name)
		}
	}
	if len(names) != 13+8*5 {
		t.Errorf("%d names; want %d", len(names), 13+8*5)
	}
}

func TestSplitObject(t *testing.T) {
	for name, want := range map[string]string{
		"Ethernet68:3": "Ethernet68 3 true", "Ethernet1|3": "Ethernet1 3 true", "Ethernet68:3:periodic": "Ethernet68 3 true", "etp10:15": "etp10 15 true",
		"Ethernet68": "Ethernet68 0 false", "Ethernet68:": "Ethernet68: 0 false", ":3": ":3 0 false", "Ethernet68:x": "Ethernet68 0 false", "Ethernet68:1234": "Ethernet68 0 false",
		"Ethernet68::3": "Ethernet68 0 false", "": " 0 false",
	} {
		port, n, ok := SplitObject(name)
		if got := fmt.Sprint(port, " ", n, " ", ok); got != want {
			t.Errorf("SplitObject(%q) = %s; want %s", name, got, want)
		}
	}
}

// TestCountersByNumber: the numbers that countersyncd documents: PFC 3 is 109 and 110, its
// paused time 141 and 142.
func TestCountersByNumber(t *testing.T) {
	var tot Totals
	for _, c := range []struct {
		object, stat uint32
		class        int
		v            uint64
	}{
		{TypePort, 0, 0, 1000},
		{TypePort, 9, 0, 2000},
		{TypePort, 109, 0, 5},
		{TypePort, 110, 0, 6},
		{TypePort, 141, 0, 7},
		{TypePort, 142, 0, 8},
		{TypeQueue, 0x1b, 4, 4096},
		{TypeQueue, 0x22, 4, 9},
		{TypePriorityGroup, 7, 2, 77},
	} {
		if !tot.SetByNumber(c.object, c.stat, c.class, c.v) {
			t.Errorf("%+v is not known", c)
		}
	}
	for _, c := range [][2]uint32{{TypePort, 102}, {TypePort, 119}, {TypePort, 151}, {TypeQueue, 0x27}, {24, 0}, {0, 0}} {
		if tot.SetByNumber(c[0], c[1], 0, 1) {
			t.Errorf("type %d stat %d is known", c[0], c[1])
		}
	}
	want := portstat.Counters{Has: portstat.HasBytes, RxBytes: 1000, TxBytes: 2000}
	want.Class[3] = portstat.ClassCounters{
		Has:      portstat.HasRxPauses | portstat.HasTxPauses | portstat.HasRxPaused | portstat.HasTxPaused,
		RxPauses: 5, TxPauses: 6, RxPaused: 7 * time.Microsecond, TxPaused: 8 * time.Microsecond,
	}
	want.Class[4] = portstat.ClassCounters{Has: portstat.HasQueueWatermark | portstat.HasECNMarked, QueueWatermark: 4096, ECNMarked: 9}
	want.Class[2] = portstat.ClassCounters{Has: portstat.HasHeadroomWatermark, HeadroomWatermark: 77}
	var got portstat.Counters
	if tot.Counters(&got); got != want {
		t.Errorf("Counters = %+v; want %+v", got, want)
	}
}
