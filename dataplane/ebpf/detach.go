package ebpf

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// DetachEverywhere detaches the programs of all agents of this machine, running ones
// included, and returns how many there were. An agent that ended has none.
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
		if !strings.Contains(name, "(flowset_tcx)") && !strings.Contains(name, "(flowset_xdp)") {
			continue
		}
		if err := links.Link.Detach(); err != nil {
			return detached, fmt.Errorf("ebpf: detach link %d: %w", info.ID, err)
		}
		detached++
	}
	return detached, links.Err()
}
