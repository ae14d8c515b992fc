package scenario

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/internal/fileerror"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario/htsim"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/file"
)

// workload is what a file of another simulator holds: flows, and what else it
// says about the run.
type workload struct {
	flows []traffic.Flow
	down  []int // links that are down, as indexes of the fabric's
	notes []string
}

// workloadFormat reads the workloads of one simulator.
type workloadFormat struct {
	// ranks returns the number of hosts that the file needs.
	ranks func(path string, load loader) (int, error)
	// read reads the file for a fabric; its ranks are the hosts, in order.
	read func(path string, load loader, f *topo.Fabric, hosts []model.NodeID) (workload, error)
}

// workloadFormats are the kinds of traffic that are files of other simulators.
var workloadFormats = map[string]workloadFormat{
	"htsim": {ranks: htsimRanks, read: readHTSim},
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
	load := func(path string) ([]byte, error) {
		data, err := e.load(path)
		if err != nil {
			return nil, s.File.Errorf("%s: %v, want a file", s.Kind, err)
		}
		return data, nil
	}
	w, err := workloadFormats[s.Kind].read(path, load, e.fabric, hosts)
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
	load := func(path string) ([]byte, error) {
		data, err := readFile(path)
		if err != nil {
			return nil, fileerror.FromOS(path, err)
		}
		return data, nil
	}
	known := workloadFormats[format]
	var doc *file.Document
	var notes []string
	var err error
	if topology != "" {
		doc, err = file.Read(topology)
	} else {
		doc, notes, err = fabricFor(known, path, load)
	}
	if err != nil {
		return nil, err
	}
	w, err := known.read(path, load, doc.Fabric, hostIDs(doc.Fabric))
	if err != nil {
		return nil, err
	}
	return fromWorkload(path, doc, w, append(notes, w.notes...)), nil
}

// fabricFor returns a fat-tree for a workload that comes without a topology.
func fabricFor(known workloadFormat, path string, load loader) (*file.Document, []string, error) {
	ranks, err := known.ranks(path, load)
	if err != nil {
		return nil, nil, err
	}
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

// idealLength estimates how long flows take: the longest chain of flows that
// wait for each other, and the host with the most to send, each at its link's
// rate. Check has accepted the flows or will: those in cycles count nothing.
func idealLength(flows []traffic.Flow, f *topo.Fabric) time.Duration {
	busy := make(map[model.NodeID]time.Duration)
	took := func(fl *traffic.Flow) time.Duration {
		var rate model.Rate
		for _, p := range f.Node(fl.Src).Ports {
			rate += p.Rate
		}
		if rate == 0 {
			return 0
		}
		return time.Duration(float64(fl.Bytes) * 8 / float64(rate) * 1e9)
	}
	waits := make([]int, len(flows))
	followers := make([][]int, len(flows))
	var ready []int
	for i := range flows {
		if waits[i] = len(flows[i].After); waits[i] == 0 {
			ready = append(ready, i)
		}
		for _, a := range flows[i].After {
			if a >= 0 && a < len(flows) {
				followers[a] = append(followers[a], i)
			}
		}
	}
	end := make([]time.Duration, len(flows)) // of the flow; before it has run: the latest of those it waits for
	longest := time.Duration(0)
	for n := 0; n < len(ready); n++ {
		i := ready[n]
		length := took(&flows[i])
		busy[flows[i].Src] += length
		end[i] = max(end[i]+flows[i].Delay, time.Duration(flows[i].Start)) + length
		longest = max(longest, end[i])
		for _, next := range followers[i] {
			end[next] = max(end[next], end[i])
			if waits[next]--; waits[next] == 0 {
				ready = append(ready, next)
			}
		}
	}
	for _, d := range busy {
		longest = max(longest, d)
	}
	return cmp.Or(longest, time.Microsecond)
}

func htsimRanks(path string, load loader) (int, error) {
	data, err := load(path)
	if err != nil {
		return 0, err
	}
	m, err := htsim.Parse(path, data)
	if err != nil {
		return 0, err
	}
	return m.Nodes, nil
}

func readHTSim(path string, load loader, f *topo.Fabric, hosts []model.NodeID) (w workload, err error) {
	data, err := load(path)
	if err != nil {
		return w, err
	}
	m, err := htsim.Parse(path, data)
	if err != nil {
		return w, err
	}
	w.notes = m.Notes
	if w.flows, err = m.Flows(hosts); err != nil {
		return w, err
	}
	w.down, err = m.FailedLinks(f)
	return w, err
}
