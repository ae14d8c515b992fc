// Package routeview is the actual forwarding view of a fabric, as its switches' BGP shows it:
// of each prefix the neighbours that a switch forwards to. It compares the view with the
// intended routes; where they differ for longer than routing takes to converge, it is drift.
// Manual: docs/sources.md#bmp.
package routeview

import (
	"net/netip"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/bgproute"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/lpm"
)

// Config configures a View.
type Config struct {
	// Settle is how long a difference must last to be drift: convergence takes seconds.
	Settle time.Duration
	// MaxRoutes bounds the routes of all switches, and MaxSwitchRoutes those of one.
	MaxRoutes, MaxSwitchRoutes int
}

// RouteMemory is about what a route takes: its path, and its share of the prefix.
const RouteMemory = 256

// DefaultConfig returns the bounds for fabrics of hundreds of switches with 64 peers each.
func DefaultConfig() Config {
	return Config{Settle: 5 * time.Second, MaxRoutes: 1 << 20, MaxSwitchRoutes: 1 << 17}
}

// patience is how long the first routes of a peer may take. They are complete before if an
// End-of-RIB says so, which FRR sends only of peers that were up when the session began, or if the
// switch has sent nothing for Settle.
const patience = time.Minute

// Stats are the counters of a View.
type Stats struct {
	Updates  uint64
	Switches int    // whose routes are known
	Routes   int    // at present
	Refused  uint64 // routes beyond the bounds; their switch is not judged
}

// View is the routes of all switches. It is not for several goroutines.
type View struct {
	cfg    Config
	fabric *topo.Fabric
	tables map[model.NodeID]*table
	// owner is the switch whose end of a BGP session, or BGP identifier, an address is.
	owner map[netip.Addr]model.NodeID
	gone  map[model.NodeID]struct{} // sessions that have ended since the last Tables
	round int                       // of Tables
	stats Stats
}

// table is the routes of a switch.
type table struct {
	prefixes lpm.Table[*entry]
	entries  map[netip.Prefix]*entry
	peers    map[netip.Addr]*peer
	routes   int
	// rib is that which routes are taken of: the one nearest to forwarding that was seen.
	rib          bgproute.RIB
	seen4, seen6 bool // the families that are monitored
	gap          bool // something is missing, until the session begins again
	owned        []netip.Addr

	newest   model.Time // update
	changed  bool
	waiting  bool         // the first routes of a peer may still arrive
	judgedBy *topo.Routes // intended routes of rows
	rows     []Row
	fresh    bool                      // rows have changed since the last Tables
	drifting map[difference]model.Time // since when
	heard    uint64                    // updates since the last Tables
}

// peer is a BGP peer of a switch.
type peer struct {
	up       model.Time
	id       netip.Addr // BGP identifier
	complete bool       // its first routes have arrived
}

// entry is the routes of a switch to a prefix.
type entry struct {
	prefix netip.Prefix
	paths  []path
}

// path is a route by a peer.
type path struct {
	peer netip.Addr
	id   uint32
	bgproute.Route
}

// New makes an empty view.
func New(cfg Config, f *topo.Fabric) *View {
	return &View{cfg: cfg, fabric: f, tables: map[model.NodeID]*table{}, owner: map[netip.Addr]model.NodeID{}, gone: map[model.NodeID]struct{}{}}
}

// Stats returns the current counters.
func (v *View) Stats() Stats {
	s := v.stats
	s.Switches = len(v.tables)
	return s
}

// Rebase continues with another clock: what has lasted by the old one begins again.
func (v *View) Rebase(now model.Time) {
	for _, t := range v.tables {
		clear(t.drifting)
		t.newest = now
		for _, p := range t.peers {
			p.up = now
		}
	}
	v.changeAll()
}

