package rocev2

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/collect/rdma"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/cm"
	"github.com/weft-telemetry/weft/wire/roce"
)

// cmSession is a connection that was set up by RDMA_CM.
type cmSession struct {
	ids         cm.CommIDs // this side's first
	peer        netip.Addr
	qp          roce.QPN // of the responder and the sender
	first       roce.PSN // of the peer's packets
	region      int
	list        bool
	sender      *rdma.Requester // of the region's description
	reply       []byte          // REP, until the peer is ready
	replies     int
	due         time.Time // of the next reply
	established bool
	used        time.Time // when its packets were last counted
	packets     uint64
}

// cmServer is the state of RDMA_CM in a Server, under its lock.
type cmServer struct {
	sessions map[uint32]*cmSession // by this side's communication id
	byQP     map[roce.QPN]*cmSession
	psn      roce.PSN // of datagrams
	stats    CMStats
}

// CMStats count the messages of RDMA_CM.
type CMStats struct {
	Requests      uint64 `json:"requests"`
	Admitted      uint64 `json:"admitted"`
	Rejected      uint64 `json:"rejected"`
	Disconnected  uint64 `json:"disconnected"` // by the peer
	TimedOut      uint64 `json:"timed_out"`    // no answer to the reply
	Displaced     uint64 `json:"displaced"`    // for a newer one of the same address
	Malformed     uint64 `json:"malformed"`
	SendsRefused  uint64 `json:"sends_refused"` // peers that did not receive the region's description
	UnknownCommID uint64 `json:"unknown_comm_id"`
}

// handleCM processes a datagram of connection management.
func (s *Server) handleCM(now time.Time, from netip.AddrPort, payload []byte) {
	m, err := parseCM(rdma.Path{Src: from, Dst: s.conn.Local()}, payload)
	if err != nil {
		s.cm.stats.Malformed++
		return
	}
	switch body := m.Body.(type) {
	case *cm.REQ:
		s.cm.stats.Requests++
		if err := s.admitREQ(now, from.Addr(), m.Transaction, body); err != nil {
			s.cm.stats.Rejected++
			s.refused.refuse(now, from.Addr(), "RDMA_CM", err.refusedError)
			s.sendCM(from.Addr(), m.Transaction, &cm.REJ{CommIDs: cm.CommIDs{Remote: body.LocalCommID}, Reason: err.reason})
		}
	case *cm.RTU:
		if c := s.session(from.Addr(), body.CommIDs); c != nil {
			s.establish(now, c)
		}
	case *cm.REJ:
		if c := s.session(from.Addr(), body.CommIDs); c != nil {
			s.endCM(c)
		}
	case *cm.MRA:
		if c := s.session(from.Addr(), body.CommIDs); c != nil {
			c.due = now.Add(cmTime(body.Timeout))
		}
	case *cm.DREQ:
		// Also for a connection that is unknown: its first answer may have been lost.
		s.sendCM(from.Addr(), m.Transaction, &cm.DREP{CommIDs: cm.CommIDs{Local: body.Remote, Remote: body.Local}})
		if c := s.session(from.Addr(), body.CommIDs); c != nil && body.RemoteQPN == c.qp {
			s.cm.stats.Disconnected++
			s.endCM(c)
		}
	}
}

// session finds the connection of a peer's message.
func (s *Server) session(from netip.Addr, theirs cm.CommIDs) *cmSession {
	c := s.cm.sessions[theirs.Remote]
	if c == nil || c.ids.Remote != theirs.Local || c.peer != from {
		s.cm.stats.UnknownCommID++
		return nil
	}
	return c
}

// cmError is a refusal with the reason of its REJ.
type cmError struct {
	*refusedError
	reason cm.Reason
}

func rejected(reason cm.Reason, why Refusal, format string, args ...any) *cmError {
	return &cmError{&refusedError{why, fmt.Sprintf(format, args...)}, reason}
}

