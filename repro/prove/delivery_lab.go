package prove

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/client"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/scenario/proof"
	"github.com/weft-telemetry/weft/scenario/served"
	"github.com/weft-telemetry/weft/topo"
)

// lost is a cause of packets that do not arrive, or not by the intended route.
type lost int

const (
	loop lost = iota
	blackhole
	badTable
	wrongRoute
	deadLink
	silentLoss
	ringDeadlock
	routeDeadlock
	imbalance
	losts
)

func (k lost) String() string {
	return [...]string{
		"loop", "black hole of a host", "black hole of some flows", "wrong route", "dead link", "silent loss",
		"deadlock of static routes", "deadlock of wrong routes", "imbalance",
	}[k]
}

// diverted is what was done to a fabric, and what is true of it.
type diverted struct {
	scenario *scenario.Scenario
	causes   []string // by which an incident is right
	places   []proof.Place
	spread   bool // packets arrive, and load is not spread evenly
}

// divert draws a scenario with one cause. Links are scaled to 1 Gb/s, so that a tenth of a
// second can be simulated.
func divert(ctx context.Context, k lost, seed uint64) (*diverted, error) {
	switch k {
	case ringDeadlock:
		return ringOfQueues(seed)
	case routeDeadlock:
		return queuesOfWrongRoutes(ctx, seed)
	case imbalance:
		return oneHash(seed)
	}
	rng := rand.New(rand.NewPCG(seed, 100+uint64(k)))
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		return nil, err
	}
	hosts := len(f.Hosts())
	var pairs, lossless []string
	for i := range hosts {
		for _, j := range rng.Perm(hosts) {
			if i/2 != j/2 && len(pairs) < 8*(i+1) {
				pairs = append(pairs, fmt.Sprintf("h%d>h%d", i, j))
			}
		}
		lossless = append(lossless, fmt.Sprintf("h%d>h%d", i, (i+4)%hosts))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "name: prove\nseed: %d\nduration: 180ms\ntopology: {generate: {kind: fat-tree, k: 4, rate: 1Gb/s}}\n", seed)
	b.WriteString("fabric: {mtu: 1024, buffer: 2MB}\nagents: {}\ntelemetry:\n  - {kind: flowset, slot: 10ms, flows: 200, ipv6: false}\n")
	fmt.Fprintf(&b, "traffic:\n  - {kind: persistent, name: datagrams, pairs: [%s], rate: %dMb/s, start: 1ms, transport: udp, priority: 0}\n",
		strings.Join(pairs, ", "), 4+rng.IntN(8))
	fmt.Fprintf(&b, "  - {kind: persistent, name: rdma, pairs: [%s], rate: %dMb/s, start: 1ms}\nfaults:\n", strings.Join(lossless, ", "), 4+rng.IntN(8))

	// A switch of the second or third tier, a neighbour below it, and a host elsewhere.
	sw, below, elsewhere := drawSwitch(rng, f)
	node, peer := f.Node(sw), f.Node(below)
	to := f.Node(elsewhere).Name
	down := node.PortsTo(below)[0]
	d := &diverted{places: []proof.Place{{Node: node.Name}}}
	when := fmt.Sprintf("at: %dms, for: %dms", 50+10*rng.IntN(3), 50+10*rng.IntN(3))
	switch k {
	case loop:
		d.causes, d.places = []string{"loop"}, append(d.places, proof.Place{Node: peer.Name})
		fmt.Fprintf(&b, "  - {kind: loop, to: %s, switches: [%s, %s], %s}\n", to, node.Name, peer.Name, when)
	case blackhole:
		d.causes = []string{"blackhole"}
		fmt.Fprintf(&b, "  - {kind: blackhole, switch: %s, to: %s, %s}\n", node.Name, to, when)
	case badTable:
		d.causes = []string{"blackhole"}
		fmt.Fprintf(&b, "  - {kind: bad-table, switch: %s, share: %d%%, seed: %d, %s}\n", node.Name, 10+rng.IntN(20), seed, when)
	case wrongRoute:
		d.causes = []string{"wrong-route"}
		// Down, and up again by another switch than the one it came from.
		other := ""
		for i := range peer.Ports {
			if n := f.Node(peer.Ports[i].Peer.Node); n.Role.IsSwitch() && n.ID != sw && n.Role == f.Node(peer.Ports[len(peer.Ports)-1].Peer.Node).Role {
				other = n.Name
			}
		}
		fmt.Fprintf(&b, "  - {kind: reroute, %s, routes: [{at: %s, to: %s, via: [%s]}, {at: %s, to: %s, via: [%s]}]}\n",
			when, node.Name, to, peer.Name, peer.Name, to, other)
	case deadLink:
		d.causes = []string{"dead-link"}
		d.places = []proof.Place{{Node: node.Name, Port: down}, {Node: peer.Name, Port: peer.PortsTo(sw)[0]}}
		fmt.Fprintf(&b, "  - {kind: link-down, port: %s>%s, %s}\n", node.Name, peer.Name, when)
	case silentLoss:
		d.causes = []string{"loss"}
		d.places = []proof.Place{{Node: node.Name, Port: down}}
		fmt.Fprintf(&b, "  - {kind: silent-drop, port: %s>%s, share: %d%%, %s}\n", node.Name, peer.Name, 5+rng.IntN(40), when)
	}
	d.scenario, err = scenario.Parse("prove.yaml", []byte(b.String()))
	return d, err
}

