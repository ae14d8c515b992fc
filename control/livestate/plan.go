// Package livestate reads the newest state of the fabric straight from a collector's
// memory, by key: states of ports (Key-Write), counters of hosts (Key-Increment) and
// postcards of flows (Postcarding). Nothing is polled and no analysis is asked; an
// answer is what switches reported last. It also plans that memory.
// Manual: docs/collector.md#in-weft-serve.
package livestate

import (
	"fmt"
	"slices"

	"github.com/weft-telemetry/weft/collect/count"
	"github.com/weft-telemetry/weft/collect/keywrite"
	"github.com/weft-telemetry/weft/collect/postcard"
	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/keyed"
)

// Sizes are the memories of keyed reports; 0: as large as the fabric needs.
type Sizes struct {
	Ports    model.Bytes
	Counters model.Bytes
	Cards    model.Bytes // of postcards
}

// Plan is the geometry of the memories.
type Plan struct {
	Ports    keywrite.Config
	Counters count.Config
	Cards    postcard.Config
}

// Limits of a memory. The least makes collisions of a small fabric rarer than one in
// a thousand; none needs the most.
const (
	MinMemory = model.MiB
	MaxMemory = 64 * model.GiB
)

// slotsPerPort makes one port in 4,096 share all four of its slots with others, and
// only while they all write after it is it not found.
const slotsPerPort = 32

// PlanFor sizes the memories for a fabric.
func PlanFor(f *topo.Fabric, sizes Sizes) (p Plan, err error) {
	ports := 0
	for _, id := range f.Switches() {
		ports += len(f.Node(id).Ports)
	}
	p.Ports = keywrite.Config{Layout: keywrite.Weft, Slots: 1, Value: keyed.PortStateSize, Check: 32}
	slot := model.Bytes(p.Ports.Size())
	size, err := memorySize("port state", sizes.Ports, model.Bytes(ports)*slotsPerPort*slot)
	p.Ports.Slots = uint64(size / slot)
	if err != nil {
		return p, err
	}
	size, err = memorySize("counter", sizes.Counters, model.Bytes(hostCounters(f))*cellsPerCounter*8)
	p.Counters = count.DefaultConfig(int64(size))
	if err != nil {
		return p, err
	}
	p.Cards = postcard.Config{Layout: postcard.Sealed, Chunks: 1, Hops: longestPath(f), Bits: 32}
	chunk := model.Bytes(p.Cards.Size())
	size, err = memorySize("postcard", sizes.Cards, max(minCards, model.Bytes(len(f.Hosts()))*cardsPerHost))
	p.Cards.Chunks = uint64(size / chunk)
	return p, err
}

// Postcards of a packet fill 256 bytes: four words, in two copies of a chunk of 32
// bytes. The least is for 16,000 packets; beyond, older ones are overwritten.
const (
	minCards     = 4 * model.MiB
	cardsPerHost = 16 * model.KiB
)

// longestPath is the most hops of a path that is stored: up to the highest tier and
// down, and two more for a detour. Seven take the same chunk as five.
func longestPath(f *topo.Fabric) int {
	tier := 0
	for _, id := range f.Switches() {
		tier = max(tier, f.Node(id).Tier)
	}
	return min(max(2*tier+1, 7), keyed.MaxHops)
}

// cellsPerCounter makes one counter in 5,000 share all four of its cells with others
// if hosts use all priorities, and one in 200,000 if they use three.
const cellsPerCounter = 32

// hostCounters is how many counters the hosts of a fabric can have.
func hostCounters(f *topo.Fabric) (n int) {
	for _, id := range f.Hosts() {
		n += len(addresses(f.Node(id))) * len(switchesOf(f.Node(id))) * keyed.Classes * keyed.Metrics
	}
	return n
}

// addresses are those of a host.
func addresses(n *topo.Node) (list []model.Addr) {
	for _, a := range [...]model.Addr{n.IPv4, n.IPv6} {
		if a != (model.Addr{}) {
			list = append(list, a)
		}
	}
	return list
}

// switchesOf are those that a host is attached to.
func switchesOf(n *topo.Node) (list []model.NodeID) {
	for i := range n.Ports {
		if sw := n.Ports[i].Peer.Node; !slices.Contains(list, sw) {
			list = append(list, sw)
		}
	}
	return list
}

// memorySize is the configured size of a memory, or what the fabric needs.
func memorySize(name string, configured, need model.Bytes) (model.Bytes, error) {
	switch {
	case configured == 0:
		return min(max(need, MinMemory), MaxMemory), nil
	case configured < MinMemory || configured > MaxMemory:
		return MinMemory, fmt.Errorf("livestate: %s memory %v, want %v to %v, or 0 for what the fabric needs",
			name, configured, MinMemory, MaxMemory)
	}
	return configured, nil
}

// Open opens anonymous memories of the plan, and adds them to m.
func (p *Plan) Open(m *translate.Memory) error {
	ports, err := keywrite.Open("", p.Ports)
	if err != nil {
		return err
	}
	m.KeyWrites = append(m.KeyWrites, ports)
	if m.Counts, err = count.Open("", p.Counters); err != nil {
		return err
	}
	m.Postcards, err = postcard.Open("", p.Cards)
	return err
}
