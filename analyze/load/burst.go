package load

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// Microburst is a short burst: a port carried much more than before, for at most
// BurstConfig.MaxSlots. It is reported when it has ended.
type Microburst struct {
	Slot  int64 // the first
	Slots int64 // how many
	Port  model.Port
	Load  float64 // of the port's rate, in the first slot
	Usual float64 // median of the slots before
	// Flows are those that make up the excess in the first slot, those that grew
	// most first. If many are new in that slot, it is an incast.
	Flows []model.FlowKey
	New   int // of Flows: not seen at this port in the slot before
}

// PeriodicSender is a sender whose bursts come at even intervals and are rare
// enough to keep its average low: a low-rate ("shrew") attack, or an application
// that behaves like one.
type PeriodicSender struct {
	Slot   int64 // of the newest burst
	Port   model.Port
	Source model.Addr
	Bursts int
	Period time.Duration
	Load   float64 // of the port's rate, in a burst's slot
	Mean   float64 // of the port's rate, over all slots from first to last burst
}

// BurstConfig configures a BurstDetector.
type BurstConfig struct {
	Fabric   *topo.Fabric
	Load     float64 // share of a port's rate below which a slot is no burst
	Factor   float64 // over the usual load
	History  int     // slots that define the usual load
	MaxSlots int64   // slots of a microburst; a longer one is the new usual load

	MinBursts int     // bursts of a periodic sender
	Jitter    float64 // of their intervals: standard deviation over mean
	MaxDuty   float64 // share of slots that are bursts

	// Ports are those of the fabric, if others use them too; nil: its own.
	Ports *paths.Ports
}

// DefaultBurstConfig requires a slot at 20 % of the port's rate and four times
// the usual load of the last 16 slots, and an end within 4 slots; a periodic
// sender has five bursts within a tenth of even intervals and is silent for three
// quarters of the time.
func DefaultBurstConfig(f *topo.Fabric) BurstConfig {
	return BurstConfig{
		Fabric: f, Load: 0.2, Factor: 4, History: 16, MaxSlots: 4, MinBursts: 5, Jitter: 0.1,
		MaxDuty: 0.25,
	}
}

// BurstDetector observes the load of every port that leads to a host: that is
// where senders meet.
//
// One HostTraffic has all flows of a slot, or each of several a part of them.
type BurstDetector struct {
	cfg     BurstConfig
	numbers *paths.Ports
	loads   []*portLoads // by the port's number; nil: it has carried nothing yet
	bursts  []uint32     // ports with a burst
	sum     HostTraffic  // of all parts
	own     HostTraffic
	last    []*paths.Map // of the slot before
	senders map[sender]*senderBursts
	// Untracked counts bursts of senders beyond maxSenders.
	Untracked uint64
}

type portLoads struct {
	loads []float64 // of the last slots, newest last
	last  int64
	burst Microburst // current; no Slots: none
}

type sender struct {
	port model.Port
	src  model.Addr
}

type senderBursts struct {
	slots []int64 // first slots of bursts
	busy  int64   // last slot of the newest one
	load  float64 // mean of the bursts' slots
	count int     // of those slots
	total float64 // sum of the loads of all slots since the first burst
}

// maxSenderBursts bounds the bursts kept of a sender, maxSenders the senders, and
// idleSlots is after how many slots one is evicted when maxSenders is reached.
const (
	maxSenderBursts = 64
	maxSenders      = 1 << 16
	idleSlots       = 1 << 12
)

// NewBurstDetector returns a detector that has observed no slot.
func NewBurstDetector(cfg BurstConfig) (*BurstDetector, error) {
	if cfg.Fabric == nil {
		return nil, errors.New("load: no fabric")
	}
	if cfg.History < 1 || cfg.MinBursts < 3 || cfg.MinBursts > maxSenderBursts {
		return nil, fmt.Errorf("load: history %d slots, min bursts %d; want at least 1, and 3 to %d",
			cfg.History, cfg.MinBursts, maxSenderBursts)
	}
	b := &BurstDetector{cfg: cfg, numbers: cfg.Ports, senders: map[sender]*senderBursts{}}
	if b.numbers == nil {
		b.numbers = paths.NewPorts(cfg.Fabric)
	}
	b.loads = make([]*portLoads, b.numbers.Len())
	return b, nil
}

// Observe takes the map of the next slot and returns the microbursts that ended
// and the periodic senders that show in it, by port. The detector reads a map until one
// more has been observed.
func (b *BurstDetector) Observe(m *paths.Map) (spikes []Microburst, rhythms []PeriodicSender) {
	b.own.Count(b.numbers, m)
	return b.ObserveParts(&b.own)
}