// Apply takes an update. It keeps nothing of it.
func (v *View) Apply(u *bgproute.Update) {
	if !v.fabric.HasNode(u.Node) {
		return
	}
	v.stats.Updates++
	t := v.tables[u.Node]
	switch {
	case u.Event == bgproute.SessionUp, u.Event == bgproute.SessionDown:
		v.forget(u.Node)
		if u.Event == bgproute.SessionUp {
			v.tables[u.Node] = &table{
				entries: map[netip.Prefix]*entry{}, peers: map[netip.Addr]*peer{}, drifting: map[difference]model.Time{}, newest: u.At, changed: true, heard: 1,
			}
		}
		return
	case t == nil: // a recording that begins in a session
		return
	}
	t.heard++
	t.newest, t.changed = u.At, true
	switch u.Event {
	case bgproute.Gap:
		t.gap = true
	case bgproute.PeerUp:
		v.removePeer(t, u.Peer)
		if len(t.peers) < maxPeers {
			t.peers[u.Peer] = &peer{up: u.At, id: u.PeerID}
		}
		v.learn(u.Node, t, u.Local)
		v.learn(u.Node, t, u.LocalID)
	case bgproute.PeerDown:
		v.removePeer(t, u.Peer)
		delete(t.peers, u.Peer)
	default:
		if u.RIB < t.rib {
			return
		}
		if u.RIB > t.rib {
			v.clear(t)
			t.rib = u.RIB
		}
		v.applyRoute(t, u)
	}
}

// maxPeers bounds the peers of a switch, and the addresses of its own that are learned.
const maxPeers = 4096

// applyRoute takes an update of the table that counts.
func (v *View) applyRoute(t *table, u *bgproute.Update) {
	switch u.Event {
	case bgproute.EndOfRIB:
		if p := t.peers[u.Peer]; p != nil {
			p.complete = true
		}
	case bgproute.Withdrawn:
		if e := t.entries[u.Prefix]; e != nil {
			v.removePaths(t, e, func(p *path) bool { return p.peer == u.Peer && p.id == u.PathID })
		}
	case bgproute.Announced:
		v.announce(t, u)
	}
}

func (v *View) announce(t *table, u *bgproute.Update) {
	t.seen4, t.seen6 = t.seen4 || u.Prefix.Addr().Is4(), t.seen6 || u.Prefix.Addr().Is6()
	e := t.entries[u.Prefix]
	if e != nil {
		if i := slices.IndexFunc(e.paths, func(p path) bool { return p.peer == u.Peer && p.id == u.PathID }); i >= 0 {
			e.paths[i].Route = u.Route
			return
		}
	}
	if t.routes >= v.cfg.MaxSwitchRoutes || v.stats.Routes >= v.cfg.MaxRoutes {
		t.gap = true
		v.stats.Refused++
		return
	}
	if e == nil {
		e = &entry{prefix: u.Prefix}
		t.entries[u.Prefix] = e
		t.prefixes.Set(u.Prefix, e)
	}
	e.paths = append(e.paths, path{u.Peer, u.PathID, u.Route})
	t.routes++
	v.stats.Routes++
}

// removePaths removes routes to a prefix.
func (v *View) removePaths(t *table, e *entry, which func(p *path) bool) {
	before := len(e.paths)
	e.paths = slices.DeleteFunc(e.paths, func(p path) bool { return which(&p) })
	t.routes -= before - len(e.paths)
	v.stats.Routes -= before - len(e.paths)
	if len(e.paths) == 0 {
		delete(t.entries, e.prefix)
		t.prefixes.Delete(e.prefix)
	}
}

func (v *View) removePeer(t *table, a netip.Addr) {
	for _, e := range t.entries {
		v.removePaths(t, e, func(p *path) bool { return p.peer == a })
	}
}

// clear removes all routes of a switch.
func (v *View) clear(t *table) {
	v.stats.Routes -= t.routes
	t.routes, t.prefixes = 0, lpm.Table[*entry]{}
	clear(t.entries)
	for _, p := range t.peers {
		p.complete = false
	}
}

// forget removes all that is known of a switch.
func (v *View) forget(sw model.NodeID) {
	t := v.tables[sw]
	if t == nil {
		return
	}
	v.clear(t)
	for _, a := range t.owned {
		delete(v.owner, a)
	}
	delete(v.tables, sw)
	v.gone[sw] = struct{}{}
	v.changeAll()
}

// changeAll has all switches compared anew.
func (v *View) changeAll() {
	for _, t := range v.tables {
		t.changed = true
	}
}

// learn learns an address of a switch. One that another switch has stays with that.
func (v *View) learn(sw model.NodeID, t *table, a netip.Addr) {
	if _, taken := v.owner[a]; taken || !a.IsValid() || a.IsUnspecified() || a.IsLinkLocalUnicast() || len(t.owned) >= maxPeers {
		return
	}
	v.owner[a] = sw
	t.owned = append(t.owned, a)
	v.changeAll()
}
