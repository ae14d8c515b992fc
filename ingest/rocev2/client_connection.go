package rocev2

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/weft-telemetry/weft/collect/rdma"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/roce"
)

// offer is a connection that the collector accepted.
type offer struct {
	connection rdma.Connection
	conn       net.Conn                // of the setup; nil by RDMA_CM
	reply      Reply                   // empty by RDMA_CM
	at         translate.RemoteRegions // by RDMA_CM
}

func (o offer) close() {
	if o.conn != nil {
		_ = o.conn.Close()
	}
}

// setUpConnection sets up a connection.
func (c *Client) setUpConnection(ctx context.Context) (offer, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.cfg.ExchangeTime, exchangeTime))
	defer cancel()
	if c.cm != nil {
		return c.connectByCM(ctx)
	}
	// The collector executes packets from the address of this exchange only.
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(c.conn.Local().Addr(), 0))}
	conn, err := d.DialContext(ctx, "tcp", c.cfg.Collector)
	if err != nil {
		return offer{}, fmt.Errorf("rocev2: reach collector: %w", err)
	}
	end, _ := ctx.Deadline()
	_ = conn.SetDeadline(end)
	req := c.request()
	reply, err := newExchange(conn).connect(c.cfg.Name, c.cfg.Keys, req)
	if err == nil && reply.MTU < rdma.MTU {
		err = fmt.Errorf("MTU %d, want %d", reply.MTU, rdma.MTU)
	}
	if err != nil {
		_ = conn.Close()
		return offer{}, fmt.Errorf("rocev2: connect to collector %s: %w", c.cfg.Collector, err)
	}
	_ = conn.SetDeadline(time.Time{})
	if reply.Continued {
		req.PSN = reply.First
	}
	return offer{
		conn: conn, reply: reply,
		connection: rdma.Connection{Path: rdma.Path{Src: c.conn.Local(), Dst: reply.Addr}, Remote: reply.QPN, First: req.PSN},
	}, nil
}

// request returns the translator's message: it continues the connection before, if
// there is one.
func (c *Client) request() Request {
	r := Request{Addr: c.conn.Local(), QPN: c.req.Local(), PSN: roce.PSN(random24())}
	c.mu.Lock()
	defer c.mu.Unlock()
	if psn, qp, paused := c.req.Paused(); paused {
		r.PSN, r.Continues = psn, qp
	}
	return r
}

// random24 returns 24 bits that a stranger cannot predict.
func random24() uint32 { return uint32(unpredictable{}.Uint64()) & (1<<24 - 1) }

// disconnect closes the connection. What is not acknowledged waits for one that
// continues it.
func (c *Client) disconnect() {
	if c.cm != nil {
		c.req.Disconnect()
		c.disconnectCM()
	} else {
		c.req.Pause()
	}
	if c.exch != nil {
		_ = c.exch.Close()
		<-c.ended
		c.exch = nil
	}
}

// connected reports whether both the queue pair and its setup connection are up.
func (c *Client) connected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cm != nil {
		return c.req.Connected() && !c.cm.ended
	}
	if !c.req.Connected() || c.exch == nil {
		return false
	}
	select {
	case <-c.ended:
		return false
	default:
		return true
	}
}

// reconnect tries to connect again, once.
func (c *Client) reconnect(ctx context.Context) {
	c.mu.Lock()
	c.disconnect()
	c.busy.Store(true)
	c.mu.Unlock()
	limit := time.AfterFunc(cmp.Or(c.cfg.Patience, patience), c.leaveOut)
	defer limit.Stop()
	o, err := c.setUpConnection(ctx)
	if err == nil {
		if err = c.applyOffer(o); err != nil {
			o.close()
		}
	}
	if err != nil {
		c.leaveOut()
		c.log.Warn("collector is unreachable", "error", err)
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
		return
	}
	c.log.Info("reconnected to the collector", "collector", c.cfg.Collector)
}

// patience is the default of ClientConfig.Patience.
const patience = 500 * time.Millisecond

// leaveOut makes the collector down until it is connected.
func (c *Client) leaveOut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.req.Connected() {
		c.down.Store(true)
	}
}

// applyOffer switches to an offered connection. The collector's memories must have
// the same geometry as before; their addresses may differ.
func (c *Client) applyOffer(o offer) error {
	if len(o.reply.Regions) != len(c.regs) {
		return fmt.Errorf("rocev2: collector has %d regions, want %d as before", len(o.reply.Regions), len(c.regs))
	}
	for i, r := range o.reply.Regions {
		if was := c.regs[i]; r.Kind != was.Kind || !bytes.Equal(r.Geometry, was.Geometry) {
			return fmt.Errorf("rocev2: region %d is a %s %s, want a %s %s as before",
				i, r.Kind, r.Geometry, was.Kind, was.Geometry)
		}
	}
	at, heads := o.at, o.reply.Heads
	if c.cm == nil {
		var err error
		if _, at, err = o.reply.plan(); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cm != nil {
		heads = c.remote.Heads() // only this side knows them
	}
	now := model.TimeOf(time.Now())
	if o.reply.Continued {
		if err := c.req.Resume(now, o.connection); err != nil {
			return err
		}
	} else {
		if err := c.remote.Connect(at, heads); err != nil {
			return err
		}
		if err := c.req.Connect(now, o.connection); err != nil {
			return err
		}
	}
	c.down.Store(false)
	if o.conn == nil {
		return nil
	}
	ended := make(chan struct{})
	c.exch, c.ended = o.conn, ended
	go func() { // until the other side closes, or this one disconnects and waits
		_, _ = o.conn.Read(make([]byte, 1))
		close(ended)
	}()
	return nil
}
