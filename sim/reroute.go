package sim

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/weft-telemetry/weft/model"
)

// Reroute overrides forwarding tables against the intended routes: entries for
// destinations, by neighbours. An entry without Via drops. Two switches that
// point at each other are a forwarding loop.
type Reroute struct{ Entries []Entry }

// Entry is one wrong route.
type Entry struct {
	Switch model.NodeID
	To     netip.Prefix
	Flow   model.FlowKey // instead of To: one flow
	Via    []model.NodeID
}

func (f Reroute) String() string {
	return fmt.Sprintf("%d wrong routes, the first at switch %d", len(f.Entries), f.Entries[0].Switch)
}

func (f Reroute) check(n *Network) error {
	if len(f.Entries) == 0 {
		return errors.New("no entries, want at least one")
	}
	for _, e := range f.Entries {
		if err := n.hasSwitch(e.Switch); err != nil {
			return err
		}
		if e.Flow.IsZero() && !e.To.IsValid() {
			return fmt.Errorf("entry of switch %d has neither a destination nor a flow", e.Switch)
		}
		for _, via := range e.Via {
			if len(n.fabric.Node(e.Switch).PortsTo(via)) == 0 {
				return fmt.Errorf("switch %d has no link to node %d", e.Switch, via)
			}
		}
	}
	return nil
}

func (f Reroute) apply(n *Network) func() {
	var ends []func()
	for i := range f.Entries {
		ends = append(ends, n.nodes[f.Entries[i].Switch].sw.addWrongRoute(&f.Entries[i]))
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

// addWrongRoute installs a wrong route and returns a function that removes it.
// The newest of several for the same packets applies.
func (sw *Switch) addWrongRoute(e *Entry) (end func()) {
	sw.wrongRoutes = append(sw.wrongRoutes, e)
	sw.installRoute(e)
	return func() {
		sw.wrongRoutes = slices.DeleteFunc(sw.wrongRoutes, func(other *Entry) bool { return other == e })
		for _, other := range slices.Backward(sw.wrongRoutes) {
			if other.To == e.To && other.Flow == e.Flow {
				sw.installRoute(other)
				return
			}
		}
		if e.Flow.IsZero() {
			sw.table.RemovePrefix(e.To)
		} else {
			sw.table.RemoveFlow(e.Flow)
		}
		sw.TableChanged()
	}
}

// installRoute writes a wrong route into the table.
func (sw *Switch) installRoute(e *Entry) {
	var ports []model.PortID
	for _, via := range e.Via {
		ports = append(ports, sw.net.fabric.Node(sw.ID).PortsTo(via)...)
	}
	var err error
	if e.Flow.IsZero() {
		err = sw.table.SetPrefix(e.To, ports...)
	} else {
		err = sw.table.SetFlow(e.Flow, ports...)
	}
	if err != nil {
		panic(err) // ports and prefix were checked
	}
	sw.TableChanged()
}

// CorruptTable makes a forwarding table wrong for a share of flows, as a bit
// flip does: those flows leave by Via, or are dropped where Via is zero.
type CorruptTable struct {
	Switch model.NodeID
	Share  float64
	Via    model.PortID
	Seed   uint64
}

func (f CorruptTable) String() string {
	return fmt.Sprintf("table of switch %d wrong for %.3g of flows", f.Switch, f.Share)
}

func (f CorruptTable) check(n *Network) error {
	err := errors.Join(n.hasSwitch(f.Switch), checkShare(f.Share))
	if f.Via != 0 {
		err = errors.Join(err, n.hasPort(model.Port{Node: f.Switch, Port: f.Via}))
	}
	return err
}

func (f CorruptTable) apply(n *Network) func() {
	sw := n.nodes[f.Switch].sw
	end := sw.misrouted.add(diversion[model.PortID]{f.Seed, f.Share, f.Via})
	sw.TableChanged()
	return func() { end(); sw.TableChanged() }
}
