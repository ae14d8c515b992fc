package flowset

import (
	"fmt"
	"math"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sketch"
	wire "github.com/weft-telemetry/weft/wire/flowset"
)

// Mode is how flowsets are decoded, which decides how small they may be.
type Mode uint8

// Modes.
const (
	Single Mode = iota // each flowset alone, by peeling
	Net                // network-wide: flows with the help of neighbours, counters by solving equations
)

// String prints the mode's name.
func (m Mode) String() string {
	if m == Net {
		return "net"
	}
	return "single"
}

// Sizing is the result of Plan: a flowset that is large enough, and why.
type Sizing struct {
	Flows  int     // in one slot
	Target float64 // share of the slots in which all of them are decoded
	Mode   Mode

	sketch.Geometry

	CellsPerFlow    float64 // measured for the target, see evidence.go
	NoFalsePositive float64 // probability that the filter has no false positive

	// The paper's filter of independent bits, by its formula and for the same
	// probability. It needs less memory and twice the time.
	ScatteredBits   uint64
	ScatteredHashes int
}

// Memory returns the memory of one table with cells of a layout, counters at
// their width on the wire: the figure that publications give.
func (s *Sizing) Memory(l wire.Layout) model.Bytes {
	return model.Bytes(uint64(s.FilterBits)/8 + uint64(s.Cells())*uint64(l.Size()))
}

// measured is a row of evidence: cells per flow at each of successes.
type measured struct {
	Tables      uint8
	Flows       int
	Trials      int
	Peel, Solve [len(successes)]float64
}

// Plan sizes a flowset so that this many flows are all decoded in a share
// target of the slots.
//
// The table is as large as random tables had to be (evidence.go). It has the
// number of sub-tables that needs the fewest cells: 3 for many flows, 4 for
// few, and always 4 for Net. As in the paper, the filter is large enough that
// the probability of a single false positive among all flows is a tenth of the
// probability that the table fails.
func Plan(flows int, target float64, mode Mode) (Sizing, error) {
	s := Sizing{Flows: flows, Target: target, Mode: mode}
	column := slices.IndexFunc(successes[:], func(have float64) bool { return have >= target })
	if !(target > 0) || column < 0 {
		return s, fmt.Errorf("plan flowset: target %v, want more than 0 and at most %v, the largest measured", target,
			successes[len(successes)-1])
	}
	if flows < 1 || flows > maxFlows {
		return s, fmt.Errorf("plan flowset: %d flows, want 1 to %d", flows, maxFlows)
	}
	best := math.Inf(1)
	for k := uint8(1); k <= sketch.MaxTables; k++ {
		cells, ok := cellsFor(k, flows, column, mode)
		if ok && cells < best {
			best = cells
			s.Tables, s.TableCells = k, uint32(math.Ceil(cells/float64(k)))
		}
	}
	s.CellsPerFlow = best / float64(flows)

	s.FilterHashes, s.FilterBits = filterFor(flows, s.risk())
	s.NoFalsePositive = s.Geometry.NoFalsePositive(flows)
	s.ScatteredHashes, s.ScatteredBits = scatteredFor(flows, s.risk())
	return s, nil
}

const (
	// maxFlows keeps bits and cells of any plan in 32 bits.
	maxFlows = 50_000_000
	// maxGroups and maxHashes end the search for a filter where there is no
	// optimum, which is so for a handful of flows; other searches end before.
	maxGroups, maxHashes = 16, 64
)

// cellsFor interpolates the evidence on a logarithmic scale. A table for fewer
// flows than measured is as large as the smallest; for more it has as many
// cells per flow as the largest, which is more than it needs.
func cellsFor(tables uint8, flows, column int, mode Mode) (cells float64, ok bool) {
	var before measured
	var low float64
	for _, row := range evidence {
		ratio := row.Peel[column]
		if mode == Net {
			ratio = row.Solve[column]
		}
		if row.Tables != tables || ratio == 0 {
			continue
		}
		switch {
		case flows <= row.Flows && low == 0:
			return ratio * float64(row.Flows), true
		case flows <= row.Flows:
			along := math.Log(float64(flows)/float64(before.Flows)) / math.Log(float64(row.Flows)/float64(before.Flows))
			return (low + along*(ratio-low)) * float64(flows), true
		}
		before, low = row, ratio
	}
	return low * float64(flows), low > 0
}

// filterFor returns the fewest bits that keep the probability of a false
// positive within risk, and the smallest number of hashes that needs within 15
// % of that: every group of bits is a word to fetch per packet, and the filter
// is only a sixth of the memory.
func filterFor(flows int, risk float64) (hashes uint8, bits uint32) {
	var words []uint32 // by groups, less one; beyond the optimum they only grow
	for n := 1; n <= 2 || n <= maxGroups && words[n-2] <= words[n-3]; n++ {
		words = append(words, wordsFor(n, flows, risk))
	}
	best := slices.Min(words)
	n := slices.IndexFunc(words, func(w uint32) bool { return float64(w) <= 1.15*float64(best) })
	return uint8((n + 1) * sketch.GroupBits), words[n] * 64
}

// wordsFor returns the fewest words of a filter with a number of groups.
func wordsFor(groups, flows int, risk float64) uint32 {
	return uint32(least(math.MaxUint32/64, func(w uint64) bool {
		g := sketch.Geometry{FilterHashes: uint8(groups * sketch.GroupBits), FilterBits: uint32(w) * 64}
		return 1-g.NoFalsePositive(flows) <= risk
	}))
}

// SetGroups sizes the filter anew for a number of groups, each a word to fetch per packet: fewer than
// planned need more memory.
func (s *Sizing) SetGroups(groups int) {
	s.FilterHashes, s.FilterBits = uint8(groups*sketch.GroupBits), wordsFor(groups, s.Flows, s.risk())*64
	s.NoFalsePositive = s.Geometry.NoFalsePositive(s.Flows)
}

// risk is the probability that the filter may have a false positive.
func (s *Sizing) risk() float64 { return (1 - s.Target) / 10 }

// scatteredFor is filterFor by the paper's formula: the product over i flows
// of 1 - (1-e^(-k i/m))^k.
func scatteredFor(flows int, risk float64) (hashes int, bits uint64) {
	bits = math.MaxUint64
	for k := 1; k <= maxHashes; k++ {
		m := least(1<<40, func(m uint64) bool {
			const steps = 64
			sum := 0.0
			for i := range steps {
				n := float64(flows) * (float64(i) + 0.5) / steps
				sum += math.Log1p(-math.Pow(-math.Expm1(-float64(k)*n/float64(m)), float64(k)))
			}
			return -math.Expm1(sum*float64(flows)/steps) <= risk
		})
		if m > bits { // beyond the optimum they only grow
			break
		}
		hashes, bits = k, m
	}
	return hashes, bits
}

// least returns the smallest n from 1 to most for which enough returns true, or
// most. enough must be monotonic.
func least(most uint64, enough func(n uint64) bool) uint64 {
	lo, hi := uint64(0), most
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; enough(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}
