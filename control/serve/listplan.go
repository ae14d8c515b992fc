package serve

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/core"
	"github.com/weft-telemetry/weft/control/flowwatch"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/ingest/sources"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Plan is what reporters must know, the lists of each kind of report, and what the
// service needs for them.
type Plan struct {
	Listen   netip.AddrPort `json:"listen"`
	MaxData  int            `json:"max_data_bytes"`
	Lists    []PlannedList  `json:"lists"`
	Flowsets PlannedSlots   `json:"flowsets"`
	// Partitions is the number of parts of the flows that are analysed at once.
	Partitions int           `json:"partitions"`
	Sources    []source.Kind `json:"sources"` // of Identifiers
	Switches   []PlannedNode `json:"switches"`
	// Memory has all bounds; they add up to MemorySum, of at most MemoryLimit.
	Memory      []PlannedMemory `json:"memory"`
	MemorySum   model.Bytes     `json:"memory_sum_bytes"`
	MemoryLimit model.Bytes     `json:"memory_limit_bytes"`
}

// PlannedSlots is what one list of flowsets, and the sockets' buffers, hold.
type PlannedSlots struct {
	Flows  int     `json:"flows"`         // of a switch in a slot
	Chunks int     `json:"chunks"`        // that the flowset of such a slot is
	Held   float64 `json:"slots_in_list"` // such slots
	// Buffer is the receive buffer of each socket, and Granted what the kernel gives
	// this process of it.
	Buffer  model.Bytes `json:"receive_buffer_bytes"`
	Granted model.Bytes `json:"granted_buffer_bytes"`
	// Buffered is how many chunks of all switches the granted buffers hold.
	Buffered int `json:"chunks_in_receive_buffers"`
}

// PlannedMemory is one bound of memory.
type PlannedMemory struct {
	What    string      `json:"what"`
	Setting string      `json:"setting,omitempty"`
	Bytes   model.Bytes `json:"bytes"`
}

// PlannedList is one list, or successive ones.
type PlannedList struct {
	First   dta.ListID `json:"first"`
	Count   int        `json:"count"`
	Entries int        `json:"entries"` // of each
	Bytes   int64      `json:"bytes"`   // of all
	What    string     `json:"what"`
	Format  string     `json:"format"`
	Reports string     `json:"reports"` // who does
}

// PlannedNode is one switch and how its reports identify it.
type PlannedNode struct {
	Name     string       `json:"name"`
	ID       model.NodeID `json:"id"`
	Flowsets dta.ListID   `json:"flowsets"`
	// Identifiers are how the reports of other sources identify the switch.
	Identifiers map[source.Kind]string `json:"identifiers"`
}

// DryRun does all of New that needs neither socket nor store, and returns the plan.
func DryRun(cfg Config) (*Plan, error) {
	f, err := readFabric(&cfg)
	if err != nil {
		return nil, err
	}
	if _, err := control.New(f.controllerConfig(&cfg, core.LastIDs{}), control.NoDevices{}, control.Output{}); err != nil {
		return nil, err
	}
	if _, err := f.decoders(&cfg, nil, recordSink{}); err != nil {
		return nil, err
	}
	if _, err := readKeys(&cfg); err != nil {
		return nil, err
	}
	a, err := cfg.api()
	if err != nil {
		return nil, err
	}
	if err := api.CheckConfig(a); err != nil {
		return nil, err
	}
	for _, one := range []struct{ key, path string }{{"store.path", cfg.Store.Path}, {"record.file", cfg.Record.Path}} {
		if one.path == "" || strings.Contains(one.path, "://") { // no file
			continue
		}
		if info, err := os.Stat(filepath.Dir(one.path)); err != nil || !info.IsDir() {
			return nil, bad(one.key, "%s is not a directory, want an existing one", filepath.Dir(one.path))
		}
	}
	p, err := f.plan(&cfg)
	if err != nil {
		return nil, err
	}
	return p, f.planMemory(p, &cfg)
}

// planMemory adds all bounds of memory, and returns an error if they exceed the
// limit.
func (f *fabric) planMemory(p *Plan, cfg *Config) (err error) {
	shares := memoryShares(cfg, f)
	for i := range shares {
		p.Memory = append(p.Memory, PlannedMemory{shares[i].Name, shares[i].Key, shares[i].Bytes})
		p.MemorySum += shares[i].Bytes
	}
	p.MemoryLimit, err = memoryLimit(cfg.Memory.Limit, shares)
	return err
}

// planSlots is how many slots of the planned size fit.
func (f *fabric) planSlots(cfg *Config) (p PlannedSlots, err error) {
	p.Flows = cfg.Controller.Flows
	if p.Chunks, err = control.ChunksPerSlot(p.Flows); err != nil {
		return p, bad("controller.flows", "%v", err)
	}
	memory := f.memory()
	p.Held = float64(memory.Classes[0].Capacity-memory.Batch) / float64(p.Chunks)
	p.Buffer = f.receiveBuffer(cfg)
	if p.Granted, err = grantedBuffer(p.Buffer); err != nil {
		return p, err
	}
	p.Buffered = int(p.Granted) * max(cfg.DTA().Workers, 1) / datagramSize
	return p, nil
}

// sharedBy says who reports, and which of several lists each uses.
func sharedBy(who string, r control.ListRange, choice string) string {
	if r.Count == 1 {
		return who
	}
	return who + ", " + fmt.Sprintf(choice, r.Count)
}

func (f *fabric) plan(cfg *Config) (*Plan, error) {
	l := f.lists
	p := &Plan{Listen: cfg.DTA().Listen, MaxData: MaxReport, Partitions: cfg.Controller.Partitions}
	if p.Partitions == 0 {
		p.Partitions = flowwatch.DefaultPartitions()
	}
	for _, one := range []struct {
		r                     control.ListRange
		what, format, reports string
	}{
		{l.Flowsets, "flowsets of a slot", "docs/formats/flowset.md", "each switch, in its own list"},
		{l.Labels, "labels removed from packets", "docs/formats/label.md, export", sharedBy("the last switch on the path", l.Labels, "the n-th switch to list n modulo %d")},
		{l.Mirrors, "mirrored packets", "docs/formats/mirror.md", sharedBy("every switch", l.Mirrors, "by the flow's hash, of %d")},
		{l.Epochs, "epochs that answer a poll", "docs/formats/epoch.md", "polled switches"},
		{l.DiagnosisRequests, "polls about slow flows", "docs/formats/poll.md", "hosts"},
	} {
		entries, bytes := l.Sizes(one.r, MaxReport)
		p.Lists = append(p.Lists, PlannedList{one.r.First, one.r.Count, entries, bytes, one.what, one.format, one.reports})
	}
	var err error
	if p.Flowsets, err = f.planSlots(cfg); err != nil {
		return nil, err
	}
	for i := range f.source.Switches {
		sw := &f.source.Switches[i]
		p.Switches = append(p.Switches, PlannedNode{
			Name: sw.Name, ID: sw.ID, Flowsets: l.FlowsetList(sw.ID), Identifiers: map[source.Kind]string{},
		})
	}
	for _, src := range sources.All() {
		if src.Identify == nil {
			continue
		}
		ids, err := src.Identify(&f.source)
		if err != nil {
			return nil, err
		}
		p.Sources = append(p.Sources, src.Kind)
		for i := range p.Switches {
			p.Switches[i].Identifiers[src.Kind] = ids[p.Switches[i].ID]
		}
	}
	return p, nil
}
