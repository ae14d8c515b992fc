package live

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
)

// Director injects faults and compares them with the incidents found.
type Director struct {
	sim       *Simulation
	rng       *rand.Rand
	faults    []*Injected // the newest ones
	made      int
	incidents map[uint64]*observed
	onInject  func(*Injected) // called for every fault; may be nil
	// maxFaults is how many faults are compared with incidents, the newest ones.
	maxFaults int
}

// Injected is a fault and how it was found.
type Injected struct {
	Fault
	ID       int
	By       string // "director" or "user"
	Found    bool
	FoundAt  model.Time // when an incident first had the right cause
	Incident uint64     // that has it
}

// observed is the newest state of an incident, as far as scoring needs it.
type observed struct {
	cause    anomaly.Cause
	severity anomaly.Severity
	nodes    []model.NodeID
	begin    model.Time
	at       model.Time
	into     uint64
	text     string
	place    model.Port
	next     []model.NodeID // downstream of place, and the receiver of an incast
	sources  []anomaly.Source
	right    map[*Injected]model.Time
}

// NewDirector makes a director of a simulation.
func NewDirector(l *Simulation) *Director {
	return &Director{sim: l, rng: rand.New(rand.NewPCG(l.scenario.Seed, 9)), incidents: map[uint64]*observed{}, maxFaults: maxFaults}
}

// Inject injects a fault now, for a duration.
func (d *Director) Inject(kind string, at Location, span time.Duration) (*Injected, error) {
	i := slices.IndexFunc(FaultKinds(), func(k FaultKind) bool { return k.Name == kind })
	if i < 0 {
		return nil, fmt.Errorf("live: unknown fault %q", kind)
	}
	p := &planner{fabric: d.sim.fabric, routes: d.sim.net.Routes(), rng: d.rng, at: d.sim.elapsed(), span: span}
	f, err := FaultKinds()[i].plan(p, at)
	if err != nil {
		return nil, fmt.Errorf("live: %s: %w", kind, err)
	}
	return d.start(f)
}

// start injects a planned fault.
func (d *Director) start(f Fault) (*Injected, error) {
	for _, b := range f.faults {
		if err := d.sim.net.Inject(sim.Injection{At: f.At, For: f.For, Fault: b}); err != nil {
			return nil, err
		}
	}
	for _, sw := range f.resetAfter {
		if err := d.sim.net.Inject(sim.Injection{At: f.At.Add(f.For + resetDelay), Fault: sim.QueueReset{Switch: sw}}); err != nil {
			return nil, err
		}
	}
	if err := d.sim.net.AddFlows(f.flows); err != nil {
		return nil, err
	}
	one := &Injected{Fault: f, ID: d.made + 1, By: "director"}
	if d.faults = append(d.faults, one); len(d.faults) > d.maxFaults {
		d.forgetOldest()
	}
	d.made++
	if d.onInject != nil {
		d.onInject(one)
	}
	return one, nil
}

// resetDelay is how long after the end of a fault that leaves a deadlock its
// switches are reset.
const resetDelay = time.Millisecond

// maxFaults is how many faults a director compares.
const maxFaults = 200

// forgetOldest drops the oldest fault, and incidents from before it.
func (d *Director) forgetOldest() {
	d.faults = slices.Delete(d.faults, 0, 1)
	oldest := d.faults[0].At
	for id, in := range d.incidents {
		if in.at < oldest {
			delete(d.incidents, id)
		}
	}
}

// reportDelay is how long after its end a fault may still be reported: slots end
// late, reports are in flight, queues drain.
const reportDelay = 60 * time.Millisecond

// concerns reports whether an incident is about a fault.
func (f *Injected) concerns(s *observed) bool {
	if s.at < f.At || s.begin > f.At.Add(f.For+reportDelay) {
		return false
	}
	if f.Nodes == nil {
		return slices.Contains(f.Causes, s.cause)
	}
	return slices.ContainsFunc(f.Nodes, func(n model.NodeID) bool { return slices.Contains(s.nodes, n) })
}

// isFoundBy reports whether an incident has a cause of a fault, and its place.
func (f *Injected) isFoundBy(s *observed) bool {
	if !f.concerns(s) || !slices.Contains(f.Causes, s.cause) {
		return false
	}
	return f.Nodes == nil || slices.Contains(f.Nodes, s.place.Node) ||
		slices.ContainsFunc(s.next, func(n model.NodeID) bool { return slices.Contains(f.Nodes, n) })
}

// ObserveIncident compares the new state of an incident with the faults.
func (d *Director) ObserveIncident(in *incident.Incident) {
	s := d.incidents[in.ID]
	if s == nil {
		s = &observed{right: map[*Injected]model.Time{}}
		d.incidents[in.ID] = s
	}
	s.cause, s.severity, s.begin, s.at, s.into = in.Cause, in.Severity(), in.Begin, in.Last, in.MergedInto
	s.sources = in.AgreeingSources()
	s.nodes, s.text, s.place, s.next = slices.Clone(in.Nodes), in.Text, in.Location, s.next[:0]
	if in.HasNextHop {
		s.next = append(s.next, in.NextHop)
	}
	if in.HasReceiver {
		s.next = append(s.next, in.Receiver)
	}
	for _, f := range d.faults {
		if f.Found && f.Incident == in.ID && in.MergedInto != 0 {
			f.Incident = in.MergedInto
		}
		if _, known := s.right[f]; !known && f.isFoundBy(s) {
			s.right[f] = d.sim.elapsed()
			if !f.Found {
				f.Found, f.FoundAt, f.Incident = true, d.sim.elapsed(), in.ID
			}
		}
	}
}

// RunProgramme injects every kind of fault once, one after another, as fast as the
// simulation runs, and calls over after each.
func (d *Director) RunProgramme(ctx context.Context, over func(*Injected)) (Score, error) {
	pass := func(t time.Duration) error {
		for end := d.sim.elapsed().Add(t); d.sim.elapsed() < end; {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := d.sim.Advance(); err != nil {
				return err
			}
		}
		return nil
	}
	if err := pass(faultGap); err != nil { // the analyses need a baseline first
		return Score{}, err
	}
	for _, k := range FaultKinds() {
		f, err := d.Inject(k.Name, Anywhere, faultDuration)
		if err != nil {
			return Score{}, err
		}
		if err := pass(faultDuration + faultGap); err != nil {
			return Score{}, err
		}
		if over != nil {
			over(f)
		}
	}
	return d.Score(), nil
}

// faultGap is the time between two faults: until the first has no effect any more.
const faultGap = 160 * time.Millisecond
