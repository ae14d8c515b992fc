package traffic

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Host is a host that flows may start or end at.
type Host struct {
	ID   model.NodeID
	Rate model.Rate // of its link; of all its links, if it has several
}

// HostsOf returns the hosts of a fabric, ascending by id. Muxes are not among
// them: they forward for others and originate nothing.
func HostsOf(f *topo.Fabric) []Host {
	hosts := make([]Host, 0, len(f.Hosts()))
	for _, id := range f.Hosts() {
		n := f.Node(id)
		if n.Role != topo.Host {
			continue
		}
		h := Host{ID: id}
		for _, p := range n.Ports {
			h.Rate += p.Rate
		}
		hosts = append(hosts, h)
	}
	return hosts
}

// find finds a host in a list that ascends by id.
func find(hosts []Host, id model.NodeID) (Host, bool) {
	i, ok := slices.BinarySearchFunc(hosts, id, func(h Host, id model.NodeID) int { return cmp.Compare(h.ID, id) })
	if !ok {
		return Host{}, false
	}
	return hosts[i], true
}

// Generator makes one part of a workload. All are in this package; List holds
// flows made elsewhere.
type Generator interface {
	kind() string // for errors
	flows(e *env) ([]Flow, error)
}

// env is what a generator draws from.
type env struct {
	hosts []Host // ascending by id
	rng   *rand.Rand
	port  uint16 // source port for the flows of one connection
}

// dynamicPort is the first of IANA's dynamic ports. RoCEv2 NICs draw source
// ports from here on.
const dynamicPort = 49152

// Generate merges the flows of all generators into one list, ascending by
// start. The same arguments give the same list. A generator's part depends on
// the seed, the hosts and its position among the generators, not on the others:
// one more at the end changes only what it adds. Groups are numbered from 1 in
// the order of the generators.
func Generate(seed uint64, hosts []Host, generators ...Generator) ([]Flow, error) {
	hosts = slices.Clone(hosts)
	slices.SortFunc(hosts, func(a, b Host) int { return cmp.Compare(a.ID, b.ID) })
	for i, h := range hosts {
		if i > 0 && hosts[i-1].ID == h.ID {
			return nil, fmt.Errorf("host %d is listed twice, want it once", h.ID)
		}
		if h.Rate < 0 || h.Rate > maxRate {
			return nil, fmt.Errorf("host %d has rate %v, want 0 to %v", h.ID, h.Rate, maxRate)
		}
	}
	parts := make([][]Flow, len(generators))
	total := 0
	for i, g := range generators {
		e := &env{
			hosts: hosts,
			rng:   rand.New(rand.NewPCG(seed, uint64(i))),
			port:  uint16(dynamicPort + i%(1<<16-dynamicPort)),
		}
		var err error
		if parts[i], err = g.flows(e); err != nil {
			return nil, fmt.Errorf("generator %d (%s): %w", i, g.kind(), err)
		}
		if total += len(parts[i]); total > MaxFlows {
			return nil, fmt.Errorf("%d flows with generator %d, want at most %d", total, i, MaxFlows)
		}
	}
	all := merge(parts, total)
	if err := Check(all, hosts); err != nil {
		return nil, err
	}
	return all, nil
}

// merge joins lists into one that ascends by start; flows that start together
// keep their order. Every part must be one that Check accepts.
func merge(parts [][]Flow, total int) []Flow {
	all := make([]Flow, 0, total)
	groups, after := 0, 0
	for _, part := range parts {
		base, last := len(all), 0
		all = append(all, part...)
		for i := base; i < len(all); i++ {
			if g := all[i].Group; g > 0 {
				all[i].Group += groups
				last = max(last, g)
			}
			after += len(all[i].After)
		}
		groups += last
	}
	// Keys of start and position make an unstable sort stable. Two million
	// flows in the runs of 1,024 hosts take 0.5 s of CPU, against 1.0 s of a
	// stable sort of indexes; in the runs of two hosts 0.3 s against 0.1 s.
	type key struct {
		start model.Time
		flow  int
	}
	order := make([]key, total) // order[k] is the flow that becomes the k-th
	for i := range order {
		order[i] = key{all[i].Start, i}
	}
	slices.SortFunc(order, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.flow, b.flow))
	})
	place := make([]int, total) // its inverse
	for k := range order {
		place[order[k].flow] = k
	}
	remap(all, parts, place, after)
	sorted := make([]Flow, total)
	for k := range order {
		sorted[k] = all[order[k].flow]
	}
	return sorted
}

// remap makes the After of every flow, an index into its own part, an index
// into the sorted list. The parts' slices are not changed: they belong to the
// caller of a List, and flows share them.
func remap(all []Flow, parts [][]Flow, place []int, after int) {
	if after == 0 {
		return
	}
	mem := make([]int, 0, after)
	base := 0
	for _, part := range parts {
		for i := range part {
			from := len(mem)
			for _, a := range part[i].After {
				mem = append(mem, place[base+a])
			}
			if len(mem) > from {
				all[base+i].After = mem[from:len(mem):len(mem)]
			}
		}
		base += len(part)
	}
}

// List is a generator of flows made elsewhere: read from a file, or written
// out in a test.
type List []Flow

func (l List) kind() string { return "list" }

func (l List) flows(e *env) ([]Flow, error) {
	if err := Check(l, e.hosts); err != nil {
		return nil, err
	}
	return l, nil
}

// choose returns the hosts that a generator's field names, in its order: all of
// the fabric's if it is empty.
func (e *env) choose(field string, ids []model.NodeID, least int) ([]Host, error) {
	hosts := e.hosts
	if len(ids) > 0 {
		hosts = make([]Host, len(ids))
		seen := make(map[model.NodeID]bool, len(ids))
		for i, id := range ids {
			h, ok := find(e.hosts, id)
			if !ok {
				return nil, fmt.Errorf("%s: node %d is not a host of the fabric", field, id)
			}
			if seen[id] {
				return nil, fmt.Errorf("%s: host %d is listed twice, want it once", field, id)
			}
			seen[id], hosts[i] = true, h
		}
	}
	if len(hosts) < least {
		return nil, fmt.Errorf("%s: %d given, want at least %d", field, len(hosts), least)
	}
	return hosts, nil
}
