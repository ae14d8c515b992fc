package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/wire/packet"
)

const (
	bgpPort   = 179
	bgpTTL    = 255 // RFC 5082: a packet from farther than one link cannot have it
	bgpDSCP   = 48  // CS6, network control
	bgpPrio   = 6
	firstPort = 49152 // of the end that connects
)

// keepalive is the whole message: marker, length, type (RFC 4271).
var keepalive = [19]byte{
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0, 19, 4,
}

// speaker is a switch's end of its BGP sessions, one on each link to another
// switch, between the switches' loopback addresses. Sessions are established
// from the start and carry keepalives alone: routes come from topo, and a
// session without keepalives does not end. A segment acknowledges what its
// sender has received; there are no pure acknowledgements and no
// retransmissions.
type speaker struct {
	sw       *Switch
	every    engine.Time
	sessions []session // by port; zero where the peer is not a switch
	tick     func()
}

type session struct {
	key      model.FlowKey // of what this end sends; zero: no session
	sent     uint32        // bytes
	received uint32        // bytes
	ipid     uint16
}

// EnableBGP makes every switch send each neighbouring switch a keepalive at
// that interval from now on, each switch at a random phase. The network is then
// never Idle.
func (n *Network) EnableBGP(interval time.Duration) error {
	if interval <= 0 {
		return fmt.Errorf("sim: BGP keepalives every %v, want above 0", interval)
	}
	every := engine.Of(interval)
	for _, sw := range n.switches {
		if sw.bgp != nil {
			return fmt.Errorf("sim: %s has BGP enabled already", sw.Name)
		}
		s := &speaker{sw: sw, every: every, sessions: make([]session, len(sw.ports))}
		s.tick = s.sendKeepalives
		for i, p := range sw.ports {
			if p.peer.sw != nil {
				s.sessions[i] = newSession(n, p)
			}
		}
		sw.bgp = s
		first := rand.New(rand.NewPCG(n.cfg.Seed, uint64(sw.ID))).Int64N(int64(every))
		sw.node.addTimer(timer{at: n.Now() + engine.Time(first), kind: runFunc, run: s.tick})
	}
	return nil
}

// newSession returns the session of a port. The end with the lower id has
// connected.
func newSession(n *Network, p *Port) session {
	key := model.FlowKey{
		Src: n.nodeAddr(p.Node, false), Dst: n.nodeAddr(p.peer.Node, false),
		SrcPort: bgpPort, DstPort: firstPort + uint16(p.peer.ID), Proto: model.TCP,
	}
	if p.Node < p.peer.Node {
		key.SrcPort, key.DstPort = firstPort+uint16(p.ID), bgpPort
	}
	return session{key: key}
}

// sendKeepalives sends one keepalive to each neighbour.
func (s *speaker) sendKeepalives() {
	w := s.sw.w
	for i := range s.sessions {
		e := &s.sessions[i]
		if e.key.IsZero() {
			continue
		}
		p := w.pool.get()
		p.Kind, p.Key, p.Control, p.Priority = KindTCP, e.key, true, bgpPrio
		p.TTL, p.DSCP, p.IPID, p.TCPFlags = bgpTTL, bgpDSCP, e.ipid, uint8(packet.PSH|packet.ACK)
		p.Seq, p.Payload, p.Sent = int64(e.sent), int32(len(keepalive)), w.now
		p.Size = ethernetSize + ipSize(&e.key) + tcpSize + p.Payload
		x := w.pool.extra(p)
		x.TCPAcked, x.Content = e.received, append(x.Content, keepalive[:]...)
		e.sent += uint32(len(keepalive))
		e.ipid++
		s.sw.inject(s.sw.ports[i], p)
	}
	s.sw.node.addTimer(timer{at: w.now + s.every, kind: runFunc, run: s.tick})
}

// receiveKeepalive consumes a packet for the switch itself if it belongs to the
// session on its ingress link. Its TTL is already one less than it was on the
// link.
func (s *speaker) receiveKeepalive(in *Port, p *Packet) bool {
	if s == nil {
		return false
	}
	e := &s.sessions[in.ID-1]
	if e.key.IsZero() || p.Key != e.key.Reverse() || p.TTL != bgpTTL-1 {
		return false
	}
	e.received = uint32(p.Seq) + uint32(p.Payload)
	in.Keepalives++
	w := s.sw.w
	w.counts.Consumed++
	w.pool.put(p)
	return true
}
