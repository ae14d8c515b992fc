package scenario

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo/file/tree"
)

// flowsSpec lists flows one by one.
type flowsSpec struct {
	trafficHeader
	List []flowSpec `yaml:"list"`
}

type flowSpec struct {
	sourcePos
	class
	From       ref           `yaml:"from"` // a host, or an address of one
	To         ref           `yaml:"to"`   // a host, or an address
	Bytes      model.Bytes   `yaml:"bytes"`
	Stop       model.Time    `yaml:"stop"` // instead of bytes
	Start      model.Time    `yaml:"start"`
	SourcePort uint16        `yaml:"source-port"`
	After      []int         `yaml:"after"` // numbers in the list, from 1
	Delay      time.Duration `yaml:"delay"`
	Compute    time.Duration `yaml:"compute"` // instead of a message, where to is from
	Core       uint8         `yaml:"core"`
}

func (f *flowSpec) decode(v tree.Value, what string) error {
	f.class = classOf(traffic.DefaultClass())
	return decodeStruct(v, reflect.ValueOf(f).Elem(), what)
}

func (s *flowsSpec) generator(e *env) (traffic.Generator, error) {
	var list traffic.List
	for i := range s.List {
		f, err := s.List[i].flow(e, i, len(s.List))
		if err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	if len(list) == 0 {
		return nil, s.errorf("list", "flows has no list, want at least one flow")
	}
	return list, nil
}

// flow returns flow i of a list of n.
func (f *flowSpec) flow(e *env, index, length int) (out traffic.Flow, err error) {
	c := f.class.class()
	out = traffic.Flow{
		Start: f.Start, Stop: f.Stop, Bytes: f.Bytes, Rate: c.Rate, SrcPort: f.SourcePort, DstPort: c.DstPort,
		Priority: c.Priority, Transport: c.Transport, V6: c.V6, NoCC: c.NoCC, Delay: f.Delay,
		Compute: f.Compute, Core: f.Core,
	}
	if !f.From.given() || !f.To.given() {
		return out, f.errorf("", "flow %d, want from and to", index+1)
	}
	if out.Src, out.From, err = e.source(f.From); err != nil {
		return out, err
	}
	if out.Dst, out.To, _, err = e.endpoint(f.To); err != nil {
		return out, err
	}
	if out.IsComputation() != f.has("compute") {
		return out, f.errorf("", "flow %d from %s to %s, want two hosts, or one and compute", index+1, f.From.text, f.To.text)
	}
	for _, a := range f.After {
		if a < 1 || a > length || a == index+1 {
			return out, f.errorf("after", "after flow %d, want another of this list, 1 to %d", a, length)
		}
		out.After = append(out.After, a-1)
	}
	return out, nil
}

// flowFileSpec reads a flow file of the HPCC simulator.
type flowFileSpec struct {
	trafficHeader
	File ref `yaml:"file"`
}

func (s *flowFileSpec) generator(e *env) (traffic.Generator, error) {
	if !s.File.given() {
		return nil, s.errorf("", "flow-file has no file, want one")
	}
	path := relativeTo(s.File.Position.File, s.File.text)
	data, err := e.load(path)
	if err != nil {
		return nil, s.File.Errorf("flow file: %v, want one", err)
	}
	list, err := traffic.ParseFlows(path, data, traffic.HostsOf(e.fabric))
	return traffic.List(list), err
}

// FlowsOf returns the flows of a run by name: a 5-tuple, or two hosts for all
// flows between them.
func FlowsOf(n *sim.Network, name string) (keys []model.FlowKey, err error) {
	exact, bad := model.ParseFlowKey(name)
	src, dst, _ := strings.Cut(name, ">")
	for id := range n.Flows() {
		key, spec := n.FlowKey(id)
		between := n.Fabric().Node(spec.Src).Name == strings.TrimSpace(src) && n.Fabric().Node(spec.Dst).Name == strings.TrimSpace(dst)
		if bad == nil && key == exact || bad != nil && between {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, model.FlowKey.Compare)
	keys = slices.Compact(keys) // messages of one connection
	if len(keys) == 0 {
		return nil, fmt.Errorf("no flow %q in the scenario, want a 5-tuple such as 'udp 10.0.0.2:10000 > 10.2.0.3:4791', or two hosts such as h0>h5", name)
	}
	return keys, nil
}
