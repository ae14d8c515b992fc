package hpcc

import (
	"fmt"
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
)

// Reasons for keys without effect in a network configuration of SimAI.
const (
	whyOwnFiles = "topology and workload are files of their own"
	whyWorkload = "the run ends when the workload has ended"
)

// networkKeys are the keys whose meaning differs in SimAI's network
// configurations, and those that HPCC's do not have.
var networkKeys = map[string]key{
	"TOPOLOGY_FILE":       {ignored: whyOwnFiles},
	"FLOW_FILE":           {ignored: whyOwnFiles},
	"ROUTE_FILE":          {ignored: whyOwnFiles},
	"SIMULATOR_STOP_TIME": {ignored: whyWorkload},
	"QLEN_MON_INTERVAL":   {ignored: whyQueue},
	"QP_MON_INTERVAL":     {ignored: whyQueue},
	"BW_MON_FILE":         {ignored: whyQueue},
	"BW_MON_INTERVAL":     {ignored: whyQueue},
	"RATE_MON_FILE":       {ignored: whyQueue},
	"CNP_MON_FILE":        {ignored: whyQueue},
	"MON_START":           {ignored: whyQueue},
	"MON_END":             {ignored: whyQueue},
	"TRACE_NODE":          {ignored: whyTrace},
}

// ParseNetwork parses a network configuration of SimAI: HPCC's keys without input
// files, and some that only ask for output. Errors are *file.Error.
func ParseNetwork(name string, data []byte) (*Config, error) { return parse(name, data, true) }

// BuildNetwork sets up a run of a network configuration with a fabric and flows.
func BuildNetwork(c *Config, f *topo.Fabric, flows []traffic.Flow, o Options) (*Setup, error) {
	own := *c // options may change the mode
	c = &own
	if o.BufferUnit > 0 {
		c.Buffer = model.Bytes(c.bufferSize) * o.BufferUnit
	}
	if c.Down.After > 0 {
		return nil, c.errorf("LINK_DOWN", "LINK_DOWN with a time, want 0 0 0: links go down by faults of a scenario")
	}
	s := &Setup{Fabric: f, Flows: flows, Notes: slices.Clone(c.notes), Ignored: c.Ignored}
	if err := s.checkFabric(c.File); err != nil {
		return nil, err
	}
	if c.ErrorRate > 0 {
		var err error
		if s.Fabric, err = withErrors(f, c.ErrorRate); err != nil {
			return nil, c.errorf("ERROR_RATE_PER_LINK", "%v", err)
		}
	}
	s.noteHiddenLinks()
	c.Routes = ""
	if err := s.readRoutes(c); err != nil {
		return nil, err
	}
	if err := s.configure(c, o); err != nil {
		return nil, err
	}
	if n := len(s.unmarked); n > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("KMIN_MAP, KMAX_MAP or PMAX_MAP has no entry for %v: such ports mark by the curve of the next lower rate", s.unmarked))
	}
	s.addPFCNotes(c)
	return s, nil
}
