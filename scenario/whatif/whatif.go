// Package whatif forecasts a change of a fabric before it is made: links that fail,
// nodes that are drained, jobs that are added. It compares load and slowdown before
// and after, and says which pairs of hosts lose their routes and which cyclic buffer
// dependencies the change closes. Rates are max-min fair (topo/fairshare): nothing
// is simulated. docs/check.md describes it for users.
package whatif

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/scenario/served"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/fairshare"
	"github.com/weft-telemetry/weft/wire/roce"
)

// Change is what is to be changed.
type Change struct {
	Links []int          // that fail, as indexes in Fabric.Links
	Drain []model.NodeID // switches that routes avoid, hosts that neither send nor receive
	Jobs  []string       // files with traffic to add
}

// Answer is the forecast of a change.
type Answer struct {
	Fabric string `json:"fabric"`
	// Live is what a running controller counted; nil: the traffic is that of a file.
	Live *served.Traffic `json:"live,omitempty"`
	// Sampled says that the file has no jobs: each host sends to some others.
	Sampled bool     `json:"sampled_traffic"`
	Before  State    `json:"before"`
	After   State    `json:"after"`
	Links   []Link   `json:"links"` // whose load changes, the most loaded after it first
	Jobs    []Job    `json:"jobs"`
	CutOff  []string `json:"cut_off"` // hosts that lose their last link
	// LostPairs counts ordered pairs of other hosts without a route; Lost is one.
	LostPairs int        `json:"lost_pairs"`
	Lost      string     `json:"lost,omitempty"`
	Cycles    [][]string `json:"buffer_cycles"` // that the change closes
}

// State is the fabric before or after the change.
type State struct {
	Flows        int     `json:"flows"`
	NoPath       int     `json:"flows_without_path"`
	MeanSlowdown float64 `json:"mean_slowdown"` // of flows with a path
	MaxSlowdown  float64 `json:"max_slowdown"`
	FullLinks    int     `json:"full_links"` // directions of links at their rate
}

// Link is one direction of a link.
type Link struct {
	Port   string  `json:"port"`
	Before float64 `json:"load_before"` // share of its rate
	After  float64 `json:"load_after"`
}

// Job is a job of the file, or one that is added.
type Job struct {
	Name   string  `json:"name"`
	Added  bool    `json:"added"`
	Before float64 `json:"max_slowdown_before,omitempty"`
	After  float64 `json:"max_slowdown_after"`
}

// AtRisk reports whether the change parts hosts or closes a cycle.
func (a *Answer) AtRisk() bool {
	return a.After.NoPath > a.Before.NoPath || a.LostPairs > 0 || len(a.Cycles) > 0
}

// fanout is the number of others that each host sends to where a file has no jobs.
const fanout = 8

// Ask forecasts a change of a scenario's fabric with its own jobs.
func Ask(s *scenario.Scenario, change Change) (*Answer, error) {
	jobs, err := s.QueuePairs()
	if err != nil {
		return nil, err
	}
	a := &Answer{Sampled: len(jobs) == 0}
	if a.Sampled {
		jobs = []scenario.JobFlows{{Name: "sampled", Flows: sample(s.Topology.Fabric, s.Seed)}}
	}
	return a, a.forecast(s, jobs, change)
}

// AskLive forecasts a change of a fabric with the traffic that a controller counted. A
// flow is taken to want the rate that it had, and keeps its path unless that fails.
func AskLive(s *scenario.Scenario, now *served.Traffic, change Change) (*Answer, error) {
	a := &Answer{Live: now}
	return a, a.forecast(s, now.Jobs, change)
}

// forecast compares jobs before and after a change.
func (a *Answer) forecast(s *scenario.Scenario, jobs []scenario.JobFlows, change Change) error {
	routes, err := s.IntendedRoutes()
	if err != nil {
		return err
	}
	f := routes.Fabric()
	a.Fabric, a.Links, a.Jobs, a.CutOff, a.Cycles = cmp.Or(f.Name(), s.Name), []Link{}, []Job{}, []string{}, [][]string{}
	added, err := addedJobs(s, change.Jobs)
	if err != nil {
		return err
	}
	after := slices.Concat(jobs, added)
	failure, drained := change.failure(f)
	outage, err := topo.NewFailureCheck(routes).After(failure)
	if err != nil {
		return err
	}
	a.addOutage(f, &outage)
	before, now := forecast(routes, jobs, nil), forecast(outage.Routes, after, drained)
	a.Before, a.After = before.state(f), now.state(f)
	a.addLinks(f, before.all, now.all)
	for i, j := range after {
		job := Job{Name: j.Name, Added: i >= len(jobs), After: now.slowest(i)}
		if !job.Added {
			job.Before = before.slowest(i)
		}
		a.Jobs = append(a.Jobs, job)
	}
	return nil
}

// addedJobs reads the jobs of files, which follow a scenario's own.
func addedJobs(s *scenario.Scenario, files []string) ([]scenario.JobFlows, error) {
	if len(files) == 0 {
		return nil, nil
	}
	own, err := s.QueuePairs()
	if err != nil {
		return nil, err
	}
	for _, path := range files {
		if s, err = s.AddTraffic(path); err != nil {
			return nil, err
		}
	}
	all, err := s.QueuePairs()
	if err != nil {
		return nil, err
	}
	if len(all) == len(own) {
		return nil, fmt.Errorf("%s: no queue pairs to forecast, want all-reduce, all-to-all, permutation, persistent or flows",
			strings.Join(files, ", "))
	}
	return all[len(own):], nil
}

