package goal

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/internal/fileerror"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/traffic"
)

// channel is where a receive finds its message: messages of one pair and tag
// arrive in order.
type channel struct {
	from, to int
	tag      uint32
}

// where is an operation's place.
type where struct{ rank, op int }

// RankCount returns the number of ranks.
func (s *Schedule) RankCount() int { return len(s.Ranks) }

// Flows returns the schedule as flows and computations of hosts, rank by rank.
//
// A send and its receive are one flow. A receive that requires something has
// ended when both the message and that have: a join, which is a computation of
// no time on a core of its own.
func (s *Schedule) Flows(hosts []model.NodeID) ([]traffic.Flow, error) {
	if len(s.Ranks) > len(hosts) {
		return nil, fileerror.Errorf(s.File, 1, "num_ranks %d for a topology of %d hosts, want at most that", len(s.Ranks), len(hosts))
	}
	b := builder{s: s, end: make([][]int, len(s.Ranks))}
	for rank, ops := range s.Ranks {
		b.end[rank] = make([]int, len(ops))
		for i := range ops {
			b.end[rank][i] = -1
			if flow, ok := ops[i].flow(hosts, rank); ok {
				b.end[rank][i] = len(b.flows)
				b.flows = append(b.flows, flow)
			}
		}
	}
	if err := b.match(); err != nil {
		return nil, err
	}
	for rank, ops := range s.Ranks {
		for i := range ops {
			b.wait(rank, i)
		}
	}
	return b.flows, b.check()
}

// flow returns the flow of a send or a computation, and for a receive that
// requires something its join.
func (o *Op) flow(hosts []model.NodeID, rank int) (f traffic.Flow, ok bool) {
	h := hosts[rank]
	switch {
	case o.Kind == Calc:
		return traffic.Flow{Src: h, Dst: h, Compute: time.Duration(o.Size), Core: o.CPU}, true
	case o.Kind == Send && o.Peer == rank: // within the host: no network
		return traffic.Flow{Src: h, Dst: h, Core: joinCore}, true
	case o.Kind == Send:
		// A message without payload has a packet all the same.
		return traffic.Flow{
			Src: h, Dst: hosts[o.Peer], Bytes: max(1, model.Bytes(o.Size)), Priority: traffic.DefaultClass().Priority,
			Queue: uint32(o.Peer) + 1,
		}, true
	case len(o.Requires)+len(o.IRequires) > 0:
		return traffic.Flow{Src: h, Dst: h, Core: joinCore}, true
	}
	return f, false
}

// joinCore never computes, so joins never wait for it.
const joinCore = maxCPU + 1

type builder struct {
	s     *Schedule
	flows []traffic.Flow
	end   [][]int // by rank and operation: the flow that ends with it; -1: a receive without a match yet
}

// match finds the message of each receive.
func (b *builder) match() error {
	sent := make(map[channel][]where)
	for rank, ops := range b.s.Ranks {
		for i := range ops {
			if o := &ops[i]; o.Kind == Send {
				c := channel{rank, o.Peer, o.Tag}
				sent[c] = append(sent[c], where{rank, i})
			}
		}
	}
	for rank, ops := range b.s.Ranks {
		for i := range ops {
			o := &ops[i]
			if o.Kind != Recv {
				continue
			}
			c := channel{o.Peer, rank, o.Tag}
			if len(sent[c]) == 0 {
				return fileerror.Errorf(b.s.File, o.Line, "receive from rank %d with tag %d that no send matches, want one", o.Peer, o.Tag)
			}
			from := sent[c][0]
			sent[c] = sent[c][1:]
			send := &b.s.Ranks[from.rank][from.op]
			if send.Size > o.Size {
				return fileerror.Errorf(b.s.File, o.Line, "receive of %d bytes for the %d of line %d, want at least as many", o.Size, send.Size, send.Line)
			}
			flow := b.end[from.rank][from.op]
			if join := b.end[rank][i]; join >= 0 {
				b.flows[join].After = append(b.flows[join].After, flow)
			} else {
				b.end[rank][i] = flow
			}
		}
	}
	for rank, ops := range b.s.Ranks {
		for i := range ops {
			o := &ops[i]
			if o.Kind != Send {
				continue
			}
			for _, left := range sent[channel{rank, o.Peer, o.Tag}] {
				return fileerror.Errorf(b.s.File, b.s.Ranks[left.rank][left.op].Line, "send to rank %d with tag %d that no receive matches, want one", o.Peer, o.Tag)
			}
		}
	}
	return nil
}

// wait adds what an operation waits for to its flow.
func (b *builder) wait(rank, i int) {
	o := &b.s.Ranks[rank][i]
	if o.Kind == Recv && len(o.Requires)+len(o.IRequires) == 0 {
		return // it has no flow of its own
	}
	f := &b.flows[b.end[rank][i]]
	for _, r := range o.Requires {
		f.After = append(f.After, b.end[rank][r])
	}
	for _, r := range o.IRequires {
		// It started when what it required had ended.
		for _, before := range b.s.Ranks[rank][r].Requires {
			f.After = append(f.After, b.end[rank][before])
		}
	}
}

// check finds operations that wait for each other. A list whose order is wrong
// says only which flow; here it is a line.
func (b *builder) check() error {
	waits, followers := make([]int, len(b.flows)), make([][]int, len(b.flows))
	var ready []int
	for i := range b.flows {
		if waits[i] = len(b.flows[i].After); waits[i] == 0 {
			ready = append(ready, i)
		}
		for _, a := range b.flows[i].After {
			followers[a] = append(followers[a], i)
		}
	}
	for n := 0; n < len(ready); n++ {
		for _, f := range followers[ready[n]] {
			if waits[f]--; waits[f] == 0 {
				ready = append(ready, f)
			}
		}
	}
	if len(ready) == len(b.flows) {
		return nil
	}
	for rank, ops := range b.s.Ranks {
		for i := range ops {
			if waits[b.end[rank][i]] > 0 {
				return fileerror.Errorf(b.s.File, ops[i].Line, "%s is in or after a cycle of operations that wait for each other, want none",
					ops[i].name())
			}
		}
	}
	return fmt.Errorf("%s: a flow in a cycle belongs to no operation", b.s.File)
}

func (o *Op) name() string { return [...]string{Calc: "calc", Send: "send", Recv: "recv"}[o.Kind] }
