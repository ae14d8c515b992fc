package api

import (
	"context"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Route is the route of a switch to some hosts, as its BGP shows it.
type Route struct {
	Switch   string     `json:"switch"`
	Prefix   string     `json:"prefix,omitempty" doc:"Absent if there is no route"`
	NextHops []string   `json:"next_hops" doc:"Neighbours that the switch forwards to"`
	Intended []string   `json:"intended" doc:"Neighbours that it should forward to"`
	Hosts    []string   `json:"hosts" doc:"Hosts behind the route, at most 8"`
	NumHosts int        `json:"num_hosts"`
	State    string     `json:"state" enum:"same,not-judged,fewer-next-hops,extra-next-hop,other-next-hop,no-route" doc:"How it differs from the intended route. Not judged: a next hop of no known neighbour, or the switch's routes are not complete"`
	Since    *time.Time `json:"since,omitempty" doc:"When the difference began"`
	Settled  bool       `json:"settled" doc:"The difference has lasted longer than routing takes to converge"`
}

// RouteList is the routes of switches that send BMP.
type RouteList struct {
	Items   []Route `json:"items" doc:"By switch, the worst first"`
	Omitted int     `json:"omitted" doc:"Beyond limit"`
}

// RoutesQuery selects routes.
type RoutesQuery struct {
	Switch string `query:"switch" maxLength:"256" doc:"Empty: all"`
	Drift  bool   `query:"drift" doc:"Only those that differ from the intended ones, and have settled"`
	Limit  int    `query:"limit" minimum:"1" maximum:"10000" default:"1000" doc:"Maximum number of items"`
}

// RouteMonitor is the routes of switches.
type RouteMonitor interface {
	// Routes returns the routes of switches, at most limit of them, and how many there
	// are beyond. The caller owns the result.
	Routes(switches []model.NodeID, drift bool, limit int) (list []Route, omitted int)
}

var errNoRoutes = fmt.Errorf("routes: this controller takes no BGP routes: %w", ErrUnsupported)

func (s *Server) routeRoutes() {
	get(s, "/routes", "list-routes", "Routes", "Routes of switches by BGP, and how they differ from the intended ones",
		func(_ context.Context, in *RoutesQuery) (list RouteList, err error) {
			if s.deps.Routes == nil {
				return list, errNoRoutes
			}
			f := s.deps.Live.Fabric()
			switches := f.Switches()
			if in.Switch != "" {
				id, ok := f.ByName(in.Switch)
				if !ok || !f.Node(id).Role.IsSwitch() {
					return list, fmt.Errorf("switch %q: %w", in.Switch, ErrNotFound)
				}
				switches = []model.NodeID{id}
			}
			list.Items, list.Omitted = s.deps.Routes.Routes(switches, in.Drift, in.Limit)
			return list, nil
		})
}
