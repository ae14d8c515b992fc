package collective

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func drawConfig(t *rapid.T) Config {
	c := Config{Op: Op(rapid.IntRange(0, len(opNames)-1).Draw(t, "op")), PerServer: rapid.IntRange(1, 3).Draw(t, "per server")}
	c.Ranks = c.PerServer * rapid.IntRange(1, 6).Draw(t, "servers")
	if c.Ranks == 1 {
		c.Ranks = 2
	}
	c.Algorithm = Ring
	if c.Op == AllReduce && rapid.Bool().Draw(t, "tree") {
		c.Algorithm = Tree
	}
	c.Channels = rapid.IntRange(0, 5).Draw(t, "channels")
	c.Bytes = int64(rapid.IntRange(c.Ranks, 60).Draw(t, "bytes"))
	c.Chunk = int64(rapid.IntRange(1, 20).Draw(t, "chunk"))
	c.Root = rapid.IntRange(0, c.Ranks-1).Draw(t, "root")
	c.Window = rapid.IntRange(0, c.Ranks-1).Draw(t, "window")
	return c
}

// TestEveryRankEndsWithItsResult carries every byte of every buffer in any order
// that the plan permits: a byte is the set of ranks that were added into it, and none
// is added twice. A rank is done by the plan as soon as its own sends have left and
// it has its result, not before.
func TestEveryRankEndsWithItsResult(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		p, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		b := newBuffers(t, c)
		run(t, c, p, rapid.Uint64().Draw(t, "order"), b)
		for rank := range c.Ranks {
			if missing := b.missing(rank); missing != "" {
				t.Fatalf("%+v: rank %d ends without its result: %s", c, rank, missing)
			}
		}
	})
}

// run carries the sends of a plan in a random order.
func run(t *rapid.T, c Config, p *Plan, seed uint64, b *buffers) {
	rng := rand.New(rand.NewPCG(seed, 0))
	started, finished := make([]bool, len(p.Sends)), make([]bool, len(p.Sends))
	data := make([][]uint64, len(p.Sends)) // in flight
	busy := map[connection]bool{}
	begun := make([]bool, c.Ranks)
	for left := len(p.Sends); left > 0; {
		var ready []int // to start, or, as the complement, to finish
		for i, s := range p.Sends {
			waits := func(a int) bool { return !finished[a] }
			switch {
			case finished[i]:
			case started[i]:
				ready = append(ready, ^i)
			case s.Start && !begun[s.From] || slices.ContainsFunc(s.After, waits):
			default:
				ready = append(ready, i)
			}
		}
		for rank := range c.Ranks {
			if !begun[rank] {
				ready = append(ready, len(p.Sends)+rank)
			}
		}
		if len(ready) == 0 {
			t.Fatalf("%+v: %d sends never start", c, left)
		}
		i := ready[rng.IntN(len(ready))]
		switch {
		case i >= len(p.Sends):
			begun[i-len(p.Sends)] = true
		case i >= 0:
			s := p.Sends[i]
			link := connection{s.From, s.To, s.Channel}
			if busy[link] {
				t.Fatalf("%+v: send %d starts while its connection %+v is busy", c, i, link)
			}
			if !begun[s.From] {
				t.Fatalf("%+v: send %d starts before rank %d begins", c, i, s.From)
			}
			busy[link], started[i], data[i] = true, true, b.read(s)
		default:
			i = ^i
			s := p.Sends[i]
			busy[connection{s.From, s.To, s.Channel}], finished[i] = false, true
			b.write(t, s, data[i])
			left--
			for _, rank := range []int{s.From, s.To} {
				done := !slices.ContainsFunc(p.Done[rank], func(a int) bool { return !finished[a] })
				sent := true
				for k, other := range p.Sends {
					sent = sent && (other.From != rank || finished[k])
				}
				if complete := sent && b.missing(rank) == "" && b.receivedAll(rank, p, finished); done != complete {
					t.Fatalf("%+v: rank %d is done %v after send %d; its sends have left: %v, its result: %q", c, rank, done, i, sent, b.missing(rank))
				}
			}
		}
	}
}

