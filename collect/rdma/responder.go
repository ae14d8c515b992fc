package rdma

import (
	"fmt"
	"math/rand/v2"
	"net/netip"

	"github.com/weft-telemetry/weft/wire/roce"
)

// Memory is the memory that a Responder writes into; region.Region is one.
type Memory interface {
	// Write stores b at byte off. It stores nothing if a part is out of bounds.
	Write(off uint64, b []byte) error
	// FetchAdd adds to the aligned word at byte off and returns its previous value.
	FetchAdd(off, delta uint64) (uint64, error)
	// CompareSwap stores swap in the aligned word at byte off if it holds compare, and
	// returns its previous value.
	CompareSwap(off, compare, swap uint64) (uint64, error)
	Size() int64
}

// ResponderStats account for every packet.
// Invariant: Packets = Writes + Adds + Swaps + Sends + Parts + all of Refused.
type ResponderStats struct {
	Packets uint64           `json:"packets"`
	Writes  uint64           `json:"writes"`
	Adds    uint64           `json:"adds"`
	Swaps   uint64           `json:"swaps"` // CMP_SWAPs, whether their word changed or not
	Sends   uint64           `json:"sends"` // messages for the program
	Parts   uint64           `json:"parts"` // packets of a write that is not complete with them
	Bytes   uint64           `json:"bytes"` // written
	Acks    uint64           `json:"acks"`
	Naks    uint64           `json:"naks"`
	Refused [refusals]uint64 `json:"refused_by_reason"`
}

// Region is memory that is registered for remote writes.
type Region struct {
	Addr   uint64 // its start, as a virtual address in packets
	Length uint64
	RKey   uint32
}

type registered struct {
	Region
	mem Memory
}

// queuePair is the receive half of a queue pair: a Requester may be the other.
type queuePair struct {
	Connection
	mtu      int
	expected roce.PSN
	done     uint32 // messages completed, 24 bits
	failed   bool
	nakked   bool // a NAK was sent for the current gap
	packets  uint64
	rest     pendingWrite

	// Results of the latest atomic operations, for retransmitted requests.
	results [MaxAtomics]atomicResult
	next    int
	// endsAtomic is whether the latest operation was atomic: its number alone does not say so,
	// because numbers wrap and results stay.
	endsAtomic bool
}

// pendingWrite is the rest of a write of several packets.
type pendingWrite struct {
	mem Memory // nil: none is pending
	off uint64
	n   uint64
}

// Responder executes requests on registered memory. It is for one goroutine,
// and allocates nothing but for connections.
type Responder struct {
	local   netip.AddrPort
	regions []registered
	queues  map[roce.QPN]*queuePair
	last    *queuePair
	random  *rand.Rand
	scratch []byte
	packet  roce.Packet
	to      netip.AddrPort
	stats   ResponderStats
	// notify is called with immediate data.
	notify func(roce.ImmDt)
}

// NewResponder returns a Responder at an address. Keys, addresses and numbers
// of queue pairs are drawn from random, so that those of an earlier process are
// not valid by chance. notify, which may be nil, is called with immediate data.
func NewResponder(local netip.AddrPort, random *rand.Rand, notify func(roce.ImmDt)) *Responder {
	return &Responder{local: local, queues: map[roce.QPN]*queuePair{}, random: random, scratch: make([]byte, 0, MaxMTU+overhead), notify: notify}
}

// Register registers memory for remote writes.
func (r *Responder) Register(mem Memory) Region {
	at := registered{mem: mem}
	at.Length = uint64(mem.Size())
	// Page-aligned, not at zero, and with enough address space after it.
	at.Addr = r.random.Uint64()>>2&^0xfff | 1<<40
	for at.RKey == 0 || r.lookupRegion(at.RKey) != nil {
		at.RKey = r.random.Uint32()
	}
	r.regions = append(r.regions, at)
	return at.Region
}

func (r *Responder) lookupRegion(key uint32) *registered {
	for i := range r.regions {
		if r.regions[i].RKey == key {
			return &r.regions[i]
		}
	}
	return nil
}

