package siege

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// army sends hostile datagrams to a service.
type army struct {
	t     testing.TB
	s     *service
	h     *hostile
	conns map[netip.AddrPort]*net.UDPConn
	gre   *net.IPConn // nil: raw sockets are not allowed
	sent  map[string]*atomic.Uint64
	// inside sends as a reporter that was taken over; nil: there is none.
	inside func(as model.NodeID, datagram []byte) []byte
}

// stranger is the address of those who have no business here.
var stranger = netip.AddrFrom4([4]byte{127, 0, 0, 66})

// newArmy makes attackers who overhear what is in a bank.
func newArmy(s *service, seed uint64, b *bank) *army {
	s.t.Helper()
	a := &army{t: s.t, s: s, h: newHostile(seed, s, b), conns: map[netip.AddrPort]*net.UDPConn{}, sent: map[string]*atomic.Uint64{}}
	for i := range lies {
		a.sent[lies[i].name] = &atomic.Uint64{}
	}
	if s.ERSPAN.IsValid() {
		conn, err := net.DialIP("ip4:47", &net.IPAddr{IP: stranger.AsSlice()}, &net.IPAddr{IP: s.ERSPAN.Addr().AsSlice()})
		if err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { conn.Close() })
		a.gre = conn
	}
	return a
}

// named is the kind of hostile datagrams with a name.
func named(name string) *lie {
	for i := range lies {
		if lies[i].name == name {
			return &lies[i]
		}
	}
	panic(fmt.Sprintf("no lies named %q", name))
}

// send sends one datagram of a kind, and reports whether there was one.
func (a *army) send(k *lie) bool {
	b := k.make(a.h)
	if b == nil || k.to == "erspan" && a.gre == nil {
		return false
	}
	a.sent[k.name].Add(1)
	switch k.to {
	case "erspan":
		_, _ = a.gre.Write(b) // as the kernel can; what is lost is the attacker's
		return true
	case "int":
		_, _ = a.conn(netip.AddrPortFrom(stranger, 0), a.s.INT).Write(b)
		return true
	}
	from := netip.AddrPortFrom(stranger, 0)
	var h dta.Header
	if _, err := h.Parse(b); err == nil && k.spoofed && int(h.Reporter) < len(a.s.fabric.Nodes()) {
		from = netip.AddrPortFrom(nodeAddress(h.Reporter), honestPort)
		if a.inside != nil && h.Reporter == a.h.insider {
			a.inside(h.Reporter, b)
			return true
		}
	}
	_, _ = a.conn(from, a.s.DTA).Write(b)
	return true
}

// conn is the socket from a source to an address of the service.
func (a *army) conn(from, to netip.AddrPort) *net.UDPConn {
	key := netip.AddrPortFrom(from.Addr(), to.Port()^from.Port()) // one for each pair
	if a.conns[key] == nil {
		a.conns[key] = dial(a.t, from, to)
	}
	return a.conns[key]
}

// burst sends some of a kind, as fast as the service takes them.
func (a *army) burst(k *lie, n int) {
	a.t.Helper()
	const chunk = 500
	taken := func() uint64 { st, _ := stage(a.s.health(), "transport"); return st.In }
	before := taken()
	for sent, tries := 0, 0; sent < n; tries++ {
		if a.send(k) {
			sent++
		}
		if tries > 100*n+1000 {
			a.t.Fatalf("only %d of %d %s could be made", sent, n, k.name)
		}
		if tries%chunk == chunk-1 {
			// Those of the honest fabric are among them, and make up for what was lost.
			before += chunk
			a.s.eventually("datagrams are taken", func() bool { return taken() >= before })
			before = taken()
		}
	}
}

// march sends kinds in turn at a rate in datagrams per second, until the returned
// function is called.
func (a *army) march(kinds []lie, rate int) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() {
		const tick = 5 * time.Millisecond
		began, total, next := time.Now(), 0, 0
		for ctx.Err() == nil {
			due := min(int(time.Since(began).Seconds()*float64(rate)), total+4*rate/int(time.Second/tick))
			for ; total < due; total++ {
				a.send(&kinds[next%len(kinds)])
				next++
			}
			if late := int(time.Since(began).Seconds()*float64(rate)) - total; late > rate/10 {
				began = began.Add(time.Duration(float64(late) / float64(rate) * float64(time.Second))) // what the machine did not give is not made up for
			}
			time.Sleep(tick)
		}
	})
	var once sync.Once
	stop = func() { once.Do(func() { cancel(); wg.Wait() }) }
	a.t.Cleanup(stop)
	return stop
}
