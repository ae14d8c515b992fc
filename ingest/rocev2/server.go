package rocev2

import (
	"context"
	cryptorand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/collect/rdma"
	"github.com/weft-telemetry/weft/collect/region"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/udp"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/roce"
)

// ServerConfig configures a Server.
type ServerConfig struct {
	RoCE    netip.AddrPort // packets; a full address, since the invariant CRC covers it
	Control netip.AddrPort // connection setup
	Keys    Keys           // of translators, by name; nil admits every translator
	Allow   []netip.Prefix // source addresses of translators; none allows all
	// Unauthenticated permits nil Keys beyond loopback.
	Unauthenticated bool
	ExchangeTime    time.Duration // limit of a setup; 0 is 5 s
}

// Validate returns the first error of the configuration.
func (c ServerConfig) Validate() error {
	if a := c.RoCE.Addr(); !a.IsValid() || a.IsUnspecified() {
		return fmt.Errorf("rocev2: listen on %v, want the address that packets are sent to", c.RoCE)
	}
	if c.Keys == nil && !c.Unauthenticated && !(c.RoCE.Addr().IsLoopback() && c.Control.Addr().IsLoopback()) {
		return fmt.Errorf("rocev2: %v and %v are not both loopback: without keys any host that reaches them can write the memory, "+
			"want --keys FILE (weft keys), or --allow-unauthenticated in a network of trusted hosts", c.RoCE, c.Control)
	}
	return nil
}

// Server serves RDMA writes to memory.
type Server struct {
	cfg     ServerConfig
	conn    *udp.Conn
	control net.Listener
	memory  *translate.Memory
	log     *slog.Logger
	pending pendingConns
	refused refusalLog

	mu        sync.Mutex // guards all below
	responder *rdma.Responder
	adverts   []RegionAdvert
	lists     int                     // number of adverts, at the end, that are lists
	peers     map[string]*session     // by name
	writer    string                  // the translator that has the lists
	ended     map[string]endedSession // by name: connections that their translator may continue
	cm        cmServer
	stats     ServerStats
}

// ServerStats are the counters of a Server.
type ServerStats struct {
	Socket    udp.Stats           `json:"socket"`
	Responder rdma.ResponderStats `json:"responder"`
	Peers     int                 `json:"peers"`
	Setup     SetupStats          `json:"setup"`
	CM        CMStats             `json:"rdma_cm"`
}

// SetupStats are the counters of connection setup.
type SetupStats struct {
	Admitted uint64           `json:"admitted"`
	Pending  int              `json:"pending"` // connections before authentication
	Refused  [refusals]uint64 `json:"refused_by_reason"`
	Sources  []SourceRefusals `json:"refused_by_source,omitempty"`
}

// NewServer opens sockets for memory, and starts nothing. notify, which may be
// nil, is called for immediate writes.
func NewServer(cfg ServerConfig, memory *translate.Memory, notify func(dta.Primitive, uint32),
	log *slog.Logger,
) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.ExchangeTime == 0 {
		cfg.ExchangeTime = exchangeTime
	}
	socket := udp.DefaultConfig(cfg.RoCE)
	socket.Offload, socket.DontFragment, socket.ZeroChecksum = false, true, true
	socket.MaxDatagram = maxDatagram
	conn, err := udp.Listen(socket)
	if err != nil {
		return nil, err
	}
	listen := net.ListenConfig{KeepAliveConfig: keepAlive}
	control, err := listen.Listen(context.Background(), "tcp", cfg.Control.String())
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	s := &Server{
		cfg: cfg, conn: conn, control: control, memory: memory, log: log, peers: map[string]*session{}, ended: map[string]endedSession{}, lists: len(memory.Lists),
		pending: pendingConns{count: map[netip.Prefix]int{}}, refused: refusalLog{log: log},
		cm: cmServer{sessions: map[uint32]*cmSession{}, byQP: map[roce.QPN]*cmSession{}, psn: roce.PSN(random24())},
	}
	s.responder = rdma.NewResponder(conn.Local(), rand.New(unpredictable{}), func(i roce.ImmDt) {
		if notify != nil {
			notify(dta.Primitive(i>>28), uint32(i)&(1<<28-1))
		}
	})
	regions := memory.Regions()
	for i, r := range regions {
		var mem rdma.Memory = r
		if i < len(regions)-s.lists {
			mem = countingMemory{r, r.WriterCounters(region.Writers - 1)}
		}
		s.adverts = append(s.adverts, advertise(r, s.responder.Register(mem)))
	}
	return s, nil
}

// Addr is the address that receives packets.
func (s *Server) Addr() netip.AddrPort { return s.conn.Local() }

// Control is the address of connection setup.
func (s *Server) Control() net.Addr { return s.control.Addr() }

// Close frees what NewServer opened, without Run.
func (s *Server) Close() error { return errors.Join(s.control.Close(), s.conn.Close()) }

// Stats returns the current counters.
func (s *Server) Stats() ServerStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	st.Responder, st.Peers = s.responder.Stats(), s.responder.QueuePairs()
	st.CM = s.cm.stats
	st.Setup.Pending = s.pending.len()
	st.Setup.Refused, st.Setup.Sources = s.refused.counts()
	return st
}

