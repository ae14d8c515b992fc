package rdma

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/roce"
)

// RequesterConfig configures the connection of a Requester.
type RequesterConfig struct {
	Window  int           // maximum number of unacknowledged packets, at most 2^22
	Timeout time.Duration // retransmit after this time without an acknowledgement
	Retries int           // timeouts in a row before the connection fails
}

// DefaultRequesterConfig has a window of 10 ms at a million packets per second,
// and fails as a NIC does, after 7 retries.
func DefaultRequesterConfig() RequesterConfig {
	return RequesterConfig{Window: 8192, Timeout: 20 * time.Millisecond, Retries: 7}
}

// RequesterStats account for one Requester, over all its connections.
// Invariant: Writes + Adds = Acked + Lost + unacknowledged packets.
type RequesterStats struct {
	Connections  uint64 `json:"connections"`
	Writes       uint64 `json:"writes"`
	Adds         uint64 `json:"adds"`
	Packets      uint64 `json:"packets"` // sent, including retransmissions
	Acked        uint64 `json:"acked"`
	Lost         uint64 `json:"lost"`        // unacknowledged when their connection ended, executed or not
	WindowFull   uint64 `json:"window_full"` // refused: window full, or no connection
	Timeouts     uint64 `json:"timeouts"`
	SequenceNaks uint64 `json:"sequence_naks"` // PSN gaps that the responder reported
	RemoteErrors uint64 `json:"remote_errors"` // fatal NAKs of the responder
	Unexpected   uint64 `json:"unexpected"`    // answers that match no request
}

// ackEvery is the number of packets between acknowledgement requests within a
// burst; its last packet has one too. Half a window would do, but a small window
// must not wait for a timeout.
const ackEvery = 64

// Requester is the sending half of a queue pair. It keeps packets until they
// are acknowledged, retransmits from a gap on, and fails the connection after
// too many timeouts; then the owner reconnects. It allocates nothing.
type Requester struct {
	cfg     RequesterConfig
	path    Path
	local   roce.QPN
	remote  roce.QPN
	up      bool
	first   roce.PSN // oldest unacknowledged packet
	count   int      // packets from first on
	sent    int      // those that were sent
	ring    [][]byte // whole packets, at PSN modulo its length
	scratch []byte
	since   model.Time // of the last progress
	tries   int
	stats   RequesterStats
}

// NewRequester returns a Requester with the queue pair number that its answers
// carry. It can send after Connect.
func NewRequester(cfg RequesterConfig, local roce.QPN) (*Requester, error) {
	if cfg.Window < 1 || cfg.Window > 1<<22 || cfg.Window&(cfg.Window-1) != 0 {
		return nil, fmt.Errorf("rdma: window of %d packets, want a power of two up to 2^22", cfg.Window)
	}
	if cfg.Timeout <= 0 || cfg.Retries < 0 {
		return nil, fmt.Errorf("rdma: timeout %v with %d retries, want a timeout above 0 and at least 0 retries",
			cfg.Timeout, cfg.Retries)
	}
	q := &Requester{cfg: cfg, local: local, ring: make([][]byte, cfg.Window)}
	// One block; a slot holds the largest packet.
	block := make([]byte, cfg.Window*(MTU+overhead))
	for i := range q.ring {
		q.ring[i] = block[: 0 : MTU+overhead]
		block = block[MTU+overhead:]
	}
	q.scratch = make([]byte, 0, MTU+overhead)
	return q, nil
}

// Local is the queue pair number that answers carry.
func (q *Requester) Local() roce.QPN { return q.local }

// Connect begins a connection. Unacknowledged packets of an earlier one are lost:
// they may have been executed or not, and an addition must not be executed twice.
func (q *Requester) Connect(now model.Time, path Path, remote roce.QPN, first roce.PSN) {
	q.Disconnect()
	q.stats.Connections++
	q.path, q.remote, q.first, q.up, q.since, q.tries = path, remote, first.Add(0), true, now, 0
}

// Disconnect ends the connection.
func (q *Requester) Disconnect() {
	q.stats.Lost += uint64(q.count)
	q.up, q.count, q.sent = false, 0, 0
}

// Connected reports whether the connection is up.
func (q *Requester) Connected() bool { return q.up }

// WindowFree returns the number of packets that fit into the window.
func (q *Requester) WindowFree() int {
	if !q.up {
		return 0
	}
	return q.cfg.Window - q.count
}

// Stats returns the present counts.
func (q *Requester) Stats() RequesterStats { return q.stats }

// Write stores at most MTU bytes at an address. It reports whether the window had
// a free slot.
func (q *Requester) Write(va uint64, key uint32, data []byte) bool {
	return q.write(roce.WriteOnly, va, key, data, 0)
}

// WriteImm is Write with data for the collector's program.
func (q *Requester) WriteImm(va uint64, key uint32, data []byte, imm roce.ImmDt) bool {
	return q.write(roce.WriteOnlyImm, va, key, data, imm)
}

