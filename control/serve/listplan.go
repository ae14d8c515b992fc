package serve

import (
	"net/netip"
	"os"
	"path/filepath"

	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/control/core"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/ingest/sources"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
)

// Plan is what reporters must know: the lists of each kind of report.
type Plan struct {
	Listen   netip.AddrPort `json:"listen"`
	MaxData  int            `json:"max_data_bytes"`
	Lists    []PlannedList  `json:"lists"`
	Sources  []source.Kind  `json:"sources"` // of Identifiers
	Switches []PlannedNode  `json:"switches"`
}

// PlannedList is one list, or successive ones.
type PlannedList struct {
	First   dta.ListID `json:"first"`
	Count   int        `json:"count"`
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
	if _, err := f.decoders(&cfg, nil, nil); err != nil {
		return nil, err
	}
	if _, err := readKeys(&cfg); err != nil {
		return nil, err
	}
	if _, err := memoryLimit(cfg.Memory.Limit, memoryShares(&cfg, f)); err != nil {
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
		if one.path == "" {
			continue
		}
		if info, err := os.Stat(filepath.Dir(one.path)); err != nil || !info.IsDir() {
			return nil, bad(one.key, "%s is not a directory, want an existing one", filepath.Dir(one.path))
		}
	}
	return f.plan(&cfg)
}

func (f *fabric) plan(cfg *Config) (*Plan, error) {
	l := f.lists
	p := &Plan{Listen: cfg.DTA().Listen, MaxData: MaxReport}
	for _, one := range []struct {
		r                     control.ListRange
		what, format, reports string
	}{
		{l.Flowsets, "flowsets of a slot", "docs/formats/flowset.md", "each switch, in its own list"},
		{l.Labels, "labels removed from packets", "docs/formats/label.md, export", "the last switch on the path"},
		{l.Mirrors, "mirrored packets", "docs/formats/mirror.md", "every switch"},
		{l.Epochs, "epochs that answer a poll", "docs/formats/epoch.md", "polled switches"},
		{l.DiagnosisRequests, "polls about slow flows", "docs/formats/poll.md", "hosts"},
	} {
		p.Lists = append(p.Lists, PlannedList{one.r.First, one.r.Count, one.what, one.format, one.reports})
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
