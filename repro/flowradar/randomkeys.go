package flowradar

import (
	"fmt"
	"math/rand/v2"

	"github.com/weft-telemetry/weft/model"
)

// randomKeys returns n different IPv4 flows. Addresses and ports are random, as
// the paper's are: decoding depends on the number of flows, not on their names.
func randomKeys(rng *rand.Rand, n int) []model.FlowKey {
	keys := make([]model.FlowKey, n)
	for i := range keys {
		w := rng.Uint64()
		keys[i] = model.FlowKey{
			Src: model.Addr4(rng.Uint32()), Proto: model.TCP,
			// The number itself is the destination: no two are equal.
			Dst: model.Addr4(uint32(i)), DstPort: uint16(w), SrcPort: uint16(w >> 16),
		}
	}
	return keys
}

// megabytes prints a size as the paper does, in millions of bytes.
func megabytes(bytes float64) string { return fmt.Sprintf("%.3g MB", bytes/1e6) }

func percent(share float64) string { return fmt.Sprintf("%.3g %%", 100*share) }

// withinShare reports whether a value is within a share of the published one.
func withinShare(measured, published, tolerance float64) bool {
	return measured >= published*(1-tolerance) && measured <= published*(1+tolerance)
}
