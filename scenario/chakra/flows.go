package chakra

import (
	"fmt"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/traffic"
)

// RankCount returns the number of ranks.
func (t *Trace) RankCount() int { return len(t.Ranks) }

// Cores of computations: nodes compute on one, ends of collectives and nodes
// without a time never wait.
const (
	computeCore = 0
	joinCore    = 255
)

// builder makes flows. Every node has a computation that ends with it: its work,
// or a join of what it waits for.
type builder struct {
	t     *Trace
	hosts []model.NodeID
	flows []traffic.Flow
	node  [][]int          // by rank and node: the flow that ends with it
	index []map[uint64]int // by rank: nodes by id
}

// Flows returns the traces as flows and computations of hosts, rank by rank.
// The n-th collective of every rank is one: all ranks take part in it.
func (t *Trace) Flows(hosts []model.NodeID) ([]traffic.Flow, error) {
	if len(t.Ranks) > len(hosts) {
		return nil, t.errorf(0, 1, "%d ranks for a topology of %d hosts, want at most that", len(t.Ranks), len(hosts))
	}
	b := builder{t: t, hosts: hosts, node: make([][]int, len(t.Ranks)), index: make([]map[uint64]int, len(t.Ranks))}
	for rank, nodes := range t.Ranks {
		b.index[rank] = make(map[uint64]int)
		for i := range nodes {
			b.index[rank][nodes[i].ID] = i
			f := traffic.Flow{Src: hosts[rank], Dst: hosts[rank], Core: joinCore}
			if nodes[i].Type == Comp {
				f.Compute, f.Core = nodes[i].Duration, computeCore
			}
			b.node[rank] = append(b.node[rank], b.add(f))
		}
	}
	for _, step := range []func() error{b.checkDependencies, b.messages, b.collectives} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	for rank, nodes := range t.Ranks {
		for i := range nodes {
			b.end(rank, i, b.deps(rank, i)...)
		}
	}
	return b.flows, nil
}

// checkDependencies reports nodes that depend on nodes that are not there.
func (b *builder) checkDependencies() error {
	for rank, nodes := range b.t.Ranks {
		for i := range nodes {
			for _, id := range nodes[i].After {
				if at, ok := b.index[rank][id]; !ok || at == i {
					return b.t.errorf(rank, nodes[i].Number, "node id %d depends on %d, want another node of the file", nodes[i].ID, id)
				}
			}
		}
	}
	return nil
}

func (b *builder) add(f traffic.Flow) int {
	b.flows = append(b.flows, f)
	return len(b.flows) - 1
}

// transfer adds a message between ranks, after other flows.
func (b *builder) transfer(from, to int, bytes uint64, after ...int) int {
	return b.add(traffic.Flow{
		Src: b.hosts[from], Dst: b.hosts[to], Bytes: model.Bytes(max(bytes, 1)), After: after,
		Priority: traffic.DefaultClass().Priority, Queue: uint32(to) + 1,
	})
}

// before returns what a node waits for, as flows. A join in front of the node's
// own flow collects them where messages are to wait for them too.
func (b *builder) before(rank, i int) int {
	return b.add(traffic.Flow{Src: b.hosts[rank], Dst: b.hosts[rank], Core: joinCore, After: b.deps(rank, i)})
}

func (b *builder) deps(rank, i int) (flows []int) {
	for _, id := range b.t.Ranks[rank][i].After {
		flows = append(flows, b.node[rank][b.index[rank][id]])
	}
	return flows
}

// end makes a node end when other flows have.
func (b *builder) end(rank, i int, flows ...int) {
	f := &b.flows[b.node[rank][i]]
	f.After = append(f.After, flows...)
}

type channel struct {
	from, to int
	tag      uint64
}