// Connect makes a queue pair for a peer and returns its number. The peer's packets
// come from the address of c.Path.Dst, from any port; answers go to its port.
func (r *Responder) Connect(c Connection) (roce.QPN, error) {
	c.Path.Src = r.local
	if err := c.check(); err != nil {
		return 0, err
	}
	if c.Local != 0 && r.queues[c.Local] != nil {
		return 0, fmt.Errorf("rdma: queue pair %#x exists", c.Local)
	}
	for c.Local < 2 || r.queues[c.Local] != nil { // 0 and 1 are reserved by InfiniBand
		c.Local = roce.QPN(r.random.Uint32() & (1<<24 - 1))
	}
	r.queues[c.Local] = &queuePair{Connection: c, mtu: c.mtu(), expected: c.First.Add(0)}
	return c.Local, nil
}

// Disconnect destroys a queue pair: its later packets are not executed.
func (r *Responder) Disconnect(qp roce.QPN) {
	delete(r.queues, qp)
	r.last = nil
}

// PausedQueuePair is the state of a queue pair whose connection ended: which packets
// were executed.
type PausedQueuePair struct{ q *queuePair }

// Number is the number that the queue pair had.
func (p PausedQueuePair) Number() roce.QPN { return p.q.Local }

// Expected is the number of the first packet that was not executed.
func (p PausedQueuePair) Expected() roce.PSN { return p.q.expected }

// Pause destroys a queue pair and returns its state for Resume; none of one that
// failed, whose next packet must not be executed.
func (r *Responder) Pause(qp roce.QPN) (PausedQueuePair, bool) {
	q := r.queues[qp]
	r.Disconnect(qp)
	return PausedQueuePair{q}, q != nil && !q.failed
}

// Resume is Connect for a peer that continues where a paused queue pair ended, with
// p.Expected as its first packet, whatever c.First is.
func (r *Responder) Resume(p PausedQueuePair, c Connection) (roce.QPN, error) {
	qp, err := r.Connect(c)
	if err != nil {
		return 0, err
	}
	resumed := *p.q
	resumed.Connection, resumed.nakked = r.queues[qp].Connection, false
	r.queues[qp] = &resumed
	return qp, nil
}

// Packets is the number of packets that a queue pair received from its peer.
func (r *Responder) Packets(qp roce.QPN) uint64 {
	if q := r.queues[qp]; q != nil {
		return q.packets
	}
	return 0
}

// QueuePairs is the number of queue pairs.
func (r *Responder) QueuePairs() int { return len(r.queues) }

// Stats returns the present counts.
func (r *Responder) Stats() ResponderStats { return r.stats }

// AnswerTo is the destination of the answer that Handle returned last.
func (r *Responder) AnswerTo() netip.AddrPort { return r.to }

// Handle processes the UDP payload of a packet and returns the payload of the
// answer to AnswerTo, or nil. The answer is valid until the next call.
func (r *Responder) Handle(from netip.AddrPort, payload []byte) []byte {
	r.stats.Packets++
	p := &r.packet
	if len(payload) < roce.BTHSize+roce.ICRCSize {
		return r.refuse(Truncated)
	}
	if from.Addr().Is4() != r.local.Addr().Is4() {
		return r.refuse(WrongPeer)
	}
	q := r.queueOf(payload)
	var err error
	if r.scratch, err = (Path{from, r.local}).check(r.scratch, payload, q != nil && q.AnyIdentification); err != nil {
		return r.refuse(BadICRC)
	}
	if _, err := p.Parse(payload[:len(payload)-roce.ICRCSize]); err != nil {
		return r.refuse(Truncated)
	}
	if p.BTH.Version != 0 || p.BTH.PKey != roce.DefaultPKey {
		return r.refuse(BadVersion)
	}
	if q == nil {
		return r.refuse(UnknownQP)
	}
	if q.Path.Dst.Addr() != from.Addr() {
		return r.refuse(WrongPeer)
	}
	if q.failed {
		return r.refuse(QPInError)
	}
	q.packets++
	r.last = q
	return r.execute(q, p)
}

