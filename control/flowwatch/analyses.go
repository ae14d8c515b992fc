package flowwatch

import (
	"errors"
	"iter"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/analyze/load"
	"github.com/weft-telemetry/weft/analyze/loss"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/model"
)

// Slot is the analysis of one slot. It is valid until the next one is asked for.
type Slot struct {
	Index   int64 // the start divided by the length
	Length  time.Duration
	Decoded []flows.Decoded // of every received flowset
	Paths   []paths.Finding
	Losses  []loss.Event
	Spikes  []load.Microburst
	Rhythms []load.PeriodicSender

	// WindowEnd is set if it was analysed in other processes, which began a new window
	// after it.
	WindowEnd bool

	parts []*paths.Map
	ports *paths.Ports

	remoteParts []*PartResult // instead of parts, if it was analysed in other processes
}

// Remote reports whether the slot was analysed in other processes: it has no maps.
func (s *Slot) Remote() bool { return len(s.remoteParts) > 0 }

// Start returns the start of the slot on a clock without offset.
func (s *Slot) Start() model.Time { return model.Time(s.Index * int64(s.Length)) }

// End returns its end.
func (s *Slot) End() model.Time { return s.Start().Add(s.Length) }

// NewSlot makes a slot of maps that have a part of its flows each.
func NewSlot(index int64, length time.Duration, parts ...*paths.Map) *Slot {
	return &Slot{Index: index, Length: length, parts: parts}
}

// Parts returns the maps of the slot. Each has a part of its flows, always the same part.
// They do not change before two more slots have been analysed.
func (s *Slot) Parts() []*paths.Map { return s.parts }

// Len returns the number of flows.
func (s *Slot) Len() (n int) {
	for _, m := range s.parts {
		n += m.Flows()
	}
	for _, p := range s.remoteParts {
		n += len(p.Flows)
	}
	return n
}

// Find returns the map that has a flow, and its number there.
func (s *Slot) Find(key *model.FlowKey) (m *paths.Map, flow int, ok bool) {
	if len(s.parts) == 0 {
		return nil, 0, false
	}
	hash := paths.Hash(key)
	m = s.parts[partOf(hash, len(s.parts))]
	flow = m.Find(key, hash)
	return m, flow, flow >= 0
}

// Flow is a flow of a slot.
type Flow struct {
	Key  *model.FlowKey
	Hops []paths.Sighting // in path order
	paths.Totals
}

// FlowOf returns a flow of a map. Key and hops belong to the map.
func FlowOf(m *paths.Map, flow int) Flow {
	return Flow{m.Key(flow), m.Sightings(flow), m.Totals(flow)}
}

// Flows iterates over the flows of the slot, in the order of their first records in
// Decoded. The Flow is valid until the next one; of a Remote slot as long as the slot.
func (s *Slot) Flows() iter.Seq[*Flow] {
	if s.Remote() {
		return inOrder(s.remoteParts, func(p *PartResult) int { return len(p.Flows) },
			func(p *PartResult, i int) uint32 { return p.places[i] }, func(p *PartResult, i int) *Flow { return &p.Flows[i] })
	}
	var f Flow
	return inOrder(s.parts, (*paths.Map).Flows, (*paths.Map).Place, func(m *paths.Map, i int) *Flow {
		f = FlowOf(m, i)
		return &f
	})
}

// inOrder iterates over the flows of parts in the order of their places, which ascend in
// each part.
func inOrder[P any](parts []P, length func(P) int, place func(P, int) uint32, flow func(P, int) *Flow) iter.Seq[*Flow] {
	return func(yield func(*Flow) bool) {
		next := make([]int, len(parts))      // by part: its flow that was not returned yet
		places := make([]uint64, len(parts)) // by part: the place of that one
		advance := func(i int) {
			places[i] = math.MaxUint64
			if next[i] < length(parts[i]) {
				places[i] = uint64(place(parts[i], next[i]))
			}
		}
		for i := range parts {
			advance(i)
		}
		for {
			least, at := uint64(math.MaxUint64), -1
			for i, p := range places {
				if p < least {
					least, at = p, i
				}
			}
			if at < 0 || !yield(flow(parts[at], next[at])) {
				return
			}
			next[at]++
			advance(at)
		}
	}
}

// analyses are those of flows, in partitions by the hash of the flow. Every slot is
// analysed by all partitions at once, and their results are merged when the last is done:
// results do not depend on the number of partitions.
type analyses struct {
	cfg      *Config
	ports    *paths.Ports
	parts    []*partition
	workers  []paths.Scratch // what each needs while it works on a partition
	reports  [keptSlots]*paths.Reports
	shuffled []shuffle // by flowset of the present slot
	merger   paths.Merger
	bursts   *load.BurstDetector
	slots    int // analysed

	checkPorts bool // records may have ports that their switch does not have
}

func newAnalyses(cfg *Config) (*analyses, error) {
	n := cfg.Partitions
	if n == 0 {
		n = DefaultPartitions()
	}
	a := &analyses{cfg: cfg, ports: paths.NewPorts(cfg.Intent.At(0).Fabric()), workers: make([]paths.Scratch, runtime.GOMAXPROCS(0))}
	bursts := cfg.Bursts
	bursts.Ports = a.ports
	var err error
	a.bursts, err = load.NewBurstDetector(bursts)
	for range n {
		p, e := newPartition(cfg, a.ports)
		err = errors.Join(err, e)
		a.parts = append(a.parts, p)
	}
	for i := range a.reports {
		a.reports[i] = paths.NewReports(0, cfg.Slot)
	}
	return a, err
}

