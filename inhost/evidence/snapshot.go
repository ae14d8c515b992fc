package evidence

import (
	"fmt"
	"net/netip"
	"time"
)

// Snapshot is what the kernel of a host counted up to a time.
type Snapshot struct {
	Time        time.Time    `json:"time"`
	Interfaces  []Interface  `json:"interfaces"`
	Softnet     Softnet      `json:"softnet"`
	Protocols   Protocols    `json:"protocols"`
	Connections []Connection `json:"connections"`
	RDMA        []RDMAPort   `json:"rdma"`
	QueuePairs  []QueuePair  `json:"queue_pairs"`
	// MoreQueuePairs is how many there are beyond those that are kept.
	MoreQueuePairs uint64 `json:"more_queue_pairs,omitempty"`
	// Drops are packets that the kernel dropped, by its own reason in lower case; nil: not counted.
	Drops map[string]uint64 `json:"drops,omitempty"`
	// Missing says what could not be read, and why.
	Missing []string `json:"missing,omitempty"`
}

// Interface is a network interface.
type Interface struct {
	Name           string             `json:"name"`
	Up             bool               `json:"up"`
	SpeedMbps      int64              `json:"speed_mbps,omitempty"` // 0: not known
	CarrierChanges uint64             `json:"carrier_changes"`
	ReceivedBytes  uint64             `json:"received_bytes"`
	SentBytes      uint64             `json:"sent_bytes"`
	Received       uint64             `json:"received_packets"`
	Sent           uint64             `json:"sent_packets"`
	CRCErrors      uint64             `json:"crc_errors"`
	Missed         uint64             `json:"missed"`  // the NIC had no buffer
	Dropped        uint64             `json:"dropped"` // received, and dropped by the kernel
	SendDropped    uint64             `json:"send_dropped"`
	QueueDropped   uint64             `json:"queue_dropped"` // by the queueing discipline
	QueueBytes     uint64             `json:"queue_bytes"`
	Driver         map[Meaning]uint64 `json:"driver,omitempty"` // of ethtool -S, by meaning
}

// Softnet is what the kernel's receive softirqs did, on all CPUs.
type Softnet struct {
	Processed uint64 `json:"processed"`
	Dropped   uint64 `json:"dropped"`  // the backlog queue was full
	Squeezed  uint64 `json:"squeezed"` // the softirq ran out of its budget
}

// Protocols are counters of TCP and UDP.
type Protocols struct {
	SegmentsSent   uint64 `json:"tcp_segments_sent"`
	Retransmitted  uint64 `json:"tcp_retransmitted"`
	Timeouts       uint64 `json:"tcp_timeouts"`
	ListenDrops    uint64 `json:"tcp_listen_drops"`
	ChecksumErrors uint64 `json:"checksum_errors"` // of TCP and UDP
	UDPReceiveFull uint64 `json:"udp_receive_buffer_errors"`
	UDPSendFull    uint64 `json:"udp_send_buffer_errors"`
}

// Connection is an established TCP connection. Counters are since it was opened.
type Connection struct {
	Local         netip.AddrPort `json:"local"`
	Remote        netip.AddrPort `json:"remote"`
	RTT           time.Duration  `json:"rtt_ns"`
	MinRTT        time.Duration  `json:"min_rtt_ns"` // 0: not known
	BytesAcked    uint64         `json:"bytes_acked"`
	BytesReceived uint64         `json:"bytes_received"`
	SegmentsSent  uint64         `json:"segments_sent"` // with data
	Retransmitted uint64         `json:"retransmitted"`
	Marked        uint64         `json:"ecn_marked"`        // delivered with ECN's mark
	Busy          time.Duration  `json:"busy_ns"`           // time with data to send
	PeerLimited   time.Duration  `json:"peer_limited_ns"`   // of it, the peer's receive window was full
	BufferLimited time.Duration  `json:"buffer_limited_ns"` // of it, the send buffer was too small
}

// RDMAPort is a port of an RDMA device with counters that have a known meaning.
type RDMAPort struct {
	Device   string             `json:"device"`
	Port     int                `json:"port"`
	Counters map[Meaning]uint64 `json:"counters"`
}

// QueuePair is a queue pair of an RDMA device, and who owns it.
type QueuePair struct {
	Device  string `json:"device"`
	Port    int    `json:"port,omitempty"` // 0: not known, as before it is connected
	Number  uint32 `json:"number"`
	Remote  uint32 `json:"remote_number,omitempty"` // of connected ones
	Type    string `json:"type"`                    // such as RC
	State   string `json:"state"`                   // such as RTS
	PID     int    `json:"pid,omitempty"`           // 0: the kernel
	Process string `json:"process,omitempty"`       // or the module of the kernel
}

// Owner names the process of a queue pair.
func (q *QueuePair) Owner() string {
	switch {
	case q.PID == 0:
		return "kernel " + q.Process
	case q.Process == "":
		return fmt.Sprintf("pid %d", q.PID)
	}
	return fmt.Sprintf("%s (pid %d)", q.Process, q.PID)
}
