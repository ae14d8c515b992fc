package proof

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// stander makes one proof of a deadlock: of queues that wait for each other.
type stander struct {
	experiments
	world *standingWorld
	speed float64
}

// proveStanding tests the verdict that the ports of a cycle hold each other's packets.
// What passes two successive ports of it holds one while it waits for the other. Without
// the flows that do so at one place of the cycle, the others must arrive.
func proveStanding(ctx context.Context, c *DeliveryCase) (*DeliveryResult, error) {
	routes, err := c.Fabric.Topology.Routes()
	if err != nil {
		return nil, err
	}
	w, err := newStandingWorld(c, routes)
	if err != nil {
		return nil, err
	}
	p := &stander{experiments: experiments{c: c}, world: w}
	r := &DeliveryResult{Recorded: w.recordedHarm(), Notes: []string{}, Remedies: []DeliveryTrial{}}
	for i := range w.flows {
		if w.flows[i].victim {
			r.Victims++
		}
	}
	if c.DefaultSettings {
		r.Notes = append(r.Notes, noSettings)
	}
	if w.unusable > 0 {
		r.Notes = append(r.Notes, plural.Count(w.unusable, "flow")+" not rebuilt: their records do not show a path")
	}
	rebuilt, err := p.fit(ctx)
	if err != nil {
		return nil, err
	}
	r.Rebuilt = p.trial("rebuilt", "as recorded", rebuilt)
	r.Error = w.deviation(rebuilt.arrived)
	try := func(name, what string, x standingSetup) (DeliveryTrial, error) {
		x.name, x.about = name, "What records say of the incident, "+what+"."
		o, err := p.run(ctx, x)
		if err != nil {
			return DeliveryTrial{}, err
		}
		t := p.trial(name, what, o)
		// Of the flows that are still there: those that are removed have no packets that stand.
		t.Gain = 1 - t.Harm/max(w.harm(rebuilt.arrived, true, x.without), 1e-9)
		return t, nil
	}
	cut := w.cut(c.Named)
	if w.harm(rebuilt.arrived, true, cut) == 0 && r.Rebuilt.Harm > 0 {
		return nil, &MissingError{"no victim but the flows that close the cycle has records: none is left that could arrive"}
	}
	if r.Without, err = try("without", w.describeFlows("without", cut)+w.heldAt(cut, c.Named), standingSetup{without: cut}); err != nil {
		return nil, err
	}
	if other := w.others(c.Named, len(cut)); len(other) > 0 {
		t, err := try("control", w.describeFlows("without", other)+" instead", standingSetup{without: other})
		if err != nil {
			return nil, err
		}
		r.Control = &t
	}
	if r.Remedies, err = p.remedies(try); err != nil {
		return nil, err
	}
	r.judge(fmt.Sprintf("the packets of %s stand in queues that wait for each other", plural.Count(r.Victims, "flow")))
	r.Runs = p.runs
	return r, nil
}

func (p *stander) trial(name, what string, o *standingOutcome) DeliveryTrial {
	w := p.world
	return DeliveryTrial{
		Name: name, What: what, Harm: w.harm(o.arrived, true, o.without), Others: w.harm(o.arrived, false, o.without), Scenario: o.text,
	}
}

// speeds are multiples of the mean rate of a slot that are tried. Flows that stand sent for a
// part of the slot only.
var speeds = []float64{1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10}

// fit returns a run whose packets stand as the recorded ones did, or the nearest. Of several
// speeds at which they do it takes the middle one: at the edge queues wait for each other
// by chance, and any change ends that.
func (p *stander) fit(ctx context.Context) (*standingOutcome, error) {
	type run struct {
		speed float64
		*standingOutcome
	}
	var all, shown []run
	for _, p.speed = range speeds {
		o, err := p.run(ctx, standingSetup{name: "rebuilt", about: "What records say of the incident."})
		if err != nil {
			return nil, err
		}
		all = append(all, run{p.speed, o})
		if p.world.deviation(o.arrived) <= tolerance {
			shown = append(shown, all[len(all)-1])
		}
	}
	best := slices.MinFunc(all, func(a, b run) int {
		return cmp.Compare(p.world.deviation(a.arrived), p.world.deviation(b.arrived))
	})
	if len(shown) > 0 {
		best = shown[len(shown)/2]
	}
	p.speed = best.speed
	return best.standingOutcome, nil
}

