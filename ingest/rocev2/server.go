package rocev2

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/collect/rdma"
	"github.com/weft-telemetry/weft/collect/region"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/udp"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/roce"
)

// ServerConfig holds the addresses of a Server.
type ServerConfig struct {
	RoCE    netip.AddrPort // packets; a full address, since the invariant CRC covers it
	Control netip.AddrPort // connection setup
}

// maxQueues is the maximum number of translators of a collector, as in the
// prototype, and maxExchanges that of setup connections: a few more, so that a
// translator whose connection is dead can set up another. maxRequest limits the
// length of a request from an unknown client.
const (
	maxQueues    = 256
	maxExchanges = 2 * maxQueues
	maxRequest   = 4 << 10
)

// Server serves RDMA writes to memory.
type Server struct {
	conn    *udp.Conn
	control net.Listener
	memory  *translate.Memory
	log     *slog.Logger

	mu        sync.Mutex // guards all below
	responder *rdma.Responder
	adverts   []RegionAdvert
	lists     int                 // number of adverts, at the end, that are lists
	peers     map[string]*session // by name
	writer    string              // the translator that has the lists
	stats     ServerStats
}

// session is a translator's connection.
type session struct {
	conn net.Conn
	qp   roce.QPN
}

// ServerStats are the counters of a Server.
type ServerStats struct {
	Socket    udp.Stats           `json:"socket"`
	Responder rdma.ResponderStats `json:"responder"`
	Peers     int                 `json:"peers"`
}

// NewServer opens sockets for memory, and starts nothing. notify, which may be
// nil, is called for immediate writes.
func NewServer(cfg ServerConfig, memory *translate.Memory, notify func(dta.Primitive, uint32),
	log *slog.Logger,
) (*Server, error) {
	if a := cfg.RoCE.Addr(); !a.IsValid() || a.IsUnspecified() {
		return nil, fmt.Errorf("rocev2: listen on %v, want the address that packets are sent to", cfg.RoCE)
	}
	socket := udp.DefaultConfig(cfg.RoCE)
	socket.Offload, socket.DontFragment = false, true
	conn, err := udp.Listen(socket)
	if err != nil {
		return nil, err
	}
	control, err := net.Listen("tcp", cfg.Control.String())
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	s := &Server{conn: conn, control: control, memory: memory, log: log, peers: map[string]*session{}, lists: len(memory.Lists)}
	s.responder = rdma.NewResponder(conn.Local(), rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), func(i roce.ImmDt) {
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
	for ctx.Err() == nil && err == nil {
		_, err = s.conn.Receive(s.handlePacket)
		s.mu.Lock()
		s.stats.Socket = s.conn.Stats()
		s.mu.Unlock()
	}
	cancel()
	_ = s.control.Close()
	s.mu.Lock()
	for _, p := range s.peers {
		_ = p.conn.Close()
	}
	s.mu.Unlock()
	wg.Wait()
	return errors.Join(err, acceptErr, s.conn.Close())
}

// accept accepts setup connections of translators until ctx ends.
func (s *Server) accept(ctx context.Context, wg *sync.WaitGroup) error {
	slots := make(chan struct{}, maxExchanges)
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
		select {
		case slots <- struct{}{}:
			wg.Go(func() {
				defer func() { <-slots }()
				s.serveConnection(ctx, conn)
			})
		default:
			s.log.Warn("refused a translator", "from", conn.RemoteAddr(), "error", fmt.Sprintf("%d connections are open",
				maxExchanges))
			_ = conn.Close()
		}
	}
}

func (s *Server) handlePacket(from netip.AddrPort, payload []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if answer := s.responder.Handle(from, payload); answer != nil {
		// A lost answer is requested again.
		_, _ = s.conn.Send(from, answer)
	}
}

// exchangeTime limits the time of each side of the setup, acceptAgain is the delay
// before the next accept after a failure.
const (
	exchangeTime = 5 * time.Second
	acceptAgain  = 100 * time.Millisecond
)

// serveConnection sets up a connection and waits until it is closed.
func (s *Server) serveConnection(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	_ = conn.SetDeadline(time.Now().Add(exchangeTime))
	var req Request
	if err := json.NewDecoder(io.LimitReader(conn, maxRequest)).Decode(&req); err != nil {
		s.log.Warn("refused a translator", "from", conn.RemoteAddr(), "error", err)
		return
	}
	me := &session{conn: conn}
	reply := s.admitTranslator(req, me)
	defer s.endSession(req.Name, me)
	if err := json.NewEncoder(conn).Encode(reply); err != nil || reply.Error != "" {
		s.log.Warn("refused a translator", "name", req.Name, "error", reply.Error)
		return
	}
	s.log.Info("translator connected", "name", req.Name, "from", req.Addr, "qp", reply.QPN)
	_ = conn.SetDeadline(time.Time{})
	_, _ = conn.Read(make([]byte, 1)) // until the other side closes
}

// admitTranslator makes a queue pair. The translator's previous one is destroyed
// first, so that none of its packets is executed after the heads in this reply.
func (s *Server) admitTranslator(req Request, me *session) Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	if req.Name == "" || !req.Addr.IsValid() || req.PSN >= 1<<24 || req.QPN >= 1<<24 {
		return Reply{Error: "request without name, address, or with more than 24 bits of QPN or PSN"}
	}
	if old := s.peers[req.Name]; old != nil {
		s.responder.Disconnect(old.qp)
		_ = old.conn.Close()
		delete(s.peers, req.Name)
	}
	if len(s.peers) >= maxQueues {
		return Reply{Error: fmt.Sprintf("%d translators are connected", maxQueues)}
	}
	qp, err := s.responder.Connect(req.Addr, req.QPN, req.PSN)
	if err != nil {
		return Reply{Error: err.Error()}
	}
	me.qp = qp
	s.peers[req.Name] = me
	reply := Reply{Addr: s.conn.Local(), QPN: qp, MTU: rdma.MTU, Regions: s.adverts}
	if s.writer == "" || s.writer == req.Name {
		s.writer = req.Name
		for _, t := range s.memory.Lists {
			for id := range t.Lists() {
				head, _ := t.Head(id)
				reply.Heads = append(reply.Heads, head)
			}
		}
	} else {
		// A list has one writer at a time.
		reply.Regions = reply.Regions[:len(reply.Regions)-s.lists]
	}
	return reply
}

// endSession ends a session, unless another has replaced it.
func (s *Server) endSession(name string, me *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.peers[name] != me {
		return
	}
	delete(s.peers, name)
	s.responder.Disconnect(me.qp)
	if s.writer == name {
		s.writer = ""
	}
}
