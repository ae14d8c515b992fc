package scenario

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/internal/fileerror"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario/chakra"
	"github.com/weft-telemetry/weft/scenario/goal"
	"github.com/weft-telemetry/weft/scenario/htsim"
	"github.com/weft-telemetry/weft/scenario/simai"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/file"
)

// workloadFile is a parsed workload of another simulator.
type workloadFile interface {
	// RankCount returns the number of hosts that it needs.
	RankCount() int
	// Flows returns its flows and computations; ranks are the hosts, in order.
	Flows(hosts []model.NodeID) ([]traffic.Flow, error)
}

// workloadFormats are the kinds of traffic that are files of other simulators.
var workloadFormats = map[string]func(path string, load loader) (workloadFile, error){
	"chakra": readChakra,
	"goal":   parseWorkload(goal.Parse),
	"htsim":  parseWorkload(htsim.Parse),
	"simai":  parseWorkload(simai.Parse),
}

// parseWorkload reads a format whose workloads are single files.
func parseWorkload[F workloadFile](parse func(string, []byte) (F, error)) func(string, loader) (workloadFile, error) {
	return func(path string, load loader) (workloadFile, error) {
		data, err := load(path)
		if err != nil {
			return nil, err
		}
		return parse(path, data)
	}
}

// readChakra reads the traces PATH.0.et, PATH.1.et and so on: one for each rank.
func readChakra(path string, load loader) (workloadFile, error) {
	t := &chakra.Trace{}
	for rank := 0; rank <= topo.MaxNodes; rank++ {
		name := fmt.Sprintf("%s.%d.et", path, rank)
		data, err := load(name)
		if rank > 0 && errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := t.Add(name, data); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// workload is a workload on a fabric.
type workload struct {
	flows []traffic.Flow
	down  []int // links that are down, as indexes of the fabric's
	notes []string
}

// place maps the ranks of a file to hosts.
func place(w workloadFile, f *topo.Fabric, hosts []model.NodeID) (out workload, err error) {
	if out.flows, err = w.Flows(hosts); err != nil {
		return out, err
	}
	switch w := w.(type) {
	case *htsim.Matrix:
		out.notes = w.Notes
		out.down, err = w.FailedLinks(f)
	case *simai.Workload:
		out.notes = w.Notes
	}
	return out, err
}

// WorkloadFormats returns the names of the formats that ReadWorkload reads.
func WorkloadFormats() []string {
	var names []string
	for name := range workloadFormats {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// workloadSpec is traffic from a file of another simulator.
type workloadSpec struct {
	trafficHeader
	File  ref   `yaml:"file"`
	Hosts []ref `yaml:"hosts"` // in rank order
}

func (s *workloadSpec) generator(e *env) (traffic.Generator, error) {
	return s.generate(e, func(workloadFile) {})
}

// generate reads the file and has it prepared for its hosts.
func (s *workloadSpec) generate(e *env, prepare func(workloadFile)) (traffic.Generator, error) {
	if !s.File.given() {
		return nil, s.errorf("", "%s has no file, want one", s.Kind)
	}
	hosts, err := e.hosts(s.Hosts)
	if err != nil {
		return nil, err
	}
	if len(hosts) == 0 {
		hosts = hostIDs(e.fabric)
	}
	path := relativeTo(s.File.Position.File, s.File.text)
	parsed, err := workloadFormats[s.Kind](path, e.load)
	if bad := (*fileerror.Error)(nil); err != nil && !errors.As(err, &bad) {
		err = s.File.Errorf("%s: %v, want a file", s.Kind, err)
	}
	if err != nil {
		return nil, err
	}
	prepare(parsed)
	w, err := place(parsed, e.fabric, hosts)
	if err != nil {
		return nil, err
	}
	if len(w.down) > 0 {
		return nil, s.File.Errorf("%s has failed links, want them in the section faults instead", path)
	}
	e.notes = append(e.notes, w.notes...)
	return traffic.List(w.flows), nil
}

// hostIDs returns the hosts that can send and receive.
func hostIDs(f *topo.Fabric) []model.NodeID {
	var ids []model.NodeID
	for _, h := range traffic.HostsOf(f) {
		ids = append(ids, h.ID)
	}
	return ids
}

// ReadWorkload returns the scenario of a workload file of another simulator: on
// the topology of that file, or without one on the smallest fat-tree that has
// enough hosts, with the default fabric. The run ends when all flows have
// finished. Every error is a *file.Error.
func ReadWorkload(format, path, topology string) (*Scenario, error) {
	s, _, err := readWorkload(format, path, topology)
	return s, err
}

// readWorkload is ReadWorkload, and returns the flows, too.
func readWorkload(format, path, topology string) (*Scenario, []traffic.Flow, error) {
	parsed, err := workloadFormats[format](path, readFile)
	if bad := (*fileerror.Error)(nil); err != nil && !errors.As(err, &bad) {
		return nil, nil, fileerror.FromOS(path, err)
	}
	if err != nil {
		return nil, nil, err
	}
	var doc *file.Document
	var notes []string
	if topology != "" {
		doc, err = file.Read(topology)
	} else {
		doc, notes, err = fabricFor(parsed, path)
	}
	if err != nil {
		return nil, nil, err
	}
	if m, ok := parsed.(*simai.Workload); ok {
		m.SetServers(doc.PerServer)
		notes = append(notes, sharedToRs(doc)...)
	}
	w, err := place(parsed, doc.Fabric, hostIDs(doc.Fabric))
	if err != nil {
		return nil, nil, err
	}
	return fromWorkload(path, doc, w, append(notes, w.notes...)), w.flows, nil
}

// fabricFor returns a fat-tree for a workload that comes without a topology.
func fabricFor(w workloadFile, path string) (*file.Document, []string, error) {
	ranks := w.RankCount()
	for k := 2; ; k += 2 {
		if k*k*k/4 < ranks && k < 64 {
			continue
		}
		links := topo.DefaultLinks()
		f, err := topo.FatTree(k, links)
		if err != nil {
			return nil, nil, &file.Error{File: path, Msg: err.Error()}
		}
		return &file.Document{Fabric: f}, []string{
			fmt.Sprintf("no topology was given: a fat-tree of k=%d with links of %v and %v", k, links.Host.Rate, links.Host.Delay),
		}, nil
	}
}

// Bounds of a run without a stated end: it ends when all flows have finished,
// and at the latest after latestEnd times what the flows take on idle links.
const (
	latestEnd   = 100
	leastLength = 10 * time.Millisecond
)

func fromWorkload(path string, doc *file.Document, w workload, notes []string) *Scenario {
	name := filepath.Base(path)
	ideal := idealLength(w.flows, doc.Fabric)
	s := &Scenario{
		Name: strings.TrimSuffix(name, filepath.Ext(name)), Seed: 1,
		Duration: min(max(latestEnd*ideal, leastLength), MaxDuration), StopWhenFinished: true,
		Topology: doc, Sim: sim.DefaultConfig(),
		Traffic: []Traffic{{Position: Position{File: path, Line: 1}, Name: "flows", Generator: traffic.List(w.flows)}},
		Output:  DefaultOutput(), Notes: notes,
	}
	s.Output.Sample = max(ideal/rows, time.Microsecond)
	for _, link := range w.down {
		s.Faults = append(s.Faults, Fault{
			Kind: "link-down", Injection: sim.Injection{Fault: sim.LinkDown{Port: doc.Fabric.Links()[link].A}},
		})
	}
	if len(w.down) > 0 {
		s.Changes = []RouteChange{{Down: w.down}}
	}
	return s
}
