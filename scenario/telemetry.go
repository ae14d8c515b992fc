package scenario

import (
	"fmt"
	"maps"
	"slices"

	"github.com/weft-telemetry/weft/dataplane/simhost"
	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo/file/tree"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Program is a telemetry program and the switches that run it.
type Program struct {
	Position Position
	Kind     string
	Switches []model.NodeID // nil: all
	// ListPerSwitch is for programs that append to a separate list per switch, in
	// the order of their ids; others share one list, or as many as Lists says.
	ListPerSwitch bool
	Keyed         bool                                                                 // its reports have keys, and it appends to no list
	Lists         int                                                                  // of one program where they are neither one nor one per switch; 0: one
	New           func(dev inswitch.Device, g ProgramInputs) (inswitch.Program, error) // for one switch
}

// ProgramInputs is what a program gets from the scenario besides its settings.
type ProgramInputs struct {
	Seed           uint64     // of this program in this switch; the same in every run of the same seed
	List           dta.ListID // its list, or the first of them
	MaxLists       int        // that it may use; 0: as many as it says
	MaxReportBytes int        // maximum bytes of data in a report
}

// Lists are successive lists.
type Lists struct {
	First dta.ListID
	Count int
}

// FirstList returns the first list that a program of Telemetry appends to. Unless
// Scenario.Lists says otherwise, lists are numbered in the order of programs, so that
// no two share one.
func (s *Scenario) FirstList(program int) (first dta.ListID) {
	if l, planned := s.Lists[s.kindOf(program)]; planned {
		return l.First
	}
	for _, p := range s.Telemetry[:program] {
		if p.Keyed {
			continue
		}
		if p.ListPerSwitch {
			first += dta.ListID(len(s.fabric().Switches()))
		} else {
			first += dta.ListID(max(p.Lists, 1))
		}
	}
	return first
}

// kindOf returns the kind of a program; empty after the last.
func (s *Scenario) kindOf(program int) string {
	if program >= len(s.Telemetry) {
		return ""
	}
	return s.Telemetry[program].Kind
}

// maxLists is how many lists a program may use; 0: as many as it says.
func (s *Scenario) maxLists(program int) int { return s.Lists[s.kindOf(program)].Count }

// programSpec is one item of the section telemetry.
type programSpec interface {
	// program checks the settings and fills in the program.
	program(p *Program) error
	header() *programHeader
}

// programHeader is what all programs have in common.
type programHeader struct {
	sourcePos
	Kind     string `yaml:"kind"`
	Switches []ref  `yaml:"switches"` // default: all
}

func (p *programHeader) header() *programHeader { return p }

// programKinds returns specs with their defaults. A program that is added here
// can be used in scenario files.
var programKinds = map[string]func() programSpec{
	"flowset":       func() programSpec { return defaultFlowset() },
	"epoch":         func() programSpec { return defaultEpoch() },
	"label":         func() programSpec { return defaultLabels() },
	"mirror":        func() programSpec { return defaultMirror() },
	"port-state":    func() programSpec { return defaultPortState() },
	"host-counters": func() programSpec { return defaultHostCounters() },
	"postcard":      func() programSpec { return defaultPostcards() },
}

type programItem struct{ programSpec }

func (p *programItem) decode(v tree.Value, what string) (err error) {
	p.programSpec, err = decodeByKind(v, what, programKinds)
	return err
}

func (sc *schema) resolveTelemetry(s *Scenario, e *env) error {
	for _, item := range sc.Telemetry {
		at := item.header()
		p := Program{Position: at.Position, Kind: at.Kind}
		if err := item.program(&p); err != nil {
			return at.errorf("", "%s", trimPackageNames(err))
		}
		for _, r := range at.Switches {
			for _, one := range e.expand(r) {
				sw, err := e.switchNamed(one)
				if err != nil {
					return err
				}
				if slices.Contains(p.Switches, sw) {
					return r.Errorf("%s runs %s twice, want it once", one.text, p.Kind)
				}
				p.Switches = append(p.Switches, sw)
			}
		}
		s.Telemetry = append(s.Telemetry, p)
	}
	return nil
}

// attachPrograms attaches the programs to their switches, each with a pipeline
// in the order of the file, and connects them to the collector.
func (x *session) attachPrograms(o Options) error {
	if len(x.s.Telemetry) == 0 {
		return nil
	}
	sink := o.Sink
	if sink == nil {
		sink = func(model.Time, model.NodeID, []byte) {} // what arrives is counted
	}
	if x.diagnosis != nil {
		sink = x.diagnosis.tapReports(sink)
	}
	sink, err := x.collectTraces(sink)
	if err != nil {
		return wrap(x.s.ExpectTraces.Position, "traces", err)
	}
	cfg := simhost.DefaultConfig()
	cfg.Isolated = true
	if cfg.Carrier, err = x.carrier(sink); err != nil {
		return wrap(x.s.Management.Position, "management", err)
	}
	x.mgmt, _ = cfg.Carrier.(*simhost.Management)
	if x.diagnosis != nil {
		x.diagnosis.mgmt, _ = cfg.Carrier.(*simhost.Management)
	}
	x.programs = map[model.NodeID][]inswitch.Program{}
	for n, id := range x.fabric.Switches() {
		var programs []inswitch.Program
		dev := simhost.Describe(x.net, id, 0)
		for i := range x.s.Telemetry {
			p := &x.s.Telemetry[i]
			if p.Switches != nil && !slices.Contains(p.Switches, id) {
				continue
			}
			list := x.s.FirstList(i)
			if p.ListPerSwitch {
				list += dta.ListID(n)
			}
			one, err := p.New(dev, ProgramInputs{
				Seed: seedOf(x.s.Seed, i, id), List: list, MaxLists: x.s.maxLists(i),
				MaxReportBytes: simhost.MaxReportData(cfg.Carrier),
			})
			if err != nil {
				return wrap(p.Position, fmt.Sprintf("%s at %s", p.Kind, x.fabric.Node(id).Name), err)
			}
			programs = append(programs, one)
		}
		if len(programs) == 0 {
			continue
		}
		sw, err := simhost.Attach(x.net, id, inswitch.NewPipeline(x.withMiscounts(id, programs)...), cfg)
		if err != nil {
			return err
		}
		x.hosts = append(x.hosts, sw)
		x.programs[id] = programs
	}
	return nil
}

// seedOf returns a program's seed in one switch.
func seedOf(seed uint64, program int, id model.NodeID) uint64 {
	k := model.FlowKey{Src: model.Addr{Lo: uint64(id)}, Dst: model.Addr{Lo: uint64(program)}}
	return k.Hash(seed)
}

// carrier returns the network that carries reports.
func (x *session) carrier(sink simhost.Sink) (simhost.Carrier, error) {
	m := &x.s.Management
	if m.InBand {
		return simhost.NewInBand(x.net, simhost.InBandConfig{
			Collector: m.Collector, Priority: m.Priority,
			Control: m.Unpaused,
		}, sink)
	}
	return simhost.NewManagement(x.net, simhost.ManagementConfig{
		Delay: m.Delay, Jitter: m.Jitter, Loss: m.Loss, Reorder: m.Reorder, Seed: x.s.Seed,
	}, sink)
}

// Telemetry counts the reports of all switches. Reports are delivered, lost
// with a reason, or in flight when the run ends.
type Telemetry struct {
	Switches  int               `json:"switches"` // that run programs
	Reports   uint64            `json:"reports"`
	Delivered uint64            `json:"delivered"`
	InFlight  uint64            `json:"in_flight"` // at the end, or waiting for a datagram to fill
	Lost      map[string]uint64 `json:"lost,omitempty"`
	Datagrams uint64            `json:"datagrams"`
	Bytes     model.Bytes       `json:"bytes"`             // of datagrams
	Refused   map[string]uint64 `json:"refused,omitempty"` // actions of programs that could not be executed
}

// telemetry sums up the counters of the switches.
func (x *session) telemetry() *Telemetry {
	if len(x.hosts) == 0 {
		return nil
	}
	t := &Telemetry{Switches: len(x.hosts), Lost: map[string]uint64{}, Refused: map[string]uint64{}}
	for _, h := range x.hosts {
		s := h.Stats()
		t.Reports += s.Reports
		t.Delivered += s.Delivered
		t.InFlight += s.Pending + s.InFlight
		t.Datagrams += s.Datagrams
		t.Bytes += s.Bytes
		for why, n := range s.Lost {
			t.Lost[string(why)] += n
		}
		for why, n := range s.Refused {
			t.Refused[string(why)] += n
		}
	}
	return t
}

// String returns one line: how many reports were made, and their outcome.
func (t *Telemetry) String() string {
	text := fmt.Sprintf("telemetry of %s: %s, %d delivered", plural.Count(t.Switches, "switch"),
		plural.Count(t.Reports, "report"), t.Delivered)
	if t.InFlight > 0 {
		text += fmt.Sprintf(", %d in flight", t.InFlight)
	}
	for _, why := range slices.Sorted(maps.Keys(t.Lost)) {
		text += fmt.Sprintf(", %d lost (%s)", t.Lost[why], why)
	}
	text += fmt.Sprintf("; %s in %s", model.FormatBytes(t.Bytes), plural.Count(t.Datagrams, "datagram"))
	for _, why := range slices.Sorted(maps.Keys(t.Refused)) {
		text += fmt.Sprintf("; %s refused (%s)", plural.Count(t.Refused[why], "action"), why)
	}
	return text
}

// lost returns the number of lost reports.
func (t *Telemetry) lost() (n uint64) {
	for _, k := range t.Lost {
		n += k
	}
	return n
}
