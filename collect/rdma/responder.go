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
	Size() int64
}

// Refusal is the reason why a packet was not executed.
type Refusal uint8

// The refusals.
const (
	Truncated    Refusal = iota // ends inside a header
	BadICRC                     // wrong invariant CRC
	BadVersion                  // transport header version, or partition
	UnknownQP                   // no such queue pair
	WrongPeer                   // not from the queue pair's peer
	QPInError                   // the queue pair is in the error state
	BadOpcode                   // unsupported operation
	PSNGap                      // a packet before it is missing
	DuplicatePSN                // already executed; acknowledged again
	BadRKey                     // unknown R_Key
	OutOfBounds                 // outside the region
	Misaligned                  // an atomic operation not on a whole word
	BadLength                   // header and payload do not agree
	refusals
)

var refusalNames = [refusals]string{
	"truncated", "bad ICRC", "bad version", "unknown QP", "wrong peer", "QP in error state", "unsupported opcode",
	"PSN gap", "duplicate PSN", "invalid R_Key", "out of bounds", "misaligned", "length mismatch",
}

// String names the refusal.
func (r Refusal) String() string { return refusalNames[r] }

// Refusals returns all reasons.
func Refusals() (all []Refusal) {
	for r := range refusals {
		all = append(all, r)
	}
	return all
}

// ResponderStats account for every packet.
// Invariant: Packets = Writes + Adds + all of Refused.
type ResponderStats struct {
	Packets uint64           `json:"packets"`
	Writes  uint64           `json:"writes"`
	Adds    uint64           `json:"adds"`
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

// queuePair is the receive half of a queue pair. There is no send half, because
// translators are not written to.
type queuePair struct {
	local, remote roce.QPN
	peer          netip.AddrPort // the requester; answers go to its port
	expected      roce.PSN
	done          uint32 // messages completed, 24 bits
	failed        bool
	nakked        bool // a NAK was sent for the current gap

	// Results of the latest atomic operations, for retransmitted requests.
	results [maxAtomicResults]atomicResult
	next    int
}

type atomicResult struct {
	psn   roce.PSN
	valid bool
	was   uint64
}

// maxAtomicResults is the number of results that a queue pair keeps: the number
// of outstanding atomic operations of common NICs.
const maxAtomicResults = 16

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
	stats   ResponderStats
	// notify is called with immediate data.
	notify func(roce.ImmDt)
}

