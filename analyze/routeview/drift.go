package routeview

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/bgproute"
	"github.com/weft-telemetry/weft/topo"
)

// Kind is how a route differs from the intended one. The later, the worse.
type Kind uint8

// Kinds.
const (
	Same          Kind = iota
	NotJudged          // a next hop of no known neighbour, or routes that are not complete
	FewerNextHops      // some of the intended ones: capacity is missing, no packet goes astray
	ExtraNextHop
	OtherNextHop // none of the intended ones
	NoRoute
)

var kindNames = [...]string{"same", "not-judged", "fewer-next-hops", "extra-next-hop", "other-next-hop", "no-route"}

// String prints the kind.
func (k Kind) String() string { return kindNames[k] }

// Drifts reports whether packets take another path than intended, or none.
func (k Kind) Drifts() bool { return k >= ExtraNextHop }

// Row is the route of a switch to some hosts: those that it forwards alike.
type Row struct {
	Switch             model.NodeID
	Prefix             netip.Prefix // not valid: there is no route
	NextHops, Intended []model.NodeID
	Kind               Kind
	Since              model.Time     // of the difference
	Settled            bool           // it has lasted
	Hosts              []model.NodeID // the first of them
	NumHosts           int
	Dest               model.Addr // of the first
}

// maxHosts bounds the hosts that a row names.
const maxHosts = 8

// difference is what lasts: a switch's kind of route to an address.
type difference struct {
	dest model.Addr
	kind Kind
}

// Compare compares the routes of switches that have changed with the intended ones, and notes
// which differences have lasted.
func (v *View) Compare(now model.Time, intended *topo.Routes) {
	for sw, t := range v.tables {
		if t.changed || t.judgedBy != intended || t.waiting {
			t.changed, t.judgedBy, t.waiting, t.fresh = false, intended, v.waits(now, t), true
			v.compareTable(now, sw, t, intended)
		}
		for i := range t.rows {
			r := &t.rows[i]
			settled := r.Kind >= FewerNextHops && now.Sub(r.Since) >= v.cfg.Settle
			if settled && !r.Settled && !t.fresh {
				t.rows, t.fresh = slices.Clone(t.rows), true // a Board has the others
				r = &t.rows[i]
			}
			r.Settled = settled
		}
	}
}

// waits reports whether the first routes of a peer may still arrive.
func (v *View) waits(now model.Time, t *table) (waits bool) {
	quiet := now.Sub(t.newest) >= v.cfg.Settle
	for _, p := range t.peers {
		p.complete = p.complete || quiet || now.Sub(p.up) >= patience
		waits = waits || !p.complete
	}
	return waits
}

// compareTable makes the rows of a switch.
func (v *View) compareTable(now model.Time, sw model.NodeID, t *table, intended *topo.Routes) {
	c := comparison{
		View: v, sw: sw, table: t, intended: intended, judged: !t.gap && !t.waiting, index: map[string]int{}, since: map[difference]model.Time{},
	}
	for _, host := range v.fabric.Hosts() {
		n := v.fabric.Node(host)
		if t.seen4 {
			c.add(now, host, n.IPv4)
		}
		if t.seen6 {
			c.add(now, host, n.IPv6)
		}
	}
	t.rows, t.drifting = c.rows, c.since
	slices.SortStableFunc(t.rows, func(a, b Row) int {
		return cmp.Or(-cmp.Compare(a.Kind, b.Kind), a.Prefix.Addr().Compare(b.Prefix.Addr()), cmp.Compare(a.Prefix.Bits(), b.Prefix.Bits()), a.Dest.Netip().Compare(b.Dest.Netip()))
	})
}

// comparison is of one switch.
type comparison struct {
	*View
	sw       model.NodeID
	table    *table
	intended *topo.Routes
	judged   bool

	rows  []Row
	index map[string]int // of rows, by what hosts have in common
	since map[difference]model.Time
}

