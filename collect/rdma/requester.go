package rdma

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/roce"
)

// RequesterConfig configures the connections of a Requester.
type RequesterConfig struct {
	Window  int           // maximum number of unacknowledged packets, at most 2^22
	Timeout time.Duration // retransmit after this time without an acknowledgement
	// Retries is the number of timeouts and PSN gaps in a row, without any packet
	// acknowledged, before the connection fails.
	Retries int
	// RNRRetries is that of answers that the responder is not ready for a message. It
	// says how long to wait each time, 10 µs to 655 ms.
	RNRRetries int
	MTU        int // largest Connection.MTU
}

// DefaultRequesterConfig has a window of 10 ms at a million packets per second,
// and fails as a NIC does, after 7 retries.
func DefaultRequesterConfig() RequesterConfig {
	return RequesterConfig{Window: 8192, Timeout: 20 * time.Millisecond, Retries: 7, RNRRetries: 7, MTU: MTU}
}

// RequesterStats account for one Requester, over all its connections.
// Invariant: Writes + Adds + Swaps + Sends = Acked + Lost + unacknowledged operations.
type RequesterStats struct {
	Connections  uint64 `json:"connections"`
	Writes       uint64 `json:"writes"`
	Adds         uint64 `json:"adds"`
	Swaps        uint64 `json:"swaps"` // CMP_SWAPs, whether their word changed or not
	Sends        uint64 `json:"sends"`
	Packets      uint64 `json:"packets"` // sent, including retransmissions
	Acked        uint64 `json:"acked"`
	Lost         uint64 `json:"lost"`        // unacknowledged when their connection ended and none continued it, executed or not
	Resumed      uint64 `json:"resumed"`     // connections that continued an earlier one
	WindowFull   uint64 `json:"window_full"` // refused: window full, or no connection
	Timeouts     uint64 `json:"timeouts"`
	SequenceNaks uint64 `json:"sequence_naks"` // PSN gaps that the responder reported
	RNRNaks      uint64 `json:"rnr_naks"`      // answers that the responder was not ready
	RemoteErrors uint64 `json:"remote_errors"` // fatal NAKs of the responder
	GivenUp      uint64 `json:"given_up"`      // connections that failed after the last retry
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
	cfg      RequesterConfig
	conn     Connection
	local    roce.QPN
	up       bool
	paused   bool     // the connection ended, and its packets wait for one that continues it
	first    roce.PSN // oldest unacknowledged packet
	count    int      // packets from first on
	sent     int      // those that were sent
	atomics  int      // atomic operations among those
	ring     [][]byte // whole packets, at PSN modulo its length
	scratch  []byte
	since    model.Time // of the last progress
	notReady model.Time // nothing is sent before: the responder was not ready
	tries    int
	rnrTries int
	stats    RequesterStats
}

// NewRequester returns a Requester with the queue pair number that its answers
// carry. It can send after Connect.
func NewRequester(cfg RequesterConfig, local roce.QPN) (*Requester, error) {
	if cfg.Window < 1 || cfg.Window > 1<<22 || cfg.Window&(cfg.Window-1) != 0 {
		return nil, fmt.Errorf("rdma: window of %d packets, want a power of two up to 2^22", cfg.Window)
	}
	if cfg.Timeout <= 0 || cfg.Retries < 0 || cfg.RNRRetries < 0 {
		return nil, fmt.Errorf("rdma: timeout %v with %d retries and %d of a responder that is not ready, "+
			"want a timeout above 0 and at least 0 retries", cfg.Timeout, cfg.Retries, cfg.RNRRetries)
	}
	if cfg.MTU < 256 || cfg.MTU > MaxMTU {
		return nil, fmt.Errorf("rdma: MTU of %d, want 256 to %d", cfg.MTU, MaxMTU)
	}
	q := &Requester{cfg: cfg, local: local, ring: make([][]byte, cfg.Window)}
	// One block; a slot holds the largest packet.
	slot := cfg.MTU + overhead
	block := make([]byte, cfg.Window*slot)
	for i := range q.ring {
		q.ring[i] = block[:0:slot]
		block = block[slot:]
	}
	q.scratch = make([]byte, 0, slot)
	return q, nil
}