// remedies simulates what an operator could do: the intended routes, and slower senders.
func (p *stander) remedies(try func(name, what string, x standingSetup) (DeliveryTrial, error)) ([]DeliveryTrial, error) {
	list := []DeliveryTrial{}
	if slices.ContainsFunc(p.world.flows, func(f sentFlow) bool { return f.strays() }) {
		t, err := try("mended", "with all switches on the intended routes", standingSetup{intended: true})
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	t, err := try("limited", "with all flows at a quarter of the rate", standingSetup{limit: limitedTo})
	if err != nil {
		return nil, err
	}
	return append(list, t), nil
}

// cut returns the flows that pass two successive ports of a cycle, at the place of it where
// they sent least: without them no packet holds the first port while it waits for the other.
func (w *standingWorld) cut(cycle []Place) (best []int) {
	least := 0.0
	for i := range cycle {
		var flows []int
		sent := 0.0
		for j := range w.flows {
			if w.flows[j].holds(w.fabric, cycle[i], cycle[(i+1)%len(cycle)]) {
				flows, sent = append(flows, j), sent+w.flows[j].sent
			}
		}
		if len(flows) > 0 && (best == nil || sent < least) {
			best, least = flows, sent
		}
	}
	return best
}

// heldAt says which ports of a cycle flows hold.
func (w *standingWorld) heldAt(flows []int, cycle []Place) string {
	for i := range cycle {
		a, b := cycle[i], cycle[(i+1)%len(cycle)]
		if len(flows) > 0 && w.flows[flows[0]].holds(w.fabric, a, b) {
			f := w.fabric
			return ", which hold " + describePlaces(f, []Place{a}) + " and wait for " + describePlaces(f, []Place{b})
		}
	}
	return ": none passes two successive ports of the cycle"
}

// others returns as many flows that sent most of those that pass no port of a cycle.
func (w *standingWorld) others(cycle []Place, n int) (list []int) {
	for j := range w.flows {
		if !slices.ContainsFunc(w.flows[j].hops, func(h countedHop) bool {
			return slices.Contains(cycle, Place{w.fabric.Node(h.at).Name, h.out})
		}) {
			list = append(list, j)
		}
	}
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(w.flows[b].sent, w.flows[a].sent) })
	return list[:min(n, len(list))]
}

func (w *standingWorld) describeFlows(verb string, flows []int) string {
	var names []string
	for _, i := range flows {
		f := &w.flows[i]
		names = append(names, w.fabric.Node(f.src).Name+" → "+w.fabric.Node(f.dst).Name)
	}
	switch {
	case len(names) == 0:
		return "as recorded"
	case len(names) > maxNamed:
		return fmt.Sprintf("%s %s and %s", verb, strings.Join(names[:maxNamed-1], ", "), plural.Count(len(names)-maxNamed+1, "other flow"))
	}
	return verb + " " + strings.Join(names, ", ")
}

// holds reports whether a flow leaves by a port, and after the next link by another.
func (f *sentFlow) holds(fabric *topo.Fabric, a, b Place) bool {
	for i := range len(f.hops) - 1 {
		x, y := &f.hops[i], &f.hops[i+1]
		if fabric.Node(x.at).Name == a.Node && x.out == a.Port && fabric.Node(y.at).Name == b.Node && y.out == b.Port {
			return true
		}
	}
	return false
}

// strays reports whether a flow left the intended routes.
func (f *sentFlow) strays() bool {
	return slices.ContainsFunc(f.hops, func(h countedHop) bool { return h.strays })
}

// cycleOf returns the ports of an incident's deadlock cycle, each of which waits for the next.
func cycleOf(in *api.IncidentDetail) (list []Place) {
	if in.Cause != anomaly.Deadlock.String() {
		return nil
	}
	for _, p := range in.Loop {
		list = append(list, Place{p.Node, p.Port})
	}
	return list
}

// harm returns the share of packets that did not arrive, of the victims or of the other
// flows, without some.
func (w *standingWorld) harm(arrived []float64, victims bool, without []int) float64 {
	var stands, sent float64
	for i := range w.flows {
		if f := &w.flows[i]; f.victim == victims && !slices.Contains(without, i) {
			stands, sent = stands+max(0, f.sent-arrived[i]), sent+f.sent
		}
	}
	if sent == 0 {
		return 0
	}
	return stands / sent
}

// recordedHarm returns the share of the victims' packets that had not arrived.
func (w *standingWorld) recordedHarm() float64 {
	arrived := make([]float64, len(w.flows))
	for i := range w.flows {
		arrived[i] = w.flows[i].arrived
	}
	return w.harm(arrived, true, nil)
}

// deviation returns by how much the share of packets that stand differs from the recorded
// one, as a share of it.
func (w *standingWorld) deviation(arrived []float64) float64 {
	want := w.recordedHarm()
	return min(1, absolute(w.harm(arrived, true, nil)-want)/max(want, 1e-9))
}

func absolute(x float64) float64 { return max(x, -x) }

// isLossless reports whether a flow is RDMA, which the class with PFC carries.
func isLossless(k model.FlowKey) bool { return k.Proto == model.UDP && k.DstPort == rdmaPort }