// ObserveParts is Observe of what several maps of one slot count, each of a part of the
// flows.
func (b *BurstDetector) ObserveParts(parts ...*HostTraffic) (spikes []Microburst, rhythms []PeriodicSender) {
	now := parts[0]
	if len(parts) > 1 {
		b.sum.add(b.numbers, parts)
		now = &b.sum
	}
	r := parts[0].reports
	var begun []uint32
	for _, port := range now.ports {
		h := b.portHistory(port, r.Slot)
		load := float64(now.bytes[port]) / b.capacity(port, r)
		done, begins := b.trackMicroburst(r.Slot, b.numbers.Port(port), h, load)
		if begins {
			begun = append(begun, port)
		}
		if done != nil {
			spikes = append(spikes, *done)
		}
		h.appendSlot(r.Slot, load)
	}
	for _, port := range b.bursts { // of ports that carry nothing any more
		if !now.has(port) {
			if done, _ := b.trackMicroburst(r.Slot, model.Port{}, b.loads[port], 0); done != nil {
				spikes = append(spikes, *done)
			}
		}
	}
	b.attributeFlows(begun, parts)
	b.bursts = slices.DeleteFunc(append(b.bursts, begun...), func(port uint32) bool { return b.loads[port].burst.Slots == 0 })
	rhythms = b.trackSenders(r, now)
	b.last = b.last[:0]
	for _, p := range parts {
		b.last = append(b.last, p.m) // nil if it is in another process
	}
	slices.SortFunc(spikes, func(x, y Microburst) int { return comparePorts(x.Port, y.Port) })
	slices.SortFunc(rhythms, func(x, y PeriodicSender) int {
		return cmp.Or(comparePorts(x.Port, y.Port), x.Source.Compare(y.Source))
	})
	return spikes, rhythms
}

// capacity returns the bytes that a port can carry in a slot.
func (b *BurstDetector) capacity(port uint32, r *paths.Reports) float64 {
	at := b.numbers.Port(port)
	return float64(b.cfg.Fabric.Port(at).Rate) / 8 * r.Length.Seconds()
}

func comparePorts(a, b model.Port) int {
	return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Port, b.Port))
}

// portHistory returns a port's loads; slots in which it carried nothing are zeros.
func (b *BurstDetector) portHistory(port uint32, slot int64) *portLoads {
	h := b.loads[port]
	if h == nil {
		h = &portLoads{last: slot - 1, loads: make([]float64, b.cfg.History)}
		b.loads[port] = h
	}
	for range min(slot-h.last-1, int64(b.cfg.History)) {
		h.appendSlot(slot-1, 0)
	}
	return h
}

// appendSlot replaces the oldest slot by a new one.
func (h *portLoads) appendSlot(slot int64, load float64) {
	copy(h.loads, h.loads[1:])
	h.loads[len(h.loads)-1] = load
	h.last = slot
}

func (h *portLoads) median() float64 {
	sorted := slices.Sorted(slices.Values(h.loads))
	return sorted[len(sorted)/2]
}

// trackMicroburst starts, continues or ends a port's microburst with the load of
// a slot. It returns one that has ended, and reports whether one begins.
func (b *BurstDetector) trackMicroburst(slot int64, at model.Port, h *portLoads, load float64) (done *Microburst, begins bool) {
	usual := h.burst.Usual
	if h.burst.Slots == 0 {
		if load < b.cfg.Load {
			return nil, false // whatever is usual
		}
		usual = h.median()
	}
	high := load >= b.cfg.Load && load >= b.cfg.Factor*usual
	switch {
	case high && h.burst.Slots > 0:
		h.burst.Slots++
	case high:
		h.burst = Microburst{Slot: slot, Slots: 1, Port: at, Load: load, Usual: usual}
		return nil, true
	case h.burst.Slots > 0:
		if h.burst.Slots <= b.cfg.MaxSlots {
			ended := h.burst
			done = &ended
		}
		h.burst = Microburst{}
	}
	return done, false
}

// portFlow is a flow at a port where a burst begins.
type portFlow struct {
	key           model.FlowKey
	bytes, before uint64 // in this slot, and in the one before
}

func (f *portFlow) growth() float64 { return float64(f.bytes) - float64(f.before) }

// attributeFlows lists the flows of bursts that begin.
func (b *BurstDetector) attributeFlows(begun []uint32, parts []*HostTraffic) {
	if len(begun) == 0 {
		return
	}
	flows := make(map[uint32][]portFlow, len(begun))
	for _, port := range begun {
		flows[port] = nil
	}
	for i, p := range parts {
		m := p.m
		if m == nil {
			for k := range p.listed {
				f := &p.listed[k]
				if list, ok := flows[f.port]; ok {
					flows[f.port] = append(list, portFlow{*p.key(f.flow), f.bytes, f.before})
				}
			}
			continue
		}
		var last *paths.Map // the same part of the flows
		if i < len(b.last) && b.last[i] != nil && b.last[i].Slot+1 == m.Slot {
			last = b.last[i]
		}
		for n := range m.Flows() {
			for _, s := range m.Sightings(n) {
				port, ok := b.numbers.Number(s.Switch, s.Out)
				if !ok {
					continue
				}
				if list, ok := flows[port]; ok {
					flows[port] = append(list, portFlow{*m.Key(n), s.Bytes, bytesAt(last, m, n, &s)})
				}
			}
		}
	}
	for port, list := range flows {
		b.loads[port].burst.attribute(list)
	}
}

