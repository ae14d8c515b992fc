package serve

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/weft-telemetry/weft/model"
)

// Bounds of controller.max_flows where it is 0.
const (
	leastFlows = 1 << 17
	mostFlows  = 1 << 20
)

// maxFlows is how many flows are followed: the configured number, or as many as fit
// what memory.limit leaves beside the other bounds, or an eighth of the machine's
// memory.
func (f *fabric) maxFlows(c *Config) int {
	if c.Controller.MaxFlows > 0 {
		return c.Controller.MaxFlows
	}
	free := f.machine / 8
	if c.Memory.Limit > 0 {
		free = c.Memory.Limit
		with := *c
		with.Controller.MaxFlows = 1
		for _, s := range memoryShares(&with, f) {
			free -= s.Bytes
		}
	}
	return int(min(max(free/trackedSize, leastFlows), mostFlows))
}

// machineMemory is the memory of this machine, or what its control group has of it; 0:
// it is not known.
func machineMemory() (size model.Bytes) {
	text, _ := os.ReadFile("/proc/meminfo") // without it nothing is known
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "MemTotal:" {
			n, _ := strconv.ParseInt(fields[1], 10, 64)
			size = model.Bytes(n) * model.KiB
		}
	}
	group, _ := os.ReadFile("/proc/self/cgroup")
	_, at, _ := strings.Cut(strings.TrimSpace(string(group)), "0::")
	for at = filepath.Clean("/" + at); ; at = filepath.Dir(at) { // the limits of all parents hold
		text, _ := os.ReadFile(filepath.Join("/sys/fs/cgroup", at, "memory.max"))
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil { // "max" is no number
			size = min(size, model.Bytes(n))
		}
		if at == "/" {
			return size
		}
	}
}
