package evidence

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// quiet is a host on which nothing is wrong.
func quiet() *Snapshot {
	return &Snapshot{
		Interfaces: []Interface{{Name: "eth0", Up: true, CarrierChanges: 2, CRCErrors: 7, Missed: 3, QueueDropped: 9, Driver: map[Meaning]uint64{PauseReceived: 40}}},
		Softnet:    Softnet{Processed: 1000, Dropped: 4},
		Protocols:  Protocols{SegmentsSent: 5000, Retransmitted: 10, UDPReceiveFull: 1},
		Connections: []Connection{{
			Local: netip.MustParseAddrPort("10.0.0.2:5000"), Remote: netip.MustParseAddrPort("10.0.0.3:80"), RTT: 200 * time.Microsecond,
			MinRTT: 100 * time.Microsecond, BytesAcked: 1000, SegmentsSent: 1000, Busy: time.Second,
		}},
		Drops: map[string]uint64{"netfilter drop": 6, "no socket": 7},
		RDMA:  []RDMAPort{{Device: "mlx5_0", Port: 1, Counters: map[Meaning]uint64{CNPReceived: 5}}},
	}
}

// TestVerdicts: each counter that grows has a verdict, with its number, and it alone.
func TestVerdicts(t *testing.T) {
	for want, grow := range map[string]func(*Snapshot){
		"cable eth0: the link changed 3 times":                  func(s *Snapshot) { s.Interfaces[0].CarrierChanges += 3 },
		"cable eth0: the link went down":                        func(s *Snapshot) { s.Interfaces[0].Up = false },
		"cable eth0: 5 frames or symbols arrived damaged":       func(s *Snapshot) { s.Interfaces[0].CRCErrors += 5 },
		"nic eth0: the NIC dropped 6 packets":                   func(s *Snapshot) { s.Interfaces[0].Missed += 6 },
		"congestion eth0: the fabric paused this NIC with 8":    func(s *Snapshot) { s.Interfaces[0].Driver = map[Meaning]uint64{PauseReceived: 48} },
		"host eth0: this NIC paused the fabric with 2":          func(s *Snapshot) { s.Interfaces[0].Driver[PauseSent] = 2 },
		"cable eth0: error correction could not repair 3 b":     func(s *Snapshot) { s.Interfaces[0].Driver[FECLost] = 3 },
		"host eth0: this NIC stopped the fabric for too long 2": func(s *Snapshot) { s.Interfaces[0].Driver[PauseStorm] = 2 },
		"host mlx5_0/1: the device dropped 4 packets":           func(s *Snapshot) { s.RDMA[0].Counters[Discarded] = 4 },
		"host eth0: the queueing discipline dropped 4":          func(s *Snapshot) { s.Interfaces[0].QueueDropped += 4 },
		"host kernel: softirqs dropped 9 packets":               func(s *Snapshot) { s.Softnet.Dropped += 9 },
		"host kernel: 3 datagrams were dropped":                 func(s *Snapshot) { s.Protocols.UDPReceiveFull += 3 },
		"path kernel: 6 packets arrived with a wrong checksum":  func(s *Snapshot) { s.Protocols.ChecksumErrors += 6 },
		"congestion mlx5_0/1: 7 notifications of congestion":    func(s *Snapshot) { s.RDMA[0].Counters[CNPReceived] += 7 },
		"host kernel: a firewall of this host dropped 3":        func(s *Snapshot) { s.Drops["netfilter drop"] += 3; s.Drops["no socket"] += 9 },
		"peer mlx5_0/1: peers were not ready to receive 2":      func(s *Snapshot) { s.RDMA[0].Counters[NotReadyGot] += 2 },
		"congestion kernel: TCP sent 10 of 10000 segments":      func(s *Snapshot) { s.Protocols.SegmentsSent += 10000; s.Protocols.Retransmitted += 10 },
		"peer tcp 10.0.0.2:5000 > 10.0.0.3:80: the peer's": func(s *Snapshot) {
			s.Connections[0].Busy += time.Second
			s.Connections[0].PeerLimited += time.Second / 2
		},
		"host tcp 10.0.0.2:5000 > 10.0.0.3:80: the send":      func(s *Snapshot) { s.Connections[0].Busy += time.Second; s.Connections[0].BufferLimited += time.Second },
		"congestion tcp 10.0.0.2:5000 > 10.0.0.3:80: 2 of 50": func(s *Snapshot) { s.Connections[0].SegmentsSent += 50; s.Connections[0].Retransmitted += 2 },
		"congestion tcp 10.0.0.2:5000 > 10.0.0.3:80: its RTT": func(s *Snapshot) { s.Connections[0].SegmentsSent += 50; s.Connections[0].RTT = 3 * time.Millisecond },
	} {
		after := quiet()
		grow(after)
		list := Verdicts(quiet(), after)
		if len(list) != 1 || !strings.HasPrefix(string(list[0].Where)+" "+list[0].Object+": "+list[0].Text, want) {
			t.Errorf("verdicts %+v; want one that begins with %q", list, want)
		}
	}
}

