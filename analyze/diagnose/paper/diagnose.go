package paper

import (
	"cmp"
	"maps"
	"slices"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Diagnose returns the verdicts of Algorithm 2 on a slow flow, deadlocks first,
// then by their part in what paused it. There is none if no signature matches.
//
// The paper lists all matches and ranks none. Here each has as much of the
// victim's paused packets as the weights of the edges to it say.
func Diagnose(e *provenance.Evidence, victim model.FlowKey, f *topo.Fabric) []diagnose.Verdict {
	a := analysis{
		g:    provenance.Build(Telemetry(e), victim, f),
		part: map[int]float64{}, onPath: map[int]bool{},
	}
	a.victim = a.g.Flow(victim)
	if a.victim < 0 {
		return nil
	}
	paused := provenance.EdgesFrom(a.g.FlowPort, a.victim)
	for _, p := range paused {
		a.checkPort(p.To, p.Weight, nil)
	}
	a.concludePaths()
	if len(paused) == 0 {
		a.concludeContention()
	}
	return a.verdicts
}

// analysis is one run of Algorithm 2.
type analysis struct {
	g        *provenance.Graph
	victim   int // index of the flow
	part     map[int]float64
	onPath   map[int]bool // ports of the current path
	loops    [][]int
	verdicts []diagnose.Verdict
	steps    int
}

// maxSteps bounds the depth-first search, which visits a port once for every path
// to it.
const maxSteps = 1 << 14

// checkPort is CheckPortNode: it follows the port-level edges depth first.
func (a *analysis) checkPort(p int, weight float64, path []int) {
	if a.steps++; a.steps > maxSteps {
		return
	}
	if a.onPath[p] {
		a.diagnoseDeadlock(path[slices.Index(path, p):])
		return
	}
	next := a.neighbours(p)
	if len(next) == 0 {
		a.part[p] += weight // the initial node of PFC spreading
		return
	}
	all := 0.0
	for _, e := range next {
		all += e.Weight
	}
	a.onPath[p] = true
	for _, e := range next {
		a.checkPort(e.To, weight*e.Weight/all, append(path, p))
	}
	delete(a.onPath, p)
}

// neighbours returns the port-level edges of a port. One of weight 0 leads to a
// queue that was empty: it did not congest.
func (a *analysis) neighbours(p int) (list []provenance.Edge) {
	for _, e := range provenance.EdgesFrom(a.g.PortPort, p) {
		if e.Weight > 0 {
			list = append(list, e)
		}
	}
	return list
}

// diagnoseDeadlock is DeadlockDiagnose: a port of the loop with another edge leads
// to an initial port outside, otherwise flows contend inside.
func (a *analysis) diagnoseDeadlock(loop []int) {
	sorted := slices.Sorted(slices.Values(loop))
	if slices.ContainsFunc(a.loops, func(l []int) bool { return slices.Equal(l, sorted) }) {
		return
	}
	a.loops = append(a.loops, sorted)
	outside := analysis{g: a.g, part: map[int]float64{}, onPath: map[int]bool{}, loops: a.loops}
	for _, p := range loop {
		outside.onPath[p] = true
	}
	for _, p := range loop {
		for _, e := range a.neighbours(p) {
			if !slices.Contains(loop, e.To) {
				outside.followOutside(e.To, e.Weight, loop)
			}
		}
	}
	if len(outside.part) > 0 {
		a.addVerdict(anomaly.DeadlockOutOfLoop, heaviest(outside.part), loop)
		return
	}
	contention := map[int]float64{}
	for _, p := range loop {
		for _, c := range a.contributors(p) {
			contention[p] += c.Weight
		}
	}
	if len(contention) > 0 {
		a.addVerdict(anomaly.DeadlockInLoop, heaviest(contention), loop)
	}
}

// followOutside follows the edges from a loop to initial ports; those that return
// to the loop are part of it.
func (a *analysis) followOutside(p int, weight float64, loop []int) {
	if a.steps++; a.steps > maxSteps || a.onPath[p] {
		return
	}
	next := a.neighbours(p)
	if len(next) == 0 {
		a.part[p] += weight
		return
	}
	a.onPath[p] = true
	for _, e := range next {
		a.followOutside(e.To, e.Weight, loop)
	}
	delete(a.onPath, p)
}

// concludePaths adds the verdicts on the initial ports, heaviest first.
func (a *analysis) concludePaths() {
	ports := slices.Sorted(maps.Keys(a.part))
	slices.SortStableFunc(ports, func(x, y int) int { return cmp.Compare(a.part[y], a.part[x]) })
	for _, p := range ports {
		a.addVerdict(anomaly.PFCBackpressure, p, nil)
	}
}

// concludeContention adds the verdict on the port of the victim's path where most
// packets were ahead of its own: no packet of it was paused.
func (a *analysis) concludeContention() {
	depth := map[int]float64{}
	for i := range a.g.FlowEpochs {
		if e := &a.g.FlowEpochs[i]; e.Flow == a.victim && e.Record.Packets > 0 && len(a.contributors(e.Node)) > 0 {
			depth[e.Node] = max(depth[e.Node], float64(e.Record.Depth)/float64(e.Record.Packets))
		}
	}
	if len(depth) > 0 {
		a.addVerdict(anomaly.FlowContention, heaviest(depth), nil)
	}
}

// addVerdict is AnalyzeFlowContention: an initial port without contributors is
// paused by its peer.
func (a *analysis) addVerdict(what anomaly.Type, p int, loop []int) {
	v := diagnose.Verdict{
		Victim: a.g.Victim, Anomaly: what, Cause: anomaly.ContendingFlows, Initial: a.g.Nodes[p].Port,
		Culprits: a.contributors(p),
	}
	if len(v.Culprits) == 0 {
		v.Cause = anomaly.HostInjection
		if what == anomaly.PFCBackpressure {
			v.Anomaly = anomaly.PFCStorm
		}
	}
	for _, n := range loop {
		v.DeadlockCycle = append(v.DeadlockCycle, a.g.Nodes[n].Port)
	}
	a.verdicts = append(a.verdicts, v)
}

// contributors returns the flows with a positive port-flow weight, heaviest first,
// with their shares.
func (a *analysis) contributors(p int) (list []diagnose.Culprit) {
	all := 0.0
	for _, e := range a.g.Contributions().At(p) {
		if e.Weight > 0 {
			list = append(list, diagnose.Culprit{Flow: a.g.Flows[e.To], Weight: e.Weight})
			all += e.Weight
		}
	}
	for i := range list {
		list[i].Weight /= all
	}
	slices.SortStableFunc(list, func(x, y diagnose.Culprit) int { return cmp.Compare(y.Weight, x.Weight) })
	return list
}

// heaviest returns the port with the largest value; of equal ones the first.
func heaviest(ports map[int]float64) int {
	best := -1
	for _, p := range slices.Sorted(maps.Keys(ports)) {
		if best < 0 || ports[p] > ports[best] {
			best = p
		}
	}
	return best
}
