package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/weft-telemetry/weft/internal/fileerror"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario/hpcc"
	"github.com/weft-telemetry/weft/scenario/simai"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/topo/file"
)

// simaiSpec is traffic from a workload of SimAI.
type simaiSpec struct {
	workloadSpec
	PerServer int `yaml:"ranks-per-server"` // which follow each other in hosts
}

func (s *simaiSpec) generator(e *env) (traffic.Generator, error) {
	if s.PerServer < 1 {
		return nil, s.errorf("ranks-per-server", "ranks-per-server %d, want 1 or more", s.PerServer)
	}
	return s.generate(e, func(w workloadFile) { w.(*simai.Workload).SetServers(s.PerServer) })
}

// SimAIFiles are the files of a run of SimAI. Topology and Network may be empty.
type SimAIFiles struct {
	Workload, Topology, Network string
}

// FindSimAI returns the files of a directory: the workload, and the topology and the
// network configuration if it has them. It knows them by their content.
func FindSimAI(dir string) (found SimAIFiles, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return found, err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		path := filepath.Join(dir, e.Name())
		data, err := readFile(path)
		if err != nil {
			return found, fileerror.FromOS(path, err)
		}
		what, to := "network configuration", &found.Network
		switch {
		case simai.LooksLike(data):
			what, to = "workload", &found.Workload
		case file.LooksLikeSimAI(data):
			what, to = "topology", &found.Topology
		case filepath.Ext(path) != ".conf":
			continue // a README
		}
		if *to != "" {
			return found, fileerror.Errorf(path, 0, "another %s is %s, want one in the directory", what, *to)
		}
		*to = path
	}
	if found.Workload == "" {
		return found, fileerror.Errorf(dir, 0, "no workload, want a file that begins with HYBRID_TRANSFORMER_FWD_IN_BCKWD")
	}
	return found, nil
}

// ReadSimAI returns the scenario of SimAI's files. With a network configuration the
// run behaves as HPCC's simulator, from which SimAI's stems. Every error is a
// *file.Error.
func ReadSimAI(f SimAIFiles, o hpcc.Options) (*Scenario, error) {
	s, flows, err := readWorkload("simai", f.Workload, f.Topology)
	if err != nil || f.Network == "" {
		return s, err
	}
	data, err := readFile(f.Network)
	if err != nil {
		return nil, fileerror.FromOS(f.Network, err)
	}
	c, err := hpcc.ParseNetwork(f.Network, data)
	if err != nil {
		return nil, err
	}
	setup, err := hpcc.BuildNetwork(c, s.Topology.Fabric, flows, o)
	if err != nil {
		return nil, err
	}
	s.Topology = &file.Document{Fabric: setup.Fabric}
	s.Sim, s.Routes, s.pfcExplained = setup.Sim, setup.Routes, true
	s.Notes = append(append(s.Notes, setup.Notes...), setup.Ignored...)
	return s, nil
}

// sharedToRs says where GPUs of one server reach each other as fast through a ToR as
// through their NVSwitch: flows choose by hash, in SimAI always the NVSwitch.
func sharedToRs(d *file.Document) []string {
	shared := 0
	hosts := d.Fabric.Hosts()
	for first := 0; d.PerServer > 1 && first+d.PerServer <= len(hosts); first += d.PerServer {
		common := neighboursOf(d.Fabric, hosts[first])
		other := neighboursOf(d.Fabric, hosts[first+1])
		n := 0
		for id := range common {
			if other[id] {
				n++
			}
		}
		if n > 1 {
			shared++
		}
	}
	if shared == 0 {
		return nil
	}
	return []string{fmt.Sprintf("in %d servers GPUs share several switches: flows between them choose one by hash, in SimAI always the NVSwitch", shared)}
}

func neighboursOf(f *topo.Fabric, id model.NodeID) map[model.NodeID]bool {
	out := make(map[model.NodeID]bool)
	for _, p := range f.Node(id).Ports {
		if f.Node(p.Peer.Node).Role.IsSwitch() {
			out[p.Peer.Node] = true
		}
	}
	return out
}
