//go:build linux

// Package udp receives and sends datagrams in batches: recvmmsg with generic
// receive offload (GRO) for receiving, segmentation offload (GSO) for sending,
// several sockets on one port for several workers. It counts what the kernel
// dropped. It does not interpret datagrams.
package udp

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Config configures a socket.
type Config struct {
	Listen        netip.AddrPort // port 0 selects a free one
	Batch         int            // maximum number of messages of one system call
	ReceiveBuffer int            // size of the receive buffer in bytes; datagrams beyond it are dropped and counted
	Offload       bool           // GRO: the kernel delivers runs of datagrams as one message
	Timeout       time.Duration  // maximum wait time of Receive
	DontFragment  bool           // never fragment; IPv4 then sends identification 0, which RoCEv2's CRC needs
	ZeroChecksum  bool           // IPv6: send without checksum, and receive with and without, as RoCEv2 does
	MaxDatagram   int            // longest datagram without Offload; longer ones are discarded and counted. 0 is 2048
}

// DefaultConfig has a receive buffer for 10 ms at 25 Gb/s. With a batch of 32
// datagrams the cost of the system call is negligible (BenchmarkReceive).
func DefaultConfig(listen netip.AddrPort) Config {
	return Config{Listen: listen, Batch: 32, ReceiveBuffer: 32 << 20, Offload: true, Timeout: 20 * time.Millisecond}
}

// Conn is one socket. Receive is for one goroutine, Send for another.
type Conn struct {
	fd        int
	local     netip.AddrPort
	messages  []message
	headers   []mmsghdr
	nextBatch int // number of messages of the next call
	control   []byte
	emptied   bool
	drops     uint32 // the kernel's counter at the last read; it wraps
	stats     Stats
	to        [unix.SizeofSockaddrInet6]byte
	segment   [segmentSpace]byte
}

// Stats are the counters of a socket.
type Stats struct {
	Calls     uint64 `json:"calls"`
	Messages  uint64 `json:"messages"`
	Datagrams uint64 `json:"datagrams"`
	Bytes     uint64 `json:"bytes"`
	Dropped   uint64 `json:"dropped"`   // by the kernel: the receive buffer was full
	Truncated uint64 `json:"truncated"` // messages longer than a buffer, discarded
}

// message is one buffer of a batch. The kernel fills in its fields.
type message struct {
	iov  unix.Iovec
	from unix.RawSockaddrInet6
	buf  []byte
}

type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
	_   [4]byte
}

// callBytes is about the number of bytes per call. They are read when the call
// returns, and should still be in the second-level cache then: with 32 messages
// of 64 KiB a report took 57 ns of a collector, with 4 it takes 45.
const callBytes = 256 << 10

const (
	maxMessage   = 64 << 10
	controlSpace = 64 // two integers with their headers: 24 bytes each
	solUDP       = 17
	udpNoCheckTX = 101
	udpNoCheckRX = 102
	udpSegment   = 103
	udpGRO       = 104
	segmentSpace = 24
)

// Listen opens a socket with exclusive use of its port. A port in use is an error:
// two processes that share one would each get a part of the reporters, and
// neither would know of the others.
func Listen(cfg Config) (*Conn, error) { return open(cfg, false) }

