package lab

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// receivePort is the UDP and TCP port of every host that receives traffic.
const receivePort = 9000

// firstSendPort is the port of a host's first flow; its others follow.
const firstSendPort = 20000

// TrafficConfig is what every host sends to every other.
type TrafficConfig struct {
	UDP, TCP   int // flows to each other host, and connections, of each family
	IPv4, IPv6 bool
	// Pause is between two packets of a UDP flow, and two messages of a connection.
	Pause time.Duration
}

// Traffic is UDP and TCP between all pairs of hosts. Senders and receivers keep books.
type Traffic struct {
	lab         *Lab
	cfg         TrafficConfig
	flows       []*Flow // of UDP
	receivers   []receiver
	connections []*Connection
	listeners   []*net.TCPListener
}

// Flow is one flow and its books.
type Flow struct {
	Key            model.FlowKey
	From, To       model.NodeID
	Sent, Received atomic.Uint64 // packets
	Damaged        atomic.Uint64 // of those received

	conn *net.UDPConn
}

// receiver is the UDP socket of a host.
type receiver struct {
	host model.NodeID
	conn *net.UDPConn
}

// NewTraffic makes flows of every host to every other. It sends nothing before Run.
func NewTraffic(l *Lab, cfg TrafficConfig) (_ *Traffic, err error) {
	if cfg.UDP < 0 || cfg.TCP < 0 || cfg.Pause < time.Millisecond {
		return nil, fmt.Errorf("lab: %d flows and %d connections with pauses of %v, want at least 0, 0 and 1ms", cfg.UDP, cfg.TCP, cfg.Pause)
	}
	t := &Traffic{lab: l, cfg: cfg}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("lab: traffic: %w", err), t.Close())
		}
	}()
	for _, from := range l.fabric.Hosts() {
		if err := t.addHost(from); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// families are the indices of addresses that are used.
func (t *Traffic) families() (list []int) {
	for i, used := range []bool{t.cfg.IPv4, t.cfg.IPv6} {
		if used {
			list = append(list, i)
		}
	}
	return list
}

// end is a port of a host, of a family.
func (t *Traffic) end(host model.NodeID, family int, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(addresses(t.lab.fabric.Node(host))[family].Netip(), port)
}

// addHost makes what a host receives with, and its flows to all others.
func (t *Traffic) addHost(from model.NodeID) error {
	for _, family := range t.families() {
		if err := t.receive(t.end(from, family, receivePort), from); err != nil {
			return err
		}
		port := uint16(firstSendPort)
		for _, to := range t.lab.fabric.Hosts() {
			if to == from {
				continue
			}
			dst := t.end(to, family, receivePort)
			for range t.cfg.UDP {
				if err := t.addFlow(from, to, t.end(from, family, port), dst); err != nil {
					return err
				}
				port++
			}
			for range t.cfg.TCP {
				t.connections = append(t.connections, newConnection(from, to, t.end(from, family, port), dst))
				port++
			}
		}
	}
	return nil
}

// receive opens the sockets of a host. Packets of UDP carry the index of their flow.
func (t *Traffic) receive(at netip.AddrPort, host model.NodeID) error {
	return t.lab.nodes[host].do(func() error {
		if t.cfg.TCP > 0 {
			l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at))
			if err != nil {
				return err
			}
			t.listeners = append(t.listeners, l)
		}
		if t.cfg.UDP == 0 {
			return nil
		}
		c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
		if err != nil {
			return err
		}
		t.receivers = append(t.receivers, receiver{host, c})
		return c.SetReadBuffer(4 << 20)
	})
}

func (t *Traffic) addFlow(from, to model.NodeID, src, dst netip.AddrPort) error {
	f := &Flow{Key: model.NewFlowKey(src, dst, model.UDP), From: from, To: to}
	return t.lab.nodes[from].do(func() (err error) {
		f.conn, err = net.DialUDP("udp", net.UDPAddrFromAddrPort(src), net.UDPAddrFromAddrPort(dst))
		if err == nil {
			t.flows = append(t.flows, f)
		}
		return err
	})
}

// Flows returns all flows: those of UDP, and two of every connection, one in each direction,
// whose packets are known when Run has ended.
func (t *Traffic) Flows() []*Flow {
	all := slices.Clone(t.flows)
	for _, c := range t.connections {
		all = append(all, c.forward, c.back)
	}
	return all
}

// Connections returns those of TCP.
func (t *Traffic) Connections() []*Connection { return t.connections }

// Run sends until ctx is done, and counts what arrives until packets cannot be in flight any
// more. A packet that the sender's own kernel refuses is not sent.
func (t *Traffic) Run(ctx context.Context) {
	var receivers, connections sync.WaitGroup
	for _, r := range t.receivers {
		receivers.Go(func() { t.count(r.conn) })
	}
	t.runConnections(ctx, &connections)
	t.sendUDP(ctx)
	for _, r := range t.receivers {
		_ = r.conn.SetReadDeadline(time.Now().Add(lastArrival)) // fails on a closed socket only, which has no reader
	}
	receivers.Wait()
	connections.Wait()
}

// sendUDP sends packets of all flows until ctx is done.
func (t *Traffic) sendUDP(ctx context.Context) {
	tick := time.NewTicker(t.cfg.Pause / parts)
	defer tick.Stop()
	packet := make([]byte, 200)
	fillContent(packet[4:], 0)
	sentSince := time.Now()
	for part := 0; ; part = (part + 1) % parts {
		wait := tick.C
		if slot := t.lab.cfg.Agent.Flowset.Slot; slot > 0 && time.Since(sentSince) > sendSlots*slot {
			wait = time.After(restSlots * slot)
		}
		// Not all at once: a burst of all flows overruns the queues of the machine.
		for i := part; i < len(t.flows); i += parts {
			f := t.flows[i]
			binary.BigEndian.PutUint32(packet, uint32(i))
			if _, err := f.conn.Write(packet); err == nil {
				f.Sent.Add(1)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-wait:
		}
		if wait != tick.C {
			sentSince = time.Now()
		}
	}
}

// fillContent writes what a stream has from a position on: bytes that depend on their
// position, so that none can be missing, twice, or another.
func fillContent(b []byte, position uint64) {
	for i := range b {
		at := position + uint64(i)
		b[i] = byte(at*31 ^ at>>8)
	}
}

// isContent reports whether b is what fillContent writes.
func isContent(b []byte, position uint64) bool {
	for i := range b {
		at := position + uint64(i)
		if b[i] != byte(at*31^at>>8) {
			return false
		}
	}
	return true
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

func (t *Traffic) count(c *net.UDPConn) {
	buf := make([]byte, 2048)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		if n < 4 {
			continue
		}
		if i := binary.BigEndian.Uint32(buf); int(i) < len(t.flows) {
			t.flows[i].Received.Add(1)
			if !isContent(buf[4:n], 0) {
				t.flows[i].Damaged.Add(1)
			}
		}
	}
}

// Close closes all sockets.
func (t *Traffic) Close() (err error) {
	for _, r := range t.receivers {
		err = errors.Join(err, r.conn.Close())
	}
	for _, f := range t.flows {
		err = errors.Join(err, f.conn.Close())
	}
	for _, l := range t.listeners {
		if e := l.Close(); !errors.Is(e, net.ErrClosed) {
			err = errors.Join(err, e)
		}
	}
	t.receivers, t.flows, t.listeners = nil, nil, nil
	return err
}
