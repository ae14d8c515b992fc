package congestion

import (
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
)

// MaxHops is the capacity of a Stack. HPCC does not react to packets that passed
// more switches.
const MaxHops = 5

// Widths and units of a hop's figures in the HPCC simulator's INT header.
const (
	timeBits  = 24 // nanoseconds
	bytesBits = 20
	bytesUnit = 128
	queueBits = 17
	queueUnit = 80
)

// LineRates are the port rates that the INT header can encode.
var LineRates = []model.Rate{25 * model.Gbps, 50 * model.Gbps, 100 * model.Gbps, 200 * model.Gbps, 400 * model.Gbps}

// EncodableRate reports whether the INT header can encode a port's rate.
func EncodableRate(r model.Rate) bool { return slices.Contains(LineRates, r) }

// Stack is the in-band telemetry (INT) that the switches on a packet's path wrote
// on it.
type Stack struct {
	n    int
	hops [MaxHops]hop
}

// hop is the state of a port when the packet left it. All figures wrap around.
type hop struct {
	time  uint32
	bytes uint32 // sent so far, without the packet itself
	queue uint32 // after the packet left
	rate  model.Rate
}

// Push adds a hop. multi coarsens the units of sent and queued; it is at least 1.
func (s *Stack) Push(now engine.Time, sent model.Bytes, queued int64, rate model.Rate, multi uint32) {
	s.hops[s.n%MaxHops] = hop{
		time:  uint32(now/engine.Nanosecond) & (1<<timeBits - 1),
		bytes: uint32(uint64(sent)/uint64(bytesUnit*multi)) & (1<<bytesBits - 1),
		queue: uint32(uint64(queued)/uint64(queueUnit*multi)) & (1<<queueBits - 1),
		rate:  rate,
	}
	s.n++
}

// Len returns how many hops were pushed, including those beyond MaxHops.
func (s *Stack) Len() int { return s.n }

// since returns the time and the bytes between two samples of one port.
func (h *hop) since(old *hop, multi uint32) (ns, bytes uint64) {
	ns = uint64((h.time - old.time) & (1<<timeBits - 1))
	return ns, uint64((h.bytes-old.bytes)&(1<<bytesBits-1)) * uint64(bytesUnit*multi)
}

// queued returns the queue in bytes.
func (h *hop) queued(multi uint32) uint32 { return h.queue * queueUnit * multi }
