package api

import (
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/keyed"
)

// fakeMemory has the states of odd ports, and counts of priorities 0 and 3.
type fakeMemory struct{}

func (fakeMemory) WallTime(t model.Time) time.Time { return epoch0.Add(time.Duration(t)) }

func (fakeMemory) PortState(p model.Port) (s keyed.PortState, found bool, err error) {
	if p.Port%2 == 0 {
		return s, false, nil
	}
	return keyed.PortState{
		Time: -model.Time(time.Millisecond), Queue: 5000, MaxQueue: 4000, Load: 25 * model.Gbps, PausedShare: 1<<16 - 1, PausedClass: 1<<3 | 1<<5, Bytes: 77,
	}, true, nil
}

func (fakeMemory) HostCounts(_ model.NodeID, class model.Priority) (c keyed.Counts, err error) {
	if class == 0 || class == 3 {
		c = keyed.Counts{1000 + uint64(class), 10, 2000, 20, uint64(class)}
	}
	return c, nil
}

func (fakeMemory) CounterBound() (CounterBound, error) { return CounterBound{5, 0.25, 0.125}, nil }

// Postcards has a path of three hops: a switch that the fabric has not, one that is
// missing, and a node.
func (fakeMemory) Postcards(*model.FlowKey, time.Time) (list []PostcardPath, mixed int, err error) {
	hop := PostcardHop{true, keyed.Postcard{Switch: 1 << 15, Latency: 500, Queue: 3000, Time: -model.Time(time.Millisecond)}}
	last := hop
	last.Switch = 0
	return []PostcardPath{{Hops: []PostcardHop{hop, {}, last}}}, 1, nil
}
