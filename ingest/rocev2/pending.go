package rocev2

import (
	"net"
	"net/netip"
	"slices"
	"sync"
)

// Limits of connections that are not authenticated yet. Beyond one, a new
// connection displaces the oldest of the address that has the most: an honest
// translator needs a few round trips, so strangers that wait displace each
// other. From another address they displace it only if they have as many
// addresses as the limit.
const (
	maxPending        = 256
	maxPendingAddress = 32
)

// pendingConns are the connections that are not authenticated yet. It may be used
// concurrently.
type pendingConns struct {
	mu    sync.Mutex    // guards all below
	conns []pendingConn // the oldest first
	count map[netip.Prefix]int
}

type pendingConn struct {
	conn net.Conn
	from netip.Prefix
}

// sourceShare is what one sender can own: an IPv4 address, or the 64 bits that
// IPv6 networks give to one host.
func sourceShare(a netip.Addr) netip.Prefix {
	bits := 64
	if a.Is4() {
		bits = 32
	}
	p, _ := a.Prefix(bits) // of 0 only for the zero Addr
	return p
}

// add adds a connection, and returns one that must be closed for it, or nil.
func (p *pendingConns) add(conn net.Conn, from netip.Addr) (displaced net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	share := sourceShare(from)
	switch {
	case p.count[share] >= maxPendingAddress:
		displaced = p.dropOldest(share)
	case len(p.conns) >= maxPending:
		most := share
		for _, c := range p.conns { // the oldest of equals
			if p.count[c.from] > p.count[most] || p.count[most] == 0 {
				most = c.from
			}
		}
		displaced = p.dropOldest(most)
	}
	p.conns = append(p.conns, pendingConn{conn, share})
	p.count[share]++
	return displaced
}

// dropOldest removes the oldest connection of a share.
func (p *pendingConns) dropOldest(share netip.Prefix) net.Conn {
	i := slices.IndexFunc(p.conns, func(c pendingConn) bool { return c.from == share })
	return p.drop(i)
}

func (p *pendingConns) drop(i int) net.Conn {
	c := p.conns[i]
	p.conns = slices.Delete(p.conns, i, i+1)
	if p.count[c.from]--; p.count[c.from] == 0 {
		delete(p.count, c.from)
	}
	return c.conn
}

// remove removes a connection that was authenticated or ended, and reports
// whether it was still there: not displaced.
func (p *pendingConns) remove(conn net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.conns, func(c pendingConn) bool { return c.conn == conn })
	if i < 0 {
		return false
	}
	p.drop(i)
	return true
}

// len is the number of connections.
func (p *pendingConns) len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}