// failure returns what routes avoid after a change, and the hosts without traffic.
func (c *Change) failure(f *topo.Fabric) (x topo.Failure, drained map[model.NodeID]bool) {
	drained = make(map[model.NodeID]bool)
	x.Links = slices.Clone(c.Links)
	for _, id := range c.Drain {
		if !f.Node(id).Role.IsSwitch() {
			drained[id] = true
			continue
		}
		sw := f.SwitchFailure(id)
		x.Links, x.Switches = append(x.Links, sw.Links...), append(x.Switches, id)
	}
	slices.Sort(x.Links)
	x.Links = slices.Compact(x.Links)
	return x, drained
}

// sample returns flows from each host to some others.
func sample(f *topo.Fabric, seed uint64) (flows []fairshare.Flow) {
	hosts := f.Hosts()
	rng := rand.New(rand.NewPCG(seed, 0))
	for at, src := range hosts {
		for i := range min(fanout, len(hosts)-1) {
			other := rng.IntN(len(hosts) - 1)
			if other >= at {
				other++ // not itself
			}
			dst := hosts[other]
			flows = append(flows, fairshare.Flow{Src: src, Key: model.FlowKey{
				Src: f.Node(src).IPv4, Dst: f.Node(dst).IPv4, SrcPort: uint16(49152 + i), DstPort: roce.Port, Proto: model.UDP,
			}})
		}
	}
	return flows
}

// forecasted is the forecast of jobs that run together.
type forecasted struct {
	all    *fairshare.Forecast
	starts []int // of each job in all; one more at the end
}

func forecast(r *topo.Routes, jobs []scenario.JobFlows, drained map[model.NodeID]bool) forecasted {
	var flows []fairshare.Flow
	out := forecasted{starts: []int{0}}
	for _, j := range jobs {
		for _, flow := range j.Flows {
			owners := r.Owners(flow.Key.Dst)
			if !drained[flow.Src] && (len(owners) != 1 || !drained[owners[0]]) {
				flows = append(flows, flow)
			}
		}
		out.starts = append(out.starts, len(flows))
	}
	out.all = fairshare.New(r, flows)
	return out
}

// slowest returns the highest slowdown of a job's flows that have a path; 0 if none
// has.
func (f *forecasted) slowest(job int) (worst float64) {
	for i := f.starts[job]; i < f.starts[job+1]; i++ {
		if own := &f.all.Flows[i]; !own.NoPath {
			worst = max(worst, own.Slowdown())
		}
	}
	return worst
}

func (f *forecasted) state(fabric *topo.Fabric) (s State) {
	s.Flows = len(f.all.Flows)
	sum := 0.0
	for i := range f.all.Flows {
		own := &f.all.Flows[i]
		if own.NoPath {
			s.NoPath++
			continue
		}
		sum += own.Slowdown()
		s.MaxSlowdown = max(s.MaxSlowdown, own.Slowdown())
	}
	if n := s.Flows - s.NoPath; n > 0 {
		s.MeanSlowdown = sum / float64(n)
	}
	for i, load := range f.all.Load {
		if load > 0.999*float64(fabric.Links()[i/2].Rate) {
			s.FullLinks++
		}
	}
	return s
}

func (a *Answer) addOutage(f *topo.Fabric, o *topo.Outage) {
	down := make(map[int]bool)
	for _, l := range o.Failure.Links {
		down[l] = true
	}
	for _, h := range f.Hosts() {
		ports := f.Node(h).Ports
		if len(ports) > 0 && !slices.ContainsFunc(ports, func(p topo.Port) bool { return !down[p.Link] }) {
			a.CutOff = append(a.CutOff, f.Node(h).Name)
		}
	}
	if a.LostPairs = o.LostPairs; a.LostPairs > 0 {
		a.Lost = fmt.Sprintf("%s → %s: packets are dropped at %s", f.Node(o.Src).Name, f.Node(o.Dst).Name, f.Node(o.Stops).Name)
	}
	for _, cycle := range o.Cycles {
		var names []string
		for _, p := range cycle {
			names = append(names, f.PortRef(p))
		}
		a.Cycles = append(a.Cycles, names)
	}
}

// addLinks lists the links whose load changes by more than a hundredth of their
// rate.
func (a *Answer) addLinks(f *topo.Fabric, before, after *fairshare.Forecast) {
	for i := range before.Load {
		rate := float64(f.Links()[i/2].Rate)
		l := Link{f.PortRef(fairshare.Egress(f, i)), before.Load[i] / rate, after.Load[i] / rate}
		if l.After-l.Before > 0.01 || l.Before-l.After > 0.01 {
			a.Links = append(a.Links, l)
		}
	}
	slices.SortStableFunc(a.Links, func(x, y Link) int {
		return cmp.Or(cmp.Compare(y.After, x.After), cmp.Compare(y.After-y.Before, x.After-x.Before))
	})
}