// Local is the queue pair number that answers carry.
func (q *Requester) Local() roce.QPN { return q.local }

// Remote is the queue pair of the other end.
func (q *Requester) Remote() roce.QPN { return q.conn.Remote }

// Connect begins a connection. Unacknowledged packets of an earlier one are lost:
// they may have been executed or not, and an addition must not be executed twice.
func (q *Requester) Connect(now model.Time, c Connection) error {
	if err := c.check(); err != nil {
		return err
	}
	if c.mtu() > q.cfg.MTU {
		return fmt.Errorf("rdma: MTU of %d, want at most %d", c.mtu(), q.cfg.MTU)
	}
	q.Disconnect()
	q.stats.Connections++
	q.conn, q.first, q.up, q.since, q.notReady = c, c.First.Add(0), true, now, now
	q.tries, q.rnrTries = 0, 0
	return nil
}

// Disconnect ends the connection.
func (q *Requester) Disconnect() {
	q.stats.Lost += uint64(q.operations(q.count))
	q.up, q.paused, q.count, q.sent, q.atomics = false, false, 0, 0, 0
}

// Pause ends the connection, and keeps its packets for Resume. More may be added as
// long as the window has space.
func (q *Requester) Pause() {
	if q.up {
		q.up, q.paused, q.sent, q.atomics = false, true, 0, 0
	}
}

// Paused reports whether the packets of an ended connection wait for Resume, and
// returns the number of the oldest one and the queue pair that it was sent to.
func (q *Requester) Paused() (roce.PSN, roce.QPN, bool) { return q.first, q.conn.Remote, q.paused }

// Resume begins a connection that continues the paused one: the responder has executed
// all packets before c.First and none from there on, so the others are sent, each
// once. It changes nothing if c does not continue it.
func (q *Requester) Resume(now model.Time, c Connection) error {
	done := c.First.Sub(q.first)
	if !q.paused || done < 0 || done > q.count || c.Path != q.conn.Path || c.mtu() != q.conn.mtu() {
		return fmt.Errorf("rdma: packets of %v to %v from number %d on do not continue %d packets from %d on",
			c.Path.Src, c.Path.Dst, c.First, q.count, q.first)
	}
	q.acknowledge(now, done)
	q.conn, q.up, q.paused, q.since, q.notReady = c, true, false, now, now
	q.tries, q.rnrTries = 0, 0
	q.stats.Connections++
	q.stats.Resumed++
	for i := range q.count {
		q.setDestination(*q.packetAt(i))
	}
	return nil
}

// setDestination changes the queue pair that a packet of the ring is sent to.
func (q *Requester) setDestination(pkt []byte) {
	at := q.conn.Path.headers() + destQPAt
	pkt[at], pkt[at+1], pkt[at+2] = byte(q.conn.Remote>>16), byte(q.conn.Remote>>8), byte(q.conn.Remote)
	setICRC(pkt)
}

// operations returns the number of operations that end within the n oldest
// packets.
func (q *Requester) operations(n int) (ended int) {
	for i := range n {
		if op := q.opcodeAt(i); op != roce.WriteFirst && op != roce.WriteMiddle {
			ended++
		}
	}
	return ended
}

// opcodeAt returns the opcode of the i-th unacknowledged packet.
func (q *Requester) opcodeAt(i int) roce.Opcode {
	return roce.Opcode((*q.packetAt(i))[q.conn.Path.headers()])
}

// Connected reports whether the connection is up.
func (q *Requester) Connected() bool { return q.up }

// WindowFree returns the number of packets that fit into the window, also of a paused
// connection.
func (q *Requester) WindowFree() int {
	if !q.up && !q.paused {
		return 0
	}
	return q.cfg.Window - q.count
}

// Stats returns the present counts.
func (q *Requester) Stats() RequesterStats { return q.stats }

