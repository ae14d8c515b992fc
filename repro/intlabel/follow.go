package intlabel

import (
	"context"
	"fmt"

	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/scenario/labels"
)

// oneFlow is a flow of one packet between two pods of a fat-tree.
const oneFlow = `duration: 1ms
topology:
  generate: {kind: fat-tree, k: 4}
traffic:
  - {kind: persistent, pairs: [h0>h15], rate: 1Mb/s}
telemetry:
  - {kind: label, interval: 1s}
`

// followedPackets returns after how many packets of a followed flow its whole path
// is known, in the simulator; 0 if it never is.
func followedPackets(ctx context.Context, o claim.Options) (int, error) {
	s, err := scenario.Parse("one flow", []byte(oneFlow))
	if err != nil {
		return 0, err
	}
	s.Seed = o.Seed
	var follows labels.Options
	if !o.Without(follow) {
		follows.Follow = []string{"h0>h15"}
	}
	p, err := labels.Run(ctx, s, follows, nil)
	if err != nil {
		return 0, err
	}
	if len(p.Flows) == 0 {
		return 0, nil
	}
	for _, j := range p.Flows {
		if len(j.Hops) != 5 || j.Packets == 0 {
			return 0, fmt.Errorf("intlabel: %d hops of %d followed packets, want 5 of some", len(j.Hops), j.Packets)
		}
		if j.Changes > 0 {
			return j.Packets, nil // the first did not show the whole path
		}
	}
	return 1, nil
}