// buffers are those of all ranks: each byte is the set of ranks whose data are in.
type buffers struct {
	c    Config
	at   [][]uint64
	want func(rank int, offset int64) (set uint64, matters bool)
}

func newBuffers(t *rapid.T, c Config) *buffers {
	if c.Ranks > 64 {
		t.Fatal("more ranks than bits")
	}
	b := &buffers{c: c, at: make([][]uint64, c.Ranks)}
	owner := make([]int, c.Bytes)
	for r := range c.Ranks {
		offset, size := span(c.Bytes, c.Ranks, r)
		for i := offset; i < offset+size; i++ {
			owner[i] = r
		}
	}
	for r := range b.at {
		if c.Op == AllToAll {
			b.at[r] = make([]uint64, c.Ranks) // by sender: the bytes that arrived
			continue
		}
		b.at[r] = make([]uint64, c.Bytes)
		for i := range b.at[r] {
			if c.Op == AllReduce || c.Op == ReduceScatter || c.Op == AllGather && owner[i] == r || c.Op == Broadcast && r == c.Root {
				b.at[r][i] = 1 << r
			}
		}
	}
	all := uint64(1)<<c.Ranks - 1
	b.want = map[Op]func(int, int64) (uint64, bool){
		AllReduce:     func(int, int64) (uint64, bool) { return all, true },
		ReduceScatter: func(rank int, i int64) (uint64, bool) { return all, owner[i] == rank },
		AllGather:     func(_ int, i int64) (uint64, bool) { return 1 << owner[i], true },
		Broadcast:     func(int, int64) (uint64, bool) { return 1 << c.Root, true },
		AllToAll: func(rank int, from int64) (uint64, bool) {
			_, size := span(c.Bytes, c.Ranks, rank)
			return uint64(size), int(from) != rank
		},
	}[c.Op]
	return b
}

func (b *buffers) read(s Send) []uint64 {
	if b.c.Op == AllToAll {
		return nil
	}
	return slices.Clone(b.at[s.From][s.Offset : s.Offset+s.Bytes])
}

func (b *buffers) write(t *rapid.T, s Send, data []uint64) {
	if b.c.Op == AllToAll {
		offset, size := span(b.c.Bytes, b.c.Ranks, s.To)
		if s.Offset < offset || s.Offset+s.Bytes > offset+size {
			t.Fatalf("%+v: %+v, want a range of the part from %d of %d bytes", b.c, s, offset, size)
		}
		b.at[s.To][s.From] += uint64(s.Bytes)
		return
	}
	for i, set := range data {
		to := &b.at[s.To][s.Offset+int64(i)]
		if s.Reduce {
			if *to&set != 0 {
				t.Fatalf("%+v: %+v adds ranks %b to %b, want nothing twice", b.c, s, set, *to)
			}
			set |= *to
		}
		*to = set
	}
}

// missing says which byte of a rank's result is not there; empty: none.
func (b *buffers) missing(rank int) string {
	for i, got := range b.at[rank] {
		if want, matters := b.want(rank, int64(i)); matters && got != want {
			return fmt.Sprintf("byte %d is %b, want %b", i, got, want)
		}
	}
	return ""
}

// receivedAll reports whether nothing is left that a rank will receive: a rank that
// has its result may still be the receiver of bytes that it ignores.
func (b *buffers) receivedAll(rank int, p *Plan, finished []bool) bool {
	for i, s := range p.Sends {
		if s.To == rank && !finished[i] {
			return false
		}
	}
	return true
}

