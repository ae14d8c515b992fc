package sim

import (
	"github.com/weft-telemetry/weft/internal/hugepages"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/congestion"
	"github.com/weft-telemetry/weft/sim/engine"
)

// Kind is the type of a packet. Switches distinguish only KindPFC; the rest is
// for hosts and programs.
type Kind uint8

// Kinds of packet.
const (
	KindData    Kind = iota // RDMA payload
	KindAck                 // RDMA acknowledgement
	KindNack                // RDMA negative acknowledgement: go back to Ack
	KindCNP                 // congestion notification
	KindTrimmed             // RDMA payload that a switch has cut off: only headers are left
	KindPFC                 // pause frame; never forwarded
	KindTCP                 // TCP segment, payload or not
	KindUDP                 // plain datagram
	KindOther               // anything that a program or a test sends
)

// ECN bits of the IP header.
const (
	NotECT uint8 = 0
	ECT    uint8 = 2
	CE     uint8 = 3
)

// Packet is a packet in flight. It holds the values of its headers, not the
// bytes; AppendFrame writes those on demand.
//
// Packets are pooled. The last holder returns one: the host that received it or
// the function that dropped it. A program must not keep one.
type Packet struct {
	// Fields that switches read come first, in one cache line: a packet that is
	// only forwarded touches no other.
	next *Packet // in a queue, on a link, or in the pool

	// EnqueuedAt is when the packet was enqueued, after BytesAhead bytes; set
	// only where a program runs at StageDequeue. In flight, where it is not
	// needed, it is when the next packet on the link arrives.
	EnqueuedAt engine.Time
	BytesAhead int32

	Size int32 // bytes on the wire: Ethernet header to payload, no FCS, no preamble

	// KeyID identifies Key where it is not 0: packets of the same number have
	// the same key. Flows assign it to their packets; it also encodes the
	// family for V6.
	KeyID        uint32
	IPID         uint16
	path         path8  // the path as far as the flow knew it when the packet was made
	tableVersion uint16 // version of the tables that path was found in

	ingress   model.PortID // of the switch that holds it
	buffered  uint16       // Size when the switch admitted it: what it releases
	hop       uint8        // switches passed
	direction uint8        // 1 from the flow's destination to its source, else 0

	Kind     Kind
	Priority model.Priority
	Control  bool // uses the queue that PFC never pauses
	TTL      uint8
	ECN      uint8
	DSCP     uint8
	TCPFlags uint8
	Echo     bool // an acknowledgement that echoes an ECN mark

	// sack names one packet in an acknowledgement of a flow with selective
	// repeat: 1 + its distance from Seq in packets. 0 names none.
	sack uint16

	// Extra holds rare fields; nil usually.
	Extra *Extra

	// The second cache line is for hosts, and for programs that do not use
	// KeyID.
	Key model.FlowKey

	// Seq is the first payload byte, counted from the start of the flow; in an
	// acknowledgement, the next byte that the receiver expects.
	Seq int64

	// Sent is when the data left its host; acknowledgements return it. In a
	// pause frame it is the length of the pause.
	Sent engine.Time

	flow    int32 // index in Network.flows, or noFlow
	Payload int32 // bytes of payload
}

const keyV6 = 1 << 31 // in KeyIDs of IPv6

// V6 is Key.V6, without touching the second cache line where possible.
func (p *Packet) V6() bool {
	if p.KeyID != 0 {
		return p.KeyID&keyV6 != 0
	}
	return p.Key.V6
}

// path8 is a path as port numbers, hop by hop; 0 is unknown.
type path8 [8]uint8

// pauseFor returns how long a KindPFC packet asks its Priority to pause: 0
// resumes, engine.Forever pauses until resumed.
func (p *Packet) pauseFor() engine.Time { return p.Sent }

