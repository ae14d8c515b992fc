package rocev2

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/weft-telemetry/weft/collect/rdma"
	"github.com/weft-telemetry/weft/ingest/keyfile"
	"github.com/weft-telemetry/weft/wire/roce"
)

// maxQueues is the maximum number of translators of a collector, as in the
// prototype, and maxQueuesAddress that of one address without keys, where names
// can be invented.
const (
	maxQueues        = 256
	maxQueuesAddress = 64
)

// session is a translator's connection.
type session struct {
	conn net.Conn
	qp   roce.QPN
	was  roce.QPN // the queue pair that it continues, or 0
	from netip.Addr
	key  *keyfile.Key // proved in the exchange; nil without keys
}

// endedSession is what remains of a session: its translator may continue it as long as
// this process runs and no other has got the lists meanwhile.
type endedSession struct {
	queue rdma.PausedQueuePair
	was   roce.QPN // of session
	from  netip.Addr
}

// continues reports whether a translator means this session. One that never got the
// number of the queue pair has sent nothing to it, and knows the one before.
func (e endedSession) continues(qp roce.QPN) bool {
	return qp != 0 && (qp == e.queue.Number() || qp == e.was)
}

// admitTranslator makes a queue pair. The translator's previous one is destroyed
// under the same lock, so that none of its packets is executed after the heads in
// this reply. A refused request changes nothing.
func (s *Server) admitTranslator(c caller, me *session) (Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !c.req.Addr.IsValid() || c.req.PSN >= 1<<24 || c.req.QPN >= 1<<24 {
		return Reply{}, &refusedError{BadRequest, "request without address, or with more than 24 bits of QPN or PSN"}
	}
	if a := c.req.Addr.Addr().Unmap(); a.WithZone("") != me.from.WithZone("") {
		return Reply{}, &refusedError{AnotherSource, fmt.Sprintf("packets from %v, want %v as of the exchange; set --source", a, me.from)}
	}
	if c.key != nil && !slices.Contains(s.cfg.Keys.Keys(c.name), *c.key) {
		return Reply{}, &refusedError{why: UnknownKey} // retired during the exchange
	}
	old := s.peers[c.name]
	if old != nil && c.key == nil && old.from != me.from {
		return Reply{}, &refusedError{NameInUse, fmt.Sprintf("translator %s is connected from another address; use another --name, or keys", c.name)}
	}
	if old == nil {
		if err := s.checkLimits(c, me); err != nil {
			return Reply{}, err
		}
	}
	reply := Reply{Addr: s.conn.Local(), MTU: rdma.MTU, Regions: s.adverts}
	connection := rdma.Connection{Path: rdma.Path{Dst: c.req.Addr}, Remote: c.req.QPN, First: c.req.PSN}
	var err error
	if reply.QPN, err = s.responder.Connect(connection); err != nil {
		return Reply{}, &refusedError{BadRequest, err.Error()}
	}
	if old != nil {
		s.keepEnded(c.name, old)
		_ = old.conn.Close()
	}
	if was, known := s.ended[c.name]; known && was.from == me.from && was.continues(c.req.Continues) {
		s.responder.Disconnect(reply.QPN)
		if reply.QPN, err = s.responder.Resume(was.queue, connection); err != nil {
			return Reply{}, &refusedError{BadRequest, err.Error()}
		}
		reply.Continued, reply.First, me.was = true, was.queue.Expected(), c.req.Continues
	}
	delete(s.ended, c.name)
	me.qp = reply.QPN
	s.peers[c.name] = me
	s.stats.Setup.Admitted++
	if s.writer == "" || s.writer == c.name {
		s.writer = c.name
		if s.lists > 0 {
			clear(s.ended) // their heads of lists are no longer the memory's
		}
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
	return reply, nil
}

// checkLimits returns an error if no translator more can be admitted. Names with
// keys are as many as the key file has; invented ones fill the share of their
// address.
func (s *Server) checkLimits(c caller, me *session) error {
	if len(s.peers) >= maxQueues {
		return &refusedError{TooMany, fmt.Sprintf("%d are connected", maxQueues)}
	}
	if c.key != nil {
		return nil
	}
	same, share := 0, sourceShare(me.from)
	for _, p := range s.peers {
		if sourceShare(p.from) == share {
			same++
		}
	}
	if same >= maxQueuesAddress {
		return &refusedError{TooMany, fmt.Sprintf("%d without keys are connected from %v", same, share)}
	}
	return nil
}

// endRevoked closes the connections of translators whose key is no longer valid,
// after the key file was read again. Their queue pairs are destroyed.
func (s *Server) endRevoked() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, p := range s.peers {
		if p.key != nil && !slices.Contains(s.cfg.Keys.Keys(name), *p.key) {
			s.log.Info("translator's key was retired", "name", name, "from", p.from)
			s.remove(name, p)
			_ = p.conn.Close()
		}
	}
}

// endSession ends a session, unless another has replaced it.
func (s *Server) endSession(name string, me *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.peers[name] == me {
		s.keepEnded(name, me)
		s.remove(name, me)
	}
}

// keepEnded destroys the queue pair of a session that ended, and keeps what its
// translator needs to continue it.
func (s *Server) keepEnded(name string, me *session) {
	if len(s.ended) >= maxQueues {
		return // its translator counts what is lost
	}
	if q, ok := s.responder.Pause(me.qp); ok {
		s.ended[name] = endedSession{q, me.was, me.from}
	}
}

func (s *Server) remove(name string, me *session) {
	delete(s.peers, name)
	s.responder.Disconnect(me.qp)
	if s.writer == name {
		s.writer = ""
	}
}
