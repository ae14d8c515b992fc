// Package bgproute holds what BGP monitoring shows of a switch: sessions that begin and end,
// peers, and the routes that it has of each. Sources fill these records; analyze/routeview makes
// the actual forwarding view of them. It decides nothing.
package bgproute

import (
	"net/netip"

	"github.com/weft-telemetry/weft/model"
)

// Event is what an Update says.
type Event uint8

// Events.
const (
	SessionUp   Event = iota // monitoring of the switch begins: nothing is known of its routes yet
	SessionDown              // it ended: nothing is known any more
	PeerUp
	PeerDown  // its routes are gone
	Announced // a route, which replaces that of the same peer, RIB, prefix and path id
	Withdrawn
	EndOfRIB // the routes so far are all that the peer had when monitoring began
	Gap      // a message could not be read: what is known of the switch's routes has a gap
)

var eventNames = [...]string{"session up", "session down", "peer up", "peer down", "announced", "withdrawn", "end of RIB", "gap"}

// String prints the event.
func (e Event) String() string { return eventNames[e] }

// RIB is which of a switch's tables a route is in. The later, the nearer to what it forwards by.
type RIB uint8

// RIBs.
const (
	AdjRIBIn     RIB = iota // what a peer announced
	AdjRIBInPost            // what the import policy left of it
	LocRIB                  // what the switch chose: one route of each prefix
)

// Origin of a route: the lower, the better.
type Origin uint8

// Update is one event of a switch. It has no memory of its source's.
type Update struct {
	At    model.Time
	Node  model.NodeID
	Event Event

	Peer netip.Addr // not valid: of the switch itself, in its Loc-RIB
	// Local is the switch's end of the session with a peer, and LocalID and PeerID the BGP
	// identifiers of both: of a PeerUp.
	Local, LocalID, PeerID netip.Addr

	RIB    RIB
	Prefix netip.Prefix
	PathID uint32 // distinguishes routes of one peer to a prefix; mostly 0
	Route  Route  // of Announced
}

// Route is what the choice between routes depends on.
type Route struct {
	NextHop   netip.Addr
	LocalPref uint32 // the higher, the better
	PathLen   uint16 // of the AS path
	Origin    Origin
	Internal  bool // learned by iBGP
}

// DefaultLocalPref is the LOCAL_PREF of routes that have none.
const DefaultLocalPref = 100
