package scenario

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/internal/fileerror"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/file"
	"github.com/weft-telemetry/weft/topo/file/tree"
)

// Scenario is a run to be made. Read reads one from a file, FromHPCC from an
// HPCC configuration, and Go code may build one. Run does not change it.
type Scenario struct {
	Name, About string

	// Seed determines everything random: traffic, marks, losses, and the routes
	// where Topology has no seed.
	Seed     uint64
	Duration time.Duration // simulated
	// Base is the reading of clocks when the run starts. All times here count
	// from there; those of results include it.
	Base model.Time
	// StopWhenFinished ends the run when all flows have finished, if that is
	// before Duration.
	StopWhenFinished bool

	Topology *file.Document
	Routes   *topo.Routes // instead of Topology's
	Sim      sim.Config   // its Seed is not read

	Services   []Service
	Traffic    []Traffic
	Migrations []Migration
	Faults     []Fault
	Changes    []RouteChange
	Clocks     []Clock

	// Keepalive is the interval of BGP keepalives between neighbouring
	// switches; 0: no BGP.
	Keepalive time.Duration

	Telemetry []Program // in the order in which a switch runs them
	// Lists are those of each kind of program, where a collector has planned them; a
	// kind that is not in it has the next ones.
	Lists        map[string]Lists
	Management   Management
	Expect       []Expectation
	ExpectTraces *ExpectedFindings // what traces must show; nil: no expectation
	Traces       Traces
	// ExpectDiagnoses is what diagnosis requests must lead to; nil: no
	// expectation, empty: to no diagnosis.
	ExpectDiagnoses []ExpectedDiagnosis
	Output          Output

	// Agents are the hosts that request diagnoses; nil: none, and nothing is
	// diagnosed.
	Agents *Agents

	Notes []string // what a reader of the result must know

	pfcExplained bool     // Notes already explain what PFC cannot do
	fabricPos    Position // of the section fabric, or of the topology
}

// Traffic is a part of the load with a name for results. A Poisson, Query or
// Persistent without an end runs to the end of the run.
type Traffic struct {
	Position  Position
	Name      string
	Generator traffic.Generator
}

// Service is a virtual address with its position in the file.
type Service struct {
	Position Position
	sim.Service
}

// Migration is the migration of an address with its time.
type Migration struct {
	Position Position
	At       model.Time
	sim.Migration
}

// Fault is an injected fault.
type Fault struct {
	Position Position
	Kind     string
	sim.Injection
}

// RouteChange is when routing reacts to links that are down, or up again: from
// then on switches have the routes without these links.
type RouteChange struct {
	At     model.Time
	Down   []int        // as indexes in Fabric.Links
	Routes *topo.Routes // instead of Down; migrations before it are undone unless these have them
}

// Clock is the clock of one device.
type Clock struct {
	Node model.NodeID
	sim.Clock
}

// fabric returns the fabric of the run.
func (s *Scenario) fabric() *topo.Fabric {
	if s.Routes != nil {
		return s.Routes.Fabric()
	}
	return s.Topology.Fabric
}

// Management is the network that carries reports: a separate one, or the fabric
// itself. Without telemetry it has no effect.
type Management struct {
	Position Position

	// A separate network; simhost.ManagementConfig documents the fields.
	Delay, Jitter time.Duration
	Loss          float64
	Reorder       bool

	// The fabric: reports are packets to a host, in a chosen priority or in the
	// queue that PFC never pauses.
	InBand    bool
	Collector model.NodeID
	Priority  model.Priority
	Unpaused  bool
}

// Output selects what is kept of a run.
type Output struct {
	// Sample is the interval between two samples of a port; 0: a thousandth of
	// Duration.
	Sample time.Duration
	// DeadlockAfter is how long a cycle of paused queues must be stuck to count
	// as a deadlock.
	DeadlockAfter time.Duration
	Capture       []model.Port // links to capture as pcapng, by one of their ends
}

// DefaultOutput reports a cycle as a deadlock when it has been stuck for three
// pauses of the default length.
func DefaultOutput() Output { return Output{DeadlockAfter: time.Millisecond} }

// maxSize bounds a scenario file, and each file that it names.
const maxSize = 64 << 20

// Read reads a scenario file. Every error is a *file.Error.
func Read(path string) (*Scenario, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, fileerror.FromOS(path, err)
	}
	return Parse(path, data)
}

// Parse reads a scenario file's bytes; name is its name in errors, and files
// that it names are relative to name's folder. Every error is a *file.Error.
func Parse(name string, data []byte) (*Scenario, error) { return parse(name, data, readFile) }

// readFile reads a file of at most maxSize.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err == nil && len(data) > maxSize {
		err = &os.PathError{Op: "read", Path: path, Err: fmt.Errorf("more than %v", model.Bytes(maxSize))}
	}
	return data, err
}

func parse(name string, data []byte, load loader) (*Scenario, error) {
	// The parser accepts any line break; so do we when lines are counted.
	text := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(data))
	root, err := tree.Parse(name, []byte(text), "a scenario")
	if err != nil {
		return nil, err
	}
	sc := defaultSchema()
	if err := decode(root, &sc, "the file"); err != nil {
		return nil, err
	}
	doc, err := readTopology(root, []byte(text), load)
	if err != nil {
		var e *file.Error
		if errors.As(err, &e) && e.File == name && e.Line == 0 {
			e.Line = sc.position("topology").Line
		}
		return nil, err
	}
	return sc.resolve(doc, load)
}
