package mmu

import (
	"math"
	"math/bits"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Bytes that take time on the wire beside the frame itself.
const (
	frameOverhead = 24 // preamble 8, FCS 4, gap 12
	pauseOnWire   = 84 // a PFC frame of 60 bytes with its overhead
)

// HeadroomFor returns the headroom that one lossless priority of one port needs so that
// nothing is lost after its queue has crossed Xoff. delay is the one-way
// propagation of the link; mtu is the largest frame that any priority sends on
// it, as the buffer counts it.
//
// A packet is admitted when its last bit has arrived. Let that happen at time
// t and let the packet be the first over the threshold. Then, with C for the
// link's rate, D for its delay, M for the largest frame and P for a PFC frame:
//
//	t                          the crossing packet itself is in the headroom  M
//	t + M/C                    a frame in the other direction had just begun,
//	                           and a PAUSE cannot interrupt it                M
//	t + (M+8P)/C               the PAUSE is sent, after at most one frame
//	                           for each of the other seven priorities         8P
//	t + (M+8P)/C + D           the sender has all of it and starts nothing
//	                           more
//	t + (M+8P)/C + 2D          what was sent until then has arrived           2DC
//	t + (M+8P)/C + 2D + M/C    and so has the frame it had just begun         M
//
// From t to the end the sender may fill the wire, so the bytes are those of
// the right column: 2DC + 2M, and M + 8P that belong to the response. All M
// and P include what surrounds a frame on the wire, because it takes time.
//
// Nothing else adds to it. Headroom is empty when a queue crosses: its bytes
// are released first, a sender is resumed only without any, and the first byte
// of headroom pauses again. Other priorities have separate headroom.
//
// What the switch and its neighbour must do for it to hold: check ShouldPause
// at every admission; send PFC frames before all others, at most one waiting
// per priority (a newer one replaces an older); obey a PAUSE when it
// has fully arrived, at the next frame boundary, and until resumed (where
// pauses run out, repeat them early enough); count a packet as large as it
// arrived; round the time to send a packet up.
func HeadroomFor(rate model.Rate, delay time.Duration, mtu model.Bytes) model.Bytes {
	return inFlight(rate, 2*delay) + 3*(mtu+frameOverhead) + Priorities*pauseOnWire
}

// inFlight returns what a link carries in d, rounded up.
func inFlight(rate model.Rate, d time.Duration) model.Bytes {
	const bitTimes = 8 * uint64(time.Second)
	hi, lo := bits.Mul64(uint64(max(rate, 0)), uint64(max(d, 0)))
	lo, carry := bits.Add64(lo, bitTimes-1, 0)
	if hi += carry; hi >= bitTimes {
		return math.MaxInt64 / 4 // no link is that long: Check rejects it
	}
	q, _ := bits.Div64(hi, lo, bitTimes)
	return model.Bytes(min(q, math.MaxInt64/4))
}

// HPCCHeadroom returns the HPCC simulator's headroom of a port: three times what the
// link carries in one delay, rounded down before the product. It knows nothing
// of frame sizes, so on short links it is less than one packet and loses.
func HPCCHeadroom(rate model.Rate, delay time.Duration) model.Bytes {
	const bitTimes = 8 * uint64(time.Second)
	hi, lo := bits.Mul64(uint64(max(rate, 0)), uint64(max(delay, 0)))
	if hi >= bitTimes/4 {
		return math.MaxInt64 / 4
	}
	q, _ := bits.Div64(hi, lo, bitTimes)
	return 3 * model.Bytes(min(q, math.MaxInt64/16))
}

// HPCCShift returns the HPCC simulator's threshold of a port, as the shift for
// AlphaShift: 3 at the rate of the hosts, one less for each doubling begun
// above it, not below 0.
func HPCCShift(port, nic model.Rate) uint8 {
	shift := uint8(hpccShift)
	for ; port > nic && shift > 0; port /= 2 {
		shift--
	}
	return shift
}
