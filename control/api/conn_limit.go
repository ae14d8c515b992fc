package api

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// connClass is who a connection has shown to be. Where connections must be closed,
// those of the lowest class are.
type connClass uint8

const (
	anonymousConn connClass = iota // no valid token so far
	tenantConn
	operatorConn
	connClasses
)

// connPhase is what a connection does. Only one whose request is being handled
// is never closed in favour of another.
type connPhase uint8

const (
	waitingPhase  connPhase = iota // for a request or the rest of one, or for its answer to be read
	checkingPhase                  // its token waits to be checked
	servingPhase
)

// connTable bounds the open connections of a listener. A new connection always
// finds a place while any other only waits: the one that has waited longest is
// closed instead. So clients that connect and send nothing cannot lock out
// others, and cannot exhaust the process's file descriptors.
type connTable struct {
	max        int           // in all
	reserved   int           // for connections that have shown a token
	perAddress int           // anonymous ones of one client address
	idle       time.Duration // after which anonymous ones are closed
	onRefuse   func()
	onEvict    func()

	mu        sync.Mutex
	conns     list.List // of *trackedConn, longest wait first
	count     [connClasses]int
	anonymous map[netip.Prefix]int // by client address
}

// add returns the tracked connection, or nil if it was closed because all others
// are being answered.
func (t *connTable) add(c net.Conn) *trackedConn {
	tc := &trackedConn{Conn: c, table: t, address: clientAddress(c.RemoteAddr())}
	t.mu.Lock()
	victims, ok := t.makeRoom(tc.address)
	if ok {
		tc.place = t.conns.PushBack(tc)
		t.countConn(tc, 1)
	}
	t.mu.Unlock()
	for _, v := range victims {
		t.onEvict()
		_ = v.Conn.Close()
	}
	if !ok {
		t.onRefuse()
		_ = c.Close()
		return nil
	}
	return tc
}

// makeRoom removes connections until one more of the address fits. It returns
// false if those that should be removed are being answered.
func (t *connTable) makeRoom(address netip.Prefix) (victims []*trackedConn, ok bool) {
	for {
		var v *trackedConn
		switch {
		case t.anonymous[address] >= t.perAddress:
			v = t.longestWait(func(c *trackedConn) bool { return c.class == anonymousConn && c.address == address })
		case t.count[anonymousConn] >= t.max-t.reserved:
			v = t.longestAnonymousWait()
		case t.conns.Len() >= t.max:
			v = t.lowest()
		default:
			return victims, true
		}
		if v == nil {
			return victims, false
		}
		t.remove(v)
		victims = append(victims, v)
	}
}

// longestAnonymousWait chooses among the addresses with the most anonymous
// connections, so that a client with few keeps them while another floods.
func (t *connTable) longestAnonymousWait() *trackedConn {
	most := 0
	for _, n := range t.anonymous {
		most = max(most, n)
	}
	v := t.longestWait(func(c *trackedConn) bool { return c.class == anonymousConn && t.anonymous[c.address] == most })
	if v == nil { // all of them are being answered
		v = t.longestWait(func(c *trackedConn) bool { return c.class == anonymousConn })
	}
	return v
}

// lowest chooses from the lowest class that has a waiting connection.
func (t *connTable) lowest() *trackedConn {
	if v := t.longestAnonymousWait(); v != nil {
		return v
	}
	for class := tenantConn; class < connClasses; class++ {
		if v := t.longestWait(func(c *trackedConn) bool { return c.class == class }); v != nil {
			return v
		}
	}
	return nil
}

// longestWait returns the connection that has waited longest, those whose token
// waits to be checked last, or nil.
func (t *connTable) longestWait(match func(*trackedConn) bool) *trackedConn {
	for phase := waitingPhase; phase < servingPhase; phase++ {
		for e := t.conns.Front(); e != nil; e = e.Next() {
			if c := e.Value.(*trackedConn); c.phase == phase && match(c) {
				return c
			}
		}
	}
	return nil
}