// bytesAt returns the bytes of a flow at the port of a sighting in the slot before.
func bytesAt(last, m *paths.Map, flow int, s *paths.Sighting) uint64 {
	if last == nil {
		return 0
	}
	at := m.In(last, flow)
	if at < 0 {
		return 0
	}
	hops := last.Sightings(at)
	for i := range hops {
		if was := &hops[i]; was.Switch == s.Switch {
			if was.Out == s.Out {
				return was.Bytes
			}
			return 0
		}
	}
	return 0
}

// attribute lists the flows that grew most, until the rest is the usual load.
func (s *Microburst) attribute(flows []portFlow) {
	rest := 0.0
	for i := range flows {
		rest += float64(flows[i].bytes)
	}
	usual := s.Usual / s.Load * rest
	slices.SortFunc(flows, func(a, b portFlow) int {
		return cmp.Or(cmp.Compare(b.growth(), a.growth()), a.key.Compare(b.key))
	})
	for i := range flows {
		if rest <= usual*(1+1e-9) {
			return
		}
		s.Flows = append(s.Flows, flows[i].key)
		rest -= float64(flows[i].bytes)
		if flows[i].before == 0 {
			s.New++
		}
	}
}

// trackSenders tracks the senders of a slot, those with most of a port's rate in the
// order of ports and addresses.
func (b *BurstDetector) trackSenders(r *paths.Reports, now *HostTraffic) (rhythms []PeriodicSender) {
	type burst struct {
		id   sender
		load float64
	}
	var list []burst
	for i := range now.senders {
		s := &now.senders[i]
		if !s.used {
			continue
		}
		id := sender{b.numbers.Port(s.port), s.src}
		if load := float64(s.bytes) / b.capacity(s.port, r); load >= b.cfg.Load {
			list = append(list, burst{id, load})
		} else if len(b.senders) > 0 {
			if k := b.senders[id]; k != nil {
				k.total += load
			}
		}
	}
	slices.SortFunc(list, func(x, y burst) int { return cmp.Or(comparePorts(x.id.port, y.id.port), x.id.src.Compare(y.id.src)) })
	for i := range list {
		if p, ok := b.trackSender(r, list[i].id, list[i].load); ok {
			rhythms = append(rhythms, p)
		}
	}
	return rhythms
}

// trackSender records a slot with a burst of a sender and reports whether its bursts are periodic.
func (b *BurstDetector) trackSender(m *paths.Reports, id sender, load float64) (PeriodicSender, bool) {
	k := b.senders[id]
	if k == nil {
		if len(b.senders) >= maxSenders {
			maps.DeleteFunc(b.senders, func(_ sender, k *senderBursts) bool { return k.busy+idleSlots < m.Slot })
		}
		if len(b.senders) >= maxSenders {
			b.Untracked++
			return PeriodicSender{}, false
		}
		k = &senderBursts{}
		b.senders[id] = k
	}
	starts := len(k.slots) == 0 || k.busy+1 < m.Slot
	k.busy = m.Slot
	k.total += load
	k.count++
	k.load += (load - k.load) / float64(k.count)
	if !starts {
		return PeriodicSender{}, false
	}
	if len(k.slots) == maxSenderBursts { // restart instead of sliding, so that the sums stay consistent
		*k = senderBursts{busy: m.Slot, load: load, count: 1, total: load}
	}
	k.slots = append(k.slots, m.Slot)
	return b.detectPeriod(m, id, k)
}

func (b *BurstDetector) detectPeriod(m *paths.Reports, id sender, k *senderBursts) (PeriodicSender, bool) {
	n := len(k.slots)
	if n < b.cfg.MinBursts {
		return PeriodicSender{}, false
	}
	span := float64(k.slots[n-1] - k.slots[0])
	mean := span / float64(n-1)
	dev := 0.0
	for i := 1; i < n; i++ {
		d := float64(k.slots[i]-k.slots[i-1]) - mean
		dev += d * d
	}
	dev = math.Sqrt(dev / float64(n-1))
	// Slots are whole numbers: a period that is not must not look uneven.
	if dev > math.Max(b.cfg.Jitter*mean, 0.5) || float64(k.count)/(span+1) > b.cfg.MaxDuty {
		return PeriodicSender{}, false
	}
	return PeriodicSender{
		Slot: m.Slot, Port: id.port, Source: id.src, Bursts: n, Load: k.load, Mean: k.total / (span + 1),
		Period: time.Duration(mean * float64(m.Length)),
	}, true
}
