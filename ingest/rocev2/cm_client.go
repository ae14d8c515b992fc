package rocev2

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"time"

	"github.com/weft-telemetry/weft/collect/rdma"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/wire/cm"
	"github.com/weft-telemetry/weft/wire/roce"
)

// CMClientConfig configures a connection by RDMA_CM, to a collector that is not
// Weft: it cannot say how its memory is organised.
type CMClientConfig struct {
	Plan *translate.Plan // geometry of its memories
	// Regions of the memories, in the order of the plan: values, counters, paths,
	// lists. Without them the collector sends each, as the public prototype does.
	Regions []rdma.Region
}

// cmClient is the state of a Client's connection by RDMA_CM, under its lock.
type cmClient struct {
	responder *rdma.Responder // of messages from the collector
	peer      netip.Addr
	ids       cm.CommIDs // this side's first
	psn       roce.PSN   // of datagrams
	reply     *cm.REP
	rejected  *cm.REJ
	patience  time.Duration // that the collector asked for
	ended     bool          // by the collector, or its answer to this side's end
	received  []rdma.Region
	wrong     error // of a message that is no region
	refused   uint64
}

// memories is the number of memories of a plan.
func memories(p *translate.Plan) int {
	n := len(p.KeyWrites) + len(p.Lists)
	if p.Counts != nil {
		n++
	}
	if p.Postcards != nil {
		n++
	}
	return n
}

// remoteRegions assigns regions to the memories of a plan, in its order.
func remoteRegions(p *translate.Plan, all []rdma.Region) (at translate.RemoteRegions, err error) {
	if want := memories(p); len(all) != want {
		return at, fmt.Errorf("rocev2: %d regions, want one for each of %d memories", len(all), want)
	}
	take := func(kind string, size int64) rdma.Region {
		r := all[0]
		all = all[1:]
		if r.Length < uint64(size) && err == nil {
			err = fmt.Errorf("rocev2: region of %d bytes at %#x for %s, want %d: give the collector's geometry", r.Length, r.Addr, kind, size)
		}
		return r
	}
	for _, s := range p.KeyWrites {
		at.KeyWrites = append(at.KeyWrites, take("values", s.Config().Size()))
	}
	if p.Counts != nil {
		at.Counts = take("counters", p.Counts.Config().Size())
	}
	if p.Postcards != nil {
		at.Postcards = take("paths", p.Postcards.Config().Size())
	}
	for _, s := range p.Lists {
		at.Lists = append(at.Lists, take("lists", s.Config().Size()))
	}
	return at, err
}

// newCMClient makes the state for a local address.
func newCMClient(local netip.AddrPort) *cmClient {
	return &cmClient{responder: rdma.NewResponder(local, rand.New(unpredictable{}), nil), psn: roce.PSN(random24()), ended: true}
}

// connectByCM sets up a connection by RDMA_CM.
func (c *Client) connectByCM(ctx context.Context) (offer, error) {
	to, err := net.ResolveUDPAddr("udp", c.cfg.Collector)
	if err != nil {
		return offer{}, fmt.Errorf("rocev2: find collector: %w", err)
	}
	at := to.AddrPort()
	peer := at.Addr().Unmap()
	if peer.Is4() != c.conn.Local().Addr().Is4() {
		return offer{}, fmt.Errorf("rocev2: collector %v from %v, want the same family; set --source", peer, c.conn.Local())
	}
	conn, err := c.requestByCM(ctx, peer, at.Port())
	if err != nil {
		c.abandonCM()
		return offer{}, fmt.Errorf("rocev2: connect to collector %s by RDMA_CM: %w", c.cfg.Collector, err)
	}
	regions := c.cfg.CM.Regions
	if regions == nil {
		if regions, err = c.receiveRegions(ctx); err != nil {
			c.abandonCM()
			return offer{}, fmt.Errorf("rocev2: regions of collector %s: %w", c.cfg.Collector, err)
		}
	}
	o := offer{connection: conn}
	if o.at, err = remoteRegions(c.cfg.CM.Plan, regions); err != nil {
		c.abandonCM()
	}
	return o, err
}

