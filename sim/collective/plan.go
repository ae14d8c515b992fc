package collective

import "fmt"

// Send is a transfer from one rank to another. Those of one channel between two
// ranks use one connection, and wait for each other.
type Send struct {
	From, To int
	Channel  int
	// Offset and Bytes are a range of the sender's buffer; the receiver has it at
	// the same place, but for all-to-all, where it is the sender's part there.
	Offset, Bytes int64
	// Reduce reports whether the receiver adds what it receives to its own.
	Reduce bool
	// Start reports whether the send waits for its rank to begin.
	Start bool
	// After lists sends that must have finished, as indexes of the plan: those that
	// the sender received, and the one before it on its connection.
	After []int
}

// Plan is a collective as transfers.
type Plan struct {
	Algorithm Algorithm // the chosen one
	Channels  int
	Sends     []Send
	// Done lists for each rank the sends after which it has its result, and its
	// buffer is free.
	Done [][]int
}

// New plans a collective.
func New(c Config) (*Plan, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	c = c.resolve()
	count, ok := c.count()
	if !ok {
		return nil, fmt.Errorf("%v of %d bytes on %d ranks has more than %d transfers, want fewer: larger chunks, or fewer channels", c.Op, c.Bytes, c.Ranks, MaxSends)
	}
	p := &planner{Config: c, last: make(map[connection]int)}
	p.plan = Plan{Algorithm: c.Algorithm, Channels: c.Channels, Sends: make([]Send, 0, count), Done: make([][]int, c.Ranks)}
	for channel := range c.Channels {
		switch {
		case c.Op == AllToAll:
			p.allToAll(channel)
		case c.Op == Broadcast:
			p.broadcast(channel)
		case c.Algorithm == Tree:
			p.tree(channel)
		default:
			p.ring(channel)
		}
	}
	return &p.plan, nil
}

type connection struct{ from, to, channel int }

// planner makes a plan.
type planner struct {
	Config
	plan Plan
	last map[connection]int // send of each connection
}

// send adds a transfer after others, and after the one before it on its
// connection.
func (p *planner) send(s Send, after ...int) int {
	c := connection{s.From, s.To, s.Channel}
	before, again := p.last[c]
	if again {
		after = append(after, before)
	}
	s.Start, s.After = !again, after
	p.last[c] = len(p.plan.Sends)
	p.plan.Sends = append(p.plan.Sends, s)
	return len(p.plan.Sends) - 1
}

// done adds sends that a rank's end waits for.
func (p *planner) done(rank int, sends ...int) {
	p.plan.Done[rank] = append(p.plan.Done[rank], sends...)
}

// ringOrder returns the ranks in the order of a channel's ring: server by server,
// in each from another rank on, so that each channel leaves a server by another
// NIC.
func (p *planner) ringOrder(channel int) []int {
	order := make([]int, p.Ranks)
	for i := range order {
		server, local := i/p.PerServer, (i+channel)%p.PerServer
		order[i] = server*p.PerServer + local
	}
	return order
}

// piece returns the range of a channel in the part of the buffer that belongs to a
// rank.
func (p *planner) piece(rank, channel int) (offset, size int64) {
	offset, size = span(p.Bytes, p.Ranks, rank)
	in, size := span(size, p.Channels, channel)
	return offset + in, size
}

// ring runs around one ring: each rank sends a part to the next when it has
// received the part of the step before.
func (p *planner) ring(channel int) {
	order := p.ringOrder(channel)
	n := len(order)
	steps, shift := n-1, 0
	switch p.Op {
	case AllReduce:
		steps *= 2
	case ReduceScatter:
		shift = 1 // so that each rank ends with its own part
	}
	received := make([]int, n) // by position
	for step := range steps {
		next := make([]int, n)
		for i, rank := range order {
			var after []int
			if step > 0 {
				after = append(make([]int, 0, 2), received[i])
			}
			offset, size := p.piece(order[((i-step-shift)%n+n)%n], channel)
			next[(i+1)%n] = p.send(Send{
				From: rank, To: order[(i+1)%n], Channel: channel, Offset: offset, Bytes: size,
				Reduce: p.Op != AllGather && step < n-1,
			}, after...)
		}
		received = next
	}
	for i, rank := range order {
		p.done(rank, received[i], received[(i+1)%n])
	}
}

// chunks calls f with each chunk of a channel's range.
func (p *planner) chunks(channel int, f func(offset, size int64, last bool)) {
	offset, size := span(p.Bytes, p.Channels, channel)
	for end := offset + size; offset < end; offset += p.Chunk {
		f(offset, min(p.Chunk, end-offset), offset+p.Chunk >= end)
	}
}

// broadcast sends chunks along the ring, from the root on.
func (p *planner) broadcast(channel int) {
	order := p.ringOrder(channel)
	n, at := len(order), 0
	for order[at] != p.Root {
		at++
	}
	p.chunks(channel, func(offset, size int64, last bool) {
		received := -1
		for i := range n - 1 {
			from, to := order[(at+i)%n], order[(at+i+1)%n]
			var after []int
			if received >= 0 {
				after = append(after, received)
			}
			received = p.send(Send{From: from, To: to, Channel: channel, Offset: offset, Bytes: size}, after...)
			if last {
				p.done(from, received)
				p.done(to, received)
			}
		}
	})
}

// allToAll sends a part from every rank to every other: first to the next rank,
// then to the one after that.
func (p *planner) allToAll(channel int) {
	begin := len(p.plan.Sends)
	for round := range p.Ranks - 1 {
		for rank := range p.Ranks {
			to := (rank + round + 1) % p.Ranks
			offset, size := p.piece(to, channel)
			var after []int
			if round >= p.Window {
				after = []int{begin + (round-p.Window)*p.Ranks + rank}
			}
			at := p.send(Send{From: rank, To: to, Channel: channel, Offset: offset, Bytes: size}, after...)
			p.done(to, at)
			if round >= p.Ranks-1-p.Window {
				p.done(rank, at)
			}
			p.plan.Sends[at].Start = round < p.Window
		}
	}
}
