package control

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/coverage"
	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/portwatch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// View is what other goroutines may read of a controller: snapshots, which it makes
// when a client asks for one and the last is old: the state of a large fabric takes
// milliseconds to gather, and most of the time no client needs it.
type View struct {
	fabric *topo.Fabric
	silent time.Duration // a switch without reports for this long is silent
	maxAge time.Duration // of a snapshot, by the fabric's clock
	wait   time.Duration // for the next one, by the wall's

	last      atomic.Pointer[snapshot]
	now       atomic.Int64 // the controller's time
	requested atomic.Bool

	mu        sync.Mutex
	published chan struct{} // closed with the next snapshot
}

// snapshot is what the controller knew at an instant. It never changes.
type snapshot struct {
	at       model.Time
	state    *api.State
	liveness []api.ReportAge
	wrong    []api.WrongSource
}

// Fabric is the fabric as the operator describes it.
func (v *View) Fabric() *topo.Fabric { return v.fabric }

// State returns the state of the fabric, at most maxAge old unless the controller is
// busy.
func (v *View) State() *api.State { return v.snapshot().state }

// snapshot returns the last snapshot, or the next one if that is old. It waits for it
// no longer than v.wait.
func (v *View) snapshot() *snapshot {
	s := v.last.Load()
	if v.isFresh(s) {
		return s
	}
	v.mu.Lock()
	published := v.published
	v.mu.Unlock()
	v.requested.Store(true)
	if s = v.last.Load(); v.isFresh(s) { // made since then
		return s
	}
	timeout := time.NewTimer(v.wait)
	defer timeout.Stop()
	select {
	case <-published:
	case <-timeout.C:
	}
	return v.last.Load()
}

func (v *View) isFresh(s *snapshot) bool {
	return model.Time(v.now.Load()).Sub(s.at).Abs() <= v.maxAge // the clock may be set
}

// publish makes a snapshot the last one.
func (v *View) publish(s *snapshot) {
	v.last.Store(s)
	v.mu.Lock()
	defer v.mu.Unlock()
	close(v.published)
	v.published = make(chan struct{})
}

// View returns the snapshots for other goroutines.
func (c *Controller) View() *View { return c.view }

func newView(f *topo.Fabric, silent time.Duration) *View {
	v := &View{fabric: f, silent: silent, wait: viewWait, published: make(chan struct{})}
	v.maxAge = max(viewInterval, time.Duration(switchPorts(f))*viewTimePerPort)
	v.last.Store(&snapshot{state: &api.State{Nodes: []api.NodeState{}, Ports: []api.PortState{}}, liveness: []api.ReportAge{}})
	v.requested.Store(true)
	return v
}

const (
	// viewInterval is the least age at which a snapshot is old.
	viewInterval = 10 * time.Millisecond
	// viewTimePerPort bounds the cost of snapshots that are asked for all the time: a
	// port takes about 150 ns, so they are 1.5 % of a core.
	viewTimePerPort = 10 * time.Microsecond
	// viewWait is how long a reader waits for a busy controller.
	viewWait = 50 * time.Millisecond
)

func switchPorts(f *topo.Fabric) (n int) {
	for _, id := range f.Switches() {
		n += len(f.Node(id).Ports)
	}
	return n
}

// publishView makes a snapshot, if someone waits for one.
func (c *Controller) publishView(now model.Time) {
	c.view.now.Store(int64(now))
	if c.view.requested.Swap(false) {
		c.RefreshView(now)
	}
}

// RefreshView makes a snapshot now, that of the end of a run.
func (c *Controller) RefreshView(now model.Time) {
	c.view.now.Store(int64(now))
	c.view.publish(&snapshot{at: now, state: c.state(now), liveness: c.liveness.snapshot(now), wrong: c.wrongSources()})
}