// abandonCM ends a connection that was not completed.
func (c *Client) abandonCM() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.disconnectCM()
}

// requestByCM sends requests until one is answered, and says that it is ready.
func (c *Client) requestByCM(ctx context.Context, peer netip.Addr, port uint16) (conn rdma.Connection, err error) {
	local := c.conn.Local()
	expected := roce.PSN(random24())
	c.mu.Lock()
	c.cm.peer, c.cm.ids = peer, cm.CommIDs{Local: uint32(unpredictable{}.Uint64()) | 1}
	c.cm.reply, c.cm.rejected, c.cm.received, c.cm.wrong, c.cm.ended, c.cm.patience = nil, nil, nil, nil, false, 0
	request := &cm.REQ{
		LocalCommID: c.cm.ids.Local, ServiceID: cm.ServiceID(port), LocalQPN: c.req.Local(), StartingPSN: expected,
		Responder: 1, Initiator: rdma.MaxAtomics, RemoteTimeout: cmTimeoutCode, LocalTimeout: cmTimeoutCode,
		Retries: 7, RNRRetries: 7, MaxCMRetries: cmRetries, PKey: roce.DefaultPKey, MTU: rdma.MTU, AckTimeout: ackTimeoutCode, HopLimit: 64,
		Local: local.Addr(), Remote: peer, SourcePort: uint16(c.cm.ids.Local), Source: local.Addr(), Target: peer,
	}
	c.mu.Unlock()
	var reply *cm.REP
	for range cmRetries + 1 {
		c.mu.Lock()
		c.sendCM(request)
		c.mu.Unlock()
		if err := c.receiveUntil(ctx, func() bool {
			reply = c.cm.reply
			return reply != nil || c.cm.rejected != nil
		}); err != nil {
			return conn, err
		}
		c.mu.Lock()
		rejected := c.cm.rejected
		c.mu.Unlock()
		if rejected != nil {
			return conn, fmt.Errorf("rejected: %w", rejected)
		}
		if reply != nil {
			break
		}
	}
	if reply == nil {
		return conn, errors.New("no answer")
	}
	if c.cfg.CM.Plan.Counts != nil && reply.Responder == 0 {
		return conn, errors.New("the collector accepts no FETCH_ADD (responder resources 0), which counters need")
	}
	conn = rdma.Connection{
		Path: rdma.Path{Src: local, Dst: listening(peer)}, Remote: reply.LocalQPN, First: reply.StartingPSN, MTU: rdma.MTU,
		Atomics: int(reply.Responder), AnyIdentification: true,
	}
	return conn, c.readyByCM(conn, reply, expected)
}

// readyByCM makes the queue pair that receives messages, and says so.
func (c *Client) readyByCM(conn rdma.Connection, reply *cm.REP, expected roce.PSN) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cm.ids.Remote = reply.Local
	conn.Local, conn.First = c.req.Local(), expected
	conn.Receive = func(message []byte) {
		r, err := parseRegion(message)
		switch {
		case err != nil:
			c.cm.wrong = err
		case len(c.cm.received) < memories(c.cfg.CM.Plan):
			c.cm.received = append(c.cm.received, r)
		}
	}
	if _, err := c.cm.responder.Connect(conn); err != nil {
		return err
	}
	c.sendCM(&cm.RTU{CommIDs: c.cm.ids})
	return nil
}

// receiveRegions waits for the regions that the collector sends.
func (c *Client) receiveRegions(ctx context.Context) (all []rdma.Region, err error) {
	want := memories(c.cfg.CM.Plan)
	for ctx.Err() == nil && len(all) < want && err == nil {
		receiveErr := c.receiveUntil(ctx, func() bool { return len(c.cm.received) == want || c.cm.wrong != nil || c.cm.ended })
		c.mu.Lock()
		all, err = c.cm.received, errors.Join(receiveErr, c.cm.wrong)
		if c.cm.ended {
			err = errors.Join(err, errors.New("the collector ended the connection"))
		}
		c.mu.Unlock()
	}
	if len(all) < want {
		err = errors.Join(err, fmt.Errorf("%d of %d received; want a SEND of address, length and R_Key for each memory, or --region", len(all), want))
	}
	return all, err
}

