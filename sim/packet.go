package sim

import (
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/congestion"
	"github.com/weft-telemetry/weft/sim/engine"
)

// Kind says what a packet is for. Switches look only at KindPFC; the rest is
// for hosts and programs.
type Kind uint8

// Kinds of packet.
const (
	KindData  Kind = iota // RDMA payload
	KindAck               // RDMA acknowledgement
	KindNack              // RDMA negative acknowledgement: go back to Ack
	KindCNP               // congestion notification
	KindPFC               // pause frame; never forwarded
	KindTCP               // TCP segment, payload or not
	KindUDP               // plain datagram
	KindOther             // anything a program or a test sends
)

// ECN bits of the IP header.
const (
	NotECT uint8 = 0
	ECT    uint8 = 2
	CE     uint8 = 3
)

// Packet is a packet on its way. It holds the values its headers would have on
// a wire, not the bytes; Frame writes those when somebody looks.
//
// Packets are pooled. Whoever holds one last gives it back: the host that
// received it or the place that dropped it. A program must not keep one.
type Packet struct {
	// What a switch looks at comes first, in one line of the cache: a packet
	// that only passes touches no other.
	next *Packet // in a queue, on a wire, or in the pool

	// EnqueuedAt is when the packet joined the queue that holds it, behind Ahead
	// bytes; known only where a program runs at StageDequeue. On a wire, where
	// it is of no use, it is when the packet behind this one arrives.
	EnqueuedAt engine.Time
	BytesAhead  int32

	Size int32 // bytes on the wire: Ethernet header to payload, no FCS, no preamble

	// KeyID stands for Key where it is not 0: packets of the same number have
	// the same key. Flows give it to their packets; V6 knows the family by it.
	KeyID   uint32
	IPID    uint16
	path    path8  // the way as far as the flow knew it when the packet was made
	tableVersion uint16 // state of the tables it was found in

	ingress  model.PortID // of the switch that holds it
	buffered uint16       // Size when the switch took it in: what it gives back
	hop      uint8        // switches passed
	direction      uint8        // 1 from the flow's destination to its source, else 0

	Kind     Kind
	Priority model.Priority
	Control  bool // goes into the queue that PFC never pauses
	TTL      uint8
	ECN      uint8
	DSCP     uint8
	TCPFlags uint8
	Echo     bool // an acknowledgement that reports a congestion mark

	// Extra is what few packets have; nil otherwise.
	Extra *Extra

	// The second line is for hosts, and for programs that do not know KeyID.
	Key model.FlowKey

	// Seq is the first payload byte, counted from the start of the flow; of an
	// acknowledgement, the next byte that the receiver expects.
	Seq int64

	// Sent is when the data left its host; acknowledgements carry it back. Of
	// a pause frame, which needs no such time, it is the length of the pause.
	Sent engine.Time

	flow    int32 // index in Network.flows, or noFlow
	Payload int32 // bytes of user data in it
}

const keyV6 = 1 << 31 // in KeyIDs of IPv6

// V6 is Key.V6, without a look at the second line where that is possible.
func (p *Packet) V6() bool {
	if p.KeyID != 0 {
		return p.KeyID&keyV6 != 0
	}
	return p.Key.V6
}

// path8 is a way as port numbers, hop by hop; 0 is not known.
type path8 [8]uint8

// pauseFor is how long a KindPFC packet asks its Priority to pause: 0 resumes,
// engine.Forever pauses until resumed.
func (p *Packet) pauseFor() engine.Time { return p.Sent }

// Extra holds headers beyond the usual ones and content that matters. It is
// pooled with its packet: the slices are the packet's own, to append to.
type Extra struct {
	// Outer headers, outermost first, put there by a mux or Encapsulate; the
	// packet is routed by the first. Its TTL, DSCP and ECN are then that
	// header's, its IPID the innermost's.
	Outer []model.FlowKey
	inner []innerHeader // what the headers beneath each of Outer say
	// Labels is the block of wire/label behind the IP header: the option and
	// the items, newest first. Size includes it; Payload does not.
	Labels []byte
	// EtherType is set for packets that are not IP, such as polls.
	EtherType uint16
	// Content is the payload where it matters: reports, polls, probes.
	Content []byte
	// INT is what switches wrote for HPCC's congestion control.
	INT congestion.Stack
	// TCPAcked is how many bytes a TCP segment of no flow acknowledges.
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
	ns3PFCSize   = ethernetSize + 20 + 9 // time, queue length and priority behind an IP header
)

// ipSize is the length of the IP header of a key's family.
func ipSize(k *model.FlowKey) int32 {
	if k.V6 {
		return 40
	}
	return 20
}

// pool recycles packets.
type pool struct {
	free   *Packet
	made   int // packets ever made: what the run needed at once
	extras []*Extra
}

// slab packets are made at once: together they are aligned to the lines of the
// cache.
const slab = 64

// get returns a zero packet.
func (l *pool) get() *Packet {
	if l.free == nil {
		more := new([slab]Packet)
		for i := range more {
			l.put(&more[i])
		}
		l.made += slab
	}
	p := l.free
	l.free = p.next
	*p = Packet{flow: noFlow}
	return p
}

func (l *pool) put(p *Packet) {
	if p.Extra != nil {
		l.recycle(p)
	}
	p.next = l.free
	l.free = p
}

// recycle stands apart to keep put short enough to be inlined.
func (l *pool) recycle(p *Packet) {
	l.extras = append(l.extras, p.Extra)
	p.Extra = nil
}

// extra gives a packet an empty Extra, unless it has one.
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

// fifo is a queue of packets linked through themselves.
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
