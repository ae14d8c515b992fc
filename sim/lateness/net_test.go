package lateness

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

// bed is a network under an Oracle.
type bed struct {
	*sim.Network
	t testing.TB
	o *Oracle
}

func lay(t testing.TB, f *topo.Fabric, rc topo.RouteConfig, cfg sim.Config, window time.Duration) *bed {
	t.Helper()
	routes, err := topo.NewRoutes(f, rc)
	if err != nil {
		t.Fatal(err)
	}
	n, err := sim.New(routes, cfg)
	if err != nil {
		t.Fatal(err)
	}
	o, err := Watch(n, window)
	if err != nil {
		t.Fatal(err)
	}
	return &bed{n, t, o}
}

// links are of 100 Gb/s and 1 µs.
func links() topo.Links {
	l := topo.DefaultLinks()
	l.Host.Rate, l.Fabric.Rate = 100*model.Gbps, 100*model.Gbps
	l.Host.Delay, l.Fabric.Delay = time.Microsecond, time.Microsecond
	return l
}

func fatTree(t testing.TB, cfg sim.Config, window time.Duration) *bed {
	t.Helper()
	f, err := topo.FatTree(4, links())
	if err != nil {
		t.Fatal(err)
	}
	return lay(t, f, topo.RouteConfig{Seed: cfg.Seed}, cfg, window)
}

// ring has four switches with a host each, and routes that always lead
// clockwise: a cyclic buffer dependency.
func ring(t testing.TB, cfg sim.Config, window time.Duration) *bed {
	t.Helper()
	return ringOf(t, cfg, links(), window)
}

func ringOf(t testing.TB, cfg sim.Config, l topo.Links, window time.Duration) *bed {
	t.Helper()
	f, err := topo.Ring(4, 1, l)
	if err != nil {
		t.Fatal(err)
	}
	rc := topo.RouteConfig{Seed: 1}
	for i := range model.NodeID(4) {
		for h := range model.NodeID(4) {
			if h != i {
				rc.Overrides = append(rc.Overrides, f.RouteTo(4+i, h, f.Node(4+i).PortsTo(4+(i+1)%4)...)...)
			}
		}
	}
	return lay(t, f, rc, cfg, window)
}

// unthrottled is RDMA at line rate in a small buffer.
func unthrottled() sim.Config {
	cfg := sim.DefaultConfig()
	cfg.Congestion, cfg.Window, cfg.AckControl = nil, false, true
	cfg.Buffer = 400 * model.KB
	return cfg
}

func (b *bed) add(flows ...traffic.Flow) {
	b.t.Helper()
	if err := b.AddFlows(flows); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) inject(in sim.Injection) {
	b.t.Helper()
	if err := b.Inject(in); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) run(until time.Duration) { b.Run(engine.Of(until)) }

// each calls f for every packet of a flow that its host sent within the log.
func (b *bed) each(f func(key model.FlowKey, sent engine.Time)) {
	for _, l := range b.o.ports {
		if l.port.Host() == nil {
			continue
		}
		for _, x := range l.list {
			if x.class == notQueued && !b.o.parties[x.party].pfc && x.start >= b.o.horizon(b.Now()) {
				f(b.o.parties[x.party].key, x.start)
			}
		}
	}
}

// check checks that an account adds up.
func (b *bed) check(a *Account, err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
	wait, wire, sum := a.Host, engine.Time(0), engine.Time(0)
	for _, h := range a.Hops {
		if h.Paused < 0 || h.Queued < 0 || h.Wire < 0 {
			b.t.Fatalf("hop %+v; want no part below 0", h)
		}
		wait += h.Paused + h.Queued
		wire += h.Wire
	}
	for _, t := range a.Terms {
		parties := engine.Time(0)
		for _, p := range t.Parties {
			parties += p.Time
		}
		if t.Time <= 0 || (t.Kind == Contention || t.Kind == HostInjection) && parties != t.Time {
			b.t.Fatalf("term %+v; want a time above 0 that its parties add up to", t)
		}
		sum += t.Time
	}
	if wait != a.Late || wire != a.Wire || a.Sent+a.Wire+a.Late != a.At || sum != a.Late {
		b.t.Fatalf("hops wait %v and are on the wire %v, terms %v; want %v, %v and %v of an account from %v to %v\n%v",
			wait, wire, sum, a.Late, a.Wire, a.Late, a.Sent, a.At, a)
	}
}
