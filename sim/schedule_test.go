package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
)

// TestStopsOfRunDoNotOrder: two nodes schedule something for one instant, the
// one that runs first later than the other. Whether Run stops between the two
// must not matter.
func TestStopsOfRunDoNotOrder(t *testing.T) {
	for name, tc := range map[string]struct {
		prepare func(n *Network)
		between time.Duration // the two ask before and after this
	}{
		// Both have left their hosts when they start, and are notified on the
		// grid.
		"timers": {func(n *Network) {
			n.moveAt(t, 0, Migration{Addr: vm4, To: 1})
			n.moveAt(t, 1, Migration{Addr: vm4, To: 5})
			n.add(t, traffic.Flow{Src: 0, From: vm4, Dst: 1, Bytes: 1}, traffic.Flow{Src: 0, From: vm4, Dst: 1, Bytes: 5, Start: 1556})
		}, 1500 * time.Nanosecond},
		"calls": {func(n *Network) {
			n.add(t,
				traffic.Flow{Src: 0, Dst: 1, Start: 200, Stop: 50_000, Transport: traffic.UDP},
				traffic.Flow{Src: 5, Dst: 1, Start: 100, Stop: 50_000, Transport: traffic.UDP})
		}, 150 * time.Nanosecond},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(stops ...time.Duration) (ends []engine.Time, order []int) {
				n := yard(t, nil)
				tc.prepare(n)
				for _, at := range append(stops, time.Second) {
					n.run(at)
				}
				for _, r := range n.records {
					ends, order = append(ends, r.Finish), append(order, r.ID)
				}
				return ends, order
			}
			wantEnds, want := run()
			ends, order := run(tc.between)
			if len(want) != 2 || !slices.Equal(ends, wantEnds) || !slices.Equal(order, want) {
				t.Errorf("flows %v end at %v when Run stops at %v; want %v at %v", order, ends, tc.between, want, wantEnds)
			}
		})
	}
}