func (q *Requester) write(op roce.Opcode, va uint64, key uint32, data []byte, imm roce.ImmDt) bool {
	if len(data) > MTU {
		panic(fmt.Sprintf("rdma: write of %d bytes, want at most %d", len(data), MTU))
	}
	p := roce.Packet{RETH: roce.RETH{VA: va, RKey: key, Length: uint32(len(data))}, Imm: imm, Payload: data}
	p.BTH.Opcode = op
	if pad := -len(data) & 3; pad != 0 {
		p.BTH.PadCount = uint8(pad)
		q.scratch = append(append(q.scratch[:0], data...), 0, 0, 0)
		p.Payload = q.scratch[:len(data)+pad]
	}
	if !q.enqueue(&p) {
		return false
	}
	q.stats.Writes++
	return true
}

// FetchAdd adds to the aligned word at an address. It reports like Write.
func (q *Requester) FetchAdd(va uint64, key uint32, delta uint64) bool {
	p := roce.Packet{Atomic: roce.AtomicETH{VA: va, RKey: key, SwapAdd: delta}}
	p.BTH.Opcode = roce.FetchAdd
	if !q.enqueue(&p) {
		return false
	}
	q.stats.Adds++
	return true
}

// enqueue adds a packet to the ring.
func (q *Requester) enqueue(p *roce.Packet) bool {
	if q.WindowFree() == 0 {
		q.stats.WindowFull++
		return false
	}
	p.BTH.PSN = q.first.Add(q.count)
	p.BTH.MigReq, p.BTH.PKey, p.BTH.DestQP = true, roce.DefaultPKey, q.remote
	p.BTH.AckReq = p.BTH.PSN%ackEvery == ackEvery-1
	at := q.packetAt(q.count)
	*at = q.path.appendPacket((*at)[:0], p)
	q.count++
	return true
}

// packetAt returns the ring slot of the i-th unacknowledged packet. The window is
// a power of two, so PSNs keep their slots when they wrap.
func (q *Requester) packetAt(i int) *[]byte { return &q.ring[int(q.first.Add(i))&(len(q.ring)-1)] }

// Next returns the UDP payload of the next packet to send, or nil. It is valid
// until an answer is handled. The last packet of a burst requests an
// acknowledgement.
func (q *Requester) Next(now model.Time) []byte {
	if q.sent == q.count {
		return nil
	}
	if q.sent == 0 {
		q.since = now
	}
	pkt := *q.packetAt(q.sent)
	q.sent++
	q.stats.Packets++
	if q.sent == q.count {
		pkt = q.requestAck(pkt)
	}
	return pkt[q.path.headers():]
}

// ackReqAt is the offset of the AckReq bit in the base transport header.
const ackReqAt = 8

// requestAck sets AckReq in a packet of the ring.
func (q *Requester) requestAck(pkt []byte) []byte {
	body := q.path.headers()
	if pkt[body+ackReqAt]&0x80 != 0 {
		return pkt
	}
	pkt[body+ackReqAt] |= 0x80
	end := len(pkt) - roce.ICRCSize
	pkt, err := roce.AppendICRC(pkt[:end], pkt[:end])
	if err != nil {
		panic("rdma: own packet: " + err.Error())
	}
	return pkt
}

// Handle processes the UDP payload of an answer.
func (q *Requester) Handle(now model.Time, from netip.AddrPort, payload []byte) {
	var p roce.Packet
	if !q.up || from != q.path.Dst || len(payload) < roce.ICRCSize {
		q.stats.Unexpected++
		return
	}
	var err error
	if q.scratch, err = (Path{from, q.path.Src}).check(q.scratch, payload); err != nil {
		q.stats.Unexpected++
		return
	}
	if _, err := p.Parse(payload[:len(payload)-roce.ICRCSize]); err != nil || p.BTH.DestQP != q.local ||
		p.BTH.Opcode != roce.Acknowledge && p.BTH.Opcode != roce.AtomicAcknowledge {
		q.stats.Unexpected++
		return
	}
	d := p.BTH.PSN.Sub(q.first)
	switch s := p.AETH.Syndrome; {
	case s.IsAck():
		// It acknowledges all before it too, and may be old.
		if d >= q.count {
			q.stats.Unexpected++
		} else if d >= 0 {
			q.acknowledge(now, d+1)
		}
	case s == roce.NakSequence:
		if d < 0 || d > q.count {
			q.stats.Unexpected++
			return
		}
		q.stats.SequenceNaks++
		q.acknowledge(now, d)
		q.sent = 0
	case s.IsRNR():
		q.acknowledge(now, max(0, min(d, q.count)))
		q.sent = 0
	default:
		q.stats.RemoteErrors++
		q.Disconnect()
	}
}

// acknowledge removes the n oldest packets.
func (q *Requester) acknowledge(now model.Time, n int) {
	q.stats.Acked += uint64(n)
	q.first = q.first.Add(n)
	q.count -= n
	q.sent = max(0, q.sent-n)
	if n > 0 {
		q.since, q.tries = now, 0
	}
}

// Tick retransmits from the oldest packet after the timeout, and fails the
// connection after the last retry.
func (q *Requester) Tick(now model.Time) {
	if !q.up || q.sent == 0 || now.Sub(q.since) < q.cfg.Timeout {
		return
	}
	q.stats.Timeouts++
	if q.tries++; q.tries > q.cfg.Retries {
		q.Disconnect()
		return
	}
	q.since, q.sent = now, 0
}

// Peer is the destination of packets.
func (q *Requester) Peer() netip.AddrPort { return q.path.Dst }
