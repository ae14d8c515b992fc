package diagnose

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/model"
)

// Progress is what two snapshots of a deadlock cycle show.
type Progress uint8

// Values of Progress.
const (
	ProgressUnknown Progress = iota // the second snapshot lacks some queues, and the others made no progress
	Progressed                      // a queue of the cycle has sent, or is not paused any more
	NoProgress                      // none has
)

// CompareSnapshots reports whether the queues of a cycle made progress from one
// graph's snapshots to a later one's. Pauses that move along a cycle and
// dissolve look like a deadlock in one snapshot; counters of sent packets
// distinguish the two.
func CompareSnapshots(first, second *provenance.Graph, cycle []model.Port) Progress {
	progress := NoProgress
	for _, p := range cycle {
		known := false
		for class := range model.Priority(8) {
			q := provenance.Queue{Port: p, Priority: class}
			a, b := first.Node(q), second.Node(q)
			if a < 0 || !first.Nodes[a].PausedAtSnapshot() {
				continue
			}
			known = b >= 0 && second.Nodes[b].Snapshot > first.Nodes[a].Snapshot
			if known && (!second.Nodes[b].PausedAtSnapshot() || second.Nodes[b].State.Sent != first.Nodes[a].State.Sent) {
				return Progressed
			}
		}
		if !known {
			progress = ProgressUnknown
		}
	}
	return progress
}

// MarkPersistent marks a verdict's deadlock cycle as persistent: without
// progress for a time.
func (v *Verdict) MarkPersistent(since time.Duration) {
	if !v.Persistent {
		v.Persistent = true
		v.Evidence = append(slices.Clone(v.Evidence),
			fmt.Sprintf("a second snapshot %s later shows no progress in the cycle", model.FormatDuration(since)))
	}
}
