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
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/topo"
)

// DeliveryCase is a verdict that flow records test, and these records: about packets that do
// not arrive, or not by the intended route, or that equal-cost ports share unevenly.
type DeliveryCase struct {
	// Fabric has the topology and the settings of switches. Its traffic and faults are
	// not read.
	Fabric          *scenario.Scenario
	DefaultSettings bool // the settings of switches are not the operator's
	Incident        *api.IncidentDetail
	// Flows are the incident's victims, and others that pass its place, in its time and
	// before.
	Flows []api.FlowDetail
	// Named are the places that the verdict names.
	Named    []Place
	Progress func(runs int) // called after every simulation; it may be nil
	Cores    int            // bounds the CPUs of a simulation; 0: all, where the fabric is large
}

// Place is a switch, or one of its ports.
type Place struct {
	Node string
	Port model.PortID // egress; 0: all of them
}

// deliveryCauses are those that flow records test.
var deliveryCauses = []anomaly.Cause{anomaly.Loop, anomaly.Blackhole, anomaly.WrongRoute, anomaly.DeadLink, anomaly.Loss, anomaly.Deadlock, anomaly.Imbalance}

// OfDelivery reports whether flow records test the verdict of an incident, and not the
// account of a late packet.
func OfDelivery(in *api.Incident) bool {
	return slices.ContainsFunc(deliveryCauses, func(c anomaly.Cause) bool { return c.String() == in.Cause })
}

// PlacesOf returns what the verdict of such an incident names: a port, both ends of a dead
// link, the ports of a deadlock cycle in its order, or switches.
func PlacesOf(in *api.IncidentDetail) []Place {
	if cycle := cycleOf(in); len(cycle) > 0 {
		return cycle
	}
	if in.Cause == anomaly.Imbalance.String() {
		return switchesOf(in)
	}
	var list []Place
	if o := in.Origin; o != nil {
		list = append(list, Place{o.Node, o.Port})
	} else {
		node, _, _ := strings.Cut(in.Location, ":")
		list = append(list, Place{Node: node})
	}
	if in.Cause == anomaly.DeadLink.String() || in.Cause == anomaly.Loop.String() {
		for _, l := range in.Links {
			if p := (Place{l.Node, l.Port}); !slices.Contains(list, p) {
				list = append(list, p)
			}
		}
	}
	return list
}

// DeliveryResult is a proof.
type DeliveryResult struct {
	Verdict Verdict `json:"verdict"`
	Text    string  `json:"text"`
	Victims int     `json:"victims"` // flows
	// Recorded is the victims' harm by their records.
	Recorded float64       `json:"recorded"`
	Rebuilt  DeliveryTrial `json:"rebuilt"`
	// Error is by how much the rebuilt counts deviate from the recorded ones, as a share of
	// them: of all flows at all switches.
	Error   float64       `json:"error"`
	Without DeliveryTrial `json:"without"`
	// Control has another place mended, which the victims pass; nil: they pass no other.
	Control  *DeliveryTrial  `json:"control,omitempty"`
	Remedies []DeliveryTrial `json:"remedies"`
	Notes    []string        `json:"notes"`
	Runs     int             `json:"runs"` // simulations
}

// DeliveryTrial is one run of the rebuilt scenario.
type DeliveryTrial struct {
	Name string `json:"name"`
	What string `json:"what"` // that was changed
	// Harm is the share of the victims' packets that do not arrive, or that pass a switch
	// which is not on an intended path of theirs, or one twice; of uneven load, of packets
	// beyond the even share of their port.
	Harm float64 `json:"harm"`
	Gain float64 `json:"gain"` // share of the rebuilt harm that is gone
	// Others is the harm of the other flows.
	Others   float64 `json:"others"`
	Scenario string  `json:"-"` // its text
}

// deliverer makes one proof.
type deliverer struct {
	experiments
	world  *deliveryWorld
	routes *topo.Routes
}