// TestTextbookFormulas: the bytes that all ranks send, the steps, and the share of
// each rank are those of the textbooks.
func TestTextbookFormulas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawConfig(t)
		p, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		n := int64(c.Ranks)
		var total int64
		for i, s := range p.Sends {
			if s.Bytes < 1 || s.From == s.To {
				t.Fatalf("%+v: send %d is %+v; want bytes from one rank to another", c, i, s)
			}
			total += s.Bytes
		}
		want := map[Op]int64{
			AllReduce: 2 * (n - 1) * c.Bytes, AllGather: (n - 1) * c.Bytes, ReduceScatter: (n - 1) * c.Bytes,
			Broadcast: (n - 1) * c.Bytes, AllToAll: (n - 1) * c.Bytes,
		}[c.Op]
		if total != want {
			t.Fatalf("%+v: %d bytes in all; want %d", c, total, want)
		}
		r := c.resolve()
		if count, ok := r.count(); !ok || len(p.Sends) > count || r.Algorithm == Ring && c.Op != Broadcast && len(p.Sends) != count {
			t.Fatalf("%+v: %d sends; counted %d before", c, len(p.Sends), count)
		}
		steps := longest(p)
		switch {
		case c.Op == AllToAll:
			if window := int64(r.Window); int64(steps) != (n-1+window-1)/window {
				t.Fatalf("%+v: %d rounds; want %d", c, steps, (n-1+window-1)/window)
			}
		case c.Op == Broadcast || r.Algorithm == Tree:
			_, part := span(c.Bytes, r.Channels, 0)
			chunks := int((part + r.Chunk - 1) / r.Chunk)
			depth := int(n) - 1
			if r.Algorithm == Tree && c.Op == AllReduce {
				depth = 2 * treeDepth(r)
			}
			if steps != depth+chunks-1 {
				t.Fatalf("%+v: %d steps; want %d for the way and %d more chunks", c, steps, depth, chunks-1)
			}
		default:
			if want := len(p.Sends) / c.Ranks / r.Channels; steps != want {
				t.Fatalf("%+v: %d steps; want %d", c, steps, want)
			}
		}
	})
}

// longest returns the number of sends on the longest chain of sends that wait for
// each other.
func longest(p *Plan) (most int) {
	level := make([]int, len(p.Sends))
	for i, s := range p.Sends { // a plan lists sends after those they wait for
		for _, a := range s.After {
			level[i] = max(level[i], level[a])
		}
		level[i]++
		most = max(most, level[i])
	}
	return most
}

// treeDepth returns the longest way to the root in any channel's tree.
func treeDepth(c Config) (most int) {
	p := &planner{Config: c}
	for channel := range c.Channels {
		parent := p.parents(channel)
		for rank := range parent {
			depth := 0
			for at := rank; parent[at] >= 0; at = parent[at] {
				depth++
			}
			most = max(most, depth)
		}
	}
	return most
}

// TestTreesAreThoseOfNCCL: the tree of 14 that its source draws, and that in each of
// the two trees of an even number every rank but the ends is a leaf in one only.
func TestTreesAreThoseOfNCCL(t *testing.T) {
	want := []int{-1, 2, 4, 2, 8, 6, 4, 6, 0, 10, 12, 10, 8, 12}
	p := &planner{Config: Config{Ranks: 14, PerServer: 1}}
	if got := p.parents(0); !slices.Equal(got, want) {
		t.Errorf("parents of 14 ranks are %v; want %v", got, want)
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 200).Draw(t, "ranks")
		p := &planner{Config: Config{Ranks: n, PerServer: 1}}
		inner := make([]int, n)
		for channel := range 2 {
			children := make([]int, n)
			for _, up := range p.parents(channel) {
				if up >= 0 {
					children[up]++
				}
			}
			for rank, k := range children {
				if k > 2 {
					t.Fatalf("rank %d of %d has %d children in tree %d; want at most 2", rank, n, k, channel)
				}
				if k > 0 {
					inner[rank]++
				}
			}
		}
		for rank, k := range inner {
			if n%2 == 0 && n > 2 && k != 1 {
				t.Fatalf("rank %d of %d is an inner node of %d trees; want 1", rank, n, k)
			}
		}
	})
}

