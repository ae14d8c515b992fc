package scenario

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/dataplane/simhost"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario/hpcc"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo/file"
)

// hpccStartTime is how long before its first flow a run starts.
const hpccStartTime = model.Time(10 * time.Microsecond)

// FromHPCC returns the scenario of an HPCC configuration.
//
// The original's workloads start at two seconds. Here the run starts just
// before the first flow, and Base is the time that is skipped: nothing happens
// in it, and the samples of the rest are as fine as for any other run.
func FromHPCC(c *hpcc.Config, setup *hpcc.Setup) *Scenario {
	name := filepath.Base(c.File)
	base := setup.Stop
	flows := slices.Clone(setup.Flows)
	for i := range flows {
		base = min(base, flows[i].Start)
	}
	if d := setup.Down; d != nil {
		base = min(base, d.At)
	}
	base = max(0, base-hpccStartTime)
	base -= base % hpccStartTime
	for i := range flows {
		flows[i].Start -= base
	}
	s := &Scenario{
		Name: strings.TrimSuffix(name, filepath.Ext(name)), Seed: setup.Sim.Seed,
		Base: base, Duration: setup.Stop.Sub(base), StopWhenFinished: true,
		Topology: &file.Document{Fabric: setup.Fabric}, Routes: setup.Routes, Sim: setup.Sim,
		Traffic: []Traffic{{Name: "flows", Generator: traffic.List(flows)}},
		Output:  DefaultOutput(),
		Notes:   slices.Concat(setup.Notes, setup.Ignored),

		pfcExplained: true,
	}
	if len(setup.Agents) > 0 {
		s.Agents = DefaultAgents()
		s.Agents.Hosts, s.Agents.RTTLimit = setup.Agents, setup.Threshold
		s.Telemetry = append(s.Telemetry, epochProgram(setup.Epoch))
		d := simhost.DefaultManagementConfig()
		s.Management = Management{Delay: d.Delay, Jitter: d.Jitter}
	}
	if d := setup.Down; d != nil {
		at := d.At - base
		s.Faults = []Fault{{Kind: "link-down", Injection: sim.Injection{At: at, Fault: sim.LinkDown{Port: d.Port}}}}
		s.Changes = []RouteChange{{At: at, Routes: d.Routes}}
	}
	return s
}
