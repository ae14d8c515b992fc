package flowradar

import (
	"fmt"
	"math/rand/v2"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// hops is the number of switches that a flow between pods of a fat-tree crosses.
const hops = 5

// flow is a flow of a load: its key, its packets in the slot, and the switches it
// crosses, as indexes of load.switches.
type flow struct {
	key     model.FlowKey
	packets uint32
	path    [hops]uint16
}

// load is the evaluation's traffic: as many flows between each two ToRs of
// different pods, spread evenly over their equal-cost paths, so that every
// switch of the fat-tree has the same number.
type load struct {
	routes   *topo.Routes
	switches []model.NodeID
	flows    []flow
	at       [][]int32 // by switch: its flows, as indexes of flows

	inFlight  uint64 // percentage of a switch's flows that have a packet more or less there
	unrelated bool   // a flow's packets at one switch have nothing to do with those at another
}

// newLoad makes flows such that each switch of a k-ary fat-tree has perSwitch;
// where that does not divide evenly, ToRs have a few less. Keys are real: routes
// send each flow on the path it is given here.
func newLoad(k, perSwitch int, rng *rand.Rand) (*load, error) {
	fabric, err := topo.FatTree(k, topo.DefaultLinks())
	if err != nil {
		return nil, err
	}
	routes, err := topo.NewRoutes(fabric, topo.RouteConfig{Seed: rng.Uint64()})
	if err != nil {
		return nil, err
	}
	l := &load{routes: routes, switches: fabric.Switches(), inFlight: usuallyInFlight}
	l.at = make([][]int32, len(l.switches))
	// A ToR has flows to and from (k-1)·k/2 others.
	paths := k * k / 4
	perPath := perSwitch / (2 * (k - 1) * (k / 2) * paths)
	extra := perSwitch/(2*(k-1)*(k/2)) - perPath*paths // paths that carry one more
	if perPath+extra == 0 {
		return nil, fmt.Errorf("load of %d flows per switch on a fat-tree of %d, want at least %d", perSwitch, k,
			2*(k-1)*(k/2))
	}
	tors, first := k*k/2, 0
	l.flows = make([]flow, 0, tors*(k-1)*(k/2)*(perPath*paths+extra))
	for src := range tors {
		for dst := range tors {
			if src/(k/2) != dst/(k/2) {
				if err := l.pair(rng, k, src, dst, perPath, first, extra); err != nil {
					return nil, err
				}
				first += extra
			}
		}
	}
	return l, nil
}

// pair adds the flows from one ToR to another: perPath for each of the paths,
// and one more for extra of them starting with first.
func (l *load) pair(rng *rand.Rand, k, src, dst, perPath, first, extra int) error {
	half := k / 2
	left := make([]int, half*half)
	total := extra
	for i := range left {
		left[i] = perPath
		total += perPath
	}
	for i := range extra {
		left[(first+i)%len(left)]++
	}
	base := l.switches[0] // hosts come before switches, ToRs before other switches
	nodes := l.routes.Fabric().Nodes()
	ports := rng.Uint32()
	var path []topo.Hop
	for tries := 0; total > 0; tries++ {
		if tries > 1_000_000 {
			return fmt.Errorf("no keys for the paths from ToR %d to %d", src, dst)
		}
		from, to := src*half+rng.IntN(half), dst*half+rng.IntN(half)
		ports += 0x9e3779b1 // odd: visits all values before it repeats
		key := model.FlowKey{
			Src: nodes[from].IPv4, Dst: nodes[to].IPv4,
			SrcPort: uint16(ports), DstPort: uint16(ports >> 16), Proto: model.TCP,
		}
		var err error
		if path, err = l.routes.AppendPath(path[:0], key, model.NodeID(from)); err != nil {
			return err
		}
		if len(path) != hops+2 {
			return fmt.Errorf("flow %v crosses %d nodes, want %d", key, len(path), hops+2)
		}
		spine := int(path[3].Node-base) - k*k // after k²/2 ToRs and as many leaves
		if left[spine] == 0 {
			continue
		}
		left[spine]--
		total--
		f := flow{key: key, packets: 1 + uint32(rng.ExpFloat64()*1.5)}
		for i := range f.path {
			at := uint16(path[i+1].Node - base)
			f.path[i] = at
			l.at[at] = append(l.at[at], int32(len(l.flows)))
		}
		l.flows = append(l.flows, f)
	}
	return nil
}