// enqueue adds a packet to the ring.
func (q *Requester) enqueue(p *roce.Packet) bool {
	if q.WindowFree() == 0 {
		q.stats.WindowFull++
		return false
	}
	p.BTH.PSN = q.first.Add(q.count)
	p.BTH.MigReq, p.BTH.PKey, p.BTH.DestQP = true, roce.DefaultPKey, q.conn.Remote
	p.BTH.AckReq = p.BTH.PSN%ackEvery == ackEvery-1
	at := q.packetAt(q.count)
	*at = q.conn.Path.appendPacket((*at)[:0], p)
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
	if !q.up || q.sent == q.count || now < q.notReady {
		return nil
	}
	if isAtomic(q.opcodeAt(q.sent)) {
		if q.conn.Atomics > 0 && q.atomics == q.conn.Atomics {
			return nil // each is answered, so space follows
		}
		q.atomics++
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
	return pkt[q.conn.Path.headers():]
}

// Offsets of the destination queue pair and of the AckReq bit in the base transport
// header.
const (
	destQPAt = 5
	ackReqAt = 8
)

// requestAck sets AckReq in a packet of the ring.
func (q *Requester) requestAck(pkt []byte) []byte {
	body := q.conn.Path.headers()
	if pkt[body+ackReqAt]&0x80 != 0 {
		return pkt
	}
	pkt[body+ackReqAt] |= 0x80
	setICRC(pkt)
	return pkt
}

// setICRC sets the invariant CRC of a whole packet.
func setICRC(pkt []byte) {
	end := len(pkt) - roce.ICRCSize
	if _, err := roce.AppendICRC(pkt[:end], pkt[:end]); err != nil {
		panic("rdma: own packet: " + err.Error())
	}
}

// Handle processes the UDP payload of an answer. It may come from any port: the
// other end chooses one to spread connections over equal paths.
func (q *Requester) Handle(now model.Time, from netip.AddrPort, payload []byte) {
	var p roce.Packet
	if !q.up || from.Addr() != q.conn.Path.Dst.Addr() || len(payload) < roce.ICRCSize {
		q.stats.Unexpected++
		return
	}
	var err error
	if q.scratch, err = (Path{from, q.conn.Path.Src}).check(q.scratch, payload, q.conn.AnyIdentification); err != nil {
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
	case d < 0 && (s == roce.NakSequence || s.IsRNR()):
		// It is old, too: packets that were sent again have been acknowledged since.
	case d < 0 || d > q.count:
		q.stats.Unexpected++
	case s == roce.NakSequence:
		q.stats.SequenceNaks++
		q.acknowledge(now, d)
		if q.sent == 0 || q.retry(d, &q.tries, q.cfg.Retries) {
			q.sendAgain(now)
		}
	case s.IsRNR():
		q.stats.RNRNaks++
		q.acknowledge(now, d)
		if q.retry(d, &q.rnrTries, q.cfg.RNRRetries) {
			q.sendAgain(now)
			q.notReady = now.Add(s.Delay())
		}
	default:
		q.stats.RemoteErrors++
		q.Disconnect()
	}
}

// acknowledge removes the n oldest packets.
func (q *Requester) acknowledge(now model.Time, n int) {
	if n == 0 {
		return
	}
	q.stats.Acked += uint64(q.operations(n))
	for i := range min(n, q.sent) {
		if isAtomic(q.opcodeAt(i)) {
			q.atomics--
		}
	}
	q.first = q.first.Add(n)
	q.count -= n
	q.sent = max(0, q.sent-n)
	q.since, q.tries, q.rnrTries = now, 0, 0
}

// retry counts a retry that follows no progress: no acknowledged packet. It
// reports whether there may be one more; if not, the connection fails.
func (q *Requester) retry(progress int, tries *int, limit int) bool {
	if progress == 0 {
		*tries++
	}
	if *tries <= limit {
		return true
	}
	q.stats.GivenUp++
	q.Pause()
	return false
}

// sendAgain begins again with the oldest packet.
func (q *Requester) sendAgain(now model.Time) { q.since, q.sent, q.atomics = now, 0, 0 }

// Tick retransmits from the oldest packet after the timeout, and fails the
// connection after the last retry.
func (q *Requester) Tick(now model.Time) {
	if !q.up || q.sent == 0 || now.Sub(q.since) < q.cfg.Timeout {
		return
	}
	q.stats.Timeouts++
	if q.retry(0, &q.tries, q.cfg.Retries) {
		q.sendAgain(now)
	}
}

// Peer is the destination of packets.
func (q *Requester) Peer() netip.AddrPort { return q.conn.Path.Dst }
