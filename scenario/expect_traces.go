package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/file/tree"
)

// ExpectedFindings is what the traces of a run must show, and all that they
// may: nothing else of the kinds drop, silent and loop, nothing else above the
// bound of the others.
type ExpectedFindings struct {
	Position Position
	Findings []Finding
}

// Finding is one expected finding.
type Finding struct {
	Position Position
	Kind     string
	Node     model.NodeID  // the switch, or the mux
	Next     *model.NodeID // of a drop: the next hop of the switch
	Port     model.Port    // of slow-link and pauses
	Min      float64       // nanoseconds, ratio or frames
}

// findingKinds are the kinds of findings, and the keys that each needs.
var findingKinds = map[string][]string{
	"drop": {"switch"}, "silent": {"switch"}, "loop": {"switch"},
	"slow-mux": {"mux", "above"}, "slow-link": {"port", "above"}, "imbalance": {"switch", "above"}, "pauses": {
		"port",
		"above",
	},
}

// findingSpec is one item of traces in the section expect.
type findingSpec struct {
	sourcePos
	Kind   string `yaml:"kind"`
	Switch ref    `yaml:"switch"`
	Next   ref    `yaml:"next"`
	Mux    ref    `yaml:"mux"`
	Port   ref    `yaml:"port"`
	Above  string `yaml:"above"`
}

// findingsSpec is the list of items, or the word none.
type findingsSpec struct {
	Position
	given bool
	list  []findingSpec
}

func (p *findingsSpec) decode(v tree.Value, what string) error {
	p.Position, p.given = v.Position, true
	if text, err := v.Text(what); err == nil && text == "none" {
		return nil
	}
	return decode(v, &p.list, what)
}

// resolve resolves the names.
func (p *findingsSpec) resolve(s *Scenario, e *env) error {
	if !p.given {
		return nil
	}
	s.ExpectTraces = &ExpectedFindings{Position: p.Position}
	if _, ok := s.traced(); !ok {
		return p.Errorf(`traces are expected and no switch mirrors, want "- {kind: mirror}" under telemetry`)
	}
	for i := range p.list {
		f, err := p.list[i].finding(e)
		if err != nil {
			return err
		}
		s.ExpectTraces.Findings = append(s.ExpectTraces.Findings, f)
	}
	return nil
}

func (p *findingSpec) finding(e *env) (f Finding, err error) {
	f = Finding{Position: p.Position, Kind: p.Kind}
	needs, ok := findingKinds[p.Kind]
	if !ok {
		return f, p.errorf("kind", "finding of kind %q, want drop, silent, loop, slow-mux, slow-link, imbalance or pauses",
			p.Kind)
	}
	for _, key := range []string{"switch", "next", "mux", "port", "above"} {
		want := slices.Contains(needs, key)
		if key == "next" && (p.Kind == "drop" || p.Kind == "silent") {
			continue
		}
		if p.has(key) != want {
			return f, p.errorf(key, "%s has %s, want %s", p.Kind, map[bool]string{true: "no " + key, false: "an " + key}[want],
				strings.Join(needs, " and "))
		}
	}
	switch needs[0] {
	case "switch":
		f.Node, err = e.switchNamed(p.Switch)
	case "mux":
		f.Node, err = e.mux(p.Mux)
	case "port":
		f.Port, err = e.port(p.Port)
	}
	if err == nil && p.Next.given() {
		var id model.NodeID
		id, err = e.node(p.Next)
		f.Next = &id
	}
	if err == nil && p.has("above") {
		f.Min, err = p.parseMin()
	}
	return f, err
}

// parseMin parses the bound in the kind's unit.
func (p *findingSpec) parseMin() (float64, error) {
	if strings.HasPrefix(p.Kind, "slow") {
		d, err := parseSpan(p.Above)
		if err != nil {
			return 0, p.errorf("above", "above %q, want a duration such as 10us", p.Above)
		}
		return float64(d), nil
	}
	n, err := parseNumber(p.Above)
	if err != nil {
		return 0, p.errorf("above", "above %q, want a number", p.Above)
	}
	return n, nil
}

// observedFinding is a finding of the traces, as text and as values to match.
type observedFinding struct {
	kind  string
	nodes []model.NodeID // any of them matches
	next  *model.NodeID
	port  model.Port
	value float64
	text  string
}

