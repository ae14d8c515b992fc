package scenario

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/dataplane/simhost"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/topo/file"
	"github.com/weft-telemetry/weft/topo/file/tree"
)

// schema is a scenario file.
type schema struct {
	sourcePos
	Name             string           `yaml:"name"`
	About            string           `yaml:"about"`
	Seed             uint64           `yaml:"seed"`
	Duration         time.Duration    `yaml:"duration"`
	StopWhenFinished bool             `yaml:"stop-when-finished"`
	Topology         decodedElsewhere `yaml:"topology"`
	Fabric           fabricSpec       `yaml:"fabric"`
	Traffic          []trafficItem    `yaml:"traffic"`
	Services         []serviceSpec    `yaml:"services"`
	Moves            []migrationSpec  `yaml:"moves"`
	BGP              bgpSpec          `yaml:"bgp"`
	Faults           []faultItem      `yaml:"faults"`
	Clocks           []clockSpec      `yaml:"clocks"`
	Telemetry        []programItem    `yaml:"telemetry"`
	Agents           agentsSpec       `yaml:"agents"`
	Management       managementSpec   `yaml:"management"`
	Expect           expectSpec       `yaml:"expect"`
	Traces           tracesSpec       `yaml:"traces"`
	Output           outputSpec       `yaml:"output"`
}

// defaultSchema is what an empty file means.
func defaultSchema() schema {
	output, traces := DefaultOutput(), DefaultTraces()
	return schema{
		Seed: 1, Traces: tracesSpec{CloseAfter: traces.CloseAfter, RouteSettle: traces.RouteSettle},
		Fabric: defaultFabric(), Agents: defaultAgents(), Management: defaultManagement(),
		Output: outputSpec{DeadlockAfter: output.DeadlockAfter},
	}
}

// decodedElsewhere is a section that is decoded elsewhere.
type decodedElsewhere struct{}

func (*decodedElsewhere) decode(tree.Value, string) error { return nil }

type clockSpec struct {
	sourcePos
	Nodes  []ref      `yaml:"nodes"`
	Offset signedSpan `yaml:"offset"`
	Drift  drift      `yaml:"drift"`
}

type managementSpec struct {
	sourcePos
	Delay   time.Duration `yaml:"delay"`
	Jitter  time.Duration `yaml:"jitter"`
	Loss    share         `yaml:"loss"`
	Reorder bool          `yaml:"reorder"`

	InBand    bool           `yaml:"in-band"`
	Collector ref            `yaml:"collector"`
	Priority  model.Priority `yaml:"priority"`
	Unpaused  bool           `yaml:"unpaused"`
}

func defaultManagement() managementSpec {
	d := simhost.DefaultManagementConfig()
	return managementSpec{Delay: d.Delay, Jitter: d.Jitter, Loss: share(d.Loss), Reorder: d.Reorder}
}

