package collective

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// Op is a collective.
type Op uint8

// Collectives.
const (
	AllReduce     Op = iota // every rank ends with the sum of all buffers
	AllGather               // every rank ends with the parts of all
	ReduceScatter           // every rank ends with its part of the sum
	Broadcast               // every rank ends with the root's buffer
	AllToAll                // every rank ends with a part of each buffer
)

var opNames = [...]string{
	AllReduce: "all-reduce", AllGather: "all-gather", ReduceScatter: "reduce-scatter", Broadcast: "broadcast", AllToAll: "all-to-all",
}

// String prints the collective's name.
func (o Op) String() string { return name(opNames[:], uint8(o)) }

// MarshalText writes String's form.
func (o Op) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads what String prints.
func (o *Op) UnmarshalText(b []byte) error { return parse(o, "collective", opNames[:], b) }

// OpNames returns the names of all collectives.
func OpNames() []string { return slices.Clone(opNames[:]) }

// AlgorithmNames returns the names of all algorithms.
func AlgorithmNames() []string { return slices.Clone(algorithmNames[:]) }

// Algorithm is how a collective runs.
type Algorithm uint8

// Algorithms.
const (
	Auto Algorithm = iota // the one that NCCL would choose
	Ring
	Tree // a double binary tree of servers, with a chain in each; all-reduce only
)

var algorithmNames = [...]string{Auto: "auto", Ring: "ring", Tree: "tree"}

// String prints the algorithm's name.
func (a Algorithm) String() string { return name(algorithmNames[:], uint8(a)) }

// MarshalText writes String's form.
func (a Algorithm) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads what String prints.
func (a *Algorithm) UnmarshalText(b []byte) error { return parse(a, "algorithm", algorithmNames[:], b) }

func name(names []string, i uint8) string {
	if int(i) < len(names) {
		return names[i]
	}
	return fmt.Sprint(i)
}

func parse[T ~uint8](to *T, what string, names []string, b []byte) error {
	i := slices.Index(names, string(b))
	if i < 0 {
		return fmt.Errorf("%s %q, want one of %s", what, b, strings.Join(names, ", "))
	}
	*to = T(i)
	return nil
}

// Config is a collective to plan.
type Config struct {
	Op        Op
	Algorithm Algorithm
	Ranks     int
	PerServer int   // ranks of a server, which follow each other; it divides Ranks
	Channels  int   // 0: NCCL's; all-to-all: 1
	Bytes     int64 // of a rank's buffer, the larger one where they differ: at least one for each rank
	Root      int   // of a broadcast
	Chunk     int64 // that trees and broadcasts forward at once; 0: DefaultChunk
	Window    int   // sends of a rank at once, of all-to-all; 0: all

	// BytesPerSecond is the rate of a rank's port, by which Auto chooses.
	BytesPerSecond float64
}

const (
	// DefaultChunk is a slot of NCCL's buffer for the protocol Simple: 4 MiB of
	// NCCL_BUFFSIZE in 8 slots.
	DefaultChunk = 512 << 10
	// MaxChannels is the largest number of channels.
	MaxChannels = 64
	// maxDefaultChannels bounds NCCL's own choice for collectives.
	maxDefaultChannels = 32
	// MaxSends bounds a plan.
	MaxSends = 1 << 24
)

