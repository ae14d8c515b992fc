package preflight

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/weft-telemetry/weft/inhost/settings"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// ReadHosts reads the settings of hosts from files, or from all files NAME.json of a folder. A host
// is that of the fabric with its hostname, with or without domain, or with one of its addresses.
func ReadHosts(paths []string, f *topo.Fabric) (map[model.NodeID]*settings.Host, error) {
	hosts, from := make(map[model.NodeID]*settings.Host), make(map[model.NodeID]string)
	for _, path := range paths {
		files := []string{path}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			if files, err = filepath.Glob(filepath.Join(path, "*.json")); err != nil {
				return nil, err
			}
			if len(files) == 0 {
				return nil, fmt.Errorf("%s has no NAME.json, want what weft agent --settings wrote on hosts", path)
			}
		}
		for _, file := range files {
			data, err := readLimited(file)
			if err != nil {
				return nil, err
			}
			list, err := settings.Parse(file, data)
			if err != nil {
				return nil, err
			}
			for i := range list {
				id, ok := hostOf(&list[i], f)
				if !ok {
					return nil, fmt.Errorf("%s: the fabric has no host %s and none with its addresses, want one of its hosts", file, list[i].Hostname)
				}
				if from[id] != "" {
					return nil, fmt.Errorf("%s and %s are both of %s, want one", from[id], file, f.Node(id).Name)
				}
				hosts[id], from[id] = &list[i], file
			}
		}
	}
	return hosts, nil
}

// hostOf finds a host by its name, or else by an address.
func hostOf(h *settings.Host, f *topo.Fabric) (model.NodeID, bool) {
	short, _, _ := strings.Cut(h.Hostname, ".")
	for _, name := range []string{h.Hostname, short} {
		if id, ok := f.ByName(name); ok && !f.Node(id).Role.IsSwitch() {
			return id, true
		}
	}
	for i := range h.Interfaces {
		for _, a := range h.Interfaces[i].Addresses {
			if id, ok := f.ByAddr(model.AddrOf(a)); ok && !f.Node(id).Role.IsSwitch() {
				return id, true
			}
		}
	}
	return 0, false
}