// TestChannelsLeaveByEveryNIC: with as many channels as ranks of a server, the rings
// leave and enter each server by each of its ranks once, as NCCL's do.
func TestChannelsLeaveByEveryNIC(t *testing.T) {
	p, err := New(Config{Op: AllReduce, Algorithm: Ring, Ranks: 12, PerServer: 4, Channels: 4, Bytes: 4800})
	if err != nil {
		t.Fatal(err)
	}
	from, to := map[int]int64{}, map[int]int64{}
	for _, s := range p.Sends {
		if s.From/4 != s.To/4 {
			from[s.From] += s.Bytes
			to[s.To] += s.Bytes
		}
	}
	for rank := range 12 {
		if from[rank] != 2*11*100 || to[rank] != 2*11*100 {
			t.Errorf("rank %d sends %d bytes to other servers and receives %d; want 2(N-1)/N of its channel's 1200, %d", rank, from[rank], to[rank], 2*11*100)
		}
	}
}

func TestAutoChoosesAsNCCL(t *testing.T) {
	small := Config{Op: AllReduce, Ranks: 128, PerServer: 8, Bytes: 64 << 10, BytesPerSecond: 50e9}
	large, gather := small, small
	large.Bytes, gather.Op = 8<<30, AllGather
	for _, tc := range []struct {
		c        Config
		want     Algorithm
		channels int
	}{{small, Tree, 16}, {large, Ring, 16}, {gather, Ring, 16}, {Config{Op: AllReduce, Ranks: 4, PerServer: 1, Bytes: 4}, Ring, 1}} {
		p, err := New(tc.c)
		if err != nil || p.Algorithm != tc.want || p.Channels != tc.channels {
			t.Errorf("New(%+v) = %v; %v with %d channels; want %v with %d", tc.c, err, p.Algorithm, p.Channels, tc.want, tc.channels)
		}
	}
}

func TestConfigErrors(t *testing.T) {
	good := Config{Op: Broadcast, Ranks: 4, PerServer: 2, Bytes: 100}
	for want, change := range map[string]func(*Config){
		"collective 9, want one of all-reduce, all-gather, reduce-scatter, broadcast, all-to-all": func(c *Config) { c.Op = 9 },
		"algorithm 3, want one of auto, ring, tree":                                               func(c *Config) { c.Algorithm = 3 },
		"algorithm tree of broadcast, want ring or auto: trees are for all-reduce":                func(c *Config) { c.Algorithm = Tree },
		"1 ranks, want from 2 to 16777216":                                                        func(c *Config) { c.Ranks = 1 },
		"3 ranks per server, want a divisor of 4, the number of ranks":                            func(c *Config) { c.PerServer = 3 },
		"65 channels, want from 1 to 64, or 0 for NCCL's":                                         func(c *Config) { c.Channels = 65 },
		"3 bytes for 4 ranks, want one per rank at least":                                         func(c *Config) { c.Bytes = 3 },
		"root 4, want from 0 to 3":                                                                func(c *Config) { c.Root = 4 },
		"chunk of -1 bytes, want 1 or more, or 0 for 524288":                                      func(c *Config) { c.Chunk = -1 },
		"window 4, want from 0 to 3":                                                              func(c *Config) { c.Window = 4 },
		"broadcast of 1000000000000000 bytes on 4 ranks has more than 16777216 transfers, want fewer: larger chunks, or fewer channels": func(c *Config) {
			c.Bytes, c.Chunk = 1e15, 1
		},
	} {
		c := good
		change(&c)
		if _, err := New(c); err == nil || err.Error() != want {
			t.Errorf("New(%+v) = %v; want %s", c, err, want)
		}
	}
	var op Op
	if err := op.UnmarshalText([]byte("all-gather")); err != nil || op != AllGather {
		t.Errorf("all-gather is %v, %v", op, err)
	}
	if err := op.UnmarshalText([]byte("gather")); err == nil {
		t.Error("gather is a collective; want an error")
	}
}
