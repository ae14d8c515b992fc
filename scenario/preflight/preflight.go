// Package preflight checks a fabric and its settings before there is trouble:
// cyclic buffer dependencies with and without failures, headroom, ECN and PFC
// thresholds, ECMP, and hosts that depend on one link or switch. Each finding has
// a proof: a scenario that shows the harm when it is simulated. What routes lead to
// is topo's work; this package adds settings, traffic, proofs and reports.
// docs/check.md describes it for users.
package preflight

import (
	"cmp"
	"context"
	"slices"

	"github.com/weft-telemetry/weft/inhost/settings"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/scenario/preflight/configdb"
	"github.com/weft-telemetry/weft/topo"
)

// Severity is the severity of a finding.
type Severity string

// Severities, the worst first.
const (
	Fault   Severity = "fault"   // packets are lost or stuck in the fabric as it is
	Warning Severity = "warning" // it takes one failure, or costs performance
	Note    Severity = "note"    // it takes two failures at once
)

var severities = []Severity{Fault, Warning, Note}

// Rule is a kind of finding.
type Rule struct {
	ID    string
	About string
}

// Rules of this package. Those of topo.Check have the names of its problems.
var rules = []Rule{
	{"buffer-cycle", "Cyclic buffer dependency: PFC can deadlock the ports of a cycle"},
	{"no-fallback", "Hosts that lose each other when one link or switch fails"},
	{"headroom", "PFC headroom smaller than what arrives after a pause"},
	{"buffer", "Packet buffer too small for headroom and reserve"},
	{"ecn-above-pfc", "ECN marks only after PFC has paused the sender"},
	{"polarization", "ECMP leaves ports of equal cost unused"},
	{"collision", "Queue pairs of a job share links that ECMP could spread them over"},
	{configdb.MTU, "MTU differs between two switches, is higher on a host than on its switch, or below the fabric's frames"},
	{configdb.RDMAMTU, "MTU of a host makes RDMA packets smaller than the switch's port takes"},
	{configdb.Speed, "Speed of a port differs from the fabric's link"},
	{configdb.PFC, "PFC priorities differ between two ends of a link, or from the fabric's"},
	{configdb.NoBuffer, "PFC is on for a priority group without headroom"},
	{configdb.DSCP, "DSCP maps differ between switches, or from a host's priorities"},
	{configdb.ECN, "ECN thresholds differ between switches or from the fabric's, or a host does not react to marks"},
	{configdb.Missing, "A switch, port or host without a configuration, or a setting that a driver does not answer"},
	{string(topo.Isolated), "Nodes without links"},
	{string(topo.Partitioned), "The fabric is in several parts"},
	{string(topo.Unreachable), "Hosts without a route to others"},
	{string(topo.Loop), "Forwarding loop"},
	{string(topo.Detour), "Static routes off the shortest paths"},
	{string(topo.Uneven), "ECMP spreads flows evenly over links of different rates"},
	{string(topo.Lossy), "Links that lose packets"},
	{string(topo.Unchecked), "A check that was skipped"},
}

// Finding is something to mend before it does harm.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	Text     string   `json:"text"`
	Places   []string `json:"places,omitempty"`   // ports and nodes, such as tor0:Ethernet4
	Failures []string `json:"failures,omitempty"` // that lead to it, each alone
	Mend     string   `json:"mend,omitempty"`
	Proof    *Proof   `json:"proof,omitempty"`

	prove func() (*trial, error) // makes the proof; nil: nothing to simulate
}

// Report is the result of a check.
type Report struct {
	Fabric   string    `json:"fabric"`
	Singles  int       `json:"single_failures"` // that were checked
	Doubles  int       `json:"double_failures"`
	Findings []Finding `json:"findings"`
}

// Count returns the number of findings of a severity.
func (r *Report) Count(s Severity) (n int) {
	for i := range r.Findings {
		if r.Findings[i].Severity == s {
			n++
		}
	}
	return n
}

// Options of a check.
type Options struct {
	Doubles int    // double failures to draw
	Seed    uint64 // of those draws
	Prove   bool   // simulate the proof of each finding

	// ConfigDB holds the configurations of switches; nil: none are compared.
	ConfigDB map[model.NodeID]*configdb.Config
	// Hosts holds the settings of hosts; nil: none are compared.
	Hosts map[model.NodeID]*settings.Host
}

// checker is a check in progress.
type checker struct {
	s      *scenario.Scenario
	fabric *topo.Fabric
	routes *topo.Routes
	opts   Options
	report *Report
}

// Run checks the fabric, settings and traffic of a scenario.
func Run(ctx context.Context, s *scenario.Scenario, opts Options) (*Report, error) {
	routes, err := s.IntendedRoutes()
	if err != nil {
		return nil, err
	}
	c := &checker{
		s: s, fabric: routes.Fabric(), routes: routes, opts: opts,
		report: &Report{Fabric: cmp.Or(routes.Fabric().Name(), s.Name), Findings: []Finding{}},
	}
	c.checkRoutes()
	for _, check := range []func(context.Context) error{c.checkFailures, c.checkBuffers, c.checkECMP, c.checkJobs, c.checkConfigs} {
		if err := check(ctx); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(c.report.Findings, func(a, b Finding) int {
		return slices.Index(severities, a.Severity) - slices.Index(severities, b.Severity)
	})
	if opts.Prove {
		err = c.proveAll(ctx)
	}
	return c.report, err
}

func (c *checker) add(f Finding) { c.report.Findings = append(c.report.Findings, f) }

// lossless reports whether PFC guards any priority: without it, nothing can
// deadlock and nothing has headroom.
func (c *checker) lossless() bool { return !c.s.Sim.NoPFC && (c.s.Sim.HPCC || c.s.Sim.Lossless != 0) }

// checkRoutes adds the findings of topo.Check.
func (c *checker) checkRoutes() {
	for _, f := range topo.Check(c.routes) {
		out := Finding{Rule: string(f.Problem), Severity: Warning, Text: f.Text, Mend: mends[f.Problem]}
		if f.Severity == topo.Fault {
			out.Severity = Fault
		}
		for _, n := range f.Nodes {
			out.Places = append(out.Places, c.fabric.Node(n).Name)
		}
		for _, p := range f.Ports {
			out.Places = append(out.Places, c.fabric.PortRef(p))
		}
		if f.Problem == topo.BufferCycle {
			if !c.lossless() {
				continue
			}
			out.Rule, out.Severity = "buffer-cycle", Fault
			out.prove = func() (*trial, error) { return c.cycleTrial(c.routes, topo.Failure{}, f.Ports) }
		}
		c.add(out)
	}
}

// mends say what to do about problems of routes.
var mends = map[topo.Problem]string{
	topo.Isolated:    "connect the node, or remove it from the topology",
	topo.Partitioned: "connect the parts",
	topo.Unreachable: "add routes where packets are dropped",
	topo.Loop:        "correct the static routes of the switches in the loop",
	topo.BufferCycle: "route up and then down only, or give packets that turn back a lossless priority of their own",
	topo.Detour:      "remove the static route unless it is intended",
	topo.Uneven:      "use links of one rate, or weighted ECMP",
	topo.Lossy:       "replace cable or transceiver",
}
