package settings

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Bounds of a file.
const (
	maxHosts      = 1 << 17
	maxInterfaces = 1 << 12 // of a host
	maxApps       = 1 << 12 // of an interface
	maxRDMA       = 64      // ports over an interface
)

// Parse reads the JSON of one host or of a list of hosts, as weft agent --settings writes them.
// The name is for errors.
func Parse(name string, data []byte) ([]Host, error) {
	var hosts []Host
	var err error
	if b := bytes.TrimSpace(data); len(b) > 0 && b[0] == '[' {
		err = json.Unmarshal(b, &hosts)
	} else {
		hosts = make([]Host, 1)
		err = json.Unmarshal(b, &hosts[0])
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w, want the JSON of weft agent --settings, or a list of them", name, err)
	}
	if n := len(hosts); n == 0 || n > maxHosts {
		return nil, fmt.Errorf("%s: %d hosts, want 1 to %d", name, n, maxHosts)
	}
	for i := range hosts {
		if err := hosts[i].check(); err != nil {
			return nil, fmt.Errorf("%s: host %d (%.64q): %w", name, i, hosts[i].Hostname, err)
		}
	}
	return hosts, nil
}

func (h *Host) check() error {
	switch n := len(h.Interfaces); {
	case h.Hostname == "" || len(h.Hostname) > 255:
		return fmt.Errorf("hostname of %d bytes, want 1 to 255", len(h.Hostname))
	case n == 0 || n > maxInterfaces:
		return fmt.Errorf("%d interfaces, want 1 to %d", n, maxInterfaces)
	}
	names := map[string]bool{}
	for i := range h.Interfaces {
		in := &h.Interfaces[i]
		if in.Name == "" || len(in.Name) > 64 || names[in.Name] {
			return fmt.Errorf("interface %d has the name %.80q, want one of its own of 1 to 64 bytes", i, in.Name)
		}
		names[in.Name] = true
		if err := in.check(); err != nil {
			return fmt.Errorf("interface %s: %w", in.Name, err)
		}
	}
	return nil
}

func (in *Interface) check() error {
	switch {
	case in.MTU < 0 || in.MTU > 1<<16:
		return fmt.Errorf("MTU %d, want 0 to %d", in.MTU, 1<<16)
	case len(in.RDMA) > maxRDMA:
		return fmt.Errorf("%d RDMA ports, want at most %d", len(in.RDMA), maxRDMA)
	case in.Apps != nil && len(*in.Apps) > maxApps:
		return fmt.Errorf("%d apps, want at most %d", len(*in.Apps), maxApps)
	}
	if in.Apps != nil {
		for _, a := range *in.Apps {
			if err := a.check(); err != nil {
				return err
			}
		}
	}
	if in.ETS != nil {
		for priority, class := range in.ETS.ClassOf {
			if class > 7 {
				return fmt.Errorf("priority %d has traffic class %d, want 0 to 7", priority, class)
			}
		}
	}
	return nil
}

func (a App) check() error {
	if a.Priority > 7 {
		return fmt.Errorf("app %s %d has priority %d, want 0 to 7", a.Selector, a.Protocol, a.Priority)
	}
	if a.Selector == DSCP && a.Protocol > 63 {
		return fmt.Errorf("app of DSCP %d, want 0 to 63", a.Protocol)
	}
	return nil
}