// messages makes a flow of each send and its receive.
func (b *builder) messages() error {
	type sent struct{ node, flow int }
	open := make(map[channel][]sent)
	for rank, nodes := range b.t.Ranks {
		for i := range nodes {
			n := &nodes[i]
			if n.Type != Send {
				continue
			}
			if n.Dst >= uint64(len(b.t.Ranks)) || n.Dst == uint64(rank) || n.Bytes > uint64(traffic.MaxBytes) {
				return b.t.errorf(rank, n.Number, "send of %d bytes to rank %d, want another from 0 to %d and at most %d bytes", n.Bytes, n.Dst, len(b.t.Ranks)-1, int64(traffic.MaxBytes))
			}
			flow := b.transfer(rank, int(n.Dst), n.Bytes, b.before(rank, i))
			b.end(rank, i, flow)
			c := channel{rank, int(n.Dst), n.Tag}
			open[c] = append(open[c], sent{i, flow})
		}
	}
	for rank, nodes := range b.t.Ranks {
		for i := range nodes {
			n := &nodes[i]
			if n.Type != Recv {
				continue
			}
			c := channel{int(min(n.Src, uint64(len(b.t.Ranks)))), rank, n.Tag}
			if len(open[c]) == 0 {
				return b.t.errorf(rank, n.Number, "receive from rank %d with tag %d that no send matches, want one", n.Src, n.Tag)
			}
			b.end(rank, i, open[c][0].flow)
			open[c] = open[c][1:]
		}
	}
	for rank, nodes := range b.t.Ranks {
		for i := range nodes {
			n := &nodes[i]
			if n.Type == Send && len(open[channel{rank, int(n.Dst), n.Tag}]) > 0 {
				return b.t.errorf(rank, n.Number, "send to rank %d with tag %d: more sends than receives, want a receive for each", n.Dst, n.Tag)
			}
		}
	}
	return nil
}

// collectives runs the n-th collective of all ranks together.
func (b *builder) collectives() error {
	lists := make([][]int, len(b.t.Ranks))
	for rank, nodes := range b.t.Ranks {
		for i := range nodes {
			if nodes[i].Type == Coll {
				lists[rank] = append(lists[rank], i)
			}
		}
		if len(lists[rank]) != len(lists[0]) {
			return b.t.errorf(rank, 1, "%d collectives, rank 0 has %d, want as many", len(lists[rank]), len(lists[0]))
		}
	}
	for k, first := range lists[0] {
		n := &b.t.Ranks[0][first]
		at := make([]int, len(lists))
		for rank := range lists {
			at[rank] = lists[rank][k]
			other := &b.t.Ranks[rank][at[rank]]
			if other.Collective != n.Collective || other.Bytes != n.Bytes {
				return b.t.errorf(rank, other.Number, "collective %d of type %d and %d bytes, rank 0 has type %d and %d bytes, want the same", k+1, other.Collective, other.Bytes, n.Collective, n.Bytes)
			}
		}
		if n.Bytes > uint64(traffic.MaxBytes) {
			return b.t.errorf(0, n.Number, "collective of %d bytes, want at most %d", n.Bytes, int64(traffic.MaxBytes))
		}
		if err := b.collective(n, at); err != nil {
			return b.t.errorf(0, n.Number, "%v", err)
		}
	}
	return nil
}

// collective runs one. at is the node of each rank.
func (b *builder) collective(n *Node, at []int) error {
	ranks := len(at)
	if ranks == 1 {
		return nil
	}
	steps := ranks - 1
	switch n.Collective {
	case AllReduce:
		steps *= 2
	case AllGather, ReduceScatter:
	case AllToAll:
		for rank := range ranks {
			start := b.before(rank, at[rank])
			for shift := 1; shift < ranks; shift++ {
				to := (rank + shift) % ranks
				flow := b.transfer(rank, to, n.Bytes/uint64(ranks), start)
				b.end(rank, at[rank], flow)
				b.end(to, at[to], flow)
			}
		}
		return nil
	default:
		return fmt.Errorf("comm_type %d, want 0 (all-reduce), 2 (all-gather), 6 (all-to-all) or 7 (reduce-scatter)", n.Collective)
	}
	return b.ring(n.Bytes/uint64(ranks), steps, at)
}

// ring runs steps around the ring of ranks: each sends a chunk to the next
// when it has the chunk of the step before.
func (b *builder) ring(chunk uint64, steps int, at []int) error {
	ranks := len(at)
	if len(b.flows)+ranks*steps > traffic.MaxFlows {
		return fmt.Errorf("%d flows, want at most %d", len(b.flows)+ranks*steps, traffic.MaxFlows)
	}
	last, sent := make([]int, ranks), make([]int, ranks) // flows that each rank received and sent
	for rank := range ranks {
		last[rank] = b.before(rank, at[rank])
	}
	for range steps {
		next := make([]int, ranks)
		for rank := range ranks {
			to := (rank + 1) % ranks
			sent[rank] = b.transfer(rank, to, chunk, last[rank])
			next[to] = sent[rank]
		}
		last = next
	}
	for rank := range ranks {
		b.end(rank, at[rank], last[rank], sent[rank])
	}
	return nil
}
