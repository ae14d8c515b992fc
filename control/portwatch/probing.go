package portwatch

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/coverage"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Prober sends packets that are labelled on their path, over ports without traffic.
type Prober interface {
	// Probe has a host send one packet of a flow. It may get lost without an error.
	Probe(f coverage.ProbeFlow) error
}

// Probing keeps ports known that have no traffic, and so carry no labels.
type Probing struct {
	Routes *topo.Routes
	Prober Prober
	// After is the age of a port's newest label from which it is probed if it sent
	// nothing since the last Tick. It should be the labelling interval: a probe that
	// comes earlier is not labelled.
	After time.Duration
	Port  uint16 // UDP destination of the probes
}

func (p *Probing) check() error {
	switch {
	case p == nil:
		return nil
	case p.Routes == nil || p.Prober == nil:
		return errors.New("portwatch: probing without routes or prober, want both")
	case p.After <= 0:
		return fmt.Errorf("portwatch: ports are probed after %v, want more than 0", p.After)
	}
	return nil
}

// probeIdlePorts sends a packet over every port whose label is old and that sent nothing
// since the last Tick.
func (w *Watch) probeIdlePorts(now model.Time) {
	p := w.cfg.Probing
	old := w.board.SilentPorts(w.ports, now, p.After-1)
	slices.SortFunc(w.active, model.Port.Compare)
	idle := slices.DeleteFunc(old, func(port model.Port) bool {
		_, sent := slices.BinarySearchFunc(w.active, port, model.Port.Compare)
		return sent
	})
	flows, unreached := coverage.PlanProbes(p.Routes, idle, p.Port)
	w.stats.Unprobable += uint64(len(unreached))
	for _, f := range flows {
		if err := p.Prober.Probe(f); err != nil {
			w.stats.Unprobed++ // its ports are still old at the next Tick
			continue
		}
		w.stats.Probes++
	}
}
