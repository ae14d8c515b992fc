package flowwatch

import (
	"github.com/weft-telemetry/weft/analyze/load"
	"github.com/weft-telemetry/weft/analyze/loss"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// highestPorts is the ports of switches.
type highestPorts struct{ *topo.Fabric }

func (f highestPorts) portsOf(sw model.NodeID) model.PortID {
	if f.HasNode(sw) {
		return model.PortID(len(f.Node(sw).Ports))
	}
	return 0
}

// PartAnalyzer analyses one partition of the flows over successive slots, in a process of
// its own. Its limits are the partition's share of those of the configuration.
type PartAnalyzer struct {
	part    *partition
	ports   *paths.Ports
	fabric  *topo.Fabric
	reports [keptSlots]*paths.Reports
	slots   int
	result  PartResult
}

// NewPartAnalyzer makes an analyzer that has seen no slot.
func NewPartAnalyzer(cfg Config, partitions int) (*PartAnalyzer, error) {
	cfg.MaxFlows = max(cfg.MaxFlows/partitions, 1)
	cfg.Loss.MaxFlows = max(cfg.Loss.MaxFlows/partitions, 1)
	if cfg.Balance.MaxFlows > 0 {
		cfg.Balance.MaxFlows = max(cfg.Balance.MaxFlows/partitions, 1)
	}
	f := cfg.Intent.At(0).Fabric()
	a := &PartAnalyzer{ports: paths.NewPorts(f), fabric: f}
	for i := range a.reports {
		a.reports[i] = paths.NewReports(0, cfg.Slot)
	}
	var err error
	a.part, err = newPartition(&cfg, a.ports)
	return a, err
}

// Observe analyses the next slot. The result is valid until the next call.
func (a *PartAnalyzer) Observe(s *PartSlot) *PartResult {
	at := a.slots % keptSlots
	last := a.part.maps[(at+keptSlots-1)%keptSlots]
	a.slots++
	reports := a.reports[at]
	reports.Reset(s.Index, s.Length)
	for _, m := range s.missing {
		reports.MarkLost(m.sw, m.key == model.KeyLen6)
	}
	records := 0
	for i := range s.sets {
		if s.sets[i].Decoded.Switch < model.NodeID(len(a.fabric.Nodes())) {
			reports.Add(&s.sets[i].Decoded)
			records += s.sets[i].Flows()
		}
	}
	m := a.part.maps[at]
	m.Reset(reports)
	m.GrowRecords(records)
	for i := range s.sets {
		d := &s.sets[i]
		if d.Switch >= model.NodeID(len(a.fabric.Nodes())) {
			continue
		}
		r := d.columns(highestPorts{a.fabric}.portsOf(d.Switch))
		m.AddRecords(&d.Decoded, &r, 0)
	}
	a.part.find(m, a.ports)
	a.part.observeAll(m)
	if a.slots == 1 {
		last = nil
	}
	a.part.traffic.List(a.ports, last)
	r := &a.result
	*r = PartResult{
		Index: s.Index, WindowEnd: s.WindowEnd, Losses: a.part.losses,
		ports: a.ports, found: a.part.found, traffic: &a.part.traffic,
		Flows: r.Flows[:0], places: r.places[:0], hops: r.hops,
	}
	for i := range m.Flows() {
		r.Flows = append(r.Flows, FlowOf(m, i))
		r.places = append(r.places, m.Place(i))
	}
	if s.WindowEnd {
		r.links, r.groups = a.part.loss.TakePartLinks(), a.part.balance.TakeGroupLoads()
		a.part.sizes.Reset()
	}
	return r
}

// columns returns the records as columns. Ports that the switch does not have become unknown
// ones.
func (d *partSet) columns(highest model.PortID) paths.Records {
	n := d.Flows()
	r := paths.Records{Places: d.places, Hashes: make([]uint64, n), Compact: d.Compact}
	var key model.FlowKey
	for i := range d.Compact {
		d.Compact[i].ForgetPortsAbove(highest)
		d.Compact[i].PutKey(&key)
		r.Hashes[i] = paths.Hash(&key)
	}
	if len(d.Compact) > 0 {
		return r
	}
	r.Compact, r.Keys, r.Seen = nil, make([]model.FlowKey, n), make([]paths.Sighting, n)
	for i := range d.Records {
		one := &d.Records[i]
		one.In, one.Out = knownPort(one.In, highest), knownPort(one.Out, highest)
		r.Keys[i], r.Hashes[i], r.Seen[i] = one.Key, paths.Hash(&one.Key), paths.MakeSighting(d.Switch, one)
	}
	return r
}

// ResultMerger makes slots of the results of all partitions, as a Watch does in one process.
type ResultMerger struct {
	cfg    Config
	ports  *paths.Ports
	merger paths.Merger
	bursts *load.BurstDetector
	links  []*loss.Link
	groups [][]load.GroupLoad
}

// NewResultMerger makes a merger that has merged no slot.
func NewResultMerger(cfg Config) (*ResultMerger, error) {
	m := &ResultMerger{cfg: cfg, ports: paths.NewPorts(cfg.Intent.At(0).Fabric())}
	bursts := cfg.Bursts
	bursts.Ports = m.ports
	var err error
	m.bursts, err = load.NewBurstDetector(bursts)
	return m, err
}

// Ports are those of the fabric.
func (m *ResultMerger) Ports() *paths.Ports { return m.ports }

// Merge makes a slot of the results of its partitions, at least one. Results that were lost
// are not among them.
func (m *ResultMerger) Merge(parts []*PartResult) *Slot {
	s := &Slot{Index: parts[0].Index, Length: m.cfg.Slot, WindowEnd: parts[0].WindowEnd}
	s.remoteParts = parts
	var found []*paths.Part
	var traffic []*load.HostTraffic
	var links [][]*loss.Link
	for _, p := range parts {
		found, traffic = append(found, p.found), append(traffic, p.traffic)
		s.Losses = append(s.Losses, p.Losses...)
		links, m.groups = append(links, p.links), append(m.groups, p.groups)
	}
	s.Paths = m.merger.Merge(found...)
	loss.SortEvents(s.Losses)
	s.Spikes, s.Rhythms = m.bursts.ObserveParts(traffic...)
	m.links = loss.MergeLinks(m.ports, append(links, m.links)...)
	return s
}

// TakeLinks is Watch.TakeLinks.
func (m *ResultMerger) TakeLinks() []*loss.Link {
	list := m.links
	m.links = nil
	return list
}

// TakeImbalances is Watch.TakeImbalances.
func (m *ResultMerger) TakeImbalances() []load.Imbalance {
	list := load.MergeGroupLoads(&m.cfg.Balance, m.groups...)
	m.groups = nil
	return list
}

// ResetSizes is part of Watch; partitions do it themselves.
func (m *ResultMerger) ResetSizes() {}
