package preflight

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario/preflight/configdb"
	"github.com/weft-telemetry/weft/sim/mmu"
	"github.com/weft-telemetry/weft/topo"
)

// maxConfig bounds the configuration of one switch.
const maxConfig = 64 << 20

// ReadConfigDB reads the CONFIG_DB of switches from a directory: files named after
// the switch (leaf0.json), folders of that name with a config_db.json, or any name
// where DEVICE_METADATA has the switch as hostname.
func ReadConfigDB(dir string, f *topo.Fabric) (map[model.NodeID]*configdb.Config, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	below, err := filepath.Glob(filepath.Join(dir, "*", "config_db.json"))
	if err != nil {
		return nil, err
	}
	files = append(files, below...)
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has neither NAME.json nor NAME/config_db.json, want the CONFIG_DB of switches", dir)
	}
	configs, from := make(map[model.NodeID]*configdb.Config), make(map[model.NodeID]string)
	for _, path := range files {
		data, err := readLimited(path)
		if err != nil {
			return nil, err
		}
		c, err := configdb.Parse(path, data)
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		if name == "config_db" {
			name = filepath.Base(filepath.Dir(path))
		}
		id, ok := f.ByName(name)
		if !ok {
			id, ok = f.ByName(c.Hostname)
		}
		if !ok || !f.Node(id).Role.IsSwitch() {
			return nil, fmt.Errorf("%s: the fabric has no switch %s, want one of its switches as name or hostname", path, cmp.Or(c.Hostname, name))
		}
		if from[id] != "" {
			return nil, fmt.Errorf("%s and %s are both of %s, want one", from[id], path, f.Node(id).Name)
		}
		configs[id], from[id] = c, path
	}
	return configs, nil
}

func readLimited(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err == nil && len(data) > maxConfig {
		err = fmt.Errorf("%s: more than %v, want less", path, model.Bytes(maxConfig))
	}
	return data, err
}

// configSeverities are the severities of configdb's mismatches.
var configSeverities = map[string]Severity{
	configdb.MTU: Fault, configdb.RDMAMTU: Warning, configdb.Speed: Fault, configdb.PFC: Fault, configdb.NoBuffer: Fault, configdb.DSCP: Fault,
	configdb.Headroom: Fault, configdb.ECN: Warning, configdb.Missing: Note,
}

// checkConfigs compares the configurations of switches and the settings of hosts with each other and, where a
// scenario says what the fabric is meant to have, with its settings.
func (c *checker) checkConfigs(context.Context) error {
	if len(c.opts.ConfigDB) == 0 && len(c.opts.Hosts) == 0 {
		return nil
	}
	want := configdb.Settings{Headroom: mmu.HeadroomFor}
	if c.s.HasSettings() {
		want.Lossless = c.s.Sim.Lossless
		if c.s.Sim.NoPFC {
			want.Lossless = 0
		}
		want.MaxFrame = model.Bytes(c.s.Sim.MTU) + roceHeaders
		if len(c.s.Sim.ECN) > 0 {
			want.ECN = func(rate model.Rate) (kmin, kmax model.Bytes, ok bool) {
				curve, ok := c.s.Sim.ECNFor(rate)
				return curve.Kmin, curve.Kmax, ok
			}
		}
	}
	for _, m := range configdb.Compare(c.fabric, c.opts.ConfigDB, c.opts.Hosts, want) {
		c.add(Finding{Rule: m.Rule, Severity: configSeverities[m.Rule], Text: m.Text, Places: m.Places, Mend: m.Mend})
	}
	return nil
}

// roceHeaders is what IPv6, UDP and the headers of RoCEv2 with an RDMA address add
// to a payload: SONiC's MTU counts from the IP header on.
const roceHeaders = 40 + 8 + 12 + 16 + 4
