package live

import (
	_ "embed"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/collect/list"
	"github.com/weft-telemetry/weft/control"
	"github.com/weft-telemetry/weft/control/rootcause"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
)

//go:embed demo.yaml
var demo string

// Config is what a Lab is made of.
type Config struct {
	Seed uint64
	K    int        // of the fat-tree
	Rate model.Rate // of its links
	Load float64    // background traffic, as a share of what hosts can send

	Traces model.Bytes // memory for traces that are kept whole
}

// DefaultConfig is a small fabric of today's speed, far from full.
func DefaultConfig() Config {
	return Config{Seed: 1, K: 4, Rate: 100 * model.Gbps, Load: 0.06, Traces: 8 * model.MiB}
}

// Step is how far the fabric goes between two looks of the controller.
const Step = time.Millisecond

// Lab is a simulated fabric under a controller. One goroutine uses it.
type Lab struct {
	Control *control.Controller

	cfg     Config
	session *scenario.Session
	net     *sim.Network
	fabric  *topo.Fabric

	line *control.InProcessCollector

	traffic background
	devices *devices
}

// New makes a fabric in which nothing has happened yet.
func New(cfg Config, out control.Output) (*Lab, error) { return newAt(cfg, time.Unix(0, 0).UTC(), out) }

// newAt is New with the wall's time at which the fabric begins.
func newAt(cfg Config, epoch time.Time, out control.Output) (*Lab, error) {
	size := func(bytes float64) string { return model.Bytes(bytes * scaleOf(cfg.Rate)).String() }
	text := strings.NewReplacer(
		"@K@", strconv.Itoa(cfg.K), "@RATE@", cfg.Rate.String(),
		"@BUFFER@", size(16e6), "@KMIN@", size(100e3), "@KMAX@", size(400e3),
	).Replace(demo)
	s, err := scenario.Parse("demo.yaml", []byte(text))
	if err != nil {
		return nil, err
	}
	s.Seed = cfg.Seed
	l := &Lab{cfg: cfg}
	if l.session, err = scenario.Open(s, l.take); err != nil {
		return nil, err
	}
	l.net, l.fabric = l.session.Network, l.session.Network.Fabric()
	if err := l.collect(s, epoch, out); err != nil {
		return nil, err
	}
	l.traffic = newBackground(cfg, l.fabric)
	return l, nil
}

// scaleOf is how much smaller a slow fabric's buffers, ECN thresholds and flows are
// than those of 10 Gb/s. Times stay the same that way. A buffer of 16 MB holds
// 128 ms of 1 Gb/s: packets that waited in it for more than a slot were taken for
// lost. And flows of full size would be too few in a slot to tell a bad hash.
func scaleOf(rate model.Rate) float64 { return min(1, float64(rate)/float64(10*model.Gbps)) }

// collect makes the memory that reports go to, and the controller that reads it.
func (l *Lab) collect(s *scenario.Scenario, epoch time.Time, out control.Output) error {
	cfg := control.DefaultConfig(l.net.Intent())
	cfg.ListPlan, cfg.Epoch, cfg.Jobs = control.ListPlan{}, epoch, jobs(l.fabric)
	for i, p := range s.Telemetry {
		n := 1
		if p.ListPerSwitch {
			n = len(l.fabric.Nodes())
		} else if p.Lists > 0 {
			n = p.Lists
		}
		r := control.ListRange{First: s.FirstList(i), Count: n}
		switch p.Kind {
		case "flowset":
			cfg.ListPlan.Flowsets = r
		case "label":
			cfg.ListPlan.Labels = r
		case "mirror":
			cfg.ListPlan.Mirrors = r
		case "epoch":
			cfg.ListPlan.Epochs = r
		}
	}
	// The fabric's time is short: so are the times after which it is judged.
	cfg.Traces.Trace.CloseAfter, cfg.Traces.Trace.RouteSettle = 3*time.Millisecond, 5*time.Millisecond
	cfg.Traces.Trace.MaxTraces, cfg.Traces.Trace.FrameBytes = 1<<14, 128
	cfg.Traces.Period, cfg.Traces.Window, cfg.Traces.Analyzers = 10*time.Millisecond, 2, cfg.ListPlan.Mirrors.Count
	cfg.Traces.Memory, cfg.Ports.Board.History = l.cfg.Traces, 512
	cfg.Causes.Wait, cfg.Causes.Patience, cfg.Causes.Complaints = 2*time.Millisecond, 40*time.Millisecond, 256
	var err error
	if l.line, err = control.NewInProcessCollector(rings(cfg.ListPlan), Step); err != nil { // the controller looks as often
		return err
	}
	if l.devices, err = newDevices(l.session); err != nil {
		return err
	}
	if l.Control, err = control.New(cfg, l.devices, out); err != nil {
		return err
	}
	l.devices.told = func(who rootcause.Complaint) { l.Control.RequestDiagnosis(l.Now(), who) }
	return nil
}

// jobs are two that share the fabric: one has the hosts of the first half of it,
// one those of the second. Traffic between the halves is nobody's.
func jobs(f *topo.Fabric) []control.Job {
	hosts := f.Hosts()
	list := []control.Job{{Name: "training"}, {Name: "analytics"}}
	for i, id := range hosts {
		j := &list[i*len(list)/len(hosts)]
		j.Hosts = append(j.Hosts, f.Node(id).Name)
	}
	return list
}

// rings is the memory of the lists. Those of the whole fabric are shorter than a
// service's, which may not look at them for seconds: here all are read after
// every Step.
func rings(lists control.ListPlan) list.Config {
	m := lists.Memory(maxReport)
	for i := range m.Classes {
		m.Classes[i].Capacity = min(m.Classes[i].Capacity, maxRing)
	}
	return m
}

// maxRing is in reports. At 100 Gb/s all switches together send some 130 in a
// Step, and a few times as many while everything goes wrong; each kind has a
// list of its own.
const maxRing = 2048

// maxReport is as long as a datagram of the management network: no report is longer.
const maxReport = 1472

// take is the collector's door: a datagram of one switch.
func (l *Lab) take(at model.Time, from model.NodeID, datagram []byte) {
	addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, byte(from >> 8), byte(from)}), 40040)
	l.line.Receive(at, addr, datagram)
}

// Now is the fabric's time.
func (l *Lab) Now() model.Time { return l.net.Now().Model() }

// Advance lets one Step pass: traffic, then what the controller makes of it.
func (l *Lab) Advance() error {
	if err := l.traffic.fill(l.net); err != nil {
		return fmt.Errorf("live: traffic: %w", err)
	}
	l.net.Run(l.net.Now() + engine.Of(Step))
	now := l.Now()
	if err := l.line.Poll(now, func(id dta.ListID, data []byte) { l.Control.IngestReport(now, id, data) }); err != nil {
		return err
	}
	l.Control.Tick(now)
	l.net.Forget(l.net.Now() - engine.Of(keep))
	return nil
}

// keep is how long a finished flow is remembered: until its last packets, which
// may stand in a deadlock, have long found their end.
const keep = 100 * time.Millisecond

// Close frees the memory.
func (l *Lab) Close() error { return l.line.Close() }
