package evidence

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Where is what is faulty by a verdict.
type Where string

// Places.
const (
	Cable      Where = "cable"      // or optics
	NIC        Where = "nic"        // this host's, or the rate it may use
	Host       Where = "host"       // its CPUs, buffers, programs
	Congestion Where = "congestion" // in the fabric
	Peer       Where = "peer"
	Path       Where = "path" // a switch or NIC between them
)

// Verdict is something that makes flows slow, with the counters that show it.
type Verdict struct {
	Where    Where    `json:"where"`
	Object   string   `json:"object"` // an interface, RDMA port or connection; "kernel"
	Text     string   `json:"text"`
	Evidence []string `json:"evidence"`
}

// Thresholds from which on a rate is a cause. A loss of one in a thousand limits a TCP
// connection with an RTT of 1 ms to 450 Mb/s (Mathis et al.: 1.22 × MSS / (RTT × √p)).
const (
	leastRetransmitShare = 0.001
	leastSegments        = 1000
	leastLimitedShare    = 0.5 // of the time with data to send
	leastRTTGrowth       = 4   // times the least RTT of the connection
	leastQueueing        = time.Millisecond
)

// Verdicts compares two snapshots of a host, the older first.
func Verdicts(before, after *Snapshot) []Verdict {
	list := []Verdict{}
	for i := range after.Interfaces {
		now := &after.Interfaces[i]
		if old := slices.IndexFunc(before.Interfaces, func(x Interface) bool { return x.Name == now.Name }); old >= 0 {
			list = append(list, ofInterface(&before.Interfaces[old], now)...)
		}
	}
	list = append(list, ofKernel(before, after)...)
	list = append(list, ofDrops(before, after)...)
	for i := range after.RDMA {
		now := &after.RDMA[i]
		if old := slices.IndexFunc(before.RDMA, func(x RDMAPort) bool { return x.Device == now.Device && x.Port == now.Port }); old >= 0 {
			list = append(list, ofRDMA(&before.RDMA[old], now, after.QueuePairs)...)
		}
	}
	return append(list, ofConnections(before, after)...)
}

// grown is by how much a counter grew. One that is smaller was reset, and says nothing.
func grown(before, after uint64) uint64 {
	if after < before {
		return 0
	}
	return after - before
}

// rule makes a verdict of a counter that grew.
type rule struct {
	n     uint64
	where Where
	text  string // with the number
}

func verdicts(object string, rules []rule) (list []Verdict) {
	for _, r := range rules {
		if r.n > 0 {
			list = append(list, Verdict{Where: r.where, Object: object, Text: fmt.Sprintf(r.text, r.n)})
		}
	}
	return list
}

func ofInterface(before, after *Interface) (list []Verdict) {
	driver := func(m Meaning) uint64 { return grown(before.Driver[m], after.Driver[m]) }
	if before.Up && !after.Up {
		list = append(list, Verdict{Where: Cable, Object: after.Name, Text: "the link went down"})
	}
	return append(list, verdicts(after.Name, []rule{
		{max(grown(before.CarrierChanges, after.CarrierChanges), driver(LinkDown)), Cable, "the link changed %d times between up and down"},
		{max(grown(before.CRCErrors, after.CRCErrors), driver(SymbolErrors)), Cable, "%d frames or symbols arrived damaged: clean or replace cable and optics"},
		{driver(FECLost), Cable, "error correction could not repair %d blocks: clean or replace cable and optics"},
		{max(grown(before.Missed, after.Missed), driver(Discarded)), NIC, "the NIC dropped %d packets as its buffers were full: the host reads too slowly"},
		{driver(OutOfBuffer), Host, "%d packets arrived while no receive buffer was posted: enlarge the rings, or give it more CPU"},
		{driver(AllowanceExceed), NIC, "%d packets were beyond what this instance may send or receive"},
		{driver(PauseReceived), Congestion, "the fabric paused this NIC with %d frames: congestion further on"},
		{driver(PauseSent), Host, "this NIC paused the fabric with %d frames: the host receives too slowly, and may slow down others"},
		{driver(PauseStorm), Host, "this NIC stopped the fabric for too long %d times: the host, or the NIC, hangs"},
		{grown(before.QueueDropped, after.QueueDropped), Host, "the queueing discipline dropped %d packets that were to be sent"},
		{grown(before.SendDropped, after.SendDropped), NIC, "the driver dropped %d packets that were to be sent"},
	})...)
}

func ofKernel(before, after *Snapshot) (list []Verdict) {
	b, a := &before.Protocols, &after.Protocols
	list = verdicts("kernel", []rule{
		{grown(before.Softnet.Dropped, after.Softnet.Dropped), Host, "softirqs dropped %d packets: a CPU's backlog was full; spread interrupts, or raise net.core.netdev_max_backlog"},
		{grown(b.ListenDrops, a.ListenDrops), Host, "%d connections were refused as a listen queue was full"},
		{grown(b.ChecksumErrors, a.ChecksumErrors), Path, "%d packets arrived with a wrong checksum that no link's frame check showed: a switch, or a NIC, damages them"},
		{grown(b.UDPReceiveFull, a.UDPReceiveFull), Host, "%d datagrams were dropped as a socket's receive buffer was full: its program reads too slowly"},
		{grown(b.UDPSendFull, a.UDPSendFull), Host, "%d datagrams were not sent as a socket's send buffer was full"},
	})
	sent, again := grown(b.SegmentsSent, a.SegmentsSent), grown(b.Retransmitted, a.Retransmitted)
	if sent >= leastSegments && float64(again) >= leastRetransmitShare*float64(sent) {
		list = append(list, Verdict{
			Where: Congestion, Object: "kernel", Text: fmt.Sprintf("TCP sent %d of %d segments again: packets are lost in the fabric, or at the peers", again, sent),
			Evidence: []string{fmt.Sprintf("%d timeouts", grown(b.Timeouts, a.Timeouts))},
		})
	}
	return list
}

