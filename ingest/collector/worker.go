package collector

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/collect/region"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/udp"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// lockedTranslator is a Translator for local memory with a lock.
type lockedTranslator struct {
	mu sync.Mutex
	tr *translate.Translator
}

func (s *lockedTranslator) Admit(r *dta.Report) dta.Verdict { return s.tr.Admit(r) }

func (s *lockedTranslator) AdmitRun(first *dta.Report, run []byte, count int) dta.Verdict {
	return s.tr.AdmitRun(first, run, count)
}

func (s *lockedTranslator) Put(now model.Time, batch []dta.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tr.Put(now, batch)
}

func (s *lockedTranslator) PutRun(now model.Time, first *dta.Report, run []byte, count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tr.PutRun(now, first, run, count)
}

func (s *lockedTranslator) Tick(now model.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tr.Tick(now)
}

func (s *lockedTranslator) Drain(now model.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tr.Drain(now)
}

// worker receives on one socket.
type worker struct {
	conn       *udp.Conn
	intake     *translate.Intake
	router     *translate.Router
	ticked     shard       // the shard whose Tick this worker calls, or nil
	routerLock sync.Locker // held around the router, or nil if targets have locks
	answerPort uint16
	tap        func(at model.Time, from netip.AddrPort, datagram []byte, stored bool)
	clock      func() model.Time // nil: the wall's
	onPanic    func(v any, datagram []byte)

	readThrough atomic.Int64 // what arrived before this time is stored

	mu    sync.Mutex // guards the fields below, for Status
	stats WorkerStats
}

// WorkerStats are the counters of one socket.
type WorkerStats struct {
	Socket   udp.Stats             `json:"socket"`
	Intake   translate.IntakeStats `json:"intake"`
	LostAcks uint64                `json:"lost_acks"` // that could not be sent
}

// tick is the interval of Tick calls; a translator's wait times are milliseconds.
const tick = 2 * time.Millisecond

// run receives until ctx ends. A memory file that was truncated is an error.
func (w *worker) run(ctx context.Context) error {
	return region.Guard(func() error { return w.receive(ctx) })
}

func (w *worker) receive(ctx context.Context) error {
	var now, ticked model.Time
	held := false // routerLock
	defer func() {
		if held {
			w.routerLock.Unlock()
		}
	}()
	answer := make([]byte, 0, 4096)
	lost := uint64(0)
	handle := func(from netip.AddrPort, datagram []byte) {
		if now == 0 {
			now = w.now()
			if w.routerLock != nil {
				w.routerLock.Lock()
				held = true
			}
		}
		before := w.intake.Stored()
		answer = w.handleDatagram(now, from, datagram, answer[:0])
		if w.tap != nil {
			w.tap(now, from, datagram, w.intake.Stored() > before)
		}
		if len(answer) == 0 {
			return
		}
		if _, err := w.conn.Send(w.ackAddr(from, answer), answer); err != nil {
			lost++
		}
	}
	// For a sender, datagrams that the kernel accepted before the end were
	// received; they are read out, for a limited time if more arrive.
	var ended, got model.Time
	for {
		if ctx.Err() != nil && ended == 0 {
			ended = w.now()
			got = ended
		}
		now = 0
		began := w.now()
		n, err := w.conn.Receive(handle)
		if now != 0 {
			w.router.Flush(now)
			if held {
				held = false
				w.routerLock.Unlock()
			}
		} else {
			now = w.now()
		}
		if err != nil {
			return err
		}
		if w.conn.Emptied() {
			w.readThrough.Store(int64(began))
		}
		if w.ticked != nil && (now.Sub(ticked) >= tick || now < ticked) { // the clock may be set
			ticked = now
			w.ticked.Tick(now)
		}
		w.mu.Lock()
		w.stats = WorkerStats{w.conn.Stats(), w.intake.Stats(), lost}
		w.mu.Unlock()
		if n > 0 {
			got = now
		}
		if ended != 0 && (now.Sub(got) >= quiet || now.Sub(ended) >= readOut) {
			return nil
		}
	}
}

func (w *worker) now() model.Time {
	if w.clock != nil {
		return w.clock()
	}
	return model.TimeOf(time.Now())
}

// handleDatagram hands a datagram to the intake. If that panics, what it has stored
// stays, and the reporter gets no answer.
func (w *worker) handleDatagram(now model.Time, from netip.AddrPort, datagram, answer []byte) (out []byte) {
	if w.onPanic != nil {
		defer func() {
			if v := recover(); v != nil {
				if region.Fault(v) != nil {
					panic(v) // the memory is at fault, not the datagram
				}
				w.onPanic(v, datagram)
				out = answer[:0]
			}
		}()
	}
	return w.intake.HandleDatagram(now, from, datagram, w.router, answer)
}

// At the end a worker reads until nothing has arrived for a while, and no longer
// than readOut. One empty read does not prove that the queue is empty: a signal
// may have interrupted it.
const (
	quiet   = 10 * time.Millisecond
	readOut = time.Second
)

// ackAddr returns the destination of an ack: the port that reported, unless
// another is set. The prototype's reporters have a separate port for it.
func (w *worker) ackAddr(from netip.AddrPort, answer []byte) netip.AddrPort {
	switch {
	case len(answer) == dta.PrototypeAckSize:
		return netip.AddrPortFrom(from.Addr(), dta.AckPort)
	case w.answerPort != 0:
		return netip.AddrPortFrom(from.Addr(), w.answerPort)
	}
	return from
}