// ListenAll opens n sockets that share a port with each other and with no other
// process: the kernel spreads reporters over them.
func ListenAll(cfg Config, n int) ([]*Conn, error) {
	if n == 1 {
		c, err := Listen(cfg)
		if err != nil {
			return nil, err
		}
		return []*Conn{c}, nil
	}
	// Sockets with SO_REUSEPORT allow any other with it, so a socket without it
	// checks first that the port is free.
	alone, err := Listen(cfg)
	if err != nil {
		return nil, err
	}
	cfg.Listen = alone.Local()
	if err := alone.Close(); err != nil {
		return nil, err
	}
	var all []*Conn
	for range n {
		c, err := open(cfg, true)
		if err != nil {
			for _, c := range all {
				_ = c.Close()
			}
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

func open(cfg Config, share bool) (*Conn, error) {
	if cfg.Batch < 1 || cfg.Timeout <= 0 {
		return nil, fmt.Errorf("udp: batch of %d, timeout %v, want both positive", cfg.Batch, cfg.Timeout)
	}
	family := unix.AF_INET6
	if cfg.Listen.Addr().Is4() {
		family = unix.AF_INET
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	c := &Conn{fd: fd}
	if err := c.setOptions(cfg, family, share); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("udp: listen on %v: %w", cfg.Listen, err)
	}
	c.nextBatch = cfg.Batch
	c.messages = make([]message, cfg.Batch)
	c.headers = make([]mmsghdr, cfg.Batch)
	c.control = make([]byte, cfg.Batch*controlSpace)
	size := 2048
	if cfg.MaxDatagram > 0 {
		size = cfg.MaxDatagram
	}
	if cfg.Offload {
		size = maxMessage
	}
	for i := range c.messages {
		m := &c.messages[i]
		m.buf = make([]byte, size)
		m.iov.Base = &m.buf[0]
		m.iov.SetLen(size)
	}
	return c, nil
}

func (c *Conn) setOptions(cfg Config, family int, share bool) error {
	on := func(level, opt, v int, name string) error {
		return os.NewSyscallError("setsockopt "+name, unix.SetsockoptInt(c.fd, level, opt, v))
	}
	timeout := unix.NsecToTimeval(cfg.Timeout.Nanoseconds())
	if share {
		if err := on(unix.SOL_SOCKET, unix.SO_REUSEPORT, 1, "SO_REUSEPORT"); err != nil {
			return err
		}
	}
	if err := errors.Join(
		on(unix.SOL_SOCKET, unix.SO_RXQ_OVFL, 1, "SO_RXQ_OVFL"),
		os.NewSyscallError("setsockopt SO_RCVTIMEO", unix.SetsockoptTimeval(c.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout)),
	); err != nil {
		return err
	}
	if err := setReceiveBuffer(c.fd, cfg.ReceiveBuffer); err != nil {
		return err
	}
	if cfg.DontFragment {
		level, opt, v := unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO
		if family == unix.AF_INET6 {
			level, opt, v = unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_DO
		}
		if err := on(level, opt, v, "MTU_DISCOVER"); err != nil {
			return err
		}
	}
	if cfg.ZeroChecksum && family == unix.AF_INET6 {
		if err := errors.Join(on(solUDP, udpNoCheckTX, 1, "UDP_NO_CHECK6_TX"), on(solUDP, udpNoCheckRX, 1, "UDP_NO_CHECK6_RX")); err != nil {
			return err
		}
	}
	if cfg.Offload {
		_ = on(solUDP, udpGRO, 1, "UDP_GRO") // since Linux 5.0; without it every datagram is a message
	}
	var sa unix.Sockaddr
	if family == unix.AF_INET {
		sa = &unix.SockaddrInet4{Port: int(cfg.Listen.Port()), Addr: cfg.Listen.Addr().As4()}
	} else {
		sa = &unix.SockaddrInet6{Port: int(cfg.Listen.Port()), Addr: cfg.Listen.Addr().As16()}
	}
	if err := unix.Bind(c.fd, sa); err != nil {
		return os.NewSyscallError("bind", err)
	}
	got, err := unix.Getsockname(c.fd)
	if err != nil {
		return os.NewSyscallError("getsockname", err)
	}
	switch a := got.(type) {
	case *unix.SockaddrInet4:
		c.local = netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		c.local = netip.AddrPortFrom(netip.AddrFrom16(a.Addr), uint16(a.Port))
	}
	return nil
}

// Local is the address the socket is bound to.
func (c *Conn) Local() netip.AddrPort { return c.local }

// Stats returns the current counters. It must not run concurrently with Receive.
func (c *Conn) Stats() Stats { return c.stats }

// Emptied reports whether the last Receive returned all that had arrived when it began.
func (c *Conn) Emptied() bool { return c.emptied }

// Close frees the socket. No call may be in progress.
func (c *Conn) Close() error { return os.NewSyscallError("close", unix.Close(c.fd)) }

// Receive waits for datagrams, at most for the timeout, and calls handle with
// each, which must not keep it. It returns their number; an interrupted wait or a
// timeout is no error.
func (c *Conn) Receive(handle func(from netip.AddrPort, datagram []byte)) (int, error) {
	for i := range c.nextBatch {
		m := &c.messages[i]
		h := &c.headers[i].hdr
		h.Name = (*byte)(unsafe.Pointer(&m.from))
		h.Namelen = uint32(unsafe.Sizeof(m.from))
		h.Iov = &m.iov
		h.SetIovlen(1)
		h.Control = &c.control[i*controlSpace]
		h.SetControllen(controlSpace)
		h.Flags = 0
	}
	got, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, uintptr(c.fd), uintptr(unsafe.Pointer(&c.headers[0])), uintptr(c.nextBatch), unix.MSG_WAITFORONE, 0, 0)
	c.emptied = errno == unix.EAGAIN || errno == 0 && int(got) < c.nextBatch
	switch errno {
	case 0:
	case unix.EAGAIN, unix.EINTR, unix.ECONNREFUSED:
		return 0, nil
	default:
		return 0, fmt.Errorf("udp: receive on %v: %w", c.local, os.NewSyscallError("recvmmsg", errno))
	}
	c.stats.Calls++
	before := c.stats
	for i := range int(got) {
		c.splitMessage(i, handle)
	}
	// The next messages will be as long as these.
	size := (c.stats.Bytes - before.Bytes) / max(1, uint64(got))
	c.nextBatch = min(len(c.messages), int(callBytes/max(1, size)))
	return int(c.stats.Datagrams - before.Datagrams), nil
}

// splitMessage passes the datagrams of message i to handle.
func (c *Conn) splitMessage(i int, handle func(from netip.AddrPort, datagram []byte)) {
	m, h := &c.messages[i], &c.headers[i]
	c.stats.Messages++
	size := c.ancillary(c.control[i*controlSpace:][:h.hdr.Controllen])
	if h.hdr.Flags&unix.MSG_TRUNC != 0 {
		c.stats.Truncated++
		return
	}
	b := m.buf[:h.len]
	c.stats.Bytes += uint64(len(b))
	from := address(&m.from)
	if size <= 0 {
		size = max(1, len(b))
	}
	for {
		n := min(size, len(b))
		c.stats.Datagrams++
		handle(from, b[:n:n])
		if b = b[n:]; len(b) == 0 {
			return
		}
	}
}

// ancillary reads the ancillary data of a message: the length of the datagrams in
// it (0 if it is one), and the kernel's drop counter.
func (c *Conn) ancillary(b []byte) (size int) {
	const head = unix.SizeofCmsghdr
	for len(b) >= head {
		h := (*unix.Cmsghdr)(unsafe.Pointer(&b[0]))
		n := int(h.Len)
		if n < head || n > len(b) {
			return size
		}
		if n >= head+4 {
			v := *(*uint32)(unsafe.Pointer(&b[head]))
			switch {
			case h.Level == solUDP && h.Type == udpGRO:
				size = int(v)
			case h.Level == unix.SOL_SOCKET && h.Type == unix.SO_RXQ_OVFL:
				c.stats.Dropped += uint64(v - c.drops)
				c.drops = v
			}
		}
		b = b[min(len(b), (n+7)&^7):]
	}
	return size
}

// address converts the kernel's form; the port of an IPv4 address is at the same
// offset.
func address(raw *unix.RawSockaddrInet6) netip.AddrPort {
	port := raw.Port<<8 | raw.Port>>8
	if raw.Family == unix.AF_INET {
		four := (*unix.RawSockaddrInet4)(unsafe.Pointer(raw))
		return netip.AddrPortFrom(netip.AddrFrom4(four.Addr), port)
	}
	return netip.AddrPortFrom(netip.AddrFrom16(raw.Addr).Unmap(), port)
}
