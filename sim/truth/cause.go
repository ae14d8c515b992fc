package truth

import (
	"fmt"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
)

// Cause is an injected fault or traffic that is meant to congest.
type Cause struct {
	Kind       string      // of fault, such as "storm"; or the scenario's name of the traffic, such as "incast"
	Text       string      // in a sentence
	Begin, End engine.Time // Forever: to the end of the run

	// Its location, as far as it has one.
	Ports []model.Port
	Nodes []model.NodeID
	Flows []int // its flows
}

// At reports whether the cause is active at a time.
func (c *Cause) At(t engine.Time) bool { return c.Begin <= t && t < c.End }

// Inject schedules a fault and records it as a cause.
func (r *Recorder) Inject(in sim.Injection) error {
	if err := r.net.Inject(in); err != nil {
		return err
	}
	c := causeOf(in.Fault)
	c.Begin, c.End = engine.Time(in.At)*engine.Nanosecond, engine.Forever
	if in.For > 0 {
		c.End = c.Begin + engine.Of(in.For)
	}
	r.AddCause(c)
	return nil
}

// AddCause records a cause that is not a fault, such as flows that are meant to
// collide.
func (r *Recorder) AddCause(c Cause) { r.causes = append(r.causes, c) }

// Causes returns all causes in the order they were added. The list belongs to
// the Recorder.
func (r *Recorder) Causes() []Cause { return r.causes }

// ActiveCauses returns the causes that are active at a time.
func (r *Recorder) ActiveCauses(t engine.Time) (active []Cause) {
	for _, c := range r.causes {
		if c.At(t) {
			active = append(active, c)
		}
	}
	return active
}

// causeOf returns the kind and location of a fault.
func causeOf(f sim.Fault) Cause {
	c := Cause{Text: f.String()}
	switch f := f.(type) {
	case sim.LinkDown:
		c.Kind, c.Ports = "link-down", []model.Port{f.Port}
		if f.Up > 0 {
			c.Kind = "link-flap"
		}
	case sim.Lossy:
		c.Kind, c.Ports = "lossy-link", []model.Port{f.Port}
		if f.Damaged {
			c.Kind = "corrupting-link"
		}
	case sim.LossySwitch:
		c.Kind, c.Nodes = "lossy-switch", []model.NodeID{f.Switch}
	case sim.Reroute:
		c.Kind = "reroute"
		for _, e := range f.Entries {
			if !slices.Contains(c.Nodes, e.Switch) {
				c.Nodes = append(c.Nodes, e.Switch)
			}
		}
	case sim.CorruptTable:
		c.Kind, c.Nodes = "bad-table", []model.NodeID{f.Switch}
	case sim.Storm:
		c.Kind, c.Nodes = "storm", []model.NodeID{f.Host}
	case sim.SlowReceiver:
		c.Kind, c.Nodes = "slow-receiver", []model.NodeID{f.Host}
	case sim.Straggler:
		c.Kind, c.Nodes = "straggler", []model.NodeID{f.Host}
	case sim.SlowLink:
		c.Kind, c.Ports = "slow-link", []model.Port{f.Port}
	case sim.SlowNIC:
		c.Kind, c.Nodes = "slow-nic", []model.NodeID{f.Host}
	case sim.SlowMux:
		c.Kind, c.Nodes = "slow-mux", []model.NodeID{f.Host}
	case sim.MisdirectingMux:
		c.Kind, c.Nodes = "wrong-mux", []model.NodeID{f.Host}
	case sim.Miscount:
		c.Kind, c.Nodes = "wrong-counter", []model.NodeID{f.Port.Node}
		if f.Port.Port != 0 {
			c.Nodes, c.Ports = nil, []model.Port{f.Port}
		}
	case sim.HashPolarization:
		c.Kind = "hash-polarization" // everywhere
	default:
		panic(fmt.Sprintf("truth: no kind and location for a %T", f)) // all faults are sim's: a new one must be added here
	}
	return c
}