// receiveUntil handles packets until done, which is called under the lock, reports
// true or cmResend is over. The collector may ask for more time once.
func (c *Client) receiveUntil(ctx context.Context, done func() bool) error {
	end := time.Now().Add(cmResend)
	for {
		if err := ctx.Err(); err != nil {
			return errors.New("no answer")
		}
		if _, err := c.conn.Receive(c.handlePacket); err != nil {
			return err
		}
		c.mu.Lock()
		ok := done()
		end, c.cm.patience = end.Add(c.cm.patience), 0
		c.mu.Unlock()
		if ok || time.Now().After(end) {
			return nil
		}
	}
}

// handleCM processes a datagram of connection management.
func (c *Client) handleCM(from netip.AddrPort, payload []byte) {
	m, err := parseCM(rdma.Path{Src: from, Dst: c.conn.Local()}, payload)
	if err != nil || from.Addr() != c.cm.peer {
		c.cm.refused++
		return
	}
	switch body := m.Body.(type) {
	case *cm.REP:
		switch {
		case body.Remote != c.cm.ids.Local:
		case c.cm.ids.Remote == body.Local: // the RTU was lost
			c.sendCM(&cm.RTU{CommIDs: c.cm.ids})
		case c.cm.reply == nil:
			c.cm.reply = body
		}
	case *cm.REJ:
		if body.Remote == c.cm.ids.Local {
			c.cm.rejected, c.cm.ended = body, true
		}
	case *cm.MRA:
		if body.Remote == c.cm.ids.Local {
			c.cm.patience = min(cmTime(body.Timeout), time.Second)
		}
	case *cm.DREQ:
		c.sendAnswer(m.Transaction, &cm.DREP{CommIDs: cm.CommIDs{Local: body.Remote, Remote: body.Local}})
		if body.Remote == c.cm.ids.Local && body.RemoteQPN == c.req.Local() {
			c.cm.ended = true
		}
	case *cm.DREP:
		if body.Remote == c.cm.ids.Local {
			c.cm.ended = true
		}
	}
}

// disconnectCM ends the connection without waiting for an answer.
func (c *Client) disconnectCM() {
	if c.cm.ids.Remote != 0 && !c.cm.ended {
		c.sendCM(&cm.DREQ{CommIDs: c.cm.ids, RemoteQPN: c.cm.reply.LocalQPN})
	}
	c.cm.responder.Disconnect(c.req.Local())
	c.cm.ended, c.cm.ids.Remote = true, 0
}

// endCM ends the connection: it asks until the collector agrees, a few times.
func (c *Client) endCM() {
	for range 5 {
		c.mu.Lock()
		ended := c.cm.ended || c.cm.ids.Remote == 0
		if !ended {
			c.req.Disconnect()
			c.sendCM(&cm.DREQ{CommIDs: c.cm.ids, RemoteQPN: c.cm.reply.LocalQPN})
		}
		c.mu.Unlock()
		if ended {
			return
		}
		if c.receiveUntil(context.Background(), func() bool { return c.cm.ended }) != nil {
			return
		}
	}
}

func (c *Client) sendCM(body cm.Body) { c.sendAnswer(uint64(c.cm.ids.Local), body) }

func (c *Client) sendAnswer(transaction uint64, body cm.Body) {
	c.cm.psn = c.cm.psn.Add(1)
	to := listening(c.cm.peer)
	// A lost message is sent again.
	_, _ = c.conn.Send(to, appendCM(nil, rdma.Path{Src: c.conn.Local(), Dst: to}, c.cm.psn, cm.Message{Transaction: transaction, Body: body}))
}
