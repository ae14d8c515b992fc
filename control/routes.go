package control

import (
	"fmt"
	"sync"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/analyze/routeview"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/bgproute"
)

// routeMonitor is the routes that switches' BGP shows. Updates come from the goroutines of
// sockets, not by a queue: one that is lost would make the routes wrong.
type routeMonitor struct {
	mu       sync.Mutex // guards view and board
	view     *routeview.View
	board    *routeview.Board
	updates  uint64     // of tables that a decoder has forwarded
	fresh    bool       // the board has changed since the last evidence
	compared model.Time // of the controller's goroutine
}

// IngestRoute takes an event of BGP monitoring. Several goroutines may call it.
func (c *Controller) IngestRoute(u *bgproute.Update) {
	c.routes.mu.Lock()
	defer c.routes.mu.Unlock()
	c.routes.view.Apply(u)
}

// IngestRoutes takes what a decoder has found of a switch's routes.
func (c *Controller) IngestRoutes(now model.Time, t *routeview.Table) error {
	c.now = max(c.now, now)
	c.routes.mu.Lock()
	defer c.routes.mu.Unlock()
	c.routes.updates += t.Updates
	return c.setRoutes(now, t)
}

// setRoutes keeps a table. The caller has the lock.
func (c *Controller) setRoutes(now model.Time, t *routeview.Table) error {
	if err := c.routes.board.Set(t); err != nil {
		return err
	}
	c.routes.fresh = true
	if !t.Gone {
		// A session without updates is one without news.
		c.liveness.markAlive(now, RouteUpdate, t.Switch)
		c.liveness.reports[t.Switch][RouteUpdate] += t.Updates - 1
	}
	return nil
}

// RouteStats returns the counters of routes. Several goroutines may call it.
func (c *Controller) RouteStats() routeview.Stats {
	c.routes.mu.Lock()
	defer c.routes.mu.Unlock()
	s := c.routes.view.Stats()
	s.Updates += c.routes.updates
	return s
}

// routeRound is the time between two comparisons with the intended routes.
const routeRound = time.Second

func (c *Controller) routeRound() time.Duration { return min(routeRound, c.cfg.Routes.Settle/2) }

// compareRoutes compares routes with the intended ones if it is time to. The caller has the lock.
func (c *Controller) compareRoutes(now model.Time, f func(t *routeview.Table)) {
	if now.Sub(c.routes.compared) < c.routeRound() {
		return
	}
	c.routes.compared = now
	c.routes.view.Compare(now, c.cfg.Intent.At(now))
	c.routes.view.Tables(f)
}

// forwardRoutes forwards what has been found of routes.
func (c *Controller) forwardRoutes(now model.Time) {
	c.routes.mu.Lock()
	defer c.routes.mu.Unlock()
	c.compareRoutes(now, func(t *routeview.Table) {
		_ = c.setRoutes(now, t) // which is of this fabric
		c.cfg.Forward.Routes(now, t)
	})
}

// concludeRoutes adds evidence of routes that differ from the intended ones for longer than
// routing takes to converge, as long as they do.
func (c *Controller) concludeRoutes(now model.Time) {
	c.routes.mu.Lock()
	defer c.routes.mu.Unlock()
	c.compareRoutes(now, func(t *routeview.Table) { _ = c.setRoutes(now, t) })
	if !c.routes.fresh {
		return
	}
	c.routes.fresh = false
	c.routes.board.Drifts(func(d *routeview.Drift) {
		e := incident.Evidence{
			At: c.now, From: d.Since, Interval: c.routeRound(), Source: anomaly.Routes, Cause: anomaly.WrongRoute, Confirmed: d.Kind.Drifts(),
			Location: model.Port{Node: d.Switch}, Scale: uint64(d.AllHosts), Text: d.Text(c.fabric),
			Remedy: fmt.Sprintf("compare weft routes %s --drift with the switch's BGP table, and restore the session or the policy that is missing", c.nodeName(d.Switch)),
		}
		if to, ok := d.Unintended(); ok {
			e.Location.Port = c.fabric.Node(d.Switch).PortsTo(to)[0]
			e.NextHop, e.HasNextHop = to, true
		}
		c.addEvidence(e)
	})
}

// rebaseRoutes continues with another clock. Switches send their routes once, so they are kept.
func (c *Controller) rebaseRoutes(now model.Time) {
	c.routes.mu.Lock()
	defer c.routes.mu.Unlock()
	c.routes.view.Rebase(now)
	c.routes.compared = now
}

// Routes is part of api.RouteMonitor.
func (f *Backend) Routes(switches []model.NodeID, drift bool, limit int) (list []api.Route, omitted int) {
	c := f.c
	c.routes.mu.Lock()
	defer c.routes.mu.Unlock()
	list = []api.Route{}
	for _, sw := range switches {
		rows := c.routes.board.Rows(sw)
		for i := range rows {
			r := &rows[i]
			if drift && !r.Settled {
				continue
			}
			if len(list) >= limit {
				omitted++
				continue
			}
			list = append(list, c.apiRoute(r))
		}
	}
	return list, omitted
}

func (c *Controller) apiRoute(r *routeview.Row) api.Route {
	one := api.Route{
		Switch: c.nodeName(r.Switch), NextHops: c.nodeNames(r.NextHops), Intended: c.nodeNames(r.Intended),
		Hosts: c.nodeNames(r.Hosts), NumHosts: r.NumHosts, State: r.Kind.String(), Settled: r.Settled,
	}
	if r.Prefix.IsValid() {
		one.Prefix = r.Prefix.String()
	}
	if r.Kind >= routeview.FewerNextHops {
		since := c.wallTime(r.Since)
		one.Since = &since
	}
	return one
}

func (c *Controller) nodeNames(list []model.NodeID) []string {
	names := make([]string, len(list))
	for i, id := range list {
		names[i] = c.nodeName(id)
	}
	return names
}
