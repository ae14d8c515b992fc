package routeview

import (
	"fmt"
	"slices"

	"github.com/weft-telemetry/weft/internal/fieldcodec"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Table is what a View has found of a switch, for a Board, perhaps that of another process.
type Table struct {
	Switch  model.NodeID
	Gone    bool   // its session has ended: nothing is known of it
	Updates uint64 // since the Table before
	HasRows bool   // Rows are all of the switch; otherwise they are as before
	Rows    []Row  // the worst first; they must not be changed
}

// refreshRounds is after how many rounds of Tables the rows of a switch are in one although they
// have not changed: a Board that begins anew has all by then.
const refreshRounds = 16

// Tables calls f for each switch that has a session, or had one in the round before. Rows are
// in it if they have changed, or differ for good: such evidence must not pause.
func (v *View) Tables(f func(t *Table)) {
	v.round++
	for i, sw := range v.fabric.Switches() {
		t := v.tables[sw]
		if _, gone := v.gone[sw]; gone && t == nil {
			f(&Table{Switch: sw, Gone: true})
		}
		if t == nil {
			continue
		}
		one := Table{Switch: sw, Updates: t.heard}
		if t.fresh || t.drifts() || (v.round+i)%refreshRounds == 0 {
			one.HasRows, one.Rows = true, t.rows
		}
		t.heard, t.fresh = 0, false
		f(&one)
	}
	clear(v.gone)
}

func (t *table) drifts() bool {
	return slices.ContainsFunc(t.rows, func(r Row) bool { return r.Settled })
}

// Board has the newest rows of all switches. It is not for several goroutines.
type Board struct {
	fabric *topo.Fabric
	rows   map[model.NodeID][]Row
}

// NewBoard makes an empty board.
func NewBoard(f *topo.Fabric) *Board { return &Board{fabric: f, rows: map[model.NodeID][]Row{}} }

// Set takes a table, and keeps its rows. One that names a node that the fabric lacks is refused.
func (b *Board) Set(t *Table) error {
	if err := b.check(t); err != nil {
		return err
	}
	switch {
	case t.Gone:
		delete(b.rows, t.Switch)
	case t.HasRows:
		b.rows[t.Switch] = t.Rows
	}
	return nil
}

func (b *Board) check(t *Table) error {
	if !b.fabric.HasNode(t.Switch) || !b.fabric.Node(t.Switch).Role.IsSwitch() {
		return fmt.Errorf("routeview: table of node %d, which is no switch of the fabric", t.Switch)
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		if r.Switch != t.Switch || r.Kind > NoRoute || len(r.Hosts) == 0 || len(r.Hosts) > r.NumHosts {
			return fmt.Errorf("routeview: row %d of switch %d: %d of %d hosts, kind %d, of switch %d; want hosts, and a kind up to %d",
				i, t.Switch, len(r.Hosts), r.NumHosts, r.Kind, r.Switch, NoRoute)
		}
		for _, list := range [...][]model.NodeID{r.NextHops, r.Intended, r.Hosts} {
			for _, id := range list {
				if !b.fabric.HasNode(id) {
					return fmt.Errorf("routeview: row %d of switch %d: node %d, which the fabric lacks", i, t.Switch, id)
				}
			}
		}
		for _, id := range r.NextHops {
			if !isNeighbour(b.fabric.Node(t.Switch), id) {
				return fmt.Errorf("routeview: row %d of switch %d: next hop %d, which is no neighbour", i, t.Switch, id)
			}
		}
	}
	return nil
}

// Rows returns the routes of a switch to all hosts that are not attached to it, the worst first;
// none if they are not known. They must not be changed.
func (b *Board) Rows(sw model.NodeID) []Row { return b.rows[sw] }

// Drifts calls f for each switch whose differences have lasted.
func (b *Board) Drifts(f func(d *Drift)) {
	for _, sw := range b.fabric.Switches() {
		var d *Drift
		rows := b.rows[sw]
		for i := range rows {
			r := &rows[i]
			switch {
			case !r.Settled:
			case d == nil:
				d = &Drift{Row: *r, AllHosts: r.NumHosts}
			case r.Kind.Drifts() == d.Kind.Drifts():
				d.AllHosts += r.NumHosts
				d.Since = min(d.Since, r.Since)
			}
		}
		if d != nil {
			f(d)
		}
	}
}

// Code codes a table.
func (t *Table) Code(c *fieldcodec.Coder) {
	fieldcodec.Unsigned(c, &t.Switch)
	c.Bool(&t.Gone)
	c.Uint64(&t.Updates)
	c.Bool(&t.HasRows)
	fieldcodec.Slice(c, &t.Rows, func(r *Row) { r.code(c) })
	if c.Reading() {
		for i := range t.Rows {
			t.Rows[i].Switch = t.Switch
		}
	}
}

func (r *Row) code(c *fieldcodec.Coder) {
	prefix, _ := r.Prefix.MarshalBinary() // of no prefix: empty
	c.Bytes(&prefix)
	if c.Reading() {
		if err := r.Prefix.UnmarshalBinary(prefix); err != nil {
			c.Fail("prefix: %v", err)
		}
	}
	for _, list := range [...]*[]model.NodeID{&r.NextHops, &r.Intended, &r.Hosts} {
		fieldcodec.Slice(c, list, func(id *model.NodeID) { fieldcodec.Unsigned(c, id) })
	}
	fieldcodec.Unsigned(c, &r.Kind)
	fieldcodec.Signed(c, &r.Since)
	c.Bool(&r.Settled)
	fieldcodec.Signed(c, &r.NumHosts)
	r.Dest.Code(c)
}
