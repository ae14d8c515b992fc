//go:build linux

package udp

import (
	"fmt"
	"net/netip"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Limits of the kernel for one call that it segments into datagrams.
const (
	maxSegments = 64
	maxPayload  = 65507 // of IPv4; one byte more than needed is an error
)

// Send sends datagrams to an address. Runs of equal length (the last of a run
// may be shorter) are one system call each, which the kernel segments. It returns
// the number sent; the error is about the next. It never blocks: a full send
// buffer is an error, unix.EAGAIN.
func (c *Conn) Send(to netip.AddrPort, datagrams ...[]byte) (int, error) {
	name, err := c.setSockaddr(to)
	if err != nil {
		return 0, err
	}
	sent := 0
	var iov [maxSegments]unix.Iovec
	for sent < len(datagrams) {
		run := segmentRun(datagrams[sent:])
		for i, d := range datagrams[sent : sent+run] {
			iov[i].Base = unsafe.SliceData(d)
			iov[i].SetLen(len(d))
		}
		h := unix.Msghdr{Name: &c.to[0], Namelen: name, Iov: &iov[0]}
		h.SetIovlen(run)
		if run > 1 {
			head := (*unix.Cmsghdr)(unsafe.Pointer(&c.segment[0]))
			head.Level, head.Type = solUDP, udpSegment
			head.SetLen(unix.SizeofCmsghdr + 2)
			*(*uint16)(unsafe.Pointer(&c.segment[unix.SizeofCmsghdr])) = uint16(len(datagrams[sent]))
			h.Control = &c.segment[0]
			h.SetControllen(segmentSpace)
		}
		_, _, errno := unix.Syscall(unix.SYS_SENDMSG, uintptr(c.fd), uintptr(unsafe.Pointer(&h)), unix.MSG_DONTWAIT)
		switch errno {
		case 0:
			sent += run
		case unix.EINTR, unix.ECONNREFUSED: // the second is about an earlier datagram
		default:
			return sent, fmt.Errorf("udp: send to %v: %w", to, os.NewSyscallError("sendmsg", errno))
		}
	}
	return sent, nil
}

// segmentRun returns the number of datagrams that fit into one call.
func segmentRun(datagrams [][]byte) int {
	first := len(datagrams[0])
	if first == 0 {
		return 1
	}
	total, n := first, 1
	for n < len(datagrams) && n < maxSegments {
		next := len(datagrams[n])
		if next == 0 || next > first || total+next > maxPayload {
			return n
		}
		total += next
		n++
		if next < first {
			return n
		}
	}
	return n
}

// setSockaddr sets the destination in the form of the socket's family.
func (c *Conn) setSockaddr(to netip.AddrPort) (uint32, error) {
	port := to.Port()<<8 | to.Port()>>8
	if c.local.Addr().Is4() {
		a := to.Addr().Unmap()
		if !a.Is4() {
			return 0, fmt.Errorf("udp: send to %v from %v, want an IPv4 address", to, c.local)
		}
		*(*unix.RawSockaddrInet4)(unsafe.Pointer(&c.to[0])) = unix.RawSockaddrInet4{Family: unix.AF_INET, Port: port, Addr: a.As4()}
		return unix.SizeofSockaddrInet4, nil
	}
	*(*unix.RawSockaddrInet6)(unsafe.Pointer(&c.to[0])) = unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: port, Addr: to.Addr().As16()}
	return unix.SizeofSockaddrInet6, nil
}