// add adds the route to an address of a host.
func (c *comparison) add(now model.Time, host model.NodeID, dest model.Addr) {
	if dest == (model.Addr{}) {
		return
	}
	want, ok := c.want(dest)
	if !ok {
		return
	}
	r := Row{Switch: c.sw, Intended: want, Dest: dest, Since: now}
	if e, ok := c.table.prefixes.Lookup(dest); ok {
		var others bool
		r.Prefix = e.prefix
		r.NextHops, others = c.nextHops(c.sw, c.table, e)
		r.Kind = differ(r.NextHops, want, c.table.rib == bgproute.LocRIB)
		if others {
			r.Kind = NotJudged
		}
	} else {
		r.Kind = NoRoute
	}
	if !c.judged && r.Kind != Same {
		r.Kind = NotJudged
	}
	if r.Kind >= FewerNextHops {
		d := difference{dest, r.Kind}
		if began, before := c.table.drifting[d]; before {
			r.Since = began
		}
		c.since[d] = r.Since
	}
	c.merge(r, host)
}

// want returns the intended neighbours, ascending; ok is false for a host that is attached to
// the switch, whose route is not of BGP, and for one without a route.
func (c *comparison) want(dest model.Addr) (list []model.NodeID, ok bool) {
	n := c.fabric.Node(c.sw)
	for _, p := range c.intended.NextHops(c.sw, dest) {
		port := n.Port(p)
		if port == nil || !c.fabric.Node(port.Peer.Node).Role.IsSwitch() {
			return nil, false
		}
		list = append(list, port.Peer.Node)
	}
	slices.Sort(list)
	list = slices.Compact(list)
	return list, len(list) > 0
}

// differ compares next hops, both ascending. A Loc-RIB shows one of them.
func differ(have, want []model.NodeID, one bool) Kind {
	common := 0
	for _, id := range have {
		if _, found := slices.BinarySearch(want, id); found {
			common++
		}
	}
	switch {
	case common == 0:
		return OtherNextHop
	case common < len(have):
		return ExtraNextHop
	case common < len(want) && !one:
		return FewerNextHops
	}
	return Same
}

// merge adds a host to the row of those that are alike.
func (c *comparison) merge(r Row, host model.NodeID) {
	k, _ := r.Prefix.MarshalBinary()
	k = append(k, byte(r.Kind))
	for _, list := range [...][]model.NodeID{r.NextHops, r.Intended} {
		k = binary.AppendUvarint(k, uint64(len(list)))
		for _, id := range list {
			k = binary.AppendUvarint(k, uint64(id))
		}
	}
	i, found := c.index[string(k)]
	if !found {
		i = len(c.rows)
		c.index[string(k)] = i
		c.rows = append(c.rows, r)
	}
	one := &c.rows[i]
	one.Since = min(one.Since, r.Since)
	if one.NumHosts++; len(one.Hosts) < maxHosts {
		one.Hosts = append(one.Hosts, host)
	}
}

// Drift is what is wrong with the routes of a switch.
type Drift struct {
	Row          // the worst
	AllHosts int // of all rows that are as bad
}

// Text is a sentence for people.
func (d *Drift) Text(f *topo.Fabric) string {
	to := f.Node(d.Hosts[0]).Name
	if n := d.AllHosts - 1; n > 0 {
		to += fmt.Sprintf(" and %s", plural.Count(n, "other host"))
	}
	names := func(list []model.NodeID) string {
		words := make([]string, len(list))
		for i, id := range list {
			words[i] = f.Node(id).Name
		}
		return strings.Join(words, ", ")
	}
	sw, want := f.Node(d.Switch).Name, names(d.Intended)
	switch d.Kind {
	case NoRoute:
		return fmt.Sprintf("%s has no route to %s by BGP, intended: by %s", sw, to, want)
	case OtherNextHop, ExtraNextHop:
		return fmt.Sprintf("%s has a route (%s) to %s by %s, intended: by %s", sw, d.Prefix, to, names(d.NextHops), want)
	}
	return fmt.Sprintf("%s has a route (%s) to %s by %s alone, intended: by %s", sw, d.Prefix, to, names(d.NextHops), want)
}

// Unintended returns a neighbour that the switch forwards to and should not.
func (d *Drift) Unintended() (model.NodeID, bool) {
	for _, id := range d.NextHops {
		if _, found := slices.BinarySearch(d.Intended, id); !found {
			return id, true
		}
	}
	return 0, false
}