// queueOf returns the queue pair that a packet names, or nil. How its CRC is
// checked depends on it.
func (r *Responder) queueOf(payload []byte) *queuePair {
	qp := roce.QPN(payload[5])<<16 | roce.QPN(payload[6])<<8 | roce.QPN(payload[7])
	if r.last != nil && r.last.Local == qp {
		return r.last
	}
	return r.queues[qp]
}

func (r *Responder) refuse(why Refusal) []byte {
	r.stats.Refused[why]++
	return nil
}

// execute executes a packet if it has the expected PSN.
func (r *Responder) execute(q *queuePair, p *roce.Packet) []byte {
	// The PSN is checked first: who forges a source address and guesses a queue
	// pair must also guess the PSN to make it fail.
	switch d := p.BTH.PSN.Sub(q.expected); {
	case d < 0:
		return r.answerDuplicate(q, p)
	case d > 0:
		r.stats.Refused[PSNGap]++
		if q.nakked {
			return nil // once per gap: the requester retransmits from it
		}
		q.nakked = true
		return r.answer(q, q.expected, roce.AETH{Syndrome: roce.NakSequence, MSN: q.done}, nil)
	}
	why, nak, was := r.perform(q, p)
	if nak != roce.AckNoCredit {
		return r.failQueuePair(q, p, why, nak)
	}
	q.expected = q.expected.Add(1)
	q.nakked = false
	q.endsAtomic = isAtomic(p.BTH.Opcode)
	if q.rest.mem == nil { // the packet ended its message
		q.done = (q.done + 1) & (1<<24 - 1)
	}
	switch op := p.BTH.Opcode; {
	case isAtomic(op):
		return r.answer(q, p.BTH.PSN, roce.AETH{Syndrome: nak, MSN: q.done}, &was)
	case (op == roce.WriteOnlyImm || op == roce.WriteLastImm) && r.notify != nil:
		r.notify(p.Imm)
	}
	if !p.BTH.AckReq {
		return nil
	}
	return r.answer(q, p.BTH.PSN, roce.AETH{Syndrome: nak, MSN: q.done}, nil)
}

// perform executes a packet that has the expected PSN. It returns AckNoCredit, or
// the NAK that refuses it and why.
func (r *Responder) perform(q *queuePair, p *roce.Packet) (why Refusal, nak roce.Syndrome, was uint64) {
	ok := false
	pending := q.rest.mem != nil
	switch op := p.BTH.Opcode; {
	case isAtomic(op) && !pending:
		if was, why, ok = r.atomic(p); ok {
			q.results[q.next] = atomicResult{p.BTH.PSN, true, was}
			q.next = (q.next + 1) % MaxAtomics
		}
	case (op == roce.WriteOnly || op == roce.WriteOnlyImm || op == roce.WriteFirst) && !pending:
		why, ok = r.beginWrite(q, p)
	case (op == roce.WriteMiddle || op == roce.WriteLast || op == roce.WriteLastImm) && pending:
		why, ok = r.continueWrite(q, p, op != roce.WriteMiddle)
	case op == roce.SendOnly && !pending && q.Receive != nil:
		if ok = len(p.Data()) <= q.mtu && len(p.Payload)%4 == 0; !ok {
			return BadLength, roce.NakRequest, 0
		}
		r.stats.Sends++
		q.Receive(p.Data())
	default:
		return BadOpcode, roce.NakRequest, 0
	}
	if !ok {
		return why, roce.NakAccess, 0
	}
	return 0, roce.AckNoCredit, was
}

// answerDuplicate answers a packet that was executed before. Executing it again
// would count twice.
func (r *Responder) answerDuplicate(q *queuePair, p *roce.Packet) []byte {
	r.stats.Refused[DuplicatePSN]++
	ack := roce.AETH{Syndrome: roce.AckNoCredit, MSN: q.done}
	if isAtomic(p.BTH.Opcode) {
		if was := q.result(p.BTH.PSN); was != nil {
			return r.answer(q, p.BTH.PSN, ack, was)
		}
		return nil
	}
	// All that was executed is acknowledged. If that ends with an atomic operation, its result
	// belongs to the answer: a peer that waits for it would take its buffer for the result.
	var was *uint64
	if q.endsAtomic {
		was = q.result(q.expected.Add(-1))
	}
	return r.answer(q, q.expected.Add(-1), ack, was)
}

