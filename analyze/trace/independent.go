package trace

import (
	"cmp"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Mirrors that share a datagram are lost together, so that many packets may be
// one observation. Packets that are far enough apart share none: time is cut
// into slots, of which every second one counts, and in each slot one packet,
// the one with the smallest hash. The choice depends neither on the fate of the
// packets nor on how many judges share the traces.

// independentSamples are the fates of such packets, the earliest ones, by slot.
type independentSamples []sample

type sample struct {
	slot      int64
	hash      uint64
	hopsAhead uint8 // hops that were still ahead of the packet
	bad       bool  // the packet ended here, or its mirror is lost
}

// Limits of the samples kept: enough for certainty at a location, and for a
// share of lost mirrors to a few percent.
const (
	maxPacketSamples = 64
	maxMirrorSamples = 1024
)

// sampleSlot returns the slot in which a packet counts; false: it does not count.
func sampleSlot(at model.Time, length time.Duration) (int64, bool) {
	n := int64(at) / int64(length)
	if at < 0 {
		n-- // division rounds towards zero; slots must not
	}
	return n, n&1 == 0
}

// addSample adds a packet.
func (a *independentSamples) addSample(x sample, most int) {
	n := len(*a)
	if n > 0 && x.slot < (*a)[n-1].slot || n == most && x.slot > (*a)[n-1].slot {
		a.insertSample(x, most)
		return
	}
	if n == 0 || x.slot > (*a)[n-1].slot {
		*a = append(*a, x)
	} else if x.hash < (*a)[n-1].hash {
		(*a)[n-1] = x
	}
}

// insertSample is addSample for packets out of order.
func (a *independentSamples) insertSample(x sample, most int) {
	i, found := slices.BinarySearchFunc(*a, x.slot, func(y sample, slot int64) int { return cmp.Compare(y.slot, slot) })
	switch {
	case found:
		if x.hash < (*a)[i].hash {
			(*a)[i] = x
		}
	case i < most:
		*a = slices.Insert(*a, i, x)
		*a = (*a)[:min(len(*a), most)]
	}
}

func (a *independentSamples) merge(o independentSamples, most int) {
	for _, x := range o {
		a.addSample(x, most)
	}
}

// countBad counts the packets that ended, or whose mirrors are lost.
func (a independentSamples) countBad() (n uint64) {
	for i := range a {
		if a[i].bad {
			n++
		}
	}
	return n
}