// drawSwitch draws a switch that is attached to no host, a switch below it, and a host
// that is not below that one.
func drawSwitch(rng *rand.Rand, f *topo.Fabric) (sw, below, elsewhere model.NodeID) {
	for {
		sw = f.Switches()[rng.IntN(len(f.Switches()))]
		n := f.Node(sw)
		if slices.ContainsFunc(n.Ports, func(p topo.Port) bool { return !f.Node(p.Peer.Node).Role.IsSwitch() }) {
			continue
		}
		// Ports down come first in a fat-tree.
		below = n.Ports[rng.IntN(len(n.Ports)/2)].Peer.Node
		elsewhere = f.Hosts()[rng.IntN(len(f.Hosts()))]
		if a, b := f.Node(elsewhere).Pod, f.Node(below).Pod; a != b {
			return sw, below, elsewhere
		}
	}
}

// deliveries are what a controller keeps of a run.
type deliveries struct {
	topology api.Topology
	incident *api.IncidentDetail // a right one; nil: there is none
	flows    []api.FlowDetail
	named    []string // all incidents
}

// watch runs a scenario under a controller.
func watch(ctx context.Context, d *diverted) (rec deliveries, err error) {
	rec.topology, err = records(ctx, d.scenario, func(c *client.Client, since time.Time) error {
		page, err := c.Incidents(ctx, api.IncidentsQuery{Range: api.Range{From: since}})
		if err != nil {
			return err
		}
		for i := range page.Items {
			in, err := c.Incident(ctx, page.Items[i].ID)
			if err != nil {
				return err
			}
			rec.named = append(rec.named, in.Cause+" at "+in.Location)
			if in.MergedInto == "" && rec.incident == nil && d.right(&in) {
				rec.incident = &in
				if rec.flows, err = proof.ReadFlows(ctx, c, &in); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return rec, err
}

// right reports whether an incident is about the injected cause, at its place.
func (d *diverted) right(in *api.IncidentDetail) bool {
	return slices.Contains(d.causes, in.Cause) && slices.ContainsFunc(proof.PlacesOf(in), func(p proof.Place) bool {
		return slices.ContainsFunc(d.places, func(q proof.Place) bool { return p.Node == q.Node })
	})
}

// wrong returns a verdict that is not true: two ports that are in no cycle, or a switch that
// is not the cause and which the victims' packets pass.
func (d *diverted) wrong(rng *rand.Rand, f *topo.Fabric, rec *deliveries) ([]proof.Place, bool) {
	if d.causes[0] == "deadlock" {
		return d.wrongCycle(rng, f, rec)
	}
	var passed []string
	for i := range rec.flows {
		f := &rec.flows[i]
		if !d.spread && !slices.ContainsFunc(rec.incident.Victims, func(p api.Participant) bool { return p.Flow != nil && p.Flow.Flow == f.Flow.Flow }) {
			continue
		}
		for _, name := range f.Path {
			if !slices.ContainsFunc(d.places, func(p proof.Place) bool { return p.Node == name }) && !slices.Contains(passed, name) {
				passed = append(passed, name)
			}
		}
	}
	if len(passed) == 0 {
		return nil, false
	}
	slices.Sort(passed)
	return []proof.Place{{Node: passed[rng.IntN(len(passed))]}}, true
}

// deliver makes one case, and proves the true verdict and a wrong one. It returns what is
// not as it should be, too.
func deliver(ctx context.Context, k lost, seed uint64, noRemoval, noCounts bool) (s score, misses []string, err error) {
	d, err := divert(ctx, k, seed)
	if err != nil {
		return s, nil, err
	}
	rec, err := watch(ctx, d)
	if err != nil {
		return s, nil, err
	}
	s.cases = 1
	if rec.incident == nil {
		return s, []string{fmt.Sprintf("no incident of this cause at its place, but %q", rec.named)}, nil
	}
	s.found = 1
	fabric, err := served.Fabric(&rec.topology)
	if err != nil {
		return s, nil, err
	}
	served.Configure(fabric, d.scenario)
	c := &proof.DeliveryCase{Fabric: fabric, Incident: rec.incident, Flows: rec.flows, Named: d.places}
	wrong, other := d.wrong(rand.New(rand.NewPCG(seed, 9)), fabric.Topology.Fabric, &rec)
	if noRemoval {
		c.Named = wrong
	}
	if noCounts {
		c.Flows = nil
	}
	r, err := proof.ProveDelivery(ctx, c)
	switch {
	case proof.IsMissing(err):
		return s, []string{err.Error()}, nil
	case err != nil:
		return s, nil, err
	case r.Verdict == proof.NotShown:
		return s, []string{r.Text}, nil
	}
	s.rebuilt = 1
	if r.Without.Gain >= 0.8 && (d.spread || 1/max(1-r.Without.Harm, 1e-9) <= 1.3) {
		s.restored = 1
	} else {
		misses = append(misses, "not restored: "+r.Text)
	}
	if r.Control != nil {
		s.controls = 1
		if r.Control.Gain < 0.8 {
			s.held = 1
		} else {
			misses = append(misses, "the control does the same: "+r.Text)
		}
	}
	if !other {
		return s, misses, nil
	}
	c.Named = wrong
	if r, err = proof.ProveDelivery(ctx, c); err != nil {
		return s, nil, err
	}
	s.wrong = 1
	if r.Verdict == proof.Refuted {
		s.refuted = 1
	} else {
		misses = append(misses, "wrong, and "+string(r.Verdict)+": "+r.Text)
	}
	return s, misses, nil
}
