package sim

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
)

// core runs computations of a host one at a time.
type core struct {
	running *flow
	waiting []*flow // ready, in order
}

// newComputation checks a computation. It has no port and no address.
func (n *Network) newComputation(s *traffic.Flow) (*flow, error) {
	if err := n.hasHost(s.Src); err != nil {
		return nil, err
	}
	h := n.nodes[s.Src].host
	return &flow{net: n, spec: *s, src: h, dst: h}, nil
}

// compute starts a computation, or lets it wait for its core.
func (h *Host) compute(f *flow) {
	if h.cores == nil {
		h.cores = make(map[uint8]*core)
	}
	c := h.cores[f.spec.Core]
	if c == nil {
		c = &core{}
		h.cores[f.spec.Core] = c
	}
	c.waiting = append(c.waiting, f)
	c.next(h)
}

// next runs the first of the waiting computations.
func (c *core) next(h *Host) {
	if c.running != nil || len(c.waiting) == 0 {
		return
	}
	f := c.waiting[0]
	c.waiting = slices.Delete(c.waiting, 0, 1)
	c.running = f
	now := h.w.now
	f.begun, f.started, f.ideal = true, now, engine.Of(f.spec.Compute)
	h.node.addTimer(timer{at: now + h.computeTime(f.spec.Compute), kind: computed, obj: f.id})
}

// endComputation starts what waits for a computation, and the next one of its
// core.
func (f *flow) endComputation() {
	w := f.src.w
	f.done = true
	r := f.record()
	r.Finish, r.Finished = w.now, true
	w.computations = append(w.computations, r)
	f.allReceived(w)
	f.startDependents(w, func(d *flow) bool { return d.src != f.dst })
	c := f.src.cores[f.spec.Core]
	c.running = nil
	c.next(f.src)
}

// Computations returns the computations that have ended, in the order they
// ended. Ideal is the time that each takes if nothing slows its host.
func (n *Network) Computations() []FlowRecord {
	all := slices.Clone(n.computations)
	slices.SortStableFunc(all, compareRecords)
	return all
}

// Straggler slows a host: what it computes, and the delays of its flows, take
// Factor times as long and Delay more. What has started before is not affected.
type Straggler struct {
	Host   model.NodeID
	Factor float64 // at least 1
	Delay  time.Duration
}

// maxFactor keeps slowed computations within the time of a run.
const maxFactor = 1e6

func (f Straggler) String() string {
	return fmt.Sprintf("host %d computes %v times as long and %v more", f.Host, f.Factor, f.Delay)
}

func (f Straggler) check(n *Network) error {
	if err := n.hasHost(f.Host); err != nil {
		return err
	}
	if !(f.Factor >= 1 && f.Factor <= maxFactor) || f.Delay < 0 || model.Time(f.Delay) > traffic.MaxTime {
		return fmt.Errorf("factor %v, delay %v, want a factor from 1 to %v and a delay from 0 to %v", f.Factor, f.Delay,
			float64(maxFactor), traffic.MaxTime)
	}
	if f.Factor == 1 && f.Delay == 0 {
		return fmt.Errorf("factor 1 and no delay, want one that slows")
	}
	return nil
}

func (f Straggler) apply(n *Network) func() {
	h := n.nodes[f.Host].host
	h.stragglers = append(h.stragglers, &f)
	return func() {
		h.stragglers = slices.DeleteFunc(h.stragglers, func(other *Straggler) bool { return other == &f })
	}
}

// computeTime returns how long the host takes for work of that length. Nothing
// to do takes no time on any host.
func (h *Host) computeTime(work time.Duration) engine.Time {
	length := engine.Of(work)
	if work == 0 {
		return 0
	}
	for _, s := range h.stragglers {
		slow := math.Min(float64(length)*s.Factor, float64(timeOf(traffic.MaxTime)))
		length = engine.Time(slow) + engine.Of(s.Delay)
	}
	return length
}
