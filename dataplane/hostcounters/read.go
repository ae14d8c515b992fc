package hostcounters

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/inhost/evidence"
)

// Read takes a snapshot of this host. What cannot be read is named in the snapshot.
func Read() *evidence.Snapshot {
	s := &evidence.Snapshot{Time: time.Now()}
	readFiles(os.DirFS("/"), s)
	for i := range s.Interfaces {
		in := &s.Interfaces[i]
		if err := readDriver(in); err != nil && !errors.Is(err, errNoDriverCounters) {
			s.Missing = append(s.Missing, in.Name+": "+err.Error())
		}
	}
	pairs := func(s *evidence.Snapshot) error { return readQueuePairs(os.DirFS("/"), s) }
	for _, part := range []func(*evidence.Snapshot) error{readQueues, readConnections, pairs} {
		if err := part(s); err != nil {
			s.Missing = append(s.Missing, err.Error())
		}
	}
	return s
}

// readFiles reads what is in sysfs and procfs.
func readFiles(root fs.FS, s *evidence.Snapshot) {
	for _, part := range []func(fs.FS, *evidence.Snapshot) error{readInterfaces, readSoftnet, readProtocols, readRDMA} {
		if err := part(root, s); err != nil {
			s.Missing = append(s.Missing, err.Error())
		}
	}
	slices.SortFunc(s.Interfaces, func(a, b evidence.Interface) int { return compareNames(a.Name, b.Name) })
}
