package topo

import (
	"fmt"
	"strconv"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Links are the two kinds of link a generator makes.
type Links struct {
	Host   LinkSpec // between a host and its switch
	Fabric LinkSpec // between switches
}

// DefaultLinks returns 100 Gb/s and 1 µs everywhere, the figures that
// simulations of RDMA fabrics usually start from.
func DefaultLinks() Links {
	l := LinkSpec{Rate: 100 * model.Gbps, Delay: time.Microsecond}
	return Links{Host: l, Fabric: l}
}

// ParamError says which parameter of a generator is out of range.
type ParamError struct {
	Param string // as in Kind.Params, or "kind" or "name"; empty where several together are too large
	Msg   string
}

func (e *ParamError) Error() string { return e.Msg }

// checkRange returns an error for a parameter outside low to high.
func checkRange(param string, v, low, high int) error {
	if v < low || v > high {
		return &ParamError{param, fmt.Sprintf("%s %d, want %d to %d", param, v, low, high)}
	}
	return nil
}

// checkSize returns an error for parameters that are valid one by one and too
// large together, before memory is spent on them.
func checkSize(nodes, links int) error {
	if nodes > MaxNodes || links > MaxLinks {
		return &ParamError{Msg: fmt.Sprintf("fabric of %d nodes and %d links, want at most %d and %d",
			nodes, links, MaxNodes, MaxLinks)}
	}
	return nil
}

// firstError returns the first error that is not nil.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// tier adds nodes named after their role and numbered through the fabric.
type tier struct {
	b      *Builder
	prefix string
	role   Role
	ids    []model.NodeID
}

func (t *tier) addNode(pod int, s NodeSpec) model.NodeID {
	s.Name, s.Role, s.Pod = t.prefix+strconv.Itoa(len(t.ids)), t.role, pod
	id := t.b.AddNode(s)
	t.ids = append(t.ids, id)
	return id
}

// FatTree makes the k-ary fat-tree: k pods of k/2 ToRs and k/2 leaves, k²/4
// spines, k³/4 hosts. Ids: hosts, ToRs, leaves, spines.
//
// Leaf j of every pod connects to spines j·k/2 … j·k/2+k/2-1. Addresses are
// the usual ones: host 10.pod.tor.(2…), ToR 10.pod.tor.1, leaf
// 10.pod.(k/2+leaf).1, spine 10.k.(1…).(1…).
func FatTree(k int, l Links) (*Fabric, error) {
	if err := checkRange("k", k, 2, 64); err != nil {
		return nil, err
	}
	if k%2 != 0 {
		return nil, &ParamError{"k", fmt.Sprintf("k %d, want an even number", k)}
	}
	half := k / 2
	b := NewBuilder("fat-tree-" + strconv.Itoa(k))
	hosts, tors := tier{b: b, prefix: "h", role: Host}, tier{b: b, prefix: "tor", role: ToR}
	leaves, spines := tier{b: b, prefix: "leaf", role: Leaf}, tier{b: b, prefix: "spine", role: Spine}
	for i := range k * half * half {
		pod, tor := i/(half*half), i/half%half
		hosts.addNode(pod, NodeSpec{IPv4: ip4(10, pod, tor, i%half+2)})
	}
	for i := range k * half {
		tors.addNode(i/half, NodeSpec{IPv4: ip4(10, i/half, i%half, 1)})
	}
	for i := range k * half {
		leaves.addNode(i/half, NodeSpec{IPv4: ip4(10, i/half, half+i%half, 1)})
	}
	for i := range half * half {
		spines.addNode(NoPod, NodeSpec{IPv4: ip4(10, k, i/half+1, i%half+1)})
	}
	for i, h := range hosts.ids {
		b.Connect(h, tors.ids[i/half], l.Host)
	}
	for i, tor := range tors.ids {
		for j := range half {
			b.Connect(tor, leaves.ids[i/half*half+j], l.Fabric)
		}
	}
	for i, leaf := range leaves.ids {
		for j := range half {
			b.Connect(leaf, spines.ids[i%half*half+j], l.Fabric)
		}
	}
	return b.Build()
}

// LeafSpine makes two tiers, every leaf connected to every spine, with hosts
// below each leaf. Ids: hosts, leaves, spines. Leaf i is 10.(i/256).(i%256).1
// and its hosts count from .2; spine i is 10.255.(i/256).(i%256).
func LeafSpine(leaves, spines, hostsPerLeaf int, l Links) (*Fabric, error) {
	err := firstError(
		checkRange("leaves", leaves, 1, 4096),
		checkRange("spines", spines, 1, 1024),
		checkRange("hosts", hostsPerLeaf, 0, rackHosts),
		checkSize(leaves*(hostsPerLeaf+1)+spines, leaves*(hostsPerLeaf+spines)),
	)
	if err != nil {
		return nil, err
	}
	b := NewBuilder(fmt.Sprintf("leaf-spine-%dx%d", leaves, spines))
	hosts := tier{b: b, prefix: "h", role: Host}
	low, top := tier{b: b, prefix: "leaf", role: Leaf}, tier{b: b, prefix: "spine", role: Spine}
	for i := range leaves * hostsPerLeaf {
		hosts.addNode(NoPod, NodeSpec{IPv4: rackAddr(i/hostsPerLeaf, i%hostsPerLeaf)})
	}
	for i := range leaves {
		low.addNode(NoPod, NodeSpec{IPv4: rackAddr(i, -1)})
	}
	for i := range spines {
		top.addNode(NoPod, NodeSpec{IPv4: ip4(10, 255, i/256, i%256)})
	}
	for i, h := range hosts.ids {
		b.Connect(h, low.ids[i/hostsPerLeaf], l.Host)
	}
	for _, leaf := range low.ids {
		for _, spine := range top.ids {
			b.Connect(leaf, spine, l.Fabric)
		}
	}
	return b.Build()
}

// ClosSize is the shape of a three-tier Clos fabric.
type ClosSize struct {
	Pods   int
	ToRs   int // in each pod
	Leaves int // in each pod
	Spines int // that each leaf reaches; leaves of one number in all pods share them
	Hosts  int // below each ToR
}

// DefaultClos returns the fabric that INT-label was measured on: 4 spines, 4
// leaves, 4 ToRs, 8 hosts.
func DefaultClos() ClosSize { return ClosSize{Pods: 2, ToRs: 2, Leaves: 2, Spines: 2, Hosts: 2} }

// Clos makes a three-tier Clos fabric. Ids: spines, leaves, ToRs, hosts, so
// that the default fabric's switches have the numbers they have in INT-label's
// prototype (0 to 11).
//
// Leaf j of every pod connects to spines j·Spines … (j+1)·Spines-1. Numbers in
// addresses count from 1, again as there: host 10.pod.tor.host, ToR
// 10.pod.tor.254, leaf 10.pod.(100+leaf).254, spine 10.0.(leaf).(spine).
func Clos(c ClosSize, l Links) (*Fabric, error) {
	err := firstError(
		checkRange("pods", c.Pods, 1, 254),
		checkRange("tors", c.ToRs, 1, 100),
		checkRange("leaves", c.Leaves, 1, 100),
		checkRange("spines", c.Spines, 1, 254),
		checkRange("hosts", c.Hosts, 0, rackHosts),
		checkSize(c.Pods*(c.ToRs*(c.Hosts+1)+c.Leaves)+c.Leaves*c.Spines, c.Pods*(c.ToRs*(c.Hosts+c.Leaves)+c.Leaves*c.Spines)),
	)
	if err != nil {
		return nil, err
	}
	b := NewBuilder(fmt.Sprintf("clos-%d", c.Pods))
	spines, leaves := tier{b: b, prefix: "spine", role: Spine}, tier{b: b, prefix: "leaf", role: Leaf}
	tors, hosts := tier{b: b, prefix: "tor", role: ToR}, tier{b: b, prefix: "h", role: Host}
	for i := range c.Leaves * c.Spines {
		spines.addNode(NoPod, NodeSpec{IPv4: ip4(10, 0, i/c.Spines+1, i%c.Spines+1)})
	}
	for i := range c.Pods * c.Leaves {
		leaves.addNode(i/c.Leaves, NodeSpec{IPv4: ip4(10, i/c.Leaves+1, 101+i%c.Leaves, 254)})
	}
	for i := range c.Pods * c.ToRs {
		tors.addNode(i/c.ToRs, NodeSpec{IPv4: ip4(10, i/c.ToRs+1, i%c.ToRs+1, 254)})
	}
	for i := range c.Pods * c.ToRs * c.Hosts {
		tor := i / c.Hosts
		hosts.addNode(tor/c.ToRs, NodeSpec{IPv4: ip4(10, tor/c.ToRs+1, tor%c.ToRs+1, i%c.Hosts+1)})
	}
	for i, h := range hosts.ids {
		b.Connect(h, tors.ids[i/c.Hosts], l.Host)
	}
	for i, tor := range tors.ids {
		for j := range c.Leaves {
			b.Connect(tor, leaves.ids[i/c.ToRs*c.Leaves+j], l.Fabric)
		}
	}
	for i, leaf := range leaves.ids {
		for j := range c.Spines {
			b.Connect(leaf, spines.ids[i%c.Leaves*c.Spines+j], l.Fabric)
		}
	}
	return b.Build()
}

// Dumbbell makes two switches with one link between them, the bottleneck, and
// hosts on each side: first those of s0, then those of s1. Ids: hosts,
// switches. Addresses are the racks' (see LeafSpine).
func Dumbbell(hostsPerSide int, l Links) (*Fabric, error) {
	if err := checkRange("hosts", hostsPerSide, 1, rackHosts); err != nil {
		return nil, err
	}
	b := NewBuilder("dumbbell-" + strconv.Itoa(hostsPerSide))
	switches := addRacks(b, 2, hostsPerSide, l)
	b.Connect(switches[0], switches[1], l.Fabric)
	return b.Build()
}

// Ring makes switches in a ring, each with hosts. Ids: hosts, switches.
// Addresses are the racks' (see LeafSpine). On every switch the ports to hosts
// come first; the link from switch i to switch i+1 is declared in that order.
//
// Shortest paths around a ring of four or more switches already form a cyclic
// buffer dependency; Check reports it.
func Ring(switches, hostsPerSwitch int, l Links) (*Fabric, error) {
	err := firstError(
		checkRange("switches", switches, 3, 4096),
		checkRange("hosts", hostsPerSwitch, 0, rackHosts),
		checkSize(switches*(hostsPerSwitch+1), switches*(hostsPerSwitch+1)),
	)
	if err != nil {
		return nil, err
	}
	b := NewBuilder("ring-" + strconv.Itoa(switches))
	ids := addRacks(b, switches, hostsPerSwitch, l)
	for i := range ids {
		b.Connect(ids[i], ids[(i+1)%len(ids)], l.Fabric)
	}
	return b.Build()
}

// addRacks adds n switches with their hosts and returns the switches.
func addRacks(b *Builder, n, hostsPerSwitch int, l Links) []model.NodeID {
	hosts, switches := tier{b: b, prefix: "h", role: Host}, tier{b: b, prefix: "s", role: Switch}
	for i := range n * hostsPerSwitch {
		hosts.addNode(NoPod, NodeSpec{IPv4: rackAddr(i/hostsPerSwitch, i%hostsPerSwitch)})
	}
	for i := range n {
		switches.addNode(NoPod, NodeSpec{IPv4: rackAddr(i, -1)})
	}
	for i, h := range hosts.ids {
		b.Connect(h, switches.ids[i/hostsPerSwitch], l.Host)
	}
	return switches.ids
}