// Run executes requests until ctx ends, then closes everything.
func (s *Server) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	var acceptErr error
	wg.Go(func() {
		defer cancel()
		acceptErr = s.accept(ctx, &wg)
	})
	var err error
	var generation uint64
	for ctx.Err() == nil && err == nil {
		err = region.Guard(func() error {
			_, err := s.conn.Receive(s.handlePacket)
			return err
		})
		if s.cfg.Keys != nil {
			if g := s.cfg.Keys.Generation(); g != generation {
				generation = g
				s.endRevoked()
			}
		}
		s.mu.Lock()
		s.stats.Socket = s.conn.Stats()
		s.tickCM(time.Now())
		s.mu.Unlock()
	}
	cancel()
	_ = s.control.Close()
	s.mu.Lock()
	for _, p := range s.peers {
		_ = p.conn.Close()
	}
	s.closeCM()
	s.mu.Unlock()
	wg.Wait()
	return errors.Join(err, acceptErr, s.conn.Close())
}

// accept accepts setup connections of translators until ctx ends.
func (s *Server) accept(ctx context.Context, wg *sync.WaitGroup) error {
	for {
		conn, err := s.control.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = conn.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("rocev2: accept: %w", err)
		case err != nil:
			// File descriptors may be exhausted for a while; memory is served
			// meanwhile.
			s.log.Warn("accept a translator", "error", err)
			time.Sleep(acceptAgain)
			continue
		}
		from := conn.RemoteAddr().(*net.TCPAddr).AddrPort().Addr().Unmap()
		if len(s.cfg.Allow) > 0 && !slices.ContainsFunc(s.cfg.Allow, func(p netip.Prefix) bool { return p.Contains(from) }) {
			s.refused.refuse(time.Now(), from, "", &refusedError{why: AddressNotAllowed})
			_ = conn.Close()
			continue
		}
		if old := s.pending.add(conn, from); old != nil {
			_ = old.Close() // its goroutine counts it
		}
		wg.Go(func() { s.serveConnection(ctx, conn, from) })
	}
}

func (s *Server) handlePacket(from netip.AddrPort, payload []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if isCM(payload) {
		s.handleCM(time.Now(), from, payload)
		return
	}
	// The map is empty where all translators are Weft's.
	if len(s.cm.byQP) > 0 {
		if c := s.cm.byQP[destQP(payload)]; c != nil && isAnswer(payload) {
			now := time.Now()
			c.sender.Handle(model.TimeOf(now), from, payload)
			s.sendPending(now, c)
			return
		} else if c != nil && !c.established && s.responder.Packets(c.qp) > 0 {
			s.establish(time.Now(), c) // a request says what a lost RTU would have
		}
	}
	if answer := s.responder.Handle(from, payload); answer != nil {
		// A lost answer is requested again.
		_, _ = s.conn.Send(s.responder.AnswerTo(), answer)
	}
}

// maxDatagram is the length of the longest RoCEv2 packet, without IP and UDP
// headers.
const maxDatagram = rdma.MaxMTU + 64

// exchangeTime limits the time of each side of the setup, acceptAgain is the delay
// before the next accept after a failure.
const (
	exchangeTime = 5 * time.Second
	acceptAgain  = 100 * time.Millisecond
)

// keepAlive finds the death of a translator's host within 30 s: until then its
// name cannot be used from another address without a key.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3}

// serveConnection sets up a connection and waits until it is closed.
func (s *Server) serveConnection(ctx context.Context, conn net.Conn, from netip.Addr) {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	_ = conn.SetDeadline(time.Now().Add(s.cfg.ExchangeTime))
	x := newExchange(conn)
	c, err := x.authenticate(s.cfg.Keys)
	if !s.pending.remove(conn) && ctx.Err() == nil {
		err = &refusedError{why: Displaced}
	}
	me := &session{conn: conn, from: from, key: c.key}
	defer s.endSession(c.name, me)
	var reply Reply
	if err == nil {
		reply, err = s.admitTranslator(c, me)
		if err != nil {
			reply.Error = err.Error()
		}
		if failed := errors.Join(x.send(reply), x.prove(roleCollector, c.key)); failed != nil && err == nil {
			err = refuseMessage(failed)
		}
	}
	if err != nil {
		if refused := (*refusedError)(nil); ctx.Err() == nil && errors.As(err, &refused) {
			s.refused.refuse(time.Now(), from, c.name, refused)
		}
		return
	}
	s.log.Info("translator connected", "name", c.name, "from", c.req.Addr, "qp", reply.QPN, "authenticated", c.key != nil)
	_ = conn.SetDeadline(time.Time{})
	_, _ = x.in.ReadByte() // until the other side closes
}

// unpredictable is a rand.Source of the operating system: queue pairs and R_Keys
// that a stranger guesses would let it write.
type unpredictable struct{}

// Uint64 implements rand.Source.
func (unpredictable) Uint64() uint64 {
	var b [8]byte
	_, _ = cryptorand.Read(b[:]) // never fails
	return binary.NativeEndian.Uint64(b[:])
}