// admitREQ makes a queue pair and replies, or returns why not.
func (s *Server) admitREQ(now time.Time, from netip.Addr, transaction uint64, r *cm.REQ) *cmError {
	if len(s.cfg.Allow) > 0 && !slices.ContainsFunc(s.cfg.Allow, func(p netip.Prefix) bool { return p.Contains(from) }) {
		return rejected(cm.ConsumerReject, AddressNotAllowed, "")
	}
	if s.cfg.Keys != nil {
		return rejected(cm.ConsumerReject, NoKey, "RDMA_CM cannot prove one")
	}
	for _, c := range s.cm.sessions {
		if c.peer == from && c.ids.Remote == r.LocalCommID { // sent again
			s.sendReply(now, c)
			return nil
		}
	}
	port, ok := cm.Port(r.ServiceID)
	i := int(port) - int(s.cmPort())
	if !ok || i < 0 || i >= len(s.adverts) {
		return rejected(cm.InvalidServiceID, BadRequest, "service %#x, want RDMA port %d to %d", r.ServiceID, s.cmPort(), int(s.cmPort())+len(s.adverts)-1)
	}
	switch {
	case r.Transport != 0:
		return rejected(cm.InvalidTransport, BadRequest, "transport service %d, want reliable connection", r.Transport)
	case r.MTU == 0:
		return rejected(cm.InvalidMTU, BadRequest, "no MTU")
	case r.Source.Unmap() != from:
		return rejected(cm.ConsumerReject, AnotherSource, "%v in the request, %v in the packet", r.Source, from)
	}
	list := i >= len(s.adverts)-s.lists
	name := cmName(from)
	if list && s.writer != "" && s.writer != name {
		return rejected(cm.ConsumerReject, NameInUse, "lists are written by %s", s.writer)
	}
	if err := s.checkCMLimits(from); err != nil {
		return err
	}
	c := &cmSession{ids: cm.CommIDs{Remote: r.LocalCommID}, peer: from, first: roce.PSN(random24()), region: i, list: list, used: now}
	if err := s.openCM(now, c, r); err != nil {
		return rejected(cm.NoQP, BadRequest, "%v", err)
	}
	if list {
		s.writer = name
	}
	at := s.adverts[i]
	reply := &cm.REP{
		CommIDs: c.ids, LocalQPN: c.qp, StartingPSN: c.first, Responder: min(r.Initiator, rdma.MaxAtomics), RNRRetries: 7,
	}
	copy(reply.Private[:], appendRegion(nil, rdma.Region{Addr: at.Addr, Length: at.Length, RKey: at.RKey}))
	c.reply = s.encodeCM(from, transaction, reply)
	s.sendReply(now, c)
	return nil
}

// openCM makes the queue pair of a connection.
func (s *Server) openCM(now time.Time, c *cmSession, r *cm.REQ) (err error) {
	cfg := rdma.RequesterConfig{Window: 4, Timeout: cmTime(ackTimeoutCode), Retries: 7, RNRRetries: 7, MTU: rdma.MaxMTU}
	conn := rdma.Connection{
		Path: rdma.Path{Src: s.conn.Local(), Dst: listening(c.peer)}, Remote: r.LocalQPN, First: c.first, MTU: r.MTU, AnyIdentification: true,
	}
	if c.qp, err = s.responder.Connect(conn); err != nil {
		return err
	}
	conn.First = r.StartingPSN
	if c.sender, err = rdma.NewRequester(cfg, c.qp); err == nil {
		err = c.sender.Connect(model.TimeOf(now), conn)
	}
	if err != nil {
		s.responder.Disconnect(c.qp)
		return err
	}
	for c.ids.Local == 0 || s.cm.sessions[c.ids.Local] != nil {
		c.ids.Local = uint32(unpredictable{}.Uint64())
	}
	s.cm.sessions[c.ids.Local], s.cm.byQP[c.qp] = c, c
	return nil
}

