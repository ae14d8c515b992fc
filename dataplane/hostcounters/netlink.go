package hostcounters

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/weft-telemetry/weft/inhost/evidence"
)

// readQueues reads the queueing disciplines of all interfaces.
func readQueues(s *evidence.Snapshot) error {
	links, err := netlink.LinkList()
	if err != nil {
		return fmt.Errorf("interfaces: %w", err)
	}
	byIndex := map[int]*evidence.Interface{}
	for _, l := range links {
		for i := range s.Interfaces {
			if s.Interfaces[i].Name == l.Attrs().Name {
				byIndex[l.Attrs().Index] = &s.Interfaces[i]
			}
		}
	}
	list, err := netlink.QdiscList(nil)
	if err != nil {
		return fmt.Errorf("queueing disciplines: %w", err)
	}
	for _, q := range list {
		in, stats := byIndex[q.Attrs().LinkIndex], q.Attrs().Statistics
		// Drops of a discipline's children are among its own.
		if in == nil || stats == nil || stats.Queue == nil || q.Attrs().Parent != netlink.HANDLE_ROOT {
			continue
		}
		in.QueueDropped += uint64(stats.Queue.Drops)
		in.QueueBytes += uint64(stats.Queue.Backlog)
	}
	return nil
}

// tcpEstablished is TCP_ESTABLISHED of the kernel.
const tcpEstablished = 1

// readConnections reads established TCP connections.
func readConnections(s *evidence.Snapshot) (err error) {
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		list, e := netlink.SocketDiagTCPInfo(family)
		if e != nil {
			err = errors.Join(err, fmt.Errorf("TCP connections: %w", e))
		}
		for _, r := range list {
			if r.InetDiagMsg == nil || r.TCPInfo == nil || r.InetDiagMsg.State != tcpEstablished {
				continue
			}
			s.Connections = append(s.Connections, newConnection(r.InetDiagMsg, r.TCPInfo))
		}
	}
	return err
}

func newConnection(m *netlink.Socket, t *netlink.TCPInfo) evidence.Connection {
	us := func(n uint64) time.Duration { return time.Duration(n) * time.Microsecond }
	local, _ := netip.AddrFromSlice(m.ID.Source)
	remote, _ := netip.AddrFromSlice(m.ID.Destination)
	c := evidence.Connection{
		Local: netip.AddrPortFrom(local.Unmap(), m.ID.SourcePort), Remote: netip.AddrPortFrom(remote.Unmap(), m.ID.DestinationPort),
		RTT: us(uint64(t.Rtt)), BytesAcked: t.Bytes_acked, BytesReceived: t.Bytes_received, SegmentsSent: uint64(t.Data_segs_out),
		Retransmitted: uint64(t.Total_retrans), Marked: uint64(t.Delivered_ce), Busy: us(t.Busy_time), PeerLimited: us(t.Rwnd_limited), BufferLimited: us(t.Sndbuf_limited),
	}
	if t.Min_rtt != 1<<32-1 { // no sample yet
		c.MinRTT = us(uint64(t.Min_rtt))
	}
	return c
}
