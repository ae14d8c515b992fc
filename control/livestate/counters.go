package livestate

import (
	"fmt"
	"math"

	"github.com/weft-telemetry/weft/collect/region"
	"github.com/weft-telemetry/weft/collect/slothash"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/keyed"
)

// HostCounts is part of api.KeyedMemory. A host with several addresses or switches has
// the sum of all.
func (m *Memory) HostCounts(host model.NodeID, class model.Priority) (sum keyed.Counts, err error) {
	n := m.fabric.Node(host)
	err = region.Guard(func() error {
		for _, sw := range switchesOf(n) {
			for _, a := range addresses(n) {
				one, err := m.counters(keyed.HostKey{Switch: sw, Host: a, Class: class})
				if err != nil {
					return err
				}
				sum = sum.Plus(one)
			}
		}
		return nil
	})
	if err != nil {
		err = fmt.Errorf("livestate: counters of %s: %w", n.Name, err)
	}
	return sum, err
}

// counters reads all metrics of a key.
func (m *Memory) counters(k keyed.HostKey) (c keyed.Counts, err error) {
	var key [keyed.Host6KeySize]byte
	for i := range c {
		k.Metric = keyed.Metric(i)
		a, err := m.counts.Read(k.AppendTo(key[:0]), keyed.Copies)
		if err != nil {
			return c, err
		}
		c[i] = a.Sum
	}
	return c, nil
}

// CounterBound is part of api.KeyedMemory.
func (m *Memory) CounterBound() (b api.CounterBound, err error) {
	err = region.Guard(func() error {
		a, err := m.counts.Read(make([]byte, keyed.Host4KeySize), keyed.Copies)
		b.Excess, b.Failing = a.Bound.Excess, a.Bound.Failing
		return err
	})
	b.Shared = sharedBound(hostCounters(m.fabric), m.counts.Config().Cells)
	return b, err
}

// sharedBound is the probability that a counter shares all of its cells with others
// if all counters of the fabric are in use: the copies of the others fall into cells
// at random.
func sharedBound(counters int, cells uint64) float64 {
	others := float64(slothash.MaxCopies) * float64(max(counters-1, 0))
	return math.Pow(1-math.Exp(others*math.Log1p(-1/float64(cells))), keyed.Copies)
}
