package traffic

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Pair is a sender and its receiver.
type Pair struct{ Src, Dst model.NodeID }

// Persistent is flows that send all the time, paced at Class.Rate where it is
// set: victims to observe, or constant load.
type Persistent struct {
	Class
	Pairs []Pair
	Start model.Time
	Stop  model.Time
}

// DefaultPersistent returns 1 Gb/s for 10 ms. Pairs must be set.
func DefaultPersistent() Persistent {
	c := DefaultClass()
	c.Rate = model.Gbps
	return Persistent{Class: c, Stop: model.Time(10 * time.Millisecond)}
}

func (g Persistent) kind() string { return "persistent" }

func (g Persistent) flows(e *env) ([]Flow, error) {
	if len(g.Pairs) < 1 || len(g.Pairs) > MaxFlows {
		return nil, fmt.Errorf("pairs: %d given, want from 1 to %d", len(g.Pairs), MaxFlows)
	}
	if g.Stop == 0 {
		return nil, fmt.Errorf("stop %v, want after the start at %v", g.Stop, g.Start)
	}
	out := make([]Flow, len(g.Pairs))
	for i, p := range g.Pairs {
		out[i] = g.flow(p.Src, p.Dst, g.Start, 0)
		out[i].Stop = g.Stop
		if err := out[i].check(e.hosts); err != nil {
			return nil, fmt.Errorf("pair %d: %w", i, err)
		}
	}
	return out, nil
}
