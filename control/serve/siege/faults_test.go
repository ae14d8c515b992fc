package siege

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

// fault is something that breaks in the honest fabric, and what the service has to
// find.
type fault struct {
	cause string
	at    model.NodeID // that the incident names
	host  model.NodeID // whose flows suffer
	begin func()
}

// supports reports whether a fault explains an incident: by its cause, and at its
// place. What is dropped in a black hole is a loss at first. An incast congests ports
// on the paths to its host, where a notice of contention comes first.
func (f *fault) supports(fab *topo.Fabric, in *api.Incident) bool {
	switch f.cause {
	case "incast":
		congests := in.Cause == "incast" || in.Cause == "contention" && in.Severity == anomaly.Notice.String()
		return congests && strings.Contains(in.Summary, "→ "+fab.Node(f.host).Name)
	case "blackhole":
		return (in.Cause == "blackhole" || in.Cause == "loss") && startedAt(in) == fab.Node(f.at).Name
	}
	return in.Cause == f.cause && startedAt(in) == fab.Node(f.at).Name
}

// startedAt is the node where an incident started.
func startedAt(in *api.Incident) string {
	node, _, _ := strings.Cut(in.Location, ":")
	return node
}

// invented are incidents that no fault of the honest fabric supports. What a switch
// that lies says about itself cannot be told from the truth.
func invented(s *service, incidents []api.Incident, faults []fault, liar model.NodeID) (list []api.Incident) {
	for _, in := range incidents {
		supported := liar != nobody && startedAt(&in) == s.fabric.Node(liar).Name
		for _, f := range faults {
			supported = supported || f.supports(s.fabric, &in)
		}
		if !supported {
			list = append(list, in)
		}
	}
	return list
}

// describe is a line about an incident.
func describe(in *api.Incident) string {
	return fmt.Sprintf("%s %s %s at %s: %s", in.ID, in.Severity, in.Cause, in.Location, in.Summary)
}

// faults are three of the honest fabric, of different kinds and in different pods.
// The fourth pod is left to those who invent faults there.
func (l *honest) faults() []fault {
	hole, lossy, crowd := l.place(0), l.place(1), l.place(2)
	return []fault{
		{"blackhole", hole.above, hole.host, func() {
			to := netip.PrefixFrom(l.Network.Fabric().Node(hole.host).IPv4.Netip(), 32)
			l.Change(func() error {
				flows := l.FromOtherPods(hole.host, func(from model.NodeID, i int) traffic.Flow { return l.flow(from, hole.host, uint16(30000+i)) })
				if err := l.Network.AddFlows(flows); err != nil {
					return err
				}
				return l.Network.Inject(sim.Injection{At: l.Network.Now().Model(), Fault: sim.Reroute{Entries: []sim.Entry{{Switch: hole.above, To: to}}}})
			})
		}},
		{"loss", lossy.above, lossy.host, func() {
			l.Change(func() error {
				flows := l.FromOtherPods(lossy.host, func(from model.NodeID, i int) traffic.Flow { return l.flow(from, lossy.host, uint16(31000+i)) })
				if err := l.Network.AddFlows(flows); err != nil {
					return err
				}
				down := l.Network.Fabric().Node(lossy.above).PortsTo(lossy.tor)[0]
				return l.Network.Inject(sim.Injection{At: l.Network.Now().Model(), Fault: sim.Lossy{Port: model.Port{Node: lossy.above, Port: down}, Share: 0.2}})
			})
		}},
		{"incast", crowd.tor, crowd.host, func() {
			// Every round takes the same paths. Source ports of this round congest the
			// receiver so that it pauses a sender whose packets are late then; of other
			// source ports one round in five does, and the rest is contention.
			const firstPort = 40300
			round := func() {
				flows := l.FromOtherPods(crowd.host, func(from model.NodeID, i int) traffic.Flow {
					return traffic.Flow{
						Src: from, Dst: crowd.host, Start: l.Network.Now().Model().Add(time.Millisecond), Priority: 3,
						Transport: traffic.RDMA, NoCC: true, Bytes: 150 * model.KB, SrcPort: firstPort + uint16(i),
					}
				})
				// Acknowledgements to hosts behind the other two faults are lost: they would
				// send for ever, or again.
				fab := l.Network.Fabric()
				flows = slices.DeleteFunc(flows, func(f traffic.Flow) bool {
					return f.Src == hole.host || fab.Node(f.Src).Ports[0].Peer.Node == lossy.tor
				})
				if err := l.Network.AddFlows(flows); err != nil {
					l.t.Error(err)
				}
			}
			l.Change(func() error { l.again = round; round(); return nil })
		}},
	}
}

// verdict is an incident by what it says: the cause, the place, and how grave.
type verdict struct {
	Severity, Cause, Place string
}

func (v verdict) String() string { return fmt.Sprintf("%s %s at %s", v.Severity, v.Cause, v.Place) }

// incidents are all of a service.
func (s *service) incidents() []api.Incident {
	s.t.Helper()
	return s.incidentsOf(api.IncidentsQuery{})
}

// incidentsOf are those that a query selects, since the service was prepared.
func (s *service) incidentsOf(q api.IncidentsQuery) (list []api.Incident) {
	s.t.Helper()
	q.From, q.To, q.Limit = s.born, time.Now().Add(time.Hour), 1000
	for {
		page, err := s.api.Incidents(s.t.Context(), q)
		if err != nil {
			s.alive()
			s.t.Fatal(err)
		}
		list = append(list, page.Items...)
		if page.Next == "" {
			return list
		}
		q.After = page.Next
	}
}

// found reports whether an incident of the fault's cause touches its place, and has
// not ended before a time.
func (s *service) found(f fault, from time.Time) bool {
	q := api.IncidentsQuery{Cause: f.cause, Node: s.fabric.Node(f.at).Name}
	return slices.ContainsFunc(s.incidentsOf(q), func(in api.Incident) bool { return in.End == nil || in.Updated.After(from) })
}

// finds waits until all faults have been found in a time.
func (s *service) finds(faults []fault, from time.Time) {
	s.t.Helper()
	for _, f := range faults {
		s.eventually(f.cause+" is found", func() bool { return s.found(f, from) })
	}
}

// verdicts are the different incidents of a service. Notices are left out: they
// are the normal congestion of a fabric, and when it is seen depends on the load.
func (s *service) verdicts() (list []verdict) {
	for _, in := range s.incidents() {
		if v := (verdict{in.Severity, in.Cause, startedAt(&in)}); in.Severity != anomaly.Notice.String() && !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	slices.SortFunc(list, func(a, b verdict) int { return cmp.Compare(a.String(), b.String()) })
	return list
}
