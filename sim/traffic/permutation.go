package traffic

import (
	"github.com/weft-telemetry/weft/model"
)

// Permutation makes every host send one flow and receive one, each from another
// host: a load that a non-blocking fabric carries in full, and ECMP does not.
type Permutation struct {
	Class
	Hosts []model.NodeID // empty: all
	Bytes model.Bytes    // of each flow; 0 with Stop set: they send until Stop
	Start model.Time
	Stop  model.Time
}

// DefaultPermutation returns 10 MB from every host, at once.
func DefaultPermutation() Permutation {
	return Permutation{Class: DefaultClass(), Bytes: 10 * model.MB}
}

func (g Permutation) kind() string { return "permutation" }

func (g Permutation) flows(e *env) ([]Flow, error) {
	hosts, err := e.choose("hosts", g.Hosts, 2)
	if err != nil {
		return nil, err
	}
	to := make([]int, len(hosts))
	for i := range to {
		to[i] = i
	}
	// Drawing until no host sends to itself makes every such permutation
	// equally likely. One draw in e succeeds.
	for fixed(to) {
		e.rng.Shuffle(len(to), func(i, j int) { to[i], to[j] = to[j], to[i] })
	}
	out := make([]Flow, len(hosts))
	for i, h := range hosts {
		out[i] = g.flow(h.ID, hosts[to[i]].ID, g.Start, g.Bytes)
		out[i].Stop = g.Stop
	}
	// All flows are alike: checking one checks the generator's fields.
	return out, out[0].check(e.hosts)
}

// fixed reports whether a permutation has a fixed point.
func fixed(to []int) bool {
	for i, j := range to {
		if i == j {
			return true
		}
	}
	return false
}
