package sim

import (
	"net/netip"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

func addr(s string) model.Addr { return model.AddrOf(netip.MustParseAddr(s)) }

// Addresses of the yard.
var (
	vip4, vip6         = addr("192.0.2.10"), addr("2001:db8:10::10")
	vm4                = addr("10.9.9.9")
	outside4, outside6 = addr("203.0.113.7"), addr("2001:db8:ffff::7")
)

// yard is a fabric with every role of hosts: two racks of three hosts h0 to h5,
// a mux below each ToR for one virtual address, an address on h0 that may
// migrate, and the outside world at a border switch.
func yard(t testing.TB, change func(*Config)) *Network {
	n := yardOf(t, change)
	for _, s := range n.usual() {
		n.serve(t, s)
	}
	return n
}

func (n *Network) serve(t testing.TB, s Service) {
	t.Helper()
	if err := n.AddService(s); err != nil {
		t.Fatal(err)
	}
}

const muxDelay = 10 * time.Microsecond

// usual are the services of the yard: three hosts of both racks.
func (n *Network) usual() []Service {
	four, six := Service{VIP: vip4, Delay: muxDelay}, Service{VIP: vip6, Delay: muxDelay}
	for _, id := range []model.NodeID{2, 4, 5} {
		four.Backends = append(four.Backends, n.fabric.Node(id).IPv4)
		six.Backends = append(six.Backends, n.fabric.Node(id).IPv6)
	}
	return []Service{four, six}
}

// yardOf is the yard without services.
func yardOf(t testing.TB, change func(*Config)) *Network {
	t.Helper()
	b := topo.NewBuilder("yard")
	host := func(name string, role topo.Role, nets ...string) model.NodeID {
		var list []netip.Prefix
		for _, s := range nets {
			list = append(list, netip.MustParsePrefix(s))
		}
		return b.AddNode(topo.NodeSpec{Name: name, Role: role, Pod: topo.NoPod, Nets: list})
	}
	links := topo.DefaultLinks()
	hosts := []model.NodeID{host("h0", topo.Host, "10.9.9.9/32")}
	for _, name := range []string{"h1", "h2", "h3", "h4", "h5"} {
		hosts = append(hosts, host(name, topo.Host))
	}
	muxes := []model.NodeID{
		host("mux0", topo.Mux, "192.0.2.0/24", "2001:db8:10::/64"), host("mux1", topo.Mux, "192.0.2.0/24", "2001:db8:10::/64"),
	}
	world := host("world", topo.Host, "0.0.0.0/0", "::/0")
	tors := []model.NodeID{host("tor0", topo.ToR), host("tor1", topo.ToR)}
	spines := []model.NodeID{host("spine0", topo.Spine), host("spine1", topo.Spine)}
	border := host("border", topo.Border)
	for i, h := range hosts {
		b.Connect(h, tors[i/3], links.Host)
	}
	for i, tor := range tors {
		b.Connect(muxes[i], tor, links.Host)
		for _, s := range spines {
			b.Connect(tor, s, links.Fabric)
		}
	}
	for _, s := range spines {
		b.Connect(s, border, links.Fabric)
	}
	b.Connect(border, world, links.Host)
	f, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	cfg := DefaultConfig()
	if change != nil {
		change(&cfg)
	}
	return network(t, f, nil, cfg)
}

// clean fails if a packet was lost or one is missing when all is over.
func (n *Network) clean(t *testing.T) {
	t.Helper()
	if n.Counts.Drops != [numReasons]int64{} {
		t.Errorf("drops %v; want none", n.Counts.Drops)
	}
	sent := n.Counts.Originated
	for _, h := range n.hosts {
		for _, p := range h.ports {
			sent += p.TxPkts
		}
	}
	if got := n.Counts.Delivered + n.Counts.Consumed; n.Idle() && got != sent {
		t.Errorf("%d packets sent, %d delivered or taken; want all", sent, got)
	}
}