// TestNothingIsFaulty: for what grew before, for counters that were reset, for new
// interfaces and connections, and for a few segments sent again among many.
func TestNothingIsFaulty(t *testing.T) {
	for name, change := range map[string]func(before, after *Snapshot){
		"nothing grew": func(_, _ *Snapshot) {},
		"reset": func(before, _ *Snapshot) {
			before.Interfaces[0].CRCErrors, before.Interfaces[0].Driver = 1000, map[Meaning]uint64{PauseReceived: 1000}
			before.RDMA[0].Counters = map[Meaning]uint64{CNPReceived: 1000}
		},
		"new":         func(before, _ *Snapshot) { *before = Snapshot{Softnet: before.Softnet, Protocols: before.Protocols} },
		"a few again": func(_, after *Snapshot) { after.Protocols.SegmentsSent += 10001; after.Protocols.Retransmitted += 10 },
		"reopened": func(before, after *Snapshot) {
			before.Connections[0].BytesAcked = 1 << 40
			after.Connections[0].Busy += time.Second
			after.Connections[0].PeerLimited += time.Second
		},
	} {
		before, after := quiet(), quiet()
		change(before, after)
		if list := Verdicts(before, after); len(list) != 0 {
			t.Errorf("%s: %+v; want no verdict", name, list)
		}
	}
}

// TestVerdictsNameUsers: what an RDMA port shows is of the processes with queue pairs there.
func TestVerdictsNameUsers(t *testing.T) {
	before, after := quiet(), quiet()
	after.RDMA[0].Counters[AckTimeout] = 3
	for i := range 20 {
		after.QueuePairs = append(after.QueuePairs, QueuePair{Device: "mlx5_0", Port: 1, Number: uint32(i), PID: 100 + min(i, 6), Process: "train"})
	}
	after.QueuePairs = append(after.QueuePairs,
		QueuePair{Device: "mlx5_0", Number: 30, PID: 99}, // not connected yet: of all ports
		QueuePair{Device: "mlx5_0", Port: 1, Number: 1, Process: "ib_core"},
		QueuePair{Device: "mlx5_1", Port: 1, Number: 31, PID: 98}, QueuePair{Device: "mlx5_0", Port: 2, Number: 32, PID: 97})
	list := Verdicts(before, after)
	if len(list) != 1 {
		t.Fatalf("verdicts %+v; want one", list)
	}
	want := []string{
		"queue pairs of train (pid 106): 14", "queue pairs of pid 99: 1", "queue pairs of train (pid 100): 1", "queue pairs of train (pid 101): 1",
		"queue pairs of train (pid 102): 1", "and of 3 other processes",
	}
	if !slices.Equal(list[0].Evidence, want) {
		t.Errorf("evidence %q; want %q", list[0].Evidence, want)
	}
}

// TestMeanings: names as drivers print them.
func TestMeanings(t *testing.T) {
	for name, want := range map[string]Meaning{
		"rx_prio3_pause": PauseReceived, "rx_prio3_pause_duration": PausedTime, "tx_priority_7_xoff.nic": PauseSent, "port.rx_priority_0_xoff": PauseReceived,
		"pfc_pri5_rx_duration_us": PausedTime, "rx_pripause_3_1us_count": PausedTime, "tx_pripause_3_1us_count": "", "rx_pause_1us_count": PausedTime,
		"frames_rx_pripause": PauseReceived, "frames_rx_pri_3": "", "port.rx_discards": Discarded, "rx_dropped.nic": Discarded, "rx_prio3_buf_discard": "",
		"rx_pfc_ena_frames_pri3": "", "rx_corrected_bits_phy": FECCorrected, "rx_fec_uncorrectable_blocks": FECLost,
		"rx_prio3_pause_transition": "", "rx_packets": "", "": "",
	} {
		if got, ok := NICMeaning(name); got != want || ok != (want != "") {
			t.Errorf("NICMeaning(%s) = %q, %v; want %q", name, got, ok, want)
		}
	}
	for name, want := range map[string]Meaning{
		"np_cnp_sent": CNPSent, "tx_rdma_cnp_pkts": CNPSent, "cnpSent": CNPSent, "tx_cnp_pkts": CNPSent, "RNR received": NotReadyGot,
		"resp_tx_pkt_seq_err": OutOfSequence, "oos_drop_count": OutOfSequence, "out_of_seq_request": OutOfSequence, "rx_drops": Discarded, "rx_rdma_ucast_pkts": "",
	} {
		if got, ok := RDMAMeaning(name); got != want || ok != (want != "") {
			t.Errorf("RDMAMeaning(%s) = %q, %v; want %q", name, got, ok, want)
		}
	}
}

// TestSlowConnections: those that congestion makes slow, not those that wait for the peer.
func TestSlowConnections(t *testing.T) {
	before, after := quiet(), quiet()
	c := after.Connections[0]
	c.Busy, c.PeerLimited = c.Busy+time.Second, time.Second
	after.Connections[0] = c
	if list := Slow(before, after); len(list) != 0 {
		t.Errorf("slow connections %+v; want none: it waits for its peer", list)
	}
	c.Retransmitted, c.SegmentsSent = c.Retransmitted+5, c.SegmentsSent+50
	after.Connections[0] = c
	if list := Slow(before, after); len(list) != 1 || list[0] != c {
		t.Errorf("slow connections %+v; want %+v", list, c)
	}
}