func ofRDMA(before, after *RDMAPort, pairs []QueuePair) []Verdict {
	n := func(m Meaning) uint64 { return grown(before.Counters[m], after.Counters[m]) }
	list := verdicts(fmt.Sprintf("%s/%d", after.Device, after.Port), []rule{
		{n(CNPReceived), Congestion, "%d notifications of congestion arrived: this sender is slowed down"},
		{n(OutOfSequence), Congestion, "%d packets arrived out of sequence: some were lost, or overtook others"},
		{n(SequenceNAK), Congestion, "peers missed packets of this sender %d times"},
		{n(AckTimeout), Congestion, "%d times an acknowledgement did not come in time"},
		{n(NotReadyGot), Peer, "peers were not ready to receive %d times: they post too few receive buffers"},
		{n(NotReadySent), Host, "this host was not ready to receive %d times: it posts too few receive buffers"},
		{n(Discarded), Host, "the device dropped %d packets that arrived: the host receives too slowly"},
		{n(RetryExceeded), Peer, "%d connections were given up after their last retry"},
	})
	for i := range list {
		list[i].Evidence = users(pairs, after)
	}
	return list
}

// maxUsers bounds the processes that a verdict names.
const maxUsers = 5

// users names the processes with queue pairs at a port, those with most first.
func users(pairs []QueuePair, port *RDMAPort) []string {
	count := map[string]int{}
	for i := range pairs {
		q := &pairs[i]
		if q.Device == port.Device && (q.Port == port.Port || q.Port == 0) && q.PID != 0 {
			count[q.Owner()]++
		}
	}
	names := slices.SortedFunc(maps.Keys(count), func(a, b string) int { return cmp.Or(cmp.Compare(count[b], count[a]), strings.Compare(a, b)) })
	var list []string
	for _, name := range names[:min(len(names), maxUsers)] {
		list = append(list, fmt.Sprintf("queue pairs of %s: %d", name, count[name]))
	}
	if more := len(names) - maxUsers; more > 0 {
		list = append(list, fmt.Sprintf("and of %d other processes", more))
	}
	return list
}

// maxConnections bounds the connections that have verdicts.
const maxConnections = 10

func ofConnections(before, after *Snapshot) (list []Verdict) {
	type found struct {
		Verdict
		weight uint64
	}
	var all []found
	for was, now := range continued(before, after) {
		for _, v := range ofConnection(was, now) {
			all = append(all, found{v, now.BytesAcked - was.BytesAcked})
		}
	}
	slices.SortStableFunc(all, func(a, b found) int { return cmp.Compare(b.weight, a.weight) })
	for _, f := range all[:min(len(all), maxConnections)] {
		list = append(list, f.Verdict)
	}
	return list
}

// continued yields the connections of both snapshots. One that acknowledged fewer bytes is
// another with the same ends.
func continued(before, after *Snapshot) iter.Seq2[*Connection, *Connection] {
	type ends struct{ local, remote netip.AddrPort }
	old := map[ends]*Connection{}
	for i := range before.Connections {
		c := &before.Connections[i]
		old[ends{c.Local, c.Remote}] = c
	}
	return func(yield func(was, now *Connection) bool) {
		for i := range after.Connections {
			now := &after.Connections[i]
			if was := old[ends{now.Local, now.Remote}]; was != nil && now.BytesAcked >= was.BytesAcked && !yield(was, now) {
				return
			}
		}
	}
}

// ofConnection is what a connection waited for.
func ofConnection(was, now *Connection) (list []Verdict) {
	name := fmt.Sprintf("tcp %v > %v", now.Local, now.Remote)
	add := func(where Where, evidence, format string, args ...any) {
		list = append(list, Verdict{Where: where, Object: name, Text: fmt.Sprintf(format, args...), Evidence: []string{evidence}})
	}
	busy := now.Busy - was.Busy
	share := func(limited time.Duration) float64 { return float64(limited) / float64(max(busy, 1)) }
	if s := share(now.PeerLimited - was.PeerLimited); busy > 0 && s >= leastLimitedShare {
		add(Peer, fmt.Sprintf("of %v with data to send", busy), "the peer's receive window was full for %.0f %% of the time: it reads too slowly", 100*s)
	}
	if s := share(now.BufferLimited - was.BufferLimited); busy > 0 && s >= leastLimitedShare {
		add(Host, fmt.Sprintf("of %v with data to send", busy), "the send buffer was too small for %.0f %% of the time", 100*s)
	}
	sent, again := grown(was.SegmentsSent, now.SegmentsSent), grown(was.Retransmitted, now.Retransmitted)
	if again > 1 && float64(again) >= 10*leastRetransmitShare*float64(sent) {
		add(Congestion, fmt.Sprintf("RTT %v, least %v", now.RTT, now.MinRTT), "%d of %d segments were sent again", again, sent)
	}
	if sent > 0 && now.MinRTT > 0 && now.RTT >= leastRTTGrowth*now.MinRTT && now.RTT-now.MinRTT >= leastQueueing {
		add(Congestion, fmt.Sprintf("least RTT %v", now.MinRTT), "its RTT is %v: packets wait in queues, or the peer answers late", now.RTT)
	}
	return list
}

// Slow returns the connections that congestion makes slow: those that send segments again,
// or whose packets wait.
func Slow(before, after *Snapshot) (list []Connection) {
	for was, now := range continued(before, after) {
		if slices.ContainsFunc(ofConnection(was, now), func(v Verdict) bool { return v.Where == Congestion }) {
			list = append(list, *now)
		}
	}
	return list
}