// ProveDelivery tests a verdict. An error that is a *MissingError says which records it
// would need.
func ProveDelivery(ctx context.Context, c *DeliveryCase) (*DeliveryResult, error) {
	switch c.Incident.Cause {
	case anomaly.Deadlock.String():
		return proveStanding(ctx, c)
	case anomaly.Imbalance.String():
		return proveUneven(ctx, c)
	}
	routes, err := c.Fabric.Topology.Routes()
	if err != nil {
		return nil, err
	}
	w, err := newDeliveryWorld(c, routes)
	if err != nil {
		return nil, err
	}
	p := &deliverer{experiments: experiments{c: c}, world: w, routes: routes}
	r := &DeliveryResult{Recorded: w.harm(w.recorded(), true), Notes: p.notes()}
	for i := range w.flows {
		if w.flows[i].victim {
			r.Victims++
		}
	}
	rebuilt, err := p.fit(ctx)
	if err != nil {
		return nil, err
	}
	r.Rebuilt, r.Error = p.trial("rebuilt", "as recorded", rebuilt), w.deviation(rebuilt.counts)
	try := func(name, what string, x deliverySetup) (DeliveryTrial, error) {
		x.name, x.about = name, "What records say of the incident, "+what+"."
		o, err := p.run(ctx, x)
		if err != nil {
			return DeliveryTrial{}, err
		}
		t := p.trial(name, what, o)
		t.Gain = 1 - t.Harm/max(r.Rebuilt.Harm, 1e-9)
		return t, nil
	}
	if r.Without, err = try("without", "with "+describePlaces(c.Fabric.Topology.Fabric, c.Named)+" mended", deliverySetup{mended: c.Named}); err != nil {
		return nil, err
	}
	if other, ok := w.otherPlace(c.Named); ok {
		t, err := try("control", "with "+other.Node+" mended instead", deliverySetup{mended: []Place{other}})
		if err != nil {
			return nil, err
		}
		r.Control = &t
	}
	if r.Remedies, err = p.remedies(try); err != nil {
		return nil, err
	}
	r.judge(fmt.Sprintf("the packets of %s do not arrive as they should", plural.Count(r.Victims, "flow")))
	r.Runs = p.runs
	return r, nil
}

func (p *deliverer) trial(name, what string, o *deliveryOutcome) DeliveryTrial {
	return DeliveryTrial{
		Name: name, What: what, Harm: p.world.harm(o.counts, true), Others: p.world.harm(o.counts, false), Scenario: o.text,
	}
}

// maxFits bounds how often what hosts sent is fitted: of flows that loop from their first
// switch on, no switch counts it.
const maxFits = 2

// fit runs what is recorded, and corrects what hosts sent where it is not counted.
func (p *deliverer) fit(ctx context.Context) (*deliveryOutcome, error) {
	o, err := p.run(ctx, deliverySetup{name: "rebuilt", about: "What records say of the incident."})
	for range maxFits {
		if err != nil || !p.world.refit(o.counts) {
			break
		}
		o, err = p.run(ctx, deliverySetup{name: "rebuilt", about: "What records say of the incident."})
	}
	return o, err
}