// checkCMLimits makes space for one more connection: the one of the same address
// that was not used for the longest time is closed. A peer that died says nothing.
func (s *Server) checkCMLimits(from netip.Addr) *cmError {
	share := sourceShare(from)
	var same []*cmSession
	for _, c := range s.cm.sessions {
		if sourceShare(c.peer) == share {
			same = append(same, c)
		}
	}
	full := len(s.peers)+len(s.cm.sessions) >= maxQueues
	if len(same) < maxQueuesAddress && !full {
		return nil
	}
	if len(same) == 0 {
		return rejected(cm.NoResources, TooMany, "%d are connected", maxQueues)
	}
	oldest := slices.MinFunc(same, func(a, b *cmSession) int {
		return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.ids.Local, b.ids.Local))
	})
	s.cm.stats.Displaced++
	s.endCM(oldest)
	return nil
}

// establish sends the region's description to a peer that is ready.
func (s *Server) establish(now time.Time, c *cmSession) {
	if c.established {
		return
	}
	c.established, c.reply = true, nil
	s.cm.stats.Admitted++
	at := s.adverts[c.region]
	c.sender.Send(appendRegion(nil, rdma.Region{Addr: at.Addr, Length: at.Length, RKey: at.RKey}))
	s.sendPending(now, c)
	s.log.Info("connected by RDMA_CM", "from", c.peer, "qp", c.qp, "region", at.Kind)
}

// sendPending sends the packets of a connection's sender.
func (s *Server) sendPending(now time.Time, c *cmSession) {
	for p := c.sender.Next(model.TimeOf(now)); p != nil; p = c.sender.Next(model.TimeOf(now)) {
		if _, err := s.conn.Send(c.sender.Peer(), p); err != nil {
			return // as if lost: it is retransmitted
		}
	}
}

// tickCM sends again what was not answered, and ends what never is.
func (s *Server) tickCM(now time.Time) {
	for _, c := range s.cm.sessions {
		switch {
		case !c.established && now.After(c.due) && c.replies > cmRetries:
			s.cm.stats.TimedOut++
			s.endCM(c)
		case !c.established && now.After(c.due):
			s.sendReply(now, c)
		case c.established && c.sender.Connected():
			c.sender.Tick(model.TimeOf(now))
			s.sendPending(now, c)
			if !c.sender.Connected() {
				s.cm.stats.SendsRefused++ // it may know the region: requests are executed all the same
			}
		}
		if n := s.responder.Packets(c.qp); n != c.packets {
			c.packets, c.used = n, now
		}
	}
}

func (s *Server) sendReply(now time.Time, c *cmSession) {
	if c.reply == nil {
		return
	}
	c.replies++
	c.due = now.Add(cmResend)
	_, _ = s.conn.Send(listening(c.peer), c.reply)
}

// endCM destroys a connection.
func (s *Server) endCM(c *cmSession) {
	s.responder.Disconnect(c.qp)
	delete(s.cm.sessions, c.ids.Local)
	delete(s.cm.byQP, c.qp)
	name := cmName(c.peer)
	for _, other := range s.cm.sessions {
		if other.list && cmName(other.peer) == name {
			return
		}
	}
	if s.writer == name {
		s.writer = ""
	}
}

// closeCM disconnects all peers as the collector ends.
func (s *Server) closeCM() {
	for _, c := range s.cm.sessions {
		remote := c.sender.Remote()
		s.sendCM(c.peer, uint64(c.ids.Local), &cm.DREQ{CommIDs: c.ids, RemoteQPN: remote})
	}
}

// cmName is the name of a host that connects by RDMA_CM, in place of a translator's.
func cmName(from netip.Addr) string { return "RDMA_CM " + from.String() }

// cmPort is the port of the first region in RDMA's port space.
func (s *Server) cmPort() uint16 {
	return s.Control().(interface{ AddrPort() netip.AddrPort }).AddrPort().Port()
}

func (s *Server) encodeCM(to netip.Addr, transaction uint64, body cm.Body) []byte {
	s.cm.psn = s.cm.psn.Add(1)
	return appendCM(nil, rdma.Path{Src: s.conn.Local(), Dst: listening(to)}, s.cm.psn, cm.Message{Transaction: transaction, Body: body})
}

func (s *Server) sendCM(to netip.Addr, transaction uint64, body cm.Body) {
	// A lost message is sent again by the peer that waits for it.
	_, _ = s.conn.Send(listening(to), s.encodeCM(to, transaction, body))
}
