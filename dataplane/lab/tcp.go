package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-telemetry/weft/model"
)

// messageBytes is a message of a connection: three segments.
const messageBytes = 4096

// lastAcknowledgement is how long a connection may take to end after its last message, such
// as for segments that are sent again.
const lastAcknowledgement = 5 * time.Second

// Connection is one TCP connection and its books: of its stream, and of its packets by the
// kernels' own counts (TCP_INFO).
type Connection struct {
	From, To       model.NodeID
	Sent, Received atomic.Uint64 // bytes of the stream, at its two ends
	Damaged        atomic.Bool   // the stream had other bytes than were sent
	Again          atomic.Uint64 // segments that the sender sent again
	LeastRTT       time.Duration // by the sender's kernel; known when Run has ended

	src, dst      netip.AddrPort
	forward, back *Flow
	err           error // why its packets are not known
}

// ErrSentAgain is the error of a connection whose receiver sent SYN-ACK or FIN again: the kernel
// does not say which, and counts the former nowhere.
var ErrSentAgain = errors.New("the receiver sent a packet again, so that its packets are not known exactly")

// Err is why the packets of a connection are not known: it was not made, or did not end.
// It is known when Run has ended.
func (c *Connection) Err() error { return c.err }

// Key names the direction of the stream.
func (c *Connection) Key() model.FlowKey { return c.forward.Key }

func newConnection(from, to model.NodeID, src, dst netip.AddrPort) *Connection {
	return &Connection{
		From: from, To: to, src: src, dst: dst,
		forward: &Flow{Key: model.NewFlowKey(src, dst, model.TCP), From: from, To: to},
		back:    &Flow{Key: model.NewFlowKey(dst, src, model.TCP), From: to, To: from},
	}
}

// runConnections makes all connections, sends on them until ctx is done, and ends them.
func (t *Traffic) runConnections(ctx context.Context, running *sync.WaitGroup) {
	accepted := map[netip.AddrPort]chan *net.TCPConn{} // by the address that connects
	for _, c := range t.connections {
		accepted[c.src] = make(chan *net.TCPConn, 1)
	}
	var open sync.WaitGroup
	for _, c := range t.connections {
		open.Add(1)
		running.Go(func() {
			defer open.Done()
			c.err = t.runConnection(ctx, c, accepted[c.src])
		})
	}
	for _, l := range t.listeners {
		running.Go(func() {
			for {
				conn, err := l.AcceptTCP()
				if err != nil {
					return
				}
				if to := accepted[conn.RemoteAddr().(*net.TCPAddr).AddrPort()]; to != nil {
					to <- conn // one, as no two connections have the same ends
				} else {
					_ = conn.Close() // of no connection of the lab
				}
			}
		})
	}
	running.Go(func() {
		open.Wait()
		for _, l := range t.listeners {
			_ = l.Close() // Close of the traffic looks at it
		}
	})
}

// runConnection makes a connection, sends until ctx is done, and ends it.
func (t *Traffic) runConnection(ctx context.Context, c *Connection, accepted <-chan *net.TCPConn) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("lab: connection %v: %w", c.forward.Key, err)
		}
	}()
	// Also connections that are made while the traffic ends send a message.
	making, stop := context.WithTimeout(context.WithoutCancel(ctx), lastAcknowledgement)
	defer stop()
	var sender *net.TCPConn
	if err := t.lab.nodes[c.From].do(func() error {
		d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(c.src)}
		d.SetMultipathTCP(false)
		one, err := d.DialContext(making, "tcp", c.dst.String())
		if err == nil {
			sender = one.(*net.TCPConn)
		}
		return err
	}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sender.Close()) }()
	var receiver *net.TCPConn
	select {
	case receiver = <-accepted:
	case <-making.Done():
		return errors.New("it was not accepted")
	}
	defer func() { err = errors.Join(err, receiver.Close()) }()
	received := make(chan error, 1)
	go func() { received <- c.receive(receiver) }()
	sent := c.send(ctx, sender, t.cfg.Pause)
	end := time.Now().Add(lastAcknowledgement)
	err = errors.Join(sent, sender.SetDeadline(end), receiver.SetDeadline(end))
	if sent == nil {
		// The receiver reads the end of the stream and ends its own, which is read here.
		err = errors.Join(err, sender.CloseWrite())
		_, readErr := io.Copy(io.Discard, sender)
		err = errors.Join(err, readErr)
	} else {
		err = errors.Join(err, receiver.SetDeadline(time.Unix(0, 1)))
	}
	if err = errors.Join(err, <-received); err != nil {
		return err
	}
	return c.settle(sender, receiver, end)
}

// send writes messages until ctx is done. One that is not taken in time ends it.
func (c *Connection) send(ctx context.Context, to *net.TCPConn, pause time.Duration) error {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	message := make([]byte, messageBytes)
	stop := context.AfterFunc(ctx, func() { _ = to.SetWriteDeadline(time.Now().Add(lastAcknowledgement)) }) // it fails when closed
	defer stop()
	for {
		fillContent(message, c.Sent.Load())
		n, err := to.Write(message)
		c.Sent.Add(uint64(n))
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// receive reads the stream to its end, and ends the other direction.
func (c *Connection) receive(from *net.TCPConn) error {
	buf := make([]byte, 1<<16)
	for {
		n, err := from.Read(buf)
		if !isContent(buf[:n], c.Received.Load()) {
			c.Damaged.Store(true)
		}
		c.Received.Add(uint64(n))
		if err == io.EOF {
			return from.CloseWrite()
		}
		if err != nil {
			return err
		}
	}
}

// settle waits until the peer has acknowledged the end of the receiver's direction, which is the
// last packet, and reads the packets of both.
func (c *Connection) settle(sender, receiver *net.TCPConn, end time.Time) error {
	const (
		closed = 7 // TCP_CLOSE
		synACK = 1 // the socket is made after it has answered
	)
	for {
		a, err := infoOf(sender)
		if err != nil {
			return err
		}
		b, err := infoOf(receiver)
		if err != nil {
			return err
		}
		if b.State == closed && b.Total_retrans > 0 {
			return ErrSentAgain
		}
		if b.State == closed {
			c.forward.Sent.Store(uint64(a.Segs_out))
			c.forward.Received.Store(uint64(b.Segs_in))
			c.back.Sent.Store(uint64(b.Segs_out) + synACK)
			c.back.Received.Store(uint64(a.Segs_in))
			c.LeastRTT = time.Duration(a.Min_rtt) * time.Microsecond
			c.Again.Store(uint64(a.Total_retrans))
			return nil
		}
		if time.Now().After(end) {
			return errors.New("its end was not acknowledged")
		}
		time.Sleep(time.Millisecond)
	}
}

func infoOf(c *net.TCPConn) (info *unix.TCPInfo, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	if e := raw.Control(func(fd uintptr) {
		info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	}); e != nil {
		return nil, e
	}
	return info, err
}