// NewResponder returns a Responder at an address. Keys, addresses and numbers
// of queue pairs are drawn from random, so that those of an earlier process are
// not valid by chance. notify, which may be nil, is called with immediate data.
func NewResponder(local netip.AddrPort, random *rand.Rand, notify func(roce.ImmDt)) *Responder {
	return &Responder{local: local, queues: map[roce.QPN]*queuePair{}, random: random, scratch: make([]byte, 0, 4096), notify: notify}
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

// Connect makes a queue pair for a peer and returns its number. The first PSN of
// answers is the requester's.
func (r *Responder) Connect(peer netip.AddrPort, remote roce.QPN, first roce.PSN) (roce.QPN, error) {
	if peer.Addr().Is4() != r.local.Addr().Is4() {
		return 0, fmt.Errorf("rdma: peer %v of %v, want the same family", peer, r.local)
	}
	q := &queuePair{remote: remote, peer: peer, expected: first.Add(0)}
	for q.local < 2 || r.queues[q.local] != nil { // 0 and 1 are reserved by InfiniBand
		q.local = roce.QPN(r.random.Uint32() & (1<<24 - 1))
	}
	r.queues[q.local] = q
	return q.local, nil
}

// Disconnect destroys a queue pair: its later packets are not executed.
func (r *Responder) Disconnect(qp roce.QPN) {
	delete(r.queues, qp)
	r.last = nil
}

// QueuePairs is the number of queue pairs.
func (r *Responder) QueuePairs() int { return len(r.queues) }

// Stats returns the present counts.
func (r *Responder) Stats() ResponderStats { return r.stats }

// Handle processes the UDP payload of a packet and returns the payload of the
// answer, or nil. The answer is valid until the next call.
func (r *Responder) Handle(from netip.AddrPort, payload []byte) []byte {
	r.stats.Packets++
	p := &r.packet
	if len(payload) < roce.BTHSize+roce.ICRCSize {
		return r.refuse(Truncated)
	}
	if from.Addr().Is4() != r.local.Addr().Is4() {
		return r.refuse(WrongPeer)
	}
	var err error
	if r.scratch, err = (Path{from, r.local}).check(r.scratch, payload); err != nil {
		return r.refuse(BadICRC)
	}
	if _, err := p.Parse(payload[:len(payload)-roce.ICRCSize]); err != nil {
		return r.refuse(Truncated)
	}
	if p.BTH.Version != 0 || p.BTH.PKey != roce.DefaultPKey {
		return r.refuse(BadVersion)
	}
	q := r.last
	if q == nil || q.local != p.BTH.DestQP {
		if q = r.queues[p.BTH.DestQP]; q == nil {
			return r.refuse(UnknownQP)
		}
		r.last = q
	}
	if q.peer != from {
		return r.refuse(WrongPeer)
	}
	if q.failed {
		return r.refuse(QPInError)
	}
	return r.execute(q, p)
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
	switch p.BTH.Opcode {
	case roce.WriteOnly, roce.WriteOnlyImm, roce.FetchAdd:
	default:
		return r.failQueuePair(q, p, BadOpcode, roce.NakRequest)
	}
	var was uint64
	if p.BTH.Opcode == roce.FetchAdd {
		var why Refusal
		var ok bool
		if was, why, ok = r.fetchAdd(p); !ok {
			return r.failQueuePair(q, p, why, roce.NakAccess)
		}
		q.results[q.next] = atomicResult{p.BTH.PSN, true, was}
		q.next = (q.next + 1) % maxAtomicResults
	} else if why, ok := r.write(p); !ok {
		return r.failQueuePair(q, p, why, roce.NakAccess)
	}
	q.expected = q.expected.Add(1)
	q.done = (q.done + 1) & (1<<24 - 1)
	q.nakked = false
	if p.BTH.Opcode == roce.WriteOnlyImm && r.notify != nil {
		r.notify(p.Imm)
	}
	if p.BTH.Opcode == roce.FetchAdd {
		return r.answer(q, p.BTH.PSN, roce.AETH{Syndrome: roce.AckNoCredit, MSN: q.done}, &was)
	}
	if !p.BTH.AckReq {
		return nil
	}
	return r.answer(q, p.BTH.PSN, roce.AETH{Syndrome: roce.AckNoCredit, MSN: q.done}, nil)
}

// answerDuplicate answers a packet that was executed before. Executing it again
// would count twice.
func (r *Responder) answerDuplicate(q *queuePair, p *roce.Packet) []byte {
	r.stats.Refused[DuplicatePSN]++
	ack := roce.AETH{Syndrome: roce.AckNoCredit, MSN: q.done}
	if p.BTH.Opcode != roce.FetchAdd {
		return r.answer(q, q.expected.Add(-1), ack, nil)
	}
	for i := range q.results {
		if x := &q.results[i]; x.valid && x.psn == p.BTH.PSN {
			return r.answer(q, p.BTH.PSN, ack, &x.was)
		}
	}
	return nil
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

func (r *Responder) write(p *roce.Packet) (Refusal, bool) {
	data := p.Data()
	if uint64(p.RETH.Length) != uint64(len(data)) || len(data) > MTU || len(p.Payload)%4 != 0 {
		return BadLength, false
	}
	m, off, why, ok := r.locate(p.RETH.VA, p.RETH.RKey, uint64(len(data)))
	if !ok {
		return why, false
	}
	if m.Write(off, data) != nil {
		return OutOfBounds, false
	}
	r.stats.Writes++
	r.stats.Bytes += uint64(len(data))
	return 0, true
}

func (r *Responder) fetchAdd(p *roce.Packet) (was uint64, why Refusal, ok bool) {
	if len(p.Payload) != 0 {
		return 0, BadLength, false
	}
	m, off, why, ok := r.locate(p.Atomic.VA, p.Atomic.RKey, 8)
	if !ok {
		return 0, why, false
	}
	if p.Atomic.VA%8 != 0 {
		return 0, Misaligned, false
	}
	was, err := m.FetchAdd(off, p.Atomic.SwapAdd)
	if err != nil {
		return 0, OutOfBounds, false
	}
	r.stats.Adds++
	return was, 0, true
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
		BTH:  roce.BTH{Opcode: roce.Acknowledge, MigReq: true, PKey: roce.DefaultPKey, DestQP: q.remote, PSN: psn},
		AETH: a,
	}
	if was != nil {
		pkt.BTH.Opcode = roce.AtomicAcknowledge
		pkt.AtomicAck = roce.AtomicAckETH(*was)
	}
	path := Path{r.local, q.peer}
	r.scratch = path.appendPacket(r.scratch[:0], &pkt)
	return r.scratch[path.headers():]
}