// state gathers the state of all nodes and ports.
func (c *Controller) state(now model.Time) *api.State {
	s := &api.State{
		Time: c.wallTime(now), Nodes: make([]api.NodeState, 0, len(c.fabric.Nodes())),
		Ports: make([]api.PortState, 0, switchPorts(c.fabric)),
	}
	incidents := c.correlator.OpenIncidents()
	for i := range c.fabric.Nodes() {
		n := &c.fabric.Nodes()[i]
		state := api.NodeState{Name: n.Name, Health: "ok"}
		if n.Role.IsSwitch() && !c.isReporting(n.ID, now) {
			state.Health, state.Reason = "unknown", "no recent reports"
		}
		for _, in := range incidents {
			if reason := c.incidentReason(in, n.ID); reason != "" && in.Severity() >= anomaly.Warning {
				state.Health, state.Reason = "degraded", reason
				if in.Location.Node == n.ID && in.Severity() == anomaly.Critical {
					state.Health = "failed"
					break
				}
			}
		}
		s.Nodes = append(s.Nodes, state)
		if n.Role.IsSwitch() {
			for j := range n.Ports {
				s.Ports = append(s.Ports, c.portState(now, n, &n.Ports[j]))
			}
		}
	}
	s.LabelCoverage = labelCoverage(c.ports.Windows())
	return s
}

// coverageWindows is how many of the newest windows label coverage is of.
const coverageWindows = 1024

// labelCoverage returns the share of ports with traffic that labels reported, nil
// without windows.
func labelCoverage(windows []portwatch.Window) *float64 {
	var labelled, active int
	for _, w := range windows[max(0, len(windows)-coverageWindows):] {
		labelled, active = labelled+w.Labelled, active+w.Active
	}
	if active == 0 {
		return nil
	}
	share := float64(labelled) / float64(active)
	return &share
}

// LabelStats returns the counters of labels, the sum of all windows of label coverage
// that are kept, and the newest window.
func (c *Controller) LabelStats() (s portwatch.Stats, sum coverage.Window, newest portwatch.Window) {
	if list := c.ports.Windows(); len(list) > 0 {
		newest = list[len(list)-1]
	}
	return c.ports.Stats(), c.ports.Coverage(), newest
}

// incidentReason is why an incident affects a node; empty if it does not.
func (c *Controller) incidentReason(in *incident.Incident, id model.NodeID) string {
	for _, n := range in.Nodes {
		if n == id {
			return incidentID(in.ID) + ": " + in.Cause.String()
		}
	}
	return ""
}

// maxStateAge is how old a port's state may be to be shown.
const maxStateAge = 100 * time.Millisecond

// isReporting reports whether a switch has reported within SilentAfter.
func (c *Controller) isReporting(id model.NodeID, now model.Time) bool {
	at := c.liveness.lastReport(id)
	return at != 0 && now.Sub(at) <= c.cfg.SilentAfter
}

func (c *Controller) portState(now model.Time, n *topo.Node, p *topo.Port) api.PortState {
	id := model.Port{Node: n.ID, Port: p.ID}
	s := api.PortState{Node: n.Name, Port: p.ID, AgeMs: -1}
	r := c.meter.rate[id]
	if r.counted(now) {
		s.AgeMs = float64(max(now.Sub(r.at), 0)) / float64(time.Millisecond)
	} else if r.lasts > 0 {
		r = portRate{} // a reading too old to be a rate
	}
	s.LoadBps, s.PausedShare = int64(r.load), r.paused
	if p.Rate > 0 {
		s.LoadShare = min(1, float64(r.load)/float64(p.Rate))
	}
	if age, ok := c.ports.States().Age(id, now); ok {
		s.AgeMs = float64(age) / float64(time.Millisecond)
		if state, ok := c.ports.States().Newest(id); ok && age < maxStateAge {
			s.QueueBytes, s.LatencyNs = int64(state.DequeueDepth), int64(state.Latency)
		}
	}
	s.LostPackets = c.recentLosses.within(now, id)
	return s
}

// recentLosses counts losses downstream of ports by slot.
type recentLosses struct {
	at   []model.Time
	what []map[model.Port]uint64
}

// recentWindow is how long losses are shown.
const recentWindow = 100 * time.Millisecond

func (l *recentLosses) add(at model.Time, p model.Port, n uint64) {
	if last := len(l.at) - 1; last < 0 || l.at[last] != at {
		for len(l.at) > 0 && at.Sub(l.at[0]) > recentWindow {
			l.at, l.what = l.at[1:], l.what[1:]
		}
		l.at, l.what = append(l.at, at), append(l.what, map[model.Port]uint64{})
	}
	l.what[len(l.what)-1][p] += n
}

func (l *recentLosses) within(now model.Time, p model.Port) (n uint64) {
	for i, at := range l.at {
		if now.Sub(at) <= recentWindow {
			n += l.what[i][p]
		}
	}
	return n
}
