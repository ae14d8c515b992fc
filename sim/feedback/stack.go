package feedback

import (
	"slices"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
)

// MaxHops is for how many switches a Stack has room. HPCC does not react to
// packets that passed more.
const MaxHops = 5

// Widths and units of a Hop's figures, as the simulator's header has them.
const (
	timeBits  = 24 // nanoseconds
	bytesBits = 20
	bytesUnit = 128
	queueBits = 17
	queueUnit = 80
)

// LineRates are the port rates that a Hop can name.
var LineRates = []model.Rate{25 * model.Gbps, 50 * model.Gbps, 100 * model.Gbps, 200 * model.Gbps, 400 * model.Gbps}

// Named tells whether a Hop can name a port's rate.
func Named(r model.Rate) bool { return slices.Contains(LineRates, r) }

// Stack is what the switches on the way of a packet have written on it.
type Stack struct {
	n    int
	hops [MaxHops]hop
}

// hop is a port at the moment the packet left it. All figures wrap around.
type hop struct {
	time  uint32
	bytes uint32 // sent so far, the packet itself left out
	queue uint32 // left behind
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

// Len is how many hops were pushed, also if there was no room for all.
func (s *Stack) Len() int { return s.n }

// since is the time and the bytes between two looks at one port.
func (h *hop) since(old *hop, multi uint32) (ns, bytes uint64) {
	ns = uint64((h.time - old.time) & (1<<timeBits - 1))
	return ns, uint64((h.bytes-old.bytes)&(1<<bytesBits-1)) * uint64(bytesUnit*multi)
}

// queued is the queue in bytes.
func (h *hop) queued(multi uint32) uint32 { return h.queue * queueUnit * multi }
