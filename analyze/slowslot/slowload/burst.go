package slowload

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	paths "github.com/weft-telemetry/weft/analyze/slowslot/slowpaths"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// BurstDetector observes the load of every port that leads to a host: that is
// where senders meet.
type BurstDetector struct {
	cfg     BurstConfig
	ports   map[model.Port]*portLoads
	senders map[sender]*senderBursts
	// Untracked counts bursts of senders beyond maxSenders.
	Untracked uint64
}

type portLoads struct {
	loads []float64                // of the last slots, newest last
	flows map[model.FlowKey]uint64 // bytes in the last slot
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
	return &BurstDetector{cfg: cfg, ports: map[model.Port]*portLoads{}, senders: map[sender]*senderBursts{}}, nil
}

// Observe takes the map of the next slot and returns the microbursts that ended
// and the periodic senders that show in it, by port.
func (b *BurstDetector) Observe(m *paths.Map) (spikes []Microburst, rhythms []PeriodicSender) {
	type traffic struct {
		bytes   uint64
		flows   map[model.FlowKey]uint64
		sources map[model.Addr]uint64
	}
	now := map[model.Port]*traffic{}
	for key, sightings := range m.All() {
		for _, s := range sightings {
			at := model.Port{Node: s.Switch, Port: s.Out}
			p := b.cfg.Fabric.Port(at)
			if p == nil || b.cfg.Fabric.Node(p.Peer.Node).Role > topo.Mux {
				continue
			}
			t := now[at]
			if t == nil {
				t = &traffic{flows: map[model.FlowKey]uint64{}, sources: map[model.Addr]uint64{}}
				now[at] = t
			}
			t.bytes += s.Bytes
			t.flows[key] += s.Bytes
			t.sources[key.Src] += s.Bytes
		}
	}
	for at, t := range now {
		full := float64(b.cfg.Fabric.Port(at).Rate) / 8 * m.Length.Seconds()
		h := b.portHistory(at, m.Slot)
		load := float64(t.bytes) / full
		spikes = b.trackMicroburst(spikes, m.Slot, at, h, load, t.flows)
		h.appendSlot(m.Slot, load)
		h.flows = t.flows
		for src, bytes := range t.sources {
			if r, ok := b.trackSender(m, sender{at, src}, float64(bytes)/full); ok {
				rhythms = append(rhythms, r)
			}
		}
	}
	for at, h := range b.ports {
		if now[at] == nil && h.burst.Slots > 0 {
			spikes = b.trackMicroburst(spikes, m.Slot, at, h, 0, nil)
		}
	}
	slices.SortFunc(spikes, func(x, y Microburst) int { return comparePorts(x.Port, y.Port) })
	slices.SortFunc(rhythms, func(x, y PeriodicSender) int {
		return cmp.Or(comparePorts(x.Port, y.Port), x.Source.Compare(y.Source))
	})
	return spikes, rhythms
}

func comparePorts(a, b model.Port) int {
	return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Port, b.Port))
}

// portHistory returns a port's loads; slots in which it carried nothing are zeros.
func (b *BurstDetector) portHistory(at model.Port, slot int64) *portLoads {
	h := b.ports[at]
	if h == nil {
		h = &portLoads{last: slot - 1, loads: make([]float64, b.cfg.History)}
		b.ports[at] = h
	}
	if h.last+1 < slot {
		h.flows = nil
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
// a slot, and appends one that has ended.
func (b *BurstDetector) trackMicroburst(done []Microburst, slot int64, at model.Port, h *portLoads, load float64,
	flows map[model.FlowKey]uint64,
) []Microburst {
	usual := h.median()
	if h.burst.Slots > 0 {
		usual = h.burst.Usual
	}
	high := load >= b.cfg.Load && load >= b.cfg.Factor*usual
	switch {
	case high && h.burst.Slots > 0:
		h.burst.Slots++
	case high:
		h.burst = Microburst{Slot: slot, Slots: 1, Port: at, Load: load, Usual: usual}
		h.attributeFlows(flows)
	case h.burst.Slots > 0:
		if h.burst.Slots <= b.cfg.MaxSlots {
			done = append(done, h.burst)
		}
		h.burst = Microburst{}
	}
	return done
}

// attributeFlows lists the flows that grew most, until the rest is the usual load.
func (h *portLoads) attributeFlows(flows map[model.FlowKey]uint64) {
	s := &h.burst
	rest := 0.0
	for key, bytes := range flows {
		s.Flows = append(s.Flows, key)
		rest += float64(bytes)
	}
	usual := s.Usual / s.Load * rest
	growth := func(k model.FlowKey) float64 { return float64(flows[k]) - float64(h.flows[k]) }
	slices.SortFunc(s.Flows, func(a,
		b model.FlowKey,
	) int {
		return cmp.Or(cmp.Compare(growth(b), growth(a)), a.Compare(b))
	})
	for i, key := range s.Flows {
		if rest <= usual*(1+1e-9) {
			s.Flows = s.Flows[:i]
			return
		}
		rest -= float64(flows[key])
		if h.flows[key] == 0 {
			s.New++
		}
	}
}

// trackSender records a sender's slot and reports whether its bursts are periodic.
func (b *BurstDetector) trackSender(m *paths.Map, id sender, load float64) (PeriodicSender, bool) {
	k := b.senders[id]
	if load < b.cfg.Load {
		if k != nil {
			k.total += load
		}
		return PeriodicSender{}, false
	}
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

func (b *BurstDetector) detectPeriod(m *paths.Map, id sender, k *senderBursts) (PeriodicSender, bool) {
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
