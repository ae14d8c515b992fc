package trace

import (
	"cmp"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Mirrors that share a datagram are lost together, so that many packets may be
// sample observation. Packets that are far enough apart share none: time is cut
// into slots, of which every second one counts, and in each slot one packet,
// whichever has the smallest hash. Which packets these are depends neither on
// what became of them nor on how many judges share the traces.

// independentSamples is what became of such packets, the earliest ones, by slot.
type independentSamples []sample

type sample struct {
	slot int64
	hash uint64
	hopsAhead uint8 // hops that were ahead
	bad  bool  // ended, or its mirror is lost
}

// Most that are kept: enough for certainty at a place, and for a share of lost
// mirrors to a few percent.
const (
	maxPacketSamples = 64
	maxMirrorSamples = 1024
)

// sampleSlot is the slot in which a packet counts; false: it does not.
func sampleSlot(at model.Time, length time.Duration) (int64, bool) {
	n := int64(at) / int64(length)
	if at < 0 {
		n-- // division rounds towards zero; slots must not
	}
	return n, n&1 == 0
}

// addSample enters a packet.
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

// insertSample is add for what does not come in order.
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
