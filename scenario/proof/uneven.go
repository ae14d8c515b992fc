package proof

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/topo"
)

// unevenWorld is how switches spread flows over equal-cost ports in the time of an incident.
type unevenWorld struct {
	experiments
	fabric   *topo.Fabric
	routes   *topo.Routes
	flows    []sentFlow
	window   time.Duration
	unusable int
	groups   []evenGroup
}

// evenGroup is a switch's equal-cost ports, by the flows that may leave by any of them.
type evenGroup struct {
	at     model.NodeID
	ports  []model.PortID
	flows  []int
	stated bool // the incident is about this switch
}

// proveUneven tests the verdict that the hash of switches loads equal-cost ports unevenly.
// With another hash there the load must be even; that of large flows is not.
func proveUneven(ctx context.Context, c *DeliveryCase) (*DeliveryResult, error) {
	w, err := newUnevenWorld(c)
	if err != nil {
		return nil, err
	}
	r := &DeliveryResult{Victims: len(w.flows), Notes: []string{}, Remedies: []DeliveryTrial{}}
	if w.unusable > 0 {
		r.Notes = append(r.Notes, plural.Count(w.unusable, "flow")+" not rebuilt: their records do not show a path")
	}
	recorded := make([]passes, len(w.flows))
	for i := range w.flows {
		recorded[i] = w.flows[i].counts
	}
	r.Recorded = w.harm(recorded, true)
	if r.Rebuilt, err = w.run(ctx, "rebuilt", "as recorded", nil, 0); err != nil {
		return nil, err
	}
	r.Error = min(1, absolute(r.Rebuilt.Harm-r.Recorded)/max(r.Recorded, 1e-9))
	fair, most := w.chance()
	r.Notes = append(r.Notes, fmt.Sprintf("ports that are drawn at random leave %.3g %%, and in one of 20 draws more than %.3g %%", 100*fair, 100*most))
	try := func(name, what string, hashed []model.NodeID) (DeliveryTrial, error) {
		t, err := w.rehashed(ctx, name, what, hashed)
		t.Gain = min(1, (r.Rebuilt.Harm-t.Harm)/max(r.Rebuilt.Harm-fair, 1e-9))
		return t, err
	}
	named := w.nodesOf(c.Named)
	if r.Without, err = try("without", "with another ECMP hash at "+describePlaces(w.fabric, c.Named), named); err != nil {
		return nil, err
	}
	if other, ok := w.other(named); ok {
		t, err := try("control", "with another one at "+w.fabric.Node(other).Name+" instead", []model.NodeID{other})
		if err != nil {
			return nil, err
		}
		r.Control = &t
	}
	all, err := try("rehashed", "with another ECMP hash at all switches", w.fabric.Switches())
	if err != nil {
		return nil, err
	}
	r.Remedies = append(r.Remedies, all)
	r.judge(fmt.Sprintf("the packets of %s are beyond the even share of their port", plural.Count(r.Victims, "flow")))
	if r.Verdict != NotShown && r.Rebuilt.Harm <= most {
		r.Verdict = Refuted
		r.Text = fmt.Sprintf("%.3g %% of the packets of %s are beyond the even share of their port, and ports that are drawn at random leave as much: no hash is the cause",
			100*r.Rebuilt.Harm, plural.Count(r.Victims, "flow"))
	}
	r.Runs = w.runs
	return r, nil
}

// switchesOf returns the switches of an incident about uneven load.
func switchesOf(in *api.IncidentDetail) (list []Place) {
	for _, name := range in.Nodes {
		list = append(list, Place{Node: name})
	}
	if node, _, _ := strings.Cut(in.Location, ":"); !slices.Contains(list, Place{Node: node}) {
		list = append(list, Place{Node: node})
	}
	return list
}