// findings lists the findings of the traces. For links, equal-cost ports, muxes
// and pauses it lists every measurement; expectations have the bounds.
func (t *traceCollector) findings(f *topo.Fabric) (list []observedFinding) {
	name := func(id model.NodeID) string { return f.Node(id).Name }
	for _, x := range t.judge.Findings() {
		one := observedFinding{kind: x.Kind.String(), nodes: []model.NodeID{x.Switch}}
		one.text = fmt.Sprintf("%s at %s", one.kind, name(x.Switch))
		if x.Kind == trace.Loop {
			one.nodes = x.Switches
			var names []string
			for _, id := range x.Switches {
				names = append(names, name(id))
			}
			one.text = "loop of " + strings.Join(names, ", ")
		} else if x.Known {
			one.next = &x.Next
			one.text += " towards " + name(x.Next)
		}
		one.text += fmt.Sprintf(", %d of %d packets", x.Ended, x.Packets)
		list = append(list, one)
	}
	for _, m := range t.symptoms.Muxes() {
		list = append(list, observedFinding{
			kind: "slow-mux", nodes: []model.NodeID{m.Node}, value: float64(m.Max),
			text: fmt.Sprintf("%s up to %v", name(m.Node), m.Max),
		})
	}
	for _, l := range t.symptoms.Links() {
		list = append(list, observedFinding{
			kind: "slow-link", port: l.Port, value: float64(l.RoundTrip),
			text: fmt.Sprintf("%s round trip %v", f.PortName(l.Port), l.RoundTrip),
		})
	}
	for _, u := range t.symptoms.TakeImbalances() {
		list = append(list, observedFinding{
			kind: "imbalance", nodes: []model.NodeID{u.Switch}, value: u.Ratio,
			text: u.Describe(f),
		})
	}
	for _, p := range t.symptoms.Pauses() {
		if f.Node(f.Port(p.Port).Peer.Node).Role.IsSwitch() {
			continue // propagated: pauses that a host sends are the origin
		}
		list = append(list, observedFinding{
			kind: "pauses", port: p.Port, value: float64(p.Frames),
			text: fmt.Sprintf("%s received %d", f.PortName(p.Port), p.Frames),
		})
	}
	return list
}

// matches reports whether an observed finding is the expected one.
func (e *Finding) matches(s *observedFinding, f *topo.Fabric) bool {
	switch {
	case s.kind != e.Kind:
		return false
	case e.Kind == "slow-link":
		return s.port == e.Port || f.Port(s.port).Peer == e.Port
	case e.Kind == "pauses":
		return s.port == e.Port
	case e.Next != nil && (s.next == nil || *s.next != *e.Next):
		return false
	}
	return slices.Contains(s.nodes, e.Node)
}

// describe returns the expected finding as text.
func (e *Finding) describe(f *topo.Fabric) string {
	what := "traces: " + e.Kind + " at "
	if needs := findingKinds[e.Kind]; needs[0] == "port" {
		return what + f.PortName(e.Port)
	}
	what += f.Node(e.Node).Name
	if e.Next != nil {
		what += " towards " + f.Node(*e.Next).Name
	}
	return what
}

// judgeTraces compares the findings of traces with the expected ones.
func (x *session) judgeTraces() (rows []Judged) {
	if x.collector == nil {
		return nil
	}
	x.collector.finish(x.clock(x.net.Now()))
	all := x.collector.findings(x.fabric)
	expected := make([]bool, len(all))
	bounds := map[string]float64{}
	for i := range x.s.ExpectTraces.Findings {
		e := &x.s.ExpectTraces.Findings[i]
		bounds[e.Kind] = e.Min
		j := Judged{What: e.describe(x.fabric), Want: "found", Got: "not found"}
		if e.Min > 0 {
			j.Want = "above " + e.formatMin()
		}
		for k := range all {
			if !e.matches(&all[k], x.fabric) {
				continue
			}
			expected[k] = true
			j.Got, j.Pass = all[k].text, all[k].value >= e.Min
		}
		rows = append(rows, j)
	}
	var others []string
	for k := range all {
		bound, asked := bounds[all[k].kind]
		lost := findingKinds[all[k].kind][0] == "switch" && all[k].kind != "imbalance"
		if !expected[k] && (lost || asked && all[k].value >= bound) {
			others = append(others, all[k].text)
		}
	}
	j := Judged{What: "traces: anything else", Want: "none", Got: "none", Pass: len(others) == 0}
	if len(others) > 0 {
		j.Got = strings.Join(others, "; ")
	}
	return append(rows, j)
}

// formatMin prints Min.
func (e *Finding) formatMin() string {
	if strings.HasPrefix(e.Kind, "slow") {
		return time.Duration(e.Min).String()
	}
	return fmt.Sprint(e.Min)
}
