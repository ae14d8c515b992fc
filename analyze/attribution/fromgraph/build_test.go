package fromgraph

import (
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/attribution"
	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/inhost/agent"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// evidence returns that of a request, with copies of the reports.
func (r *rig) evidence(q *request) *provenance.Evidence {
	e := *r.collector.Evidence(q.Poll.Event)
	reports := make([]*provenance.Report, len(e.Reports))
	for i, have := range e.Reports {
		c := *have
		reports[i] = &c
	}
	e.Reports = reports
	return &e
}

func (r *rig) attribute(q *request, e *provenance.Evidence) *attribution.Account {
	g := provenance.Build(e, q.Poll.Flow, r.net.Fabric())
	ev, v := Build(Detection{Victim: q.Poll.Flow, Class: 3, Latency: q.Measured, InFlight: q.Reason == agent.Age}, e, g, r.routes)
	return attribution.Attribute(ev, v)
}

// TestClocksOfSwitches: switches' clocks may differ by any time, as the poll
// aligns them.
func TestClocksOfSwitches(t *testing.T) {
	r := runRig(t, incast(), nil)
	for i := 0; i < len(r.requests); i += 4 {
		q := &r.requests[i]
		want := r.attribute(q, r.evidence(q))
		for at, have := range r.evidence(q).Reports {
			e := r.evidence(q)
			c := *have
			shift(&c, 1000)
			e.Reports[at] = &c
			if polled, ok := e.PolledAt[c.Switch]; ok {
				later := map[model.NodeID]model.Time{}
				for n, t := range e.PolledAt {
					later[n] = t
				}
				later[c.Switch] = polled.Add(1000 * c.EpochLength)
				e.PolledAt = later
			}
			if got := r.attribute(q, e); !reflect.DeepEqual(got.Terms, want.Terms) {
				t.Fatalf("%+v with another clock of switch %d, without %+v", got.Terms, c.Switch, want.Terms)
			}
		}
	}
}

// shift sets a switch's clock forward by a number of epochs.
func shift(r *provenance.Report, epochs uint32) {
	by := time.Duration(epochs) * r.EpochLength
	r.Snapshot = r.Snapshot.Add(by)
	move := func(t *model.Time) {
		if *t != 0 {
			*t = t.Add(by)
		}
	}
	copyOf(&r.PortEpochs)
	for i := range r.PortEpochs {
		r.PortEpochs[i].Epoch += epochs
	}
	copyOf(&r.Flows)
	for i := range r.Flows {
		r.Flows[i].Epoch += epochs
	}
	copyOf(&r.Meters)
	for i := range r.Meters {
		r.Meters[i].Epoch += epochs
	}
	copyOf(&r.Pauses)
	for i := range r.Pauses {
		p := &r.Pauses[i]
		move(&p.LastStart)
		move(&p.LastEnd)
		move(&p.BurstStart)
	}
	copyOf(&r.Episodes)
	for i := range r.Episodes {
		move(&r.Episodes[i].First)
		move(&r.Episodes[i].Last)
	}
}

func copyOf[T any](list *[]T) { *list = append([]T(nil), *list...) }

// TestLostReports: without any one report, or without all, the accounts still
// sum to the lateness, and places of the lost switch are no causes.
func TestLostReports(t *testing.T) {
	r := runRig(t, incast(), nil)
	for i := 0; i < len(r.requests); i += 4 {
		q := &r.requests[i]
		all := r.evidence(q).Reports
		for at := range all {
			e := r.evidence(q)
			lost := e.Reports[at].Switch
			e.Reports = append(e.Reports[:at:at], e.Reports[at+1:]...)
			a := r.attribute(q, e)
			sum := time.Duration(0)
			for j := range a.Terms {
				n := &a.Terms[j]
				sum += n.Time
				if n.Kind != attribution.Unexplained && n.Place.Port.Node == lost {
					t.Fatalf("without the report of switch %d: %+v", lost, n)
				}
			}
			if sum != a.Late {
				t.Fatalf("terms sum to %v of %v", sum, a.Late)
			}
		}
		if a := r.attribute(q, &provenance.Evidence{}); a.Explained() != 0 {
			t.Fatalf("%v explained without reports", a.Explained())
		}
	}
}

// TestAnOlderReportOfTheNextQueue: a queue that still holds packets of the flow holds the late
// one, unless the next was congested when its switch, which was not asked again, reported: before
// the packet was sent, or before the report of the queue that holds some. Then it may be there.
func TestAnOlderReportOfTheNextQueue(t *testing.T) {
	r, tried := runRig(t, incast(), nil), 0
	for i := range r.requests {
		q := &r.requests[i]
		if q.Reason != agent.Age {
			continue
		}
		build := func(e *provenance.Evidence) (*attribution.Evidence, *attribution.Victim) {
			g := provenance.Build(e, q.Poll.Flow, r.net.Fabric())
			return Build(Detection{Victim: q.Poll.Flow, Class: 3, Latency: q.Measured, InFlight: true}, e, g, r.routes)
		}
		ev, v := build(r.evidence(q))
		if v.QueuedAt < 0 || v.QueuedAt+1 >= len(v.Path) {
			continue
		}
		holder, next := ev.Queues[v.Path[v.QueuedAt]].Queue, ev.Queues[v.Path[v.QueuedAt+1]].Queue
		report := func(e *provenance.Evidence, sw model.NodeID) *provenance.Report {
			at := slices.IndexFunc(e.Reports, func(p *provenance.Report) bool { return p.Switch == sw })
			if at < 0 {
				return nil
			}
			return e.Reports[at]
		}
		for _, congested := range []bool{false, true} {
			for _, beforeHolder := range []time.Duration{q.Measured + 10*µs, 1} {
				e := r.evidence(q)
				c, h := report(e, next.Port.Node), report(e, holder.Port.Node)
				if c == nil || h == nil {
					continue
				}
				tried++
				if _, later := e.PolledAt[c.Switch]; !later {
					e.PolledAt = maps.Clone(e.PolledAt)
					if e.PolledAt == nil {
						e.PolledAt = map[model.NodeID]model.Time{}
					}
					e.PolledAt[c.Switch] = c.Snapshot
				}
				c.Snapshot = h.Snapshot.Add(-beforeHolder)
				c.Intervals, c.Episodes = nil, nil
				want := v.QueuedAt
				if congested {
					x := epoch.Intervals{Congestion: true, Port: next.Port.Port, Priority: next.Class, Open: true}
					x.Add(epoch.Interval{Start: 1000, Bytes: 100_000})
					c.Intervals, want = []epoch.Intervals{x}, -1
				}
				if _, got := build(e); got.QueuedAt != want {
					t.Errorf("request %d, the next queue congested: %v, at a snapshot %v before that of the queue: queued at %d; want %d",
						i, congested, beforeHolder, got.QueuedAt, want)
				}
			}
		}
	}
	if tried == 0 {
		t.Error("no request of which the packet may be in the next queue; the test needs one")
	}
}

// TestUnknownHosts: a victim whose addresses are not in the fabric has no path.
func TestUnknownHosts(t *testing.T) {
	r := runRig(t, victims(), nil)
	key := model.FlowKey{Src: model.Addr4(1), Dst: model.Addr4(2)}
	e := &provenance.Evidence{}
	ev, v := Build(Detection{Victim: key, Latency: 10 * µs, BaseRTT: 4 * µs}, e, provenance.Build(e, key, r.net.Fabric()), r.routes)
	if a := attribution.Attribute(ev, v); a.Late != 6*µs || a.Explained() != 0 {
		t.Errorf("late by %v, %v explained; want 6 µs, nothing", a.Late, a.Explained())
	}
}