// newUnevenWorld reads the records of a case.
func newUnevenWorld(c *DeliveryCase) (w *unevenWorld, err error) {
	w = &unevenWorld{experiments: experiments{c: c}, fabric: c.Fabric.Topology.Fabric}
	if w.routes, err = c.Fabric.Topology.Routes(); err != nil {
		return nil, err
	}
	counted := deliveryWorld{fabric: w.fabric}
	from, to := c.Incident.Begin, c.Incident.Updated
	if c.Incident.End != nil {
		to = *c.Incident.End
	}
	w.window = max(to.Sub(from), time.Millisecond)
	for i := range c.Flows {
		f := sentFlow{}
		var ok bool
		if f.countedFlow, ok = counted.ends(&c.Flows[i]); !ok || !f.read(w.fabric, &counted, &c.Flows[i], from, to, w.routes) {
			w.unusable++
			continue
		}
		if f.sent == 0 || len(f.hops) == 0 {
			continue // in none of these slots, or of one switch alone
		}
		// Every packet took the path of the others: what a switch missed is no matter here.
		for _, h := range f.hops {
			f.counts[h.at], f.counts[h.to] = f.sent, f.sent
		}
		w.flows = append(w.flows, f)
	}
	stated := w.nodesOf(switchesOf(c.Incident))
	for i := range w.flows {
		for _, h := range w.flows[i].hops {
			w.join(h.at, w.routes.NextHops(h.at, w.flows[i].key.Dst), i, slices.Contains(stated, h.at))
		}
	}
	if !slices.ContainsFunc(w.groups, func(g evenGroup) bool { return g.stated }) {
		return nil, &MissingError{fmt.Sprintf("no flow has records from %s to %s that pass equal-cost ports of the incident's switches (flow records of all switches of the path)",
			from.UTC().Format(time.RFC3339Nano), to.UTC().Format(time.RFC3339Nano))}
	}
	return w, nil
}

// join adds a flow to the group of a switch's ports.
func (w *unevenWorld) join(at model.NodeID, ports []model.PortID, flow int, stated bool) {
	if len(ports) < 2 {
		return
	}
	for i := range w.groups {
		if g := &w.groups[i]; g.at == at && slices.Equal(g.ports, ports) {
			g.flows = append(g.flows, flow)
			return
		}
	}
	w.groups = append(w.groups, evenGroup{at: at, ports: slices.Clone(ports), flows: []int{flow}, stated: stated})
}

func (w *unevenWorld) nodesOf(places []Place) (list []model.NodeID) {
	for _, x := range places {
		if id, ok := w.fabric.ByName(x.Node); ok && !slices.Contains(list, id) {
			list = append(list, id)
		}
	}
	return list
}

// harm returns the share of packets that are beyond an equal share of their port, at the
// incident's switches or at the others.
func (w *unevenWorld) harm(counts []passes, stated bool) float64 {
	var beyond, all float64
	for i := range w.groups {
		g := &w.groups[i]
		if g.stated != stated {
			continue
		}
		load := make([]float64, len(g.ports))
		for _, f := range g.flows {
			for j, p := range g.ports {
				if peer := w.fabric.Port(model.Port{Node: g.at, Port: p}).Peer.Node; counts[f][g.at] > 0 {
					load[j] += counts[f][peer]
				}
			}
		}
		more, sum := beyondEven(load)
		beyond, all = beyond+more, all+sum
	}
	if all == 0 {
		return 0
	}
	return beyond / all
}

// draws is how often ports are drawn at random.
const draws = 200

// chance returns the harm at the incident's switches if each flow took any of its ports:
// the mean of draws, and what one of 20 exceeds. Few flows, or large ones, are uneven under
// every hash.
func (w *unevenWorld) chance() (mean, most float64) {
	rng := rand.New(rand.NewPCG(1, draws))
	var all []float64
	for range draws {
		var beyond, sent float64
		for i := range w.groups {
			g := &w.groups[i]
			if !g.stated {
				continue
			}
			load := make([]float64, len(g.ports))
			for _, f := range g.flows {
				load[rng.IntN(len(load))] += w.flows[f].sent
			}
			more, sum := beyondEven(load)
			beyond, sent = beyond+more, sent+sum
		}
		all = append(all, beyond/max(sent, 1))
		mean += all[len(all)-1] / draws
	}
	slices.Sort(all)
	return mean, all[draws*95/100]
}

// beyondEven returns how much of the loads of ports is above their mean, and their sum.
func beyondEven(load []float64) (beyond, sum float64) {
	for _, n := range load {
		sum += n
	}
	for _, n := range load {
		beyond += max(0, n-sum/float64(len(load)))
	}
	return beyond, sum
}

