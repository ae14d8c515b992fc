package ports

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/coverage"
	"github.com/weft-telemetry/weft/control/portwatch"
	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/inswitch/label"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/sim"
)

// Options are how a scenario is watched.
type Options struct {
	Window   time.Duration // 0: twice the labelling interval
	Adaptive bool          // ports that are not heard of label more often
	Channel  Channel
	Follow   []string // flows: a 5-tuple, or "h0>h5" for all flows between two hosts
	Every    uint32   // one in so many packets of them; 0 counts as 1
}

// Played is what a watch learned of a scenario.
type Played struct {
	*Control
	Result   *scenario.Result
	Interval time.Duration // of labels
	Flows    []*Journey    // of Options.Follow, by flow
}

// Play runs a scenario whose switches label, and watches its ports.
func Play(ctx context.Context, s *scenario.Scenario, o Options, progress func(scenario.Progress)) (*Played, error) {
	at := slices.IndexFunc(s.Telemetry, func(p scenario.Program) bool { return p.Kind == "label" })
	if at < 0 {
		return nil, fmt.Errorf("scenario %q has no labels, want \"- {kind: label}\" under telemetry", s.Name)
	}
	out := &Played{}
	begin := func(n *sim.Network, programs map[model.NodeID][]inswitch.Program) error {
		return out.begin(n, programs, s, at, &o)
	}
	var err error
	out.Result, err = scenario.Run(ctx, s, scenario.Options{
		Begin: begin,
		Sink:  func(t model.Time, from model.NodeID, datagram []byte) { out.Take(t, from, datagram) },
	}, progress)
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (p *Played) begin(n *sim.Network, programs map[model.NodeID][]inswitch.Program, s *scenario.Scenario, at int, o *Options) error {
	for _, all := range programs {
		for _, one := range all {
			if l, ok := one.(*label.Program); ok {
				p.Interval = l.Interval()
			}
		}
	}
	cfg := portwatch.Config{Board: coverage.DefaultConfig(n.Fabric()), Window: o.Window, Keep: 1 << 20}
	cfg.Board.Skew = max(cfg.Board.Skew, skew(s))
	cfg.Board.MaxAge += cfg.Board.Skew
	if cfg.Window == 0 {
		cfg.Window = 2 * p.Interval
	}
	if o.Adaptive {
		t := coverage.DefaultTunerConfig(p.Interval)
		cfg.Tuner = &t
	}
	var err error
	if p.Control, err = New(n, programs, s.FirstList(at), cfg, o.Channel); err != nil {
		return err
	}
	p.after = p.notice
	for _, name := range o.Follow {
		keys, err := scenario.FlowsOf(n, name)
		if err != nil {
			return err
		}
		for _, key := range keys {
			if err := p.Follow(label.FlowSample{Key: key, OneIn: max(o.Every, 1)}); err != nil {
				return err
			}
			p.Flows = append(p.Flows, &Journey{Flow: key})
		}
	}
	return nil
}

// skew is how far the scenario sets its clocks.
func skew(s *scenario.Scenario) (most time.Duration) {
	for _, c := range s.Clocks {
		drift := time.Duration(c.Drift * float64(s.Duration))
		most = max(most, c.Offset+drift.Abs(), -c.Offset+drift.Abs())
	}
	return most
}

// notice takes the newest ways of followed flows.
func (p *Played) notice() {
	for _, j := range p.Flows {
		if w, ok := p.Watch.Board().FlowPath(j.Flow); ok {
			j.add(w)
		}
	}
}
