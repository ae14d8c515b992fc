package diagnose

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/model"
)

// Progress is what two looks at a loop tell.
type Progress uint8

// Motions.
const (
	ProgressUnknown Progress = iota // the second look does not show all of it, and what it shows has not moved
	Progressed                      // a queue of it has sent, or is not paused any more
	NoProgress                      // none has
)

// CompareSnapshots tells whether the queues of a loop have moved from one graph's
// snapshots to a later one's. Pausing that goes round and dissolves looks like
// a deadlock in one look; counters of packets sent do not lie.
func CompareSnapshots(first, second *provenance.Graph, loop []model.Port) Progress {
	motion := NoProgress
	for _, p := range loop {
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
			motion = ProgressUnknown
		}
	}
	return motion
}

// MarkPersistent marks a verdict's loop as standing, unmoved for a time.
func (v *Verdict) MarkPersistent(since time.Duration) {
	if !v.Persistent {
		v.Persistent, v.Confidence = true, min(v.Confidence/unconfirmedFactor, 1)
		v.Evidence = append(slices.Clone(v.Evidence), fmt.Sprintf("a second look, %v apart, found nothing in the circle moved", since))
	}
}