// other returns the switch that spreads most packets over equal-cost ports, of those that
// neither the verdict names nor the incident is about.
func (w *unevenWorld) other(named []model.NodeID) (best model.NodeID, ok bool) {
	sum := map[model.NodeID]float64{}
	for i := range w.groups {
		if g := &w.groups[i]; !g.stated && !slices.Contains(named, g.at) {
			for _, f := range g.flows {
				sum[g.at] += w.flows[f].sent
			}
		}
	}
	for id, n := range sum {
		if c := cmp.Compare(n, sum[best]); !ok || c > 0 || c == 0 && id < best {
			best, ok = id, true
		}
	}
	return best, ok
}

// rehashed simulates other ECMP hashes at some switches, and returns the middle one.
func (w *unevenWorld) rehashed(ctx context.Context, name, what string, at []model.NodeID) (DeliveryTrial, error) {
	var all []DeliveryTrial
	for i := range uint64(hashes) {
		t, err := w.run(ctx, name, fmt.Sprintf("%s: the middle of %d", what, hashes), at, i+1)
		if err != nil {
			return DeliveryTrial{}, err
		}
		all = append(all, t)
	}
	slices.SortStableFunc(all, func(a, b DeliveryTrial) int { return cmp.Compare(a.Harm, b.Harm) })
	return all[len(all)/2], nil
}

// slower is by how much the rebuilt flows are slower than the recorded ones. Which ports they
// take does not depend on it, and no queue overflows.
const slower = 4

// unevenPasses bounds the packets that switches of a rebuilt run count. Only shares matter.
const unevenPasses = 25_000

// run simulates the flows on their recorded paths, but for switches with another hash.
func (w *unevenWorld) run(ctx context.Context, name, what string, hashed []model.NodeID, seed uint64) (t DeliveryTrial, err error) {
	doc := *w.c.Fabric.Topology
	doc.Seed += seed
	topology, err := scenario.TopologySection(&doc)
	if err != nil {
		return t, err
	}
	counted := deliveryWorld{fabric: w.fabric}
	for i := range w.flows {
		counted.flows = append(counted.flows, w.flows[i].countedFlow)
	}
	part, payload := counted.share(unevenPasses), counted.payload()
	length := time.Duration(float64(w.window) * part * slower)
	settings := scenario.Scenario{Sim: w.c.Fabric.Sim}
	settings.Sim.MTU = int32(payload)
	var b strings.Builder
	fmt.Fprintf(&b, "# Rebuilt from the flow records of an incident. Run it with weft run.\nname: %s\nabout: >\n  What records say of the incident, %s.\nseed: 1\nduration: %v\n",
		name, what, (length + settle).Round(time.Microsecond))
	b.WriteString(topology + settings.FabricSection() + "traffic:\n  - kind: flows\n    name: recorded\n    list:\n")
	var routes strings.Builder
	for i := range w.flows {
		f := &w.flows[i]
		n, key := f.packets(part), counted.rebuiltKey(&f.countedFlow)
		rate := n * (payload + datagramHeaders6) * 8 / length.Seconds()
		fmt.Fprintf(&b, "      - {from: %s, to: %s, source-port: %d, port: %d, transport: udp, priority: 0, bytes: %d, start: %v, rate: %d, ipv6: %s}\n",
			w.fabric.Node(f.src).Name, w.fabric.Node(f.dst).Name, key.SrcPort, key.DstPort, int64(n*payload), time.Duration(i)*stagger, int64(max(rate, 1)), onOff(!f.key.Src.Is4()))
		for _, h := range f.hops {
			if !slices.Contains(hashed, h.at) {
				fmt.Fprintf(&routes, "      - {at: %s, flow: %q, via: [%s]}\n", w.fabric.Node(h.at).Name, key.String(), w.fabric.Node(h.to).Name)
			}
		}
	}
	if routes.Len() > 0 {
		b.WriteString("faults:\n  - kind: reroute\n    routes:\n" + routes.String())
	}
	all, err := w.count(ctx, name, b.String())
	if err != nil {
		return t, err
	}
	counts := make([]passes, len(w.flows))
	for i := range w.flows {
		counts[i] = passes{}
		for _, c := range all {
			if n := c.packets[counted.rebuiltKey(&w.flows[i].countedFlow)]; n > 0 {
				counts[i][c.id] = n * w.flows[i].sent / w.flows[i].packets(part)
			}
		}
	}
	return DeliveryTrial{Name: name, What: what, Harm: w.harm(counts, true), Others: w.harm(counts, false), Scenario: b.String()}, nil
}
