package scenario

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/internal/fileerror"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/topo/file"
	"github.com/weft-telemetry/weft/topo/file/tree"
)

// ReadFabric reads a scenario, or a topology in any format as a scenario with
// default settings and without traffic. Every error is a *file.Error.
func ReadFabric(path string) (*Scenario, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, fileerror.FromOS(path, err)
	}
	if isScenario(path, data) {
		return Parse(path, data)
	}
	doc, err := file.Parse(path, data)
	if err != nil {
		return nil, err
	}
	name := filepath.Base(path)
	return FromTopology(strings.TrimSuffix(name, filepath.Ext(name)), doc), nil
}

// FromTopology returns a scenario of a topology with default settings and without
// traffic.
func FromTopology(name string, doc *file.Document) *Scenario {
	return &Scenario{
		Name: name, Seed: 1, Duration: time.Millisecond, Topology: doc, Sim: sim.DefaultConfig(),
		Traces: DefaultTraces(), Output: DefaultOutput(),
	}
}

// isScenario reports whether a file has a duration, which every scenario needs
// and no topology has.
func isScenario(name string, data []byte) bool {
	root, err := tree.Parse(name, data, "a scenario or a topology")
	if err != nil {
		return false
	}
	list, err := root.Entries("the file")
	if err != nil {
		return false
	}
	for _, e := range list {
		if e.Key == "duration" {
			return true
		}
	}
	return false
}

// HasSettings reports whether the scenario was read from a file that may state
// fabric settings: a topology alone has none.
func (s *Scenario) HasSettings() bool { return s.fabricPos.File != "" }
