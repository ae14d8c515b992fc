package rocev2

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/collect/rdma"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/udp"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/roce"
)

// ClientConfig configures a translator's connection to a collector.
type ClientConfig struct {
	Name      string         // of the translator
	Collector string         // address of the collector's connection setup, host:port
	Local     netip.AddrPort // source of packets and destination of answers
	Keys      Keys           // of Name, which both sides prove; nil connects without
	Translate translate.Config
	Requester rdma.RequesterConfig
	// CM, if not nil, connects by RDMA_CM to a collector that is not Weft: Collector is
	// its address with its port in RDMA's port space. The port of Local is then 4791.
	CM *CMClientConfig

	ExchangeTime time.Duration // limit of a setup; 0 is 5 s
	// Patience is how long reports are refused while an ended connection is set up again,
	// before the collector counts as down; 0 is 500 ms. A collector that cannot be reached, or
	// that does not continue the connection, is down at once.
	Patience time.Duration
}

// Client is a Translator with a connection to a collector. It reconnects whenever
// the connection ends.
type Client struct {
	cfg    ClientConfig
	log    *slog.Logger
	conn   *udp.Conn
	busy   atomic.Bool // the window is too full for reports, or waits for a connection that continues it
	down   atomic.Bool // there is no connection
	plan   *translate.Plan
	regs   []RegionAdvert
	mu     sync.Mutex // guards all below
	req    *rdma.Requester
	remote *translate.RDMAWriter
	tr     *translate.Translator
	exch   net.Conn
	ended  chan struct{} // closed when the setup connection is
	cm     *cmClient     // nil unless cfg.CM
}

// Dial connects to a collector, gets the geometry of its memories, and starts
// nothing.
func Dial(ctx context.Context, cfg ClientConfig, log *slog.Logger) (_ *Client, err error) {
	if cfg.CM != nil {
		cfg.Local = listening(cfg.Local.Addr()) // where a NIC sends answers
		cfg.Requester.Timeout = max(cfg.Requester.Timeout, cmTime(ackTimeoutCode))
	}
	socket := udp.DefaultConfig(cfg.Local)
	socket.Offload, socket.DontFragment, socket.ZeroChecksum, socket.Timeout = false, true, true, 2*time.Millisecond
	req, err := rdma.NewRequester(cfg.Requester, roce.QPN(random24()|2))
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, log: log, req: req}
	if c.conn, err = udp.Listen(socket); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = c.Close()
		}
	}()
	if c.conn.Local().Addr().IsUnspecified() {
		return nil, fmt.Errorf("rocev2: send from %v, want the source address of packets", cfg.Local)
	}
	if cfg.CM != nil {
		c.cm = newCMClient(c.conn.Local())
	}
	o, err := c.setUpConnection(ctx)
	if err != nil {
		return nil, err
	}
	c.regs = o.reply.Regions
	if cfg.CM != nil {
		c.plan = cfg.CM.Plan
	} else {
		c.plan, _, err = o.reply.plan()
	}
	if err == nil {
		c.remote, err = translate.NewRDMAWriter(c.plan, c.req)
	}
	if err == nil {
		c.tr, err = translate.New(cfg.Translate, c.plan, c.remote)
	}
	if err == nil {
		err = c.applyOffer(o)
	}
	if err != nil {
		o.close()
		return nil, err
	}
	return c, nil
}

