package ebpf

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// agentPrograms are the programs of agents, as the loader prints their names.
var agentPrograms = []string{"(flowset_tcx)", "(flowset_xdp)", "(mirror_tcx)"}

// DetachEverywhere detaches the programs of all agents, running ones included, and returns
// how many there were: links of this machine, and filters of this network namespace.
func DetachEverywhere() (detached int, err error) {
	links := link.Iterator{}
	defer links.Close()
	for links.Next() {
		info, err := links.Link.Info()
		if err != nil || info.Program == 0 {
			continue // a link of another kind, or one that is gone
		}
		p, err := ebpf.NewProgramFromID(info.Program)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return detached, fmt.Errorf("ebpf: program %d: %w", info.Program, err)
		}
		name := p.String()
		p.Close()
		if !slices.ContainsFunc(agentPrograms, func(own string) bool { return strings.Contains(name, own) }) {
			continue
		}
		if err := links.Link.Detach(); err != nil {
			return detached, fmt.Errorf("ebpf: detach link %d: %w", info.ID, err)
		}
		detached++
	}
	if err := links.Err(); err != nil {
		return detached, fmt.Errorf("ebpf: links: %w", err)
	}
	filters, err := detachFilters()
	return detached + filters, err
}