func (sc *schema) resolveManagement(s *Scenario, e *env) (err error) {
	m := &sc.Management
	s.Management = Management{
		Position: m.Position, Delay: m.Delay, Jitter: m.Jitter, Loss: float64(m.Loss), Reorder: m.Reorder,
		InBand: m.InBand, Priority: m.Priority, Unpaused: m.Unpaused,
	}
	if m.InBand != m.Collector.given() {
		return m.errorf("in-band", "in-band %v and collector %q, want a host as collector with in-band on, and none with off",
			onOff(m.InBand), m.Collector.text)
	}
	if m.InBand {
		s.Management.Collector, err = e.host(m.Collector)
	}
	return err
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

type tracesSpec struct {
	sourcePos
	CloseAfter  time.Duration `yaml:"close-after"`
	RouteSettle time.Duration `yaml:"route-settle"`
}

type outputSpec struct {
	sourcePos
	Sample        time.Duration `yaml:"sample"`
	DeadlockAfter time.Duration `yaml:"deadlock-after"`
	Capture       []ref         `yaml:"pcap"`
}

// resolve resolves all names and builds the scenario.
func (sc *schema) resolve(doc *file.Document, load loader) (*Scenario, error) {
	if sc.Duration <= 0 {
		return nil, sc.errorf("duration", "duration %v, want above 0", sc.Duration)
	}
	e := &env{names: names{doc.Fabric}, load: load}
	s := &Scenario{
		Name: sc.Name, About: sc.About, Seed: sc.Seed, Duration: sc.Duration, StopWhenFinished: sc.StopWhenFinished,
		Topology: doc, Expect: sc.Expect.list, fabricPos: sc.position("topology"),
		Traces: Traces{CloseAfter: sc.Traces.CloseAfter, RouteSettle: sc.Traces.RouteSettle},
		Output: Output{Sample: sc.Output.Sample, DeadlockAfter: sc.Output.DeadlockAfter},
	}
	if s.Name == "" {
		name := filepath.Base(sc.File)
		s.Name = strings.TrimSuffix(name, filepath.Ext(name))
	}
	if sc.has("fabric") {
		s.fabricPos = sc.Fabric.position("buffer")
	}
	var err error
	if s.Sim, err = sc.Fabric.config(); err != nil {
		return nil, err
	}
	if err := sc.Fabric.checkINT(&s.Sim, doc.Fabric); err != nil {
		return nil, err
	}
	if s.Keepalive, err = sc.BGP.interval(); err != nil {
		return nil, err
	}
	for _, section := range []func(*Scenario, *env) error{
		sc.resolveServices, sc.resolveMoves, sc.resolveTraffic, sc.resolveFaults, sc.resolveClocks,
		sc.resolveTelemetry, sc.resolveAgents, sc.resolveManagement, sc.resolveDiagnoses, sc.Expect.traces.resolve,
	} {
		if err := section(s, e); err != nil {
			return nil, err
		}
	}
	for _, r := range sc.Output.Capture {
		p, err := e.port(r)
		if err != nil {
			return nil, err
		}
		s.Output.Capture = append(s.Output.Capture, p)
	}
	return s, nil
}

func (sc *schema) resolveTraffic(s *Scenario, e *env) error {
	for _, item := range sc.Traffic {
		g, err := item.generator(e)
		if err != nil {
			return err
		}
		s.Traffic = append(s.Traffic, Traffic{Position: item.from().Position, Name: item.named(), Generator: g})
	}
	s.Notes = append(s.Notes, e.notes...)
	for _, x := range s.Expect {
		if x.Group != "" && !slices.ContainsFunc(s.Traffic, func(t Traffic) bool { return t.Name == x.Group }) {
			return x.Position.Errorf("expectation of group %q, want the name of one of the traffic items", x.Group)
		}
	}
	return nil
}

func (sc *schema) resolveFaults(s *Scenario, e *env) error {
	var learned []routeChange
	for _, item := range sc.Faults {
		f, err := item.fault(e)
		if err != nil {
			return err
		}
		m := item.when()
		s.Faults = append(s.Faults, Fault{
			Position: m.Position, Kind: m.Kind,
			Injection: sim.Injection{At: m.At, For: m.For, Fault: f},
		})
		if down, ok := item.faultSpec.(*linkDownSpec); ok && down.has("reconverge") {
			learned = append(learned, down.routeChange(e.fabric.Port(f.(sim.LinkDown).Port).Link)...)
		}
	}
	s.Changes = routeChanges(learned)
	return nil
}

// routeChange is when routing reacts to a link.
type routeChange struct {
	at   model.Time
	link int
	step int // 1: down, -1: up again
}

func (s *linkDownSpec) routeChange(link int) []routeChange {
	list := []routeChange{{s.At.Add(s.Reconverge), link, 1}}
	if s.For > 0 {
		list = append(list, routeChange{s.At.Add(s.For + s.Reconverge), link, -1})
	}
	return list
}

// routeChanges returns which links are down from when on.
func routeChanges(learned []routeChange) (changes []RouteChange) {
	slices.SortStableFunc(learned, func(a, b routeChange) int { return cmp.Compare(a.at, b.at) })
	down := make(map[int]int)
	for _, l := range learned {
		if down[l.link] += l.step; down[l.link] == 0 {
			delete(down, l.link)
		}
		changes = append(changes, RouteChange{At: l.at, Down: slices.Sorted(maps.Keys(down))})
	}
	return changes
}

func (sc *schema) resolveClocks(s *Scenario, e *env) error {
	seen := make(map[model.NodeID]bool)
	for i := range sc.Clocks {
		c := &sc.Clocks[i]
		if len(c.Nodes) == 0 {
			return c.errorf("", "clock %d has no nodes, want at least one", i+1)
		}
		ids, err := e.nodes(c.Nodes)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if seen[id] {
				return c.errorf("nodes", "clock of %s is set twice, want it once", e.fabric.Node(id).Name)
			}
			seen[id] = true
			s.Clocks = append(s.Clocks, Clock{id, sim.Clock{Offset: time.Duration(c.Offset), Drift: float64(c.Drift)}})
		}
	}
	return nil
}
