package prove

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/scenario/proof"
	"github.com/weft-telemetry/weft/topo"
)

// telemetryOfQueues is that of fabrics in which queues wait for each other.
const telemetryOfQueues = `agents: {}
telemetry:
  - {kind: flowset, slot: 10ms, flows: 200, ipv6: false}
  - {kind: epoch, length: 1ms, epochs: 2, flows: 256, readout-time: 10ms, snapshot-reuse: 5ms}
  - {kind: port-state, period: 20ms}
`

// portTo returns a switch's port to a neighbour as a place.
func portTo(f *topo.Fabric, at, to string) proof.Place {
	a, _ := f.ByName(at)
	b, _ := f.ByName(to)
	return proof.Place{Node: at, Port: f.Node(a).PortsTo(b)[0]}
}

// ringOfQueues draws a ring of switches that send clockwise by static routes, so that each
// link waits for buffer space after the next.
func ringOfQueues(seed uint64) (*diverted, error) {
	rng := rand.New(rand.NewPCG(seed, 300))
	n := 4 + rng.IntN(3)
	f, err := topo.Ring(n, 1, topo.DefaultLinks())
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "name: prove\nseed: %d\nduration: 100ms\ntopology:\n  generate: {kind: ring, switches: %d, hosts: 1, rate: 1Gb/s}\n  routes:\n", seed, n)
	var far, next []string
	d := &diverted{causes: []string{"deadlock"}}
	for i := range n {
		up := (i + 1) % n
		fmt.Fprintf(&b, "    - {at: s%d, to: 10.0.0.0/8, via: [s%d]}\n    - {at: s%d, to: h%d, via: [h%d]}\n", i, up, i, i, i)
		far = append(far, fmt.Sprintf("h%d>h%d", i, (i+2)%n))
		next = append(next, fmt.Sprintf("h%d>h%d", i, up))
		d.places = append(d.places, portTo(f, fmt.Sprintf("s%d", i), fmt.Sprintf("s%d", up)))
	}
	fmt.Fprintf(&b, "fabric: {mtu: 1024, buffer: %dMB, congestion-control: none}\n%straffic:\n", 1+rng.IntN(2), telemetryOfQueues)
	fmt.Fprintf(&b, "  - {kind: persistent, name: clockwise, pairs: [%s], rate: %dMb/s, start: %dms}\n", strings.Join(far, ", "), 800+rng.IntN(200), 20+rng.IntN(20))
	fmt.Fprintf(&b, "  - {kind: persistent, name: next, pairs: [%s], rate: %dMb/s, start: 1ms}\n", strings.Join(next, ", "), 5+rng.IntN(20))
	d.scenario, err = scenario.Parse("prove.yaml", []byte(b.String()))
	return d, err
}

// queuesOfWrongRoutes draws until queues do wait for each other: whether they do depends on
// which flows fill them first.
func queuesOfWrongRoutes(ctx context.Context, seed uint64) (d *diverted, err error) {
	for i := range uint64(draws) {
		if d, err = wrongRoutesInPod(rand.New(rand.NewPCG(seed, 301+i)), seed); err != nil {
			return nil, err
		}
		alone := *d.scenario
		alone.Telemetry = nil
		r, err := scenario.Run(ctx, &alone, scenario.Options{}, nil)
		if err != nil {
			return nil, err
		}
		if len(r.Deadlocks) > 0 {
			return d, nil
		}
	}
	return nil, fmt.Errorf("none of %d draws of wrong routes made a deadlock", draws)
}

// draws bounds how often a scenario is drawn.
const draws = 20

