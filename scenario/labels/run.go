package labels

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

// Options are how a scenario runs.
type Options struct {
	Window   time.Duration // 0: twice the labelling interval
	Adaptive bool          // silent ports write labels more often
	Channel  Channel
	Follow   []string // flows: a 5-tuple, or "h0>h5" for all flows between two hosts
	Every    uint32   // label one in Every packets of them; 0 means 1
}

// Result is a scenario's run and the watch of its ports.
type Result struct {
	*Control
	Scenario *scenario.Result
	Interval time.Duration  // of labels
	Flows    []*FlowLatency // of Options.Follow
}

// Run runs a scenario whose switches write labels, and watches its ports.
func Run(ctx context.Context, s *scenario.Scenario, o Options, progress func(scenario.Progress)) (*Result, error) {
	at := slices.IndexFunc(s.Telemetry, func(p scenario.Program) bool { return p.Kind == "label" })
	if at < 0 {
		return nil, fmt.Errorf("scenario %q has no telemetry of kind label, want \"- {kind: label}\" under telemetry",
			s.Name)
	}
	out := &Result{}
	connect := func(n *sim.Network, programs map[model.NodeID][]inswitch.Program) error {
		return out.connect(n, programs, s, at, &o)
	}
	var err error
	out.Scenario, err = scenario.Run(ctx, s, scenario.Options{
		Begin: connect,
		Sink:  func(t model.Time, from model.NodeID, datagram []byte) { out.ReceiveDatagram(t, from, datagram) },
	}, progress)
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (p *Result) connect(n *sim.Network, programs map[model.NodeID][]inswitch.Program, s *scenario.Scenario, at int, o *Options) error {
	for _, all := range programs {
		for _, one := range all {
			if l, ok := one.(*label.Program); ok {
				p.Interval = l.Interval()
			}
		}
	}
	cfg := portwatch.Config{States: coverage.DefaultConfig(n.Fabric()), Window: o.Window, KeepWindows: 1 << 20}
	cfg.States.Skew = max(cfg.States.Skew, maxSkew(s))
	cfg.States.MaxAge += cfg.States.Skew
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
	p.onReport = p.recordPaths
	for _, name := range o.Follow {
		keys, err := scenario.FlowsOf(n, name)
		if err != nil {
			return err
		}
		for _, key := range keys {
			if err := p.Follow(label.FlowSample{Key: key, OneIn: max(o.Every, 1)}); err != nil {
				return err
			}
			p.Flows = append(p.Flows, &FlowLatency{Flow: key})
		}
	}
	return nil
}

// maxSkew is how far apart the scenario sets its clocks.
func maxSkew(s *scenario.Scenario) (skew time.Duration) {
	for _, c := range s.Clocks {
		drift := time.Duration(c.Drift * float64(s.Duration))
		skew = max(skew, c.Offset+drift.Abs(), -c.Offset+drift.Abs())
	}
	return skew
}

// recordPaths adds the newest path of every followed flow.
func (p *Result) recordPaths() {
	for _, j := range p.Flows {
		if w, ok := p.Watch.States().FlowPath(j.Flow); ok {
			j.addPath(w)
		}
	}
}