// Close frees what Dial opened, without Run.
func (c *Client) Close() error {
	if c.cm != nil {
		c.endCM()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.disconnect()
	return c.conn.Close()
}

// SameMemory reports whether two collectors have memories of the same kinds and
// geometries.
func (c *Client) SameMemory(o *Client) bool {
	return slices.EqualFunc(c.regs, o.regs, func(a, b RegionAdvert) bool {
		return a.Kind == b.Kind && bytes.Equal(a.Geometry, b.Geometry)
	})
}

// Plan is the geometry of the collector's memories.
func (c *Client) Plan() *translate.Plan { return c.plan }

// Down implements translate.Replica: a connection has ended, and none could be set up.
func (c *Client) Down() bool { return c.down.Load() }

// Admit implements translate.Target.
func (c *Client) Admit(r *dta.Report) dta.Verdict {
	if !c.plan.Serves(r) {
		return dta.Unserved
	}
	if c.busy.Load() || c.down.Load() {
		return dta.RateLimited
	}
	return dta.Stored
}

// AdmitRun implements translate.Target.
func (c *Client) AdmitRun(first *dta.Report, run []byte, count int) dta.Verdict {
	if !c.plan.ServesRun(first, run, count) {
		return dta.Unserved
	}
	if c.busy.Load() || c.down.Load() {
		return dta.RateLimited
	}
	return dta.Stored
}

// Put implements translate.Target.
func (c *Client) Put(now model.Time, batch []dta.Report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tr.Put(now, batch)
	c.sendPending(now)
}

// PutRun implements translate.Target.
func (c *Client) PutRun(now model.Time, first *dta.Report, run []byte, count int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tr.PutRun(now, first, run, count)
	c.sendPending(now)
}

// sendPending sends the requester's packets, and sets busy unless the window has
// space for two batches of reports with all their copies.
func (c *Client) sendPending(now model.Time) {
	for pkt := c.req.Next(now); pkt != nil; pkt = c.req.Next(now) {
		if _, err := c.conn.Send(c.req.Peer(), pkt); err != nil {
			break // as if lost: it is retransmitted
		}
	}
	c.busy.Store(!c.req.Connected() || c.req.WindowFree() < c.cfg.Requester.Window/2)
}

// Tick writes paths and entries whose wait time is over.
func (c *Client) Tick(now model.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tr.Tick(now)
	c.req.Tick(now)
	c.sendPending(now)
}

// Drain writes everything, before shutdown.
func (c *Client) Drain(now model.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tr.Drain(now)
	c.sendPending(now)
}

// ClientStats are the counters of a Client.
type ClientStats struct {
	Connected bool                      `json:"connected"`
	Requester rdma.RequesterStats       `json:"requester"`
	Remote    translate.RDMAWriterStats `json:"remote"`
	CM        *CMClientStats            `json:"rdma_cm,omitempty"`
}

// CMClientStats count what a collector sends by RDMA_CM.
type CMClientStats struct {
	Refused  uint64              `json:"refused"`  // messages of connection management that are malformed or of another host
	Messages rdma.ResponderStats `json:"messages"` // SENDs, and other packets that are refused
}

// Stats returns the current counters.
func (c *Client) Stats() (translate.Stats, ClientStats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	st := ClientStats{Connected: c.req.Connected(), Requester: c.req.Stats(), Remote: c.remote.Stats()}
	if c.cm != nil {
		st.CM = &CMClientStats{c.cm.refused, c.cm.responder.Stats()}
	}
	return c.tr.Stats(), st
}

// Run handles answers and keeps the connection until ctx ends and everything is
// acknowledged, or the collector no longer answers.
func (c *Client) Run(ctx context.Context) error {
	// Reports may still be put until ctx ends, and are acknowledged soon after,
	// or never.
	var end time.Time
	for {
		if ctx.Err() != nil {
			if end.IsZero() {
				end = time.Now().Add(time.Second)
			}
			c.mu.Lock()
			done := !c.req.Connected() || c.req.WindowFree() == c.cfg.Requester.Window || time.Now().After(end)
			c.mu.Unlock()
			if done {
				return c.Close()
			}
		}
		if _, err := c.conn.Receive(c.handlePacket); err != nil {
			return errors.Join(err, c.Close())
		}
		c.Tick(model.TimeOf(time.Now()))
		if ctx.Err() == nil && !c.connected() {
			c.reconnect(ctx)
		}
	}
}

func (c *Client) handlePacket(from netip.AddrPort, d []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.cm == nil || isAnswer(d):
		c.req.Handle(model.TimeOf(time.Now()), from, d)
	case isCM(d):
		c.handleCM(from, d)
	default:
		if answer := c.cm.responder.Handle(from, d); answer != nil {
			_, _ = c.conn.Send(c.cm.responder.AnswerTo(), answer) // a lost answer is requested again
		}
	}
}
