package flowwatch

import (
	"slices"

	"github.com/weft-telemetry/weft/analyze/load"
	"github.com/weft-telemetry/weft/analyze/loss"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/internal/fieldcodec"
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
			records += len(s.sets[i].Records)
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
		highest := highestPorts{a.fabric}.portsOf(d.Switch)
		r := paths.Records{Places: d.places}
		for k := range d.Records {
			one := &d.Records[k]
			one.In, one.Out = knownPort(one.In, highest), knownPort(one.Out, highest)
			r.Keys, r.Hashes = append(r.Keys, one.Key), append(r.Hashes, paths.Hash(&one.Key))
			r.Seen = append(r.Seen, paths.MakeSighting(d.Switch, one))
		}
		m.AddRecords(&d.Decoded, &r, 0)
	}
	a.part.find(m, a.ports)
	a.part.observeAll(m)
	if a.slots == 1 {
		last = nil
	}
	a.part.traffic.List(a.ports, last)
	r := &PartResult{Index: s.Index, ports: a.ports, WindowEnd: s.WindowEnd, found: a.part.found, Losses: a.part.losses, traffic: &a.part.traffic}
	for i := range m.Flows() {
		f := FlowOf(m, i)
		r.Flows = append(r.Flows, f)
		r.places = append(r.places, m.Place(i))
	}
	if s.WindowEnd {
		r.links, r.groups = a.part.loss.TakePartLinks(), a.part.balance.TakeGroupLoads()
		a.part.sizes.Reset()
	}
	return r
}

// PartResult is what one partition found in a slot.
type PartResult struct {
	Index     int64
	WindowEnd bool
	Flows     []Flow // all of the partition's
	Losses    []loss.Event

	ports   *paths.Ports
	places  []uint32 // of Flows; ascending
	found   *paths.Part
	traffic *load.HostTraffic
	links   []*loss.Link
	groups  []load.GroupLoad
}

// NewPartResult returns a result to decode into.
func NewPartResult(p *paths.Ports) *PartResult {
	return &PartResult{ports: p, found: paths.NewPartResult(p), traffic: &load.HostTraffic{}}
}

// Code codes a result.
func (r *PartResult) Code(c *fieldcodec.Coder) {
	c.Int64(&r.Index)
	c.Bool(&r.WindowEnd)
	place := uint32(0)
	i := 0
	places := r.places
	fieldcodec.Slice(c, &r.Flows, func(f *Flow) {
		step := uint32(0)
		if c.Reading() {
			f.Key = new(model.FlowKey)
		} else {
			step = places[i] - place
		}
		fieldcodec.Unsigned(c, &step)
		if place += step; c.Reading() {
			r.places = append(r.places, place)
		}
		i++
		f.Key.Code(c)
		c.Uint64(&f.Packets)
		c.Uint64(&f.Bytes)
		c.Bool(&f.Exact)
		fieldcodec.Slice(c, &f.Hops, func(h *paths.Sighting) {
			fieldcodec.Unsigned(c, &h.Switch)
			fieldcodec.Unsigned(c, &h.In)
			fieldcodec.Unsigned(c, &h.Out)
			c.Uint64(&h.Packets)
			c.Uint64(&h.Bytes)
			c.Bool(&h.Exact)
		})
	})
	fieldcodec.Slice(c, &r.Losses, func(e *loss.Event) { e.Code(c) })
	r.found.Code(c)
	r.traffic.Code(c, r.ports)
	fieldcodec.Slice(c, &r.links, func(l **loss.Link) {
		if c.Reading() {
			*l = new(loss.Link)
		}
		(*l).Code(c)
	})
	fieldcodec.Slice(c, &r.groups, func(g *load.GroupLoad) { g.Code(c) })
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
	s := &Slot{Index: parts[0].Index, Length: m.cfg.Slot, WindowEnd: parts[0].WindowEnd, remote: true}
	var found []*paths.Part
	var traffic []*load.HostTraffic
	var links [][]*loss.Link
	for _, p := range parts {
		found, traffic = append(found, p.found), append(traffic, p.traffic)
		s.Losses = append(s.Losses, p.Losses...)
		for i := range p.Flows {
			s.listed = append(s.listed, listedFlow{p.Flows[i], p.places[i]})
		}
		links, m.groups = append(links, p.links), append(m.groups, p.groups)
	}
	slices.SortFunc(s.listed, func(a, b listedFlow) int { return int(int64(a.place) - int64(b.place)) })
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
