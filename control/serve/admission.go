package serve

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/ingest/admission"
	"github.com/weft-telemetry/weft/ingest/keyfile"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/ingest/sources"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
)

// doorkeeper decides who may report, to every socket of a service.
type doorkeeper struct {
	dta    *admission.Policy
	guards map[source.Kind]*admission.Guard // of all sources
}

// newDoorkeeper makes the policies of a configuration. Keys are set later.
func newDoorkeeper(c *Config, f *fabric, log *slog.Logger, now func() time.Time) (*doorkeeper, error) {
	d := &doorkeeper{guards: map[source.Kind]*admission.Guard{}}
	for _, src := range sources.All() {
		limits := c.DTA().Limits
		if a, ok := c.Sources[src.Kind].(source.Adapter); ok {
			limits = a.Sources()
		}
		g, err := admission.NewGuard(admission.GuardConfig{
			Input: string(src.Kind), Allow: limits.Allow, Rate: limits.Rate, Log: log, Now: now,
		})
		if err != nil {
			return nil, err
		}
		d.guards[src.Kind] = g
	}
	cfg := admission.Config{
		Attached: f.attached, List: f.listKind, Guard: d.guards[sources.DTA.Kind],
		RequireMAC: c.DTA().Require == sources.RequireMAC, TimeWindow: c.DTA().TimeWindow,
	}
	nodes := f.doc.Fabric.Nodes()
	for i := range nodes {
		n := &nodes[i]
		cfg.Nodes = append(cfg.Nodes, admission.Node{
			Name: n.Name, Switch: n.Role.IsSwitch(), Ports: len(n.Ports), Prefixes: f.prefixes[i],
		})
	}
	var err error
	d.dta, err = admission.New(cfg)
	return d, err
}

// attached reports whether a host is attached to a switch.
func (f *fabric) attached(host model.Addr, sw model.NodeID) bool {
	id, ok := f.doc.Fabric.ByAddr(host)
	if !ok || f.doc.Fabric.Node(id).Role.IsSwitch() {
		return false
	}
	ports := f.doc.Fabric.Node(id).Ports
	return slices.ContainsFunc(ports, func(p topo.Port) bool { return p.Peer.Node == sw })
}

// listKind is what a list of the plan holds, and whose flowsets.
func (f *fabric) listKind(l dta.ListID) (admission.Kind, model.NodeID) {
	if sw, ok := f.lists.FlowsetOwner(l); ok {
		return admission.Flowset, sw
	}
	for _, one := range [...]struct {
		r    control.ListRange
		kind admission.Kind
	}{
		{f.lists.Labels, admission.Label},
		{f.lists.Mirrors, admission.Mirror},
		{f.lists.Epochs, admission.Epoch},
		{f.lists.DiagnosisRequests, admission.DiagnosisRequest},
	} {
		if one.r.Contains(l) {
			return one.kind, 0
		}
	}
	return admission.Unplanned, 0
}

// readKeys reads the key file, if there is one.
func readKeys(c *Config) (*keyfile.File, error) {
	if c.DTA().Keys == "" {
		return nil, nil
	}
	keys, err := keyfile.Read(c.DTA().Keys)
	if err != nil {
		return nil, fmt.Errorf("dta.keys: %w", err)
	}
	return keys, nil
}

// setKeys has reporters authenticate with the keys of a file, which may be nil. It
// names the switches that have none where all of them need one, and keys of no node.
func (d *doorkeeper) setKeys(c *Config, f *fabric, file *keyfile.File, log *slog.Logger) {
	if file == nil {
		d.dta.SetKeys(nil)
		return
	}
	nodes := f.doc.Fabric.Nodes()
	keys := make([][]translate.GateKey, len(nodes))
	var without []string
	for i := range nodes {
		for _, k := range file.Keys(nodes[i].Name) {
			keys[i] = append(keys[i], translate.GateKey(k))
		}
		if keys[i] == nil && nodes[i].Role.IsSwitch() {
			without = append(without, nodes[i].Name)
		}
	}
	d.dta.SetKeys(keys)
	if len(without) > 0 && c.DTA().Require == sources.RequireMAC {
		log.Warn("switches without a key, whose reports are refused: add keys to the file and send SIGHUP",
			"file", c.DTA().Keys, "number", len(without), "switches", without[:min(len(without), maxNamed)])
	}
	strangers := slices.DeleteFunc(slices.Clone(file.Names()), func(name string) bool {
		_, known := f.doc.Fabric.ByName(name)
		return known
	})
	if len(strangers) > 0 {
		log.Info("keys of names that are not in the topology", "file", c.DTA().Keys, "number", len(strangers), "names", strangers[:min(len(strangers), maxNamed)])
	}
}

// maxNamed is how many names a log line has.
const maxNamed = 20

// addLosses adds the refusals of DTA reports to the translator's stage.
func (d *doorkeeper) addLosses(st *api.Stage) {
	c := d.dta.Refusals()
	for why := translate.Admitted + 1; int(why) < translate.Refusals; why++ {
		st.Losses = append(st.Losses, api.StageLoss{Reason: why.String(), Count: c.Reports[why]})
	}
	st.Losses = append(st.Losses, api.StageLoss{Reason: "refused without reports", About: "datagrams", Count: c.Empty})
}

// maxRefusedSources is how many sources health names.
const maxRefusedSources = 20

// refusedSources are the sources with most refusals.
func (d *doorkeeper) refusedSources() []api.RefusedSource {
	list := []api.RefusedSource{}
	for _, src := range sources.All() {
		all := d.guards[src.Kind].Sources()
		for i := range all[:min(len(all), maxRefusedSources)] {
			one := api.RefusedSource{Input: string(src.Kind), Address: all[i].Addr.String(), Datagrams: all[i].Total(), Reasons: map[string]uint64{}}
			for why, n := range all[i].Datagrams {
				if n > 0 {
					one.Reasons[translate.Refusal(why).String()] = n
				}
			}
			list = append(list, one)
		}
	}
	slices.SortStableFunc(list, func(a, b api.RefusedSource) int { return cmp.Compare(b.Datagrams, a.Datagrams) })
	return list[:min(len(list), maxRefusedSources)]
}
