package diagnose

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/model"
)

// Motion is what two looks at a loop tell.
type Motion uint8

// Motions.
const (
	Unseen Motion = iota // the second look does not show all of it, and what it shows has not moved
	Moved                // a queue of it has sent, or is not paused any more
	Stood                // none has
)

// Compare tells whether the queues of a loop have moved from one graph's
// snapshots to a later one's. Pausing that goes round and dissolves looks like
// a deadlock in one look; counters of packets sent do not lie.
func Compare(first, second *provenance.Graph, loop []model.Port) Motion {
	motion := Stood
	for _, p := range loop {
		known := false
		for class := range model.Priority(8) {
			q := provenance.Queue{Port: p, Priority: class}
			a, b := first.Node(q), second.Node(q)
			if a < 0 || !first.Nodes[a].Stands() {
				continue
			}
			known = b >= 0 && second.Nodes[b].Snapshot > first.Nodes[a].Snapshot
			if known && (!second.Nodes[b].Stands() || second.Nodes[b].State.Sent != first.Nodes[a].State.Sent) {
				return Moved
			}
		}
		if !known {
			motion = Unseen
		}
	}
	return motion
}

// Stand marks a verdict's loop as standing, unmoved for a time.
func (v *Verdict) Stand(since time.Duration) {
	if !v.Standing {
		v.Standing, v.Confidence = true, min(v.Confidence/unproven, 1)
		v.Evidence = append(slices.Clone(v.Evidence), fmt.Sprintf("a second look, %v apart, found nothing in the circle moved", since))
	}
}
