package coverage

import (
	"errors"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/label"
)

// Config bounds what PortStates accepts and keeps.
type Config struct {
	Fabric *topo.Fabric
	// Skew is how far device clocks may be from the collector's. A label from
	// further in the future is refused.
	Skew time.Duration
	// MaxAge is how old a label may be on arrival.
	MaxAge time.Duration
	// History is how many samples are kept of each port, Flows how many of the
	// flows that are labelled at every hop.
	History, Flows int
}

// DefaultConfig allows clocks 10 ms apart and labels a second old, and keeps
// 4,096 samples of a port: at 20 labels a second, more than three minutes.
func DefaultConfig(f *topo.Fabric) Config {
	return Config{Fabric: f, Skew: 10 * time.Millisecond, MaxAge: time.Second, History: 4096, Flows: 1024}
}

// Memory is the most that the samples of all ports take.
func (c *Config) Memory() model.Bytes {
	ports := 0
	for _, n := range c.Fabric.Nodes() {
		ports += len(n.Ports)
	}
	return model.Bytes(ports) * (model.Bytes(c.History)*model.Bytes(unsafe.Sizeof(Sample{})) + model.Bytes(unsafe.Sizeof(portRecord{})))
}

// State is the newest label of a port.
type State struct {
	label.Item
	Arrived model.Time // by the collector's clock
}

// Stats account for every label received:
// Labels = Accepted + Older + Repeated + Unknown + Future + Stale.
type Stats struct {
	Exports   uint64
	Malformed uint64 // reports that are not an export
	Bytes     uint64 // of all reports

	Labels   uint64
	Accepted uint64 // newer than the port's state
	Older    uint64 // in the history, but not the newest
	Repeated uint64 // already received: a duplicated report, or a replay
	Unknown  uint64 // of a switch or port that is not in the fabric
	Future   uint64 // more than Config.Skew in the future
	Stale    uint64 // older than Config.MaxAge
}

// PortStates holds the labelled state of all ports. One goroutine writes it.
type PortStates struct {
	cfg   Config
	ports [][]portRecord // by node, then port number less one
	flows flowTable
	stats Stats
	win   window
}

type portRecord struct {
	newest  State
	known   bool
	history history
}

// NewPortStates returns PortStates without labels.
func NewPortStates(cfg Config) (*PortStates, error) {
	if cfg.Fabric == nil {
		return nil, errors.New("coverage: no fabric")
	}
	if cfg.Skew < 0 || cfg.MaxAge <= 0 || cfg.History < 1 || cfg.Flows < 0 {
		return nil, fmt.Errorf("coverage: skew %v, age %v, history %d, flows %d; want age and history above 0, skew and flows 0 or more",
			cfg.Skew, cfg.MaxAge, cfg.History, cfg.Flows)
	}
	b := &PortStates{cfg: cfg, ports: make([][]portRecord, len(cfg.Fabric.Nodes()))}
	for _, n := range cfg.Fabric.Nodes() {
		b.ports[n.ID] = make([]portRecord, len(n.Ports))
	}
	return b, nil
}

// Stats returns the current counts.
func (b *PortStates) Stats() Stats { return b.stats }

// IngestReport takes the data of one report, which arrived at a time of the
// collector's clock. A report that is not an export is counted and returned as an
// error; implausible labels are counted, and the others of the same report used.
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

// storeLabel stores one label by the time it was written. The last to arrive need
// not be the last that was written: packets take paths of different length.
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
	if !r.history.insert(&Sample{Item: it, Link: link}, b.cfg.History) {
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

// Age returns how long ago, by the collector's clock, a port's last label arrived.
func (b *PortStates) Age(p model.Port, now model.Time) (time.Duration, bool) {
	s, ok := b.Newest(p)
	return now.Sub(s.Arrived), ok
}

// ReportedPorts returns the ports with at least one label, ascending.
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

// SilentPorts returns the active ports without a label for longer than an age, or
// without any: ports with traffic but no report.
func (b *PortStates) SilentPorts(active []model.Port, now model.Time, age time.Duration) []model.Port {
	return slices.DeleteFunc(slices.Clone(active), func(p model.Port) bool {
		a, ok := b.Age(p, now)
		return ok && a <= age
	})
}