// Extra holds rare headers and content that matters. It is pooled with its
// packet: the slices belong to the packet, to append to.
type Extra struct {
	// Outer headers, outermost first, added by a mux or Encapsulate; the packet
	// is routed by the first. Its TTL, DSCP and ECN are then that header's, its
	// IPID the innermost's.
	Outer []model.FlowKey
	inner []innerHeader // of the headers inside each of Outer
	// Labels is the block of wire/label after the IP header: the option and the
	// items, newest first. Size includes it; Payload does not.
	Labels []byte
	// EtherType is set for packets that are not IP, such as polls.
	EtherType uint16
	// Content is the payload where it matters: reports, polls, probes.
	Content []byte
	// INT is the in-band telemetry that HPCC's congestion control reads.
	INT congestion.Stack
	// TCPAcked is the acknowledgement number of a TCP segment without a flow,
	// in bytes.
	TCPAcked uint32
}

const noFlow = -1

// Wire sizes of headers.
const (
	ethernetSize = 14
	minFrame     = 60 // Ethernet pads shorter frames
	rocePlain    = 12 + 4
	rethSize     = 16
	udpSize      = 8
	tcpSize      = 20
	pfcSize      = minFrame
	ns3PFCSize   = ethernetSize + 20 + 9 // time, queue length and priority after an IP header
)

// ipSize returns the length of the IP header of a key's family.
func ipSize(k *model.FlowKey) int32 {
	if k.V6 {
		return 40
	}
	return 20
}

// pool recycles packets.
type pool struct {
	free   *Packet
	spare  int // packets in free
	made   int // packets ever allocated: the maximum in use at once
	extras []*Extra

	leftOver *leftOver // of all workers; nil where there is one
}

// slab packets are allocated at once, aligned to cache lines; once a worker has largeSlab
// of them, as many at once, on huge pages. A fabric of k=16 has 60,000 packets in flight:
// with small pages, the translations of their addresses are not cached (figures in
// docs/simulator.md#how-fast-it-is).
const (
	slab      = 64
	largeSlab = 2 << 20 / 128
)

// get returns a zero packet.
func (l *pool) get() *Packet {
	if l.free == nil {
		l.refill()
	}
	p := l.free
	l.free = p.next
	l.spare--
	*p = Packet{flow: noFlow}
	return p
}

// refill adds packets that another worker has left over, or new ones.
func (l *pool) refill() {
	if l.leftOver != nil && l.leftOver.take(l) {
		return
	}
	n := slab
	if l.made >= largeSlab {
		n = largeSlab
	}
	more := make([]Packet, n)
	if n == largeSlab {
		hugepages.Advise(more)
	}
	for i := range more {
		l.put(&more[i])
	}
	l.made += n
}

func (l *pool) put(p *Packet) {
	if p.Extra != nil {
		l.recycle(p)
	}
	p.next = l.free
	l.free = p
	l.spare++
}

// recycle is a separate function so that put can be inlined.
func (l *pool) recycle(p *Packet) {
	l.extras = append(l.extras, p.Extra)
	p.Extra = nil
}

// extra returns the packet's Extra, an empty one if it had none.
func (l *pool) extra(p *Packet) *Extra {
	if p.Extra != nil {
		return p.Extra
	}
	k := len(l.extras)
	if k == 0 {
		p.Extra = &Extra{}
		return p.Extra
	}
	e := l.extras[k-1]
	l.extras = l.extras[:k-1]
	*e = Extra{Outer: e.Outer[:0], inner: e.inner[:0], Labels: e.Labels[:0], Content: e.Content[:0]}
	p.Extra = e
	return e
}

// fifo is an intrusive queue of packets.
type fifo struct {
	head, tail *Packet
	bytes      int64
	packets    int32
}

func (f *fifo) push(p *Packet) {
	p.next = nil
	if f.tail == nil {
		f.head = p
	} else {
		f.tail.next = p
	}
	f.tail = p
	f.bytes += int64(p.Size)
	f.packets++
}

func (f *fifo) pop() *Packet {
	p := f.head
	f.head = p.next
	if f.head == nil {
		f.tail = nil
	}
	f.bytes -= int64(p.Size)
	f.packets--
	return p
}