// wrongRoutesInPod draws a pod of a fat-tree in which packets to a host are sent down to
// another rack and up again, in both directions: four queues wait for each other.
func wrongRoutesInPod(rng *rand.Rand, seed uint64) (*diverted, error) {
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		return nil, err
	}
	pod := rng.IntN(4)
	tors := []string{fmt.Sprintf("tor%d", 2*pod), fmt.Sprintf("tor%d", 2*pod+1)}
	leaves := []string{fmt.Sprintf("leaf%d", 2*pod), fmt.Sprintf("leaf%d", 2*pod+1)}
	to := []string{fmt.Sprintf("h%d", 4*pod+rng.IntN(2)), fmt.Sprintf("h%d", 4*pod+2+rng.IntN(2))}
	var far, others []string
	for _, h := range rng.Perm(16) {
		if h/4 != pod && len(far) < 8 {
			far = append(far, fmt.Sprintf("h%d>%s", h, to[len(far)%2]))
		}
		if o := rng.IntN(16); o/4 != pod && h/4 != pod && o/2 != h/2 {
			others = append(others, fmt.Sprintf("h%d>h%d", h, o))
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "name: prove\nseed: %d\nduration: 90ms\ntopology: {generate: {kind: fat-tree, k: 4, rate: 1Gb/s}}\n", seed)
	fmt.Fprintf(&b, "fabric: {mtu: 1024, buffer: 1MB, congestion-control: none}\n%straffic:\n", telemetryOfQueues)
	fmt.Fprintf(&b, "  - {kind: persistent, name: others, pairs: [%s], rate: %dMb/s, start: 1ms}\n", strings.Join(others, ", "), 10+rng.IntN(40))
	at := 30 + rng.IntN(15)
	fmt.Fprintf(&b, "  - {kind: persistent, name: far, pairs: [%s], rate: %dMb/s, start: %dms}\nfaults:\n", strings.Join(far, ", "), 700+rng.IntN(250), at)
	fmt.Fprintf(&b, "  - {kind: reroute, at: %dms, routes: [{at: %s, to: %s, via: [%s]}, {at: %s, to: %s, via: [%s]}, {at: %s, to: %s, via: [%s]}, {at: %s, to: %s, via: [%s]}]}\n",
		at, leaves[0], to[0], tors[1], tors[1], to[0], leaves[1], leaves[1], to[1], tors[0], tors[0], to[1], leaves[0])
	d := &diverted{causes: []string{"deadlock"}}
	round := []string{leaves[0], tors[1], leaves[1], tors[0]}
	for i := range round {
		d.places = append(d.places, portTo(f, round[i], round[(i+1)%4]))
	}
	d.scenario, err = scenario.Parse("prove.yaml", []byte(b.String()))
	return d, err
}

// oneHash draws a fabric in which all switches use the same ECMP hash: those of the second
// tier send all flows up by one port.
func oneHash(seed uint64) (*diverted, error) {
	rng := rand.New(rand.NewPCG(seed, 302))
	var b strings.Builder
	fmt.Fprintf(&b, "name: prove\nseed: %d\nduration: 150ms\ntopology: {generate: {kind: fat-tree, k: 4, rate: 1Gb/s}}\n", seed)
	b.WriteString("fabric: {mtu: 1024, buffer: 2MB}\nagents: {}\ntelemetry:\n  - {kind: flowset, slot: 10ms, flows: 600, ipv6: false}\n")
	fmt.Fprintf(&b, "traffic:\n  - {kind: poisson, name: background, sizes: rpc, load: %d%%}\n", 4+rng.IntN(8))
	fmt.Fprintf(&b, "faults:\n  - {kind: hash-polarization, at: %dms}\n", 30+10*rng.IntN(3))
	d := &diverted{causes: []string{"imbalance"}, spread: true}
	for i := range 8 {
		d.places = append(d.places, proof.Place{Node: fmt.Sprintf("leaf%d", i)})
	}
	var err error
	d.scenario, err = scenario.Parse("prove.yaml", []byte(b.String()))
	return d, err
}

// wrongCycle returns two successive ports on the path of a flow that holds no port of the
// cycle, neither of which is one of it.
func (d *diverted) wrongCycle(rng *rand.Rand, f *topo.Fabric, rec *deliveries) ([]proof.Place, bool) {
	var found [][]proof.Place
	for i := range rec.flows {
		x := &rec.flows[i]
		var outs []proof.Place
		nodes := append(slices.Clone(x.Path), x.Dst)
		for j := range len(nodes) - 1 {
			at, _ := f.ByName(nodes[j])
			to, _ := f.ByName(nodes[j+1])
			if ports := f.Node(at).PortsTo(to); len(ports) > 0 {
				outs = append(outs, proof.Place{Node: nodes[j], Port: ports[0]})
			}
		}
		if slices.ContainsFunc(outs, func(p proof.Place) bool { return slices.Contains(d.places, p) }) {
			continue
		}
		for j := range len(outs) - 1 {
			found = append(found, outs[j:j+2])
		}
	}
	if len(found) == 0 {
		return nil, false
	}
	return found[rng.IntN(len(found))], true
}
