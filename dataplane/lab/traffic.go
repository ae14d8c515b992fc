package lab

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// receivePort is the UDP port of every host that receives traffic.
const receivePort = 9000

// firstSendPort is the port of a host's first flow; its others follow.
const firstSendPort = 20000

// Traffic is UDP between all pairs of hosts. Senders and receivers count every packet.
type Traffic struct {
	lab   *Lab
	pause time.Duration
	flows []*Flow
	conns []*net.UDPConn
}

// Flow is one flow and its books.
type Flow struct {
	Key            model.FlowKey
	From, To       model.NodeID
	Sent, Received atomic.Uint64

	conn *net.UDPConn
}

// NewTraffic makes flows of every host to every other, as many as given between two,
// each of which sends a packet and pauses. It sends nothing before Run.
func NewTraffic(l *Lab, flows int, pause time.Duration) (_ *Traffic, err error) {
	t := &Traffic{lab: l, pause: pause}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("lab: traffic: %w", err), t.Close())
		}
	}()
	for _, from := range l.fabric.Hosts() {
		if err := t.receive(from); err != nil {
			return nil, err
		}
		port := uint16(firstSendPort)
		for _, to := range l.fabric.Hosts() {
			for range flows {
				if to == from {
					continue
				}
				if err := t.addFlow(from, to, port); err != nil {
					return nil, err
				}
				port++
			}
		}
	}
	return t, nil
}

// receive opens the socket that counts what arrives at a host. Packets carry the index
// of their flow.
func (t *Traffic) receive(at model.NodeID) error {
	return t.lab.nodes[at].do(func() error {
		c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(t.lab.Addr(at), receivePort)))
		if err != nil {
			return err
		}
		t.conns = append(t.conns, c)
		return c.SetReadBuffer(4 << 20)
	})
}

func (t *Traffic) addFlow(from, to model.NodeID, port uint16) error {
	src, dst := netip.AddrPortFrom(t.lab.Addr(from), port), netip.AddrPortFrom(t.lab.Addr(to), receivePort)
	f := &Flow{Key: model.NewFlowKey(src, dst, model.UDP), From: from, To: to}
	return t.lab.nodes[from].do(func() (err error) {
		f.conn, err = net.DialUDP("udp4", net.UDPAddrFromAddrPort(src), net.UDPAddrFromAddrPort(dst))
		if err == nil {
			t.flows = append(t.flows, f)
		}
		return err
	})
}

// Flows returns all flows.
func (t *Traffic) Flows() []*Flow { return t.flows }

// Run sends until ctx is done, and counts what arrives until Close. A packet that the
// sender's own kernel refuses is not sent.
func (t *Traffic) Run(ctx context.Context) {
	var receivers sync.WaitGroup
	for _, c := range t.conns {
		receivers.Go(func() { t.count(c) })
	}
	tick := time.NewTicker(t.pause / parts)
	defer tick.Stop()
	payload := make([]byte, 200)
	sentSince := time.Now()
	for part := 0; ; part = (part + 1) % parts {
		wait := tick.C
		if slot := t.lab.cfg.Agent.Flowset.Slot; slot > 0 && time.Since(sentSince) > sendSlots*slot {
			wait = time.After(restSlots * slot)
		}
		// Not all at once: a burst of all flows overruns the queues of the machine.
		for i := part; i < len(t.flows); i += parts {
			f := t.flows[i]
			binary.BigEndian.PutUint32(payload, uint32(i))
			if _, err := f.conn.Write(payload); err == nil {
				f.Sent.Add(1)
			}
		}
		select {
		case <-ctx.Done():
			t.stopReceivers()
			receivers.Wait()
			return
		case <-wait:
		}
		if wait != tick.C {
			sentSince = time.Now()
		}
	}
}

// Flows rest, as those of applications do: how many slots they send for, and how many they
// rest. At a rest nothing is in flight, so that even one lost packet is known.
const (
	sendSlots = 20
	restSlots = 3
)

// parts is the number of parts in which the flows send, one after the other.
const parts = 8

// lastArrival is how long packets may be in flight.
const lastArrival = 200 * time.Millisecond

func (t *Traffic) stopReceivers() {
	for _, c := range t.conns {
		_ = c.SetReadDeadline(time.Now().Add(lastArrival)) // fails on a closed socket only, which has no reader
	}
}

func (t *Traffic) count(c *net.UDPConn) {
	buf := make([]byte, 2048)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		if i := binary.BigEndian.Uint32(buf); n >= 4 && int(i) < len(t.flows) {
			t.flows[i].Received.Add(1)
		}
	}
}

// Close closes all sockets.
func (t *Traffic) Close() (err error) {
	for _, c := range t.conns {
		err = errors.Join(err, c.Close())
	}
	for _, f := range t.flows {
		err = errors.Join(err, f.conn.Close())
	}
	t.conns, t.flows = nil, nil
	return err
}