// failQueuePair refuses a packet with a fatal NAK: as in a NIC, the queue pair
// executes nothing more until the peer reconnects.
func (r *Responder) failQueuePair(q *queuePair, p *roce.Packet, why Refusal, nak roce.Syndrome) []byte {
	r.stats.Refused[why]++
	q.failed = true
	return r.answer(q, p.BTH.PSN, roce.AETH{Syndrome: nak, MSN: q.done}, nil)
}

// locate finds n bytes at an address.
func (r *Responder) locate(va uint64, key uint32, n uint64) (m Memory, off uint64, why Refusal, ok bool) {
	at := r.lookupRegion(key)
	if at == nil {
		return nil, 0, BadRKey, false
	}
	// Compare differences: an address near the end of the address space must not
	// wrap into the region.
	if va < at.Addr || va-at.Addr > at.Length || n > at.Length-(va-at.Addr) {
		return nil, 0, OutOfBounds, false
	}
	return at.mem, va - at.Addr, 0, true
}

// beginWrite executes the first packet of a write, which may be its only one.
// The whole message must be within the region.
func (r *Responder) beginWrite(q *queuePair, p *roce.Packet) (Refusal, bool) {
	data, length := p.Data(), uint64(p.RETH.Length)
	if p.BTH.Opcode == roce.WriteFirst {
		if len(data) != q.mtu || p.BTH.PadCount != 0 || length <= uint64(q.mtu) {
			return BadLength, false
		}
	} else if length != uint64(len(data)) || len(data) > q.mtu || len(p.Payload)%4 != 0 {
		return BadLength, false
	}
	m, off, why, ok := r.locate(p.RETH.VA, p.RETH.RKey, length)
	if !ok {
		return why, false
	}
	return r.store(q, pendingWrite{m, off, length}, data)
}

// continueWrite executes another packet of a write.
func (r *Responder) continueWrite(q *queuePair, p *roce.Packet, last bool) (Refusal, bool) {
	data := p.Data()
	n := uint64(len(data))
	if last && (n != q.rest.n || n > uint64(q.mtu) || len(p.Payload)%4 != 0) ||
		!last && (n != uint64(q.mtu) || n >= q.rest.n || p.BTH.PadCount != 0) {
		return BadLength, false
	}
	return r.store(q, q.rest, data)
}

// store writes the data of a packet, and what remains of the write to q.
func (r *Responder) store(q *queuePair, w pendingWrite, data []byte) (Refusal, bool) {
	if w.mem.Write(w.off, data) != nil {
		return OutOfBounds, false
	}
	r.stats.Bytes += uint64(len(data))
	q.rest = pendingWrite{}
	if n := uint64(len(data)); n < w.n {
		q.rest = pendingWrite{w.mem, w.off + n, w.n - n}
		r.stats.Parts++
	} else {
		r.stats.Writes++
	}
	return 0, true
}

// answer makes an acknowledgement, with the result of an atomic operation if
// there is one.
func (r *Responder) answer(q *queuePair, psn roce.PSN, a roce.AETH, was *uint64) []byte {
	if a.Syndrome.IsAck() {
		r.stats.Acks++
	} else {
		r.stats.Naks++
	}
	pkt := roce.Packet{
		BTH:  roce.BTH{Opcode: roce.Acknowledge, MigReq: true, PKey: roce.DefaultPKey, DestQP: q.Remote, PSN: psn},
		AETH: a,
	}
	if was != nil {
		pkt.BTH.Opcode = roce.AtomicAcknowledge
		pkt.AtomicAck = roce.AtomicAckETH(*was)
	}
	r.to = q.Path.Dst
	r.scratch = q.Path.appendPacket(r.scratch[:0], &pkt)
	return r.scratch[q.Path.headers():]
}
