package scenario

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/truth"
	"github.com/weft-telemetry/weft/topo"
)

// migrationSpec is one item of the section moves.
type migrationSpec struct {
	sourcePos
	At     model.Time    `yaml:"at"`
	Addr   ref           `yaml:"address"` // a host prefix of one host
	To     ref           `yaml:"to"`      // a host
	Delay  time.Duration `yaml:"delay"`   // until tables follow
	Spread time.Duration `yaml:"spread"`  // a random addition to it
	Late   []lateSpec    `yaml:"late"`
}

// lateSpec sets the delay of some switches.
type lateSpec struct {
	sourcePos
	Switches []ref         `yaml:"switches"`
	After    time.Duration `yaml:"after"`
}

func (sc *schema) resolveMoves(s *Scenario, e *env) error {
	for i := range sc.Moves {
		m, err := sc.Moves[i].migration(e, i)
		if err != nil {
			return err
		}
		s.Migrations = append(s.Migrations, m)
	}
	return nil
}

func (spec *migrationSpec) migration(e *env, index int) (m Migration, err error) {
	if !spec.Addr.given() || !spec.To.given() {
		return m, spec.errorf("", "move %d, want an address and where it moves to", index+1)
	}
	m = Migration{Position: spec.Position, At: spec.At, Migration: sim.Migration{Delay: spec.Delay, Spread: spec.Spread}}
	var ok bool
	if m.Addr, ok = spec.Addr.address(); !ok {
		return m, spec.Addr.Errorf("address %q, want one such as 10.9.9.9", spec.Addr.text)
	}
	if m.To, err = e.host(spec.To); err != nil {
		return m, err
	}
	for j := range spec.Late {
		late := &spec.Late[j]
		if len(late.Switches) == 0 || late.After <= 0 {
			return m, late.errorf("", "late %d, want switches and a delay", j+1)
		}
		for _, r := range late.Switches {
			for _, one := range e.expand(r) {
				sw, err := e.switchNamed(one)
				if err != nil {
					return m, err
				}
				if m.Late == nil {
					m.Late = make(map[model.NodeID]time.Duration)
				}
				m.Late[sw] = late.After
			}
		}
	}
	return m, nil
}

// scheduleMigrations schedules the migrations, and records them as causes:
// until all tables have followed, packets are dropped or loop.
func (x *session) scheduleMigrations(Options) error {
	for i := range x.s.Migrations {
		m := &x.s.Migrations[i]
		if err := x.net.Migrate(m.At, m.Migration); err != nil {
			return wrap(m.Position, "move", err)
		}
		if x.recorder == nil {
			continue
		}
		c := truth.Cause{
			Kind: "move", Text: fmt.Sprintf("%v moves to %s", m.Addr, x.fabric.Node(m.To).Name),
			Begin: timeOf(m.At), Flows: x.flowsOf(m.Addr),
		}
		last := m.Delay + m.Spread
		for sw, after := range m.Late {
			c.Nodes = append(c.Nodes, sw)
			last = max(last, after)
		}
		slices.Sort(c.Nodes)
		c.End = c.Begin + engine.Of(last)
		x.recorder.AddCause(c)
	}
	return nil
}

// flowsOf lists the flows from or to an address.
func (x *session) flowsOf(a model.Addr) (ids []int) {
	for id := range x.flows {
		if key, _ := x.net.FlowKey(id); key.Src == a || key.Dst == a {
			ids = append(ids, id)
		}
	}
	return ids
}

// scheduleRouteChanges schedules the changes of routing. They start from the
// routes that are intended then, so that migrations remain.
func (x *session) scheduleRouteChanges(Options) error {
	for _, c := range x.s.Changes {
		if err := x.checkRouteChange(&c); err != nil {
			return wrap(x.s.fabricPos, "topology", err)
		}
		x.net.At(timeOf(c.At), func() {
			routes := c.Routes
			if routes == nil {
				cfg := x.net.Routes().Config()
				cfg.Down = c.Down
				var err error
				if routes, err = topo.NewRoutes(x.fabric, cfg); err != nil {
					panic(err) // the links were checked, and the other settings made routes before
				}
			}
			x.net.SetIntendedRoutes(routes, nil)
		})
	}
	return nil
}

func (x *session) checkRouteChange(c *RouteChange) error {
	if c.Routes != nil && c.Routes.Fabric() != x.fabric {
		return fmt.Errorf("routes from %v are those of another fabric, want this one's", c.At)
	}
	for _, l := range c.Down {
		if l < 0 || l >= len(x.fabric.Links()) {
			return fmt.Errorf("link %d is down from %v, want a link from 0 to %d", l, c.At, len(x.fabric.Links())-1)
		}
	}
	return nil
}
