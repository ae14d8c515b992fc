package coverage

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/label"
)

// Config bounds what a Board believes and keeps.
type Config struct {
	Fabric *topo.Fabric
	// Skew is how far device clocks may be from the collector's. A label from
	// further ahead is refused.
	Skew time.Duration
	// MaxAge is how old a label may be on arrival.
	MaxAge time.Duration
	// History is how many samples are kept of each port, Flows how many flows
	// are kept that were asked to be labelled everywhere.
	History, Flows int
}

// DefaultConfig allows clocks 10 ms apart and labels a second old, and keeps
// 4,096 samples of a port: at 20 labels a second, more than three minutes.
func DefaultConfig(f *topo.Fabric) Config {
	return Config{Fabric: f, Skew: 10 * time.Millisecond, MaxAge: time.Second, History: 4096, Flows: 1024}
}

// State is the newest that is known of a port.
type State struct {
	label.Item
	Arrived model.Time // of the collector's clock
}

// Stats account for every label that came in:
// Labels = Accepted + Older + Repeated + Unknown + Future + Stale.
type Stats struct {
	Exports   uint64
	Malformed uint64 // reports that are no export
	Bytes     uint64 // of all reports

	Labels   uint64
	Accepted uint64 // newer than what was known
	Older    uint64 // in the history, but not the newest
	Repeated uint64 // known already: a report that came twice, or a replay
	Unknown  uint64 // of a switch or port that is not in the fabric
	Future   uint64 // from later than clocks can explain
	Stale    uint64 // too old
}

// PortStates is what labels tell of all ports. One goroutine writes it.
type PortStates struct {
	cfg   Config
	ports [][]portRecord // by node, then port number less one
	flows flowTable
	stats Stats
	win   window
}

type portRecord struct {
	newest State
	known  bool
	series []Sample // by label time; a ring would save the copy, which is rare
}

// NewPortStates makes a board that knows nothing.
func NewPortStates(cfg Config) (*PortStates, error) {
	if cfg.Fabric == nil {
		return nil, errors.New("coverage: no fabric")
	}
	if cfg.Skew < 0 || cfg.MaxAge <= 0 || cfg.History < 1 || cfg.Flows < 0 {
		return nil, fmt.Errorf("coverage: skew %v, age %v, history %d, flows %d; want no negative one, and some age and history",
			cfg.Skew, cfg.MaxAge, cfg.History, cfg.Flows)
	}
	b := &PortStates{cfg: cfg, ports: make([][]portRecord, len(cfg.Fabric.Nodes()))}
	for _, n := range cfg.Fabric.Nodes() {
		b.ports[n.ID] = make([]portRecord, len(n.Ports))
	}
	return b, nil
}

// Stats returns the present counts.
func (b *PortStates) Stats() Stats { return b.stats }

// IngestReport takes the data of one report, which arrived at a time of the collector's
// clock. A report that is no export is counted and named in the error; labels
// that cannot be believed are counted, and the others of the same report used.
func (b *PortStates) IngestReport(now model.Time, data []byte) error {
	b.stats.Bytes += uint64(len(data))
	var e label.Export
	if n, err := e.Parse(data); err != nil {
		b.stats.Malformed++
		return fmt.Errorf("coverage: report of %d bytes: %w", len(data), err)
	} else if n != len(data) {
		b.stats.Malformed++
		return fmt.Errorf("coverage: report of %d bytes, want the %d of its export", len(data), n)
	}
	b.stats.Exports++
	for i := range e.Labels.Len() {
		b.stats.Labels++
		b.storeLabel(now, e.Labels.Item(i), b.linkLatency(&e.Labels, i))
	}
	if e.Labels.Specific() {
		b.flows.addExport(b.cfg.Flows, &e)
	}
	return nil
}

// storeLabel files one label by the time it was written. The last to arrive need not
// be the last that was written: packets take ways of different length.
func (b *PortStates) storeLabel(now model.Time, it label.Item, link time.Duration) {
	r := b.portRecord(model.Port{Node: it.Switch, Port: it.Egress})
	switch {
	case r == nil:
		b.stats.Unknown++
		return
	case it.Time > now.Add(b.cfg.Skew):
		b.stats.Future++
		return
	case it.Time < now.Add(-b.cfg.MaxAge):
		b.stats.Stale++
		return
	}
	if !r.insert(Sample{Item: it, Link: link}, b.cfg.History) {
		b.stats.Repeated++
		return
	}
	if r.known && it.Time <= r.newest.Time {
		b.stats.Older++
		return
	}
	r.newest, r.known = State{Item: it, Arrived: now}, true
	b.stats.Accepted++
	b.win.addPort(model.Port{Node: it.Switch, Port: it.Egress})
}

func (b *PortStates) portRecord(p model.Port) *portRecord {
	if int(p.Node) >= len(b.ports) || p.Port == 0 || int(p.Port) > len(b.ports[p.Node]) {
		return nil
	}
	return &b.ports[p.Node][p.Port-1]
}

// Newest returns the newest state of a port, if one is known.
func (b *PortStates) Newest(p model.Port) (State, bool) {
	r := b.portRecord(p)
	if r == nil {
		return State{}, false
	}
	return r.newest, r.known
}

// Age is how long ago, by the collector's clock, a port was last heard of.
func (b *PortStates) Age(p model.Port, now model.Time) (time.Duration, bool) {
	s, ok := b.Newest(p)
	return now.Sub(s.Arrived), ok
}

// ReportedPorts returns the ports that were ever heard of, ascending.
func (b *PortStates) ReportedPorts() (list []model.Port) {
	for node, ports := range b.ports {
		for i := range ports {
			if ports[i].known {
				list = append(list, model.Port{Node: model.NodeID(node), Port: model.PortID(i + 1)})
			}
		}
	}
	return list
}

// SilentPorts returns those of some ports that were not heard of for longer than an
// age, or never: ports with traffic but no news.
func (b *PortStates) SilentPorts(active []model.Port, now model.Time, age time.Duration) []model.Port {
	return slices.DeleteFunc(slices.Clone(active), func(p model.Port) bool {
		a, ok := b.Age(p, now)
		return ok && a <= age
	})
}