// evict closes the connection that can best be spared, to free its file
// descriptor.
func (t *connTable) evict() {
	t.mu.Lock()
	v := t.lowest()
	if v != nil {
		t.remove(v)
	}
	t.mu.Unlock()
	if v != nil {
		t.onEvict()
		_ = v.Conn.Close()
	}
}

// remove forgets a connection. It may be called twice.
func (t *connTable) remove(c *trackedConn) {
	if c.place != nil {
		t.conns.Remove(c.place)
		t.countConn(c, -1)
		c.place = nil
	}
}

func (t *connTable) countConn(c *trackedConn, n int) {
	t.count[c.class] += n
	if c.class != anonymousConn {
		return
	}
	if t.anonymous == nil {
		t.anonymous = map[netip.Prefix]int{}
	}
	if t.anonymous[c.address] += n; t.anonymous[c.address] == 0 {
		delete(t.anonymous, c.address)
	}
}

// open returns the connections by class.
func (t *connTable) open() [connClasses]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count
}

// trackedConn is a connection of a connTable, whose lock guards its fields. A nil
// one is a request without a connection, in process.
type trackedConn struct {
	net.Conn
	table   *connTable
	address netip.Prefix
	place   *list.Element // nil: removed
	class   connClass
	phase   connPhase
}

// Close also frees the connection's place.
func (c *trackedConn) Close() error {
	c.table.mu.Lock()
	c.table.remove(c)
	c.table.mu.Unlock()
	return c.Conn.Close()
}

// SetReadDeadline shortens the wait for the next request of an anonymous
// connection: the server's own idle timeout is one for all.
func (c *trackedConn) SetReadDeadline(at time.Time) error {
	if !at.IsZero() && c.classOf() == anonymousConn {
		if latest := time.Now().Add(c.table.idle); at.After(latest) {
			at = latest
		}
	}
	return c.Conn.SetReadDeadline(at)
}

func (c *trackedConn) classOf() connClass {
	if c == nil {
		return anonymousConn
	}
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	return c.class
}

// setClass records who the connection has shown to be.
func (c *trackedConn) setClass(class connClass) {
	if c == nil {
		return
	}
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	if c.place == nil {
		return // being closed
	}
	c.table.countConn(c, -1)
	c.class = class
	c.table.countConn(c, 1)
}

// setPhase records what the connection does. One that waits again waits from now
// on.
func (c *trackedConn) setPhase(p connPhase) {
	if c == nil {
		return
	}
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	c.phase = p
	if p == waitingPhase && c.place != nil {
		c.table.conns.MoveToBack(c.place)
	}
}

type connKey struct{}

// connOf returns the connection of a request, or nil.
func connOf(ctx context.Context) *trackedConn {
	c, _ := ctx.Value(connKey{}).(*trackedConn)
	return c
}

// unwrapConn returns the tracked connection below TLS, or nil.
func unwrapConn(c net.Conn) *trackedConn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	tc, _ := c.(*trackedConn)
	return tc
}

// trackConns makes a server report the state of its connections to their table.
func trackConns(h *http.Server) {
	h.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		return context.WithValue(ctx, connKey{}, unwrapConn(c))
	}
	h.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateIdle {
			unwrapConn(c).setPhase(waitingPhase)
		}
	}
}

// clientAddress is what limits by address count by: an IPv4 address or an IPv6
// network of 64 bits, all of which one client has.
func clientAddress(a net.Addr) netip.Prefix {
	if t, ok := a.(*net.TCPAddr); ok {
		return addressPrefix(t.AddrPort().Addr())
	}
	return netip.Prefix{}
}

func addressPrefix(ip netip.Addr) netip.Prefix {
	ip = ip.Unmap().WithZone("")
	bits := 32
	if ip.Is6() {
		bits = 64
	}
	p, _ := ip.Prefix(bits) // an invalid address is the zero prefix
	return p
}

// requestAddress is the client address of a request.
func requestAddress(r *http.Request) netip.Prefix {
	at, _ := netip.ParseAddrPort(r.RemoteAddr) // in process there is none
	return addressPrefix(at.Addr())
}