// observe analyses the next slot. Flowsets of the missing sources were lost.
func (a *analyses) observe(s *Slot, missing []flowsetSource) {
	at := a.slots % keptSlots
	a.slots++
	reports := a.reports[at]
	reports.Reset(s.Index, s.Length)
	// A flow that the switch's other flowsets do not have may be in a missing one.
	for _, m := range missing {
		reports.MarkLost(m.sw, m.key == model.KeyLen6)
	}
	records := 0
	for i := range s.Decoded {
		reports.Add(&s.Decoded[i])
		records += s.Decoded[i].Flows()
	}
	a.shuffled = append(a.shuffled, make([]shuffle, max(len(s.Decoded)-len(a.shuffled), 0))...)
	inParallel(len(a.workers), len(s.Decoded), func(_, i int) {
		d := &s.Decoded[i]
		a.shuffled[i].sort(d, a.portsOf(d.Switch), len(a.parts))
	})
	limited := a.mayReachLimits(records)
	s.parts, s.ports = s.parts[:0], a.ports
	for _, p := range a.parts {
		s.parts = append(s.parts, p.maps[at])
	}
	inParallel(len(a.workers), len(a.parts), func(worker, i int) {
		p := a.parts[i]
		p.work.UseScratch(&a.workers[worker])
		p.join(at, reports, s.Decoded, a.shuffled, i)
		p.find(s.parts[i], a.ports)
		if !limited {
			p.track(s.parts[i], noEnds)
		}
	})
	if limited {
		e := a.limits(s.parts)
		inParallel(len(a.workers), len(a.parts), func(worker, i int) {
			a.parts[i].work.UseScratch(&a.workers[worker])
			a.parts[i].track(s.parts[i], e)
		})
	}
	a.merge(s)
}

// portsOf returns the highest port of a switch, beyond which ports are unknown.
func (a *analyses) portsOf(sw model.NodeID) model.PortID {
	if f := a.ports.Fabric(); a.checkPorts && f.HasNode(sw) {
		return model.PortID(len(f.Node(sw).Ports))
	}
	return math.MaxUint16
}

// merge makes the results of the slot of those of the partitions.
func (a *analyses) merge(s *Slot) {
	found, traffic := make([]*paths.Part, len(a.parts)), make([]*load.HostTraffic, len(a.parts))
	for i, p := range a.parts {
		found[i], traffic[i] = p.found, &p.traffic
		s.Losses = append(s.Losses, p.losses...)
	}
	s.Paths = a.merger.Merge(found...)
	loss.SortEvents(s.Losses)
	s.Spikes, s.Rhythms = a.bursts.ObserveParts(traffic...)
}

// mayReachLimits reports whether a slot with a number of records may have more flows than
// are tracked.
func (a *analyses) mayReachLimits(records int) bool {
	var tracked, sizes, uses int
	for _, p := range a.parts {
		tracked += p.loss.Tracked()
		sizes += p.sizes.Tracked()
		uses += p.balance.Tracked()
	}
	return tracked+records > a.cfg.Loss.MaxFlows || sizes+records > a.cfg.MaxFlows ||
		a.cfg.Balance.MaxFlows > 0 && uses+records > a.cfg.Balance.MaxFlows
}

// limits returns up to where new flows of a slot are tracked, so that all partitions
// together keep to the limits: those whose records come first.
func (a *analyses) limits(parts []*paths.Map) ends {
	var tracked, sizes, uses, seen int
	for i, p := range a.parts {
		tracked += p.loss.Tracked()
		sizes += p.sizes.Tracked()
		uses += p.balance.Tracked()
		seen += parts[i].Flows()
	}
	e := noEnds
	if most := a.cfg.Loss.MaxFlows; tracked+seen > most {
		var list []uint32
		for i, p := range a.parts {
			list = append(list, p.loss.NewFlows(parts[i])...)
		}
		e.loss = endOf(list, most-tracked, e.loss)
	}
	if most := a.cfg.MaxFlows; sizes+seen > most {
		var list []uint32
		for i, p := range a.parts {
			list = append(list, p.sizes.NewFlows(parts[i])...)
		}
		e.sizes = endOf(list, most-sizes, e.sizes)
	}
	if most := a.cfg.Balance.MaxFlows; most > 0 {
		var list []load.UseEnd
		for i, p := range a.parts {
			list = append(list, p.balance.NewUses(parts[i])...)
		}
		e.balance = endOf(list, most-uses, e.balance)
	}
	return e
}

// endOf returns the first that is beyond the capacity, none if there is none.
func endOf[T uint32 | load.UseEnd](list []T, capacity int, none T) T {
	if capacity = max(capacity, 0); len(list) <= capacity {
		return none
	}
	slices.Sort(list)
	return list[capacity]
}

func (a *analyses) takeLinks() []*loss.Link {
	trackers := make([]*loss.Tracker, len(a.parts))
	for i, p := range a.parts {
		trackers[i] = p.loss
	}
	return loss.TakeLinks(trackers...)
}

func (a *analyses) takeImbalances() []load.Imbalance {
	detectors := make([]*load.BalanceDetector, len(a.parts))
	for i, p := range a.parts {
		detectors[i] = p.balance
	}
	return load.TakeImbalances(detectors...)
}

func (a *analyses) largestFlows(n int) (list []load.Size) {
	for _, p := range a.parts {
		list = append(list, p.sizes.Top(n)...)
	}
	return load.Largest(list, n)
}

func (a *analyses) resetSizes() {
	for _, p := range a.parts {
		p.sizes.Reset()
	}
}

// MaxPartitions bounds Config.Partitions.
const MaxPartitions = 1 << 12

// DefaultPartitions is one for each CPU, and at least 16: what a partition of a large
// slot changes is then in a CPU's own cache (BenchmarkPartitions).
func DefaultPartitions() int { return min(max(runtime.GOMAXPROCS(0), leastPartitions), MaxPartitions) }

const leastPartitions = 16
