package fromgraph

import (
	"time"

	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// distance is how far a node is from the victim's host.
type distance struct {
	delay time.Duration // of the links on the shortest path
	wire  time.Duration // that one packet of the MTU takes on each of them
	known bool
}

// distances returns the distances of all nodes from one that is itself that far.
func distances(f *topo.Fabric, from model.NodeID, mtu model.Bytes, start distance) []distance {
	list := make([]distance, len(f.Nodes()))
	if !f.HasNode(from) || !start.known {
		return list
	}
	list[from] = start
	queue := []model.NodeID{from}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		if at != from && !f.Node(at).Role.IsSwitch() {
			continue // hosts do not forward
		}
		for i := range f.Node(at).Ports {
			p := &f.Node(at).Ports[i]
			d := list[at].delay + p.Delay
			if to := &list[p.Peer.Node]; p.Peer.Port != 0 && (!to.known || d < to.delay) {
				*to = distance{d, list[at].wire + onWire(mtu, p.Rate), true}
				queue = append(queue, p.Peer.Node)
			}
		}
	}
	return list
}

// pollDistances returns how far the victim's poll travelled to each switch: from the
// host or, where it came on the path of the acknowledgements, by the victim's last switch.
func (b *builder) pollDistances(source model.NodeID) []distance {
	far := distances(b.fabric, source, b.out.MTU, distance{known: true})
	destination, ok := b.fabric.ByAddr(b.detection.Victim.Dst)
	if len(b.reports.Returning) == 0 || !ok || len(b.fabric.Node(destination).Ports) == 0 {
		return far
	}
	last := b.fabric.Node(destination).Ports[0].Peer.Node
	back := distances(b.fabric, last, b.out.MTU, far[last])
	for sw := range b.reports.Returning {
		if b.fabric.HasNode(sw) {
			far[sw] = back[sw]
		}
	}
	return far
}

// onWire returns how long a link takes to send bytes.
func onWire(n model.Bytes, rate model.Rate) time.Duration {
	return time.Duration(float64(n) * 8e9 / float64(max(rate, 1)))
}

// axis turns times of switches into times of the axis.
type axis struct {
	poll   model.Time // when the poll left, on the axis
	shifts map[model.NodeID]time.Duration
}

// newAxis returns the axis of a detection. Its poll left when it must have, on
// the clock of the nearest switch that reported.
func newAxis(e *provenance.Evidence, far []distance) axis {
	a := axis{shifts: make(map[model.NodeID]time.Duration, len(e.Reports))}
	polledAt := func(r *provenance.Report) model.Time {
		if at, later := e.PolledAt[r.Switch]; later {
			return at
		}
		return r.Snapshot
	}
	nearest := time.Duration(-1)
	for _, r := range e.Reports {
		if int(r.Switch) < len(far) && far[r.Switch].known && (nearest < 0 || far[r.Switch].delay < nearest) {
			nearest = far[r.Switch].delay
			a.poll = polledAt(r).Add(-nearest)
		}
	}
	for _, r := range e.Reports {
		if int(r.Switch) < len(far) {
			a.shifts[r.Switch] = a.poll.Add(far[r.Switch].delay).Sub(polledAt(r))
		}
	}
	return a
}

// time returns a switch's time on the axis.
func (a *axis) time(sw model.NodeID, t model.Time) model.Time { return t.Add(a.shifts[sw]) }
