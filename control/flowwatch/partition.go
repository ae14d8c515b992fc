package flowwatch

import (
	"errors"
	"math"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/analyze/load"
	"github.com/weft-telemetry/weft/analyze/loss"
	"github.com/weft-telemetry/weft/analyze/paths"
)

// keptSlots is how many slots are read at once: the present one, and two before it.
const keptSlots = 3

// partition analyses the flows of one range of hashes over successive slots. It shares no
// state with others: what they find is merged.
type partition struct {
	maps [keptSlots]*paths.Map
	work paths.Workspace

	paths   *paths.Detector
	loss    *loss.Tracker
	balance *load.BalanceDetector
	sizes   *load.Sizes
	traffic load.HostTraffic

	// Of the present slot.
	found  *paths.Part
	losses []loss.Event
}

func newPartition(cfg *Config, ports *paths.Ports) (*partition, error) {
	p := &partition{sizes: load.NewSizes(cfg.MaxFlows)}
	var e [3]error
	pathsCfg, lossCfg := cfg.Paths, cfg.Loss
	pathsCfg.Ports, lossCfg.Ports = ports, ports
	p.paths, e[0] = paths.NewDetector(pathsCfg)
	p.loss, e[1] = loss.NewTracker(lossCfg)
	p.balance, e[2] = load.NewBalanceDetector(cfg.Balance)
	for i := range p.maps {
		p.maps[i] = paths.NewPart(paths.NewReports(0, cfg.Slot), &p.work)
	}
	return p, errors.Join(e[:]...)
}

// join makes the map of the present slot of this partition's records.
func (p *partition) join(at int, reports *paths.Reports, decoded []flows.Decoded, shuffled []shuffle, index int) {
	m := p.maps[at]
	m.Reset(reports)
	records := 0
	for i := range decoded {
		records += shuffled[i].len(index)
	}
	m.GrowRecords(records)
	first := uint32(0)
	for i := range decoded {
		part := shuffled[i].part(index)
		m.AddRecords(&decoded[i], &part, first)
		first += uint32(decoded[i].Flows())
	}
}

// find examines paths and counts the traffic of hosts. Neither depends on limits.
func (p *partition) find(m *paths.Map, ports *paths.Ports) {
	p.found = p.paths.Examine(m)
	p.traffic.Count(ports, m)
}

// ends are the limits of flows that are new in a slot: those from there on are counted,
// not tracked.
type ends struct {
	loss, sizes uint32
	balance     load.UseEnd
}

var noEnds = ends{math.MaxUint32, math.MaxUint32, math.MaxUint64}

// track updates what is kept of flows from slot to slot.
func (p *partition) track(m *paths.Map, e ends) {
	p.losses = p.loss.ObservePart(m, e.loss)
	p.balance.ObservePart(m, e.balance)
	p.sizes.ObservePart(m, e.sizes)
}

// observeAll is track with the limits of this partition alone.
func (p *partition) observeAll(m *paths.Map) {
	p.losses = p.loss.Observe(m)
	p.balance.Observe(m)
	p.sizes.Observe(m)
}