// Check returns the first error of the configuration.
func (c *Config) Check() error {
	switch {
	case int(c.Op) >= len(opNames):
		return fmt.Errorf("collective %d, want one of %s", c.Op, strings.Join(opNames[:], ", "))
	case int(c.Algorithm) >= len(algorithmNames):
		return fmt.Errorf("algorithm %d, want one of %s", c.Algorithm, strings.Join(algorithmNames[:], ", "))
	case c.Algorithm == Tree && c.Op != AllReduce:
		return fmt.Errorf("algorithm tree of %v, want ring or auto: trees are for all-reduce", c.Op)
	case c.Ranks < 2 || c.Ranks > MaxSends:
		return fmt.Errorf("%d ranks, want from 2 to %d", c.Ranks, MaxSends)
	case c.PerServer < 1 || c.Ranks%c.PerServer != 0:
		return fmt.Errorf("%d ranks per server, want a divisor of %d, the number of ranks", c.PerServer, c.Ranks)
	case c.Channels < 0 || c.Channels > MaxChannels:
		return fmt.Errorf("%d channels, want from 1 to %d, or 0 for NCCL's", c.Channels, MaxChannels)
	case c.Bytes < int64(c.Ranks):
		return fmt.Errorf("%d bytes for %d ranks, want one per rank at least", c.Bytes, c.Ranks)
	case c.Root < 0 || c.Root >= c.Ranks:
		return fmt.Errorf("root %d, want from 0 to %d", c.Root, c.Ranks-1)
	case c.Chunk < 0:
		return fmt.Errorf("chunk of %d bytes, want 1 or more, or 0 for %d", c.Chunk, DefaultChunk)
	case c.Window < 0 || c.Window > c.Ranks-1:
		return fmt.Errorf("window %d, want from 0 to %d", c.Window, c.Ranks-1)
	}
	return nil
}

// resolve replaces defaults by what they stand for.
func (c Config) resolve() Config {
	if c.Algorithm == Auto {
		c.Algorithm = c.choose()
	}
	if c.Channels == 0 {
		// NCCL finds one ring for each NIC and doubles them.
		c.Channels = min(2*c.PerServer, maxDefaultChannels)
		if c.Op == AllToAll {
			c.Channels = 1
		}
	}
	// No transfer is empty.
	c.Channels = int(min(int64(c.Channels), c.Bytes/int64(c.Ranks)))
	if c.Chunk == 0 {
		c.Chunk = DefaultChunk
	}
	if c.Window == 0 {
		c.Window = c.Ranks - 1
	}
	return c
}

// NCCL's tuning model for the protocol Simple (src/graph/tuning.cc), in
// microseconds: what a collective costs at least, and each step within and
// between servers. Its correction factors, which are fits to measurements, are
// left out.
const (
	baseLatency      = 8.4
	treeIntraLatency = 4
	ringIntraLatency = 3.4
	interLatency     = 14
	treeEfficiency   = 0.92
)

// choose returns the algorithm with the shorter time by NCCL's model.
func (c *Config) choose() Algorithm {
	if c.Op != AllReduce || c.BytesPerSecond <= 0 {
		return Ring
	}
	n, servers := float64(c.Ranks), c.Ranks/c.PerServer
	rate := c.BytesPerSecond * float64(c.PerServer) / 1e6 // per microsecond, of all NICs of a server
	size := float64(c.Bytes)

	inter := 0.0
	if servers > 1 {
		inter = 2 * float64(servers-1)
	}
	ring := baseLatency + (2*(n-1)-inter)*ringIntraLatency + inter*interLatency + size*2*(n-1)/n/rate
	levels := math.Floor(math.Log2(float64(servers)))
	tree := baseLatency + 2*(float64(c.PerServer-1)*treeIntraLatency+levels*interLatency) + size*2/(treeEfficiency*rate)
	if tree < ring {
		return Tree
	}
	return Ring
}

// span returns where the i-th of n parts of a range begins, and its size: parts
// differ by a byte at most.
func span(size int64, n, i int) (offset, part int64) {
	q, r := size/int64(n), size%int64(n)
	part = q
	if int64(i) < r {
		part++
	}
	return int64(i)*q + min(int64(i), r), part
}

// count returns the number of sends of a resolved configuration, and false above
// MaxSends.
func (c *Config) count() (int, bool) {
	n := uint64(c.Ranks)
	var steps uint64
	switch c.Op {
	case AllReduce:
		if steps = 2 * (n - 1); c.Algorithm == Tree {
			_, part := span(c.Bytes, c.Channels, 0)
			steps, n = uint64((part+c.Chunk-1)/c.Chunk), 2*(n-1)
		}
	case AllGather, ReduceScatter, AllToAll:
		steps = n - 1
	case Broadcast:
		_, part := span(c.Bytes, c.Channels, 0)
		steps, n = uint64((part+c.Chunk-1)/c.Chunk), n-1
	}
	over, product := bits.Mul64(steps, n*uint64(c.Channels))
	return int(min(product, MaxSends+1)), over == 0 && product <= MaxSends
}