// remedies simulates what an operator could do: the intended routes on all switches, and
// what the verdict names out of service.
func (p *deliverer) remedies(try func(name, what string, x deliverySetup) (DeliveryTrial, error)) ([]DeliveryTrial, error) {
	list := []DeliveryTrial{}
	if p.world.strays() {
		t, err := try("mended", "with all switches on the intended routes", deliverySetup{intended: true})
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	f := p.c.Fabric.Topology.Fabric
	down, whole := linksOf(f, p.c.Named)
	for i := range p.world.flows {
		x := &p.world.flows[i]
		if slices.Contains(whole, x.first) || slices.Contains(whole, x.last) {
			return list, nil // hosts that are attached to it would be cut off
		}
	}
	if slices.ContainsFunc(down, func(link model.Port) bool { return !f.Node(f.Port(link).Peer.Node).Role.IsSwitch() }) {
		return list, nil
	}
	t, err := try("drained", "with "+describePlaces(f, p.c.Named)+" out of service", deliverySetup{mended: p.c.Named, down: down})
	if err != nil {
		return nil, err
	}
	return append(list, t), nil
}

// linksOf returns the ports of places, and the switches that are named whole.
func linksOf(f *topo.Fabric, places []Place) (ports []model.Port, whole []model.NodeID) {
	for _, x := range places {
		id, ok := f.ByName(x.Node)
		if !ok {
			continue
		}
		if x.Port == 0 {
			whole = append(whole, id)
		}
		for i := range f.Node(id).Ports {
			if p := &f.Node(id).Ports[i]; x.Port == 0 || x.Port == p.ID {
				ports = append(ports, model.Port{Node: id, Port: p.ID})
			}
		}
	}
	return ports, whole
}

func describePlaces(f *topo.Fabric, places []Place) string {
	var names []string
	if len(places) > maxNamed {
		return plural.Count(len(places), "switch")
	}
	for _, x := range places {
		name := x.Node
		if id, ok := f.ByName(x.Node); ok && x.Port != 0 {
			name = f.PortRef(model.Port{Node: id, Port: x.Port})
		}
		names = append(names, name)
	}
	return strings.Join(names, " and ")
}

// judge compares the trials.
func (r *DeliveryResult) judge(harmed string) {
	percent := func(t *DeliveryTrial) string { return fmt.Sprintf("%.3g %%", 100*t.Harm) }
	if r.Error > tolerance || r.Rebuilt.Harm == 0 {
		r.Verdict = NotShown
		r.Text = fmt.Sprintf("%s of %s in the rebuilt run, recorded are %.3g %%, a deviation of %.0f %%: nothing is proven",
			percent(&r.Rebuilt), harmed, 100*r.Recorded, 100*r.Error)
		return
	}
	switch {
	case r.Without.Gain >= enough:
		r.Verdict = Proven
	case r.Without.Gain >= half:
		r.Verdict = Partly
	default:
		r.Verdict = Refuted
	}
	r.Text = fmt.Sprintf("%s of %s, and %s %s", percent(&r.Rebuilt), harmed, percent(&r.Without), r.Without.What)
	if r.Control != nil {
		r.Text += fmt.Sprintf("; %s %s", percent(r.Control), r.Control.What)
		if r.Verdict == Proven && r.Control.Gain >= enough {
			r.Verdict = Partly
		}
	}
}

// Trials lists all runs.
func (r *DeliveryResult) Trials() []DeliveryTrial {
	list := []DeliveryTrial{r.Rebuilt, r.Without}
	if r.Control != nil {
		list = append(list, *r.Control)
	}
	return append(list, r.Remedies...)
}

// notes says what the rebuilt run does not have.
func (p *deliverer) notes() []string {
	notes := []string{}
	if p.c.DefaultSettings {
		notes = append(notes, noSettings)
	}
	if n := p.world.unusable; n > 0 {
		notes = append(notes, plural.Count(n, "flow")+" not rebuilt: their records do not show a path")
	}
	if p.world.sampled {
		notes = append(notes, "counts are estimated from samples")
	}
	return notes
}

// otherPlace returns the switch that most of the victims' packets pass of those that are
// not named.
func (w *deliveryWorld) otherPlace(named []Place) (Place, bool) {
	passes := map[string]float64{}
	for i := range w.flows {
		if !w.flows[i].victim {
			continue
		}
		for id, n := range w.flows[i].counts {
			if name := w.fabric.Node(id).Name; !slices.ContainsFunc(named, func(x Place) bool { return x.Node == name }) {
				passes[name] += n
			}
		}
	}
	best := Place{}
	for name, n := range passes {
		if c := cmp.Compare(n, passes[best.Node]); best.Node == "" || c > 0 || c == 0 && name < best.Node {
			best.Node = name
		}
	}
	return best, best.Node != ""
}

// Files returns the scenarios of all runs by the names of their files.
func (r *DeliveryResult) Files() map[string]string {
	files := map[string]string{}
	for _, t := range r.Trials() {
		files[t.Name+".yaml"] = t.Scenario
	}
	return files
}
