package flowradar

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/analyze/loss"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/dataplane/simhost"
	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/inswitch/flowset"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sketch"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
)

const slotLength = 10 * time.Millisecond

// lab is a simulated fabric whose switches count flows and export them at the end
// of a slot, and the collector that they export to. It decodes every table alone
// and fails on one that does not yield all its flows, where control/flowwatch
// would use its neighbours' and continue: claims about losses must not depend on
// that help.
type lab struct {
	net      *sim.Network
	incoming *feed                      // counts of packets as they came in
	outgoing *feed                      // as they left; nil where not counted
	err      error                      // the first of the collector's
	silent   func(sw model.NodeID) bool // whose flowsets do not arrive; nil: all do
}

// feed is the flowsets that switches made at ingress or at egress.
type feed struct {
	lists     dta.ListID // the first
	assembler *flows.Assembler
	done      []*flows.Flowset
	contents  []flows.Decoded // of all of them, after the run
}

// outgoingLists is the first list of outgoing flowsets.
const outgoingLists = 1 << 16

// newFaultLab is the laboratory of faults of routes, and its fabric: a fat-tree of k=4 with
// flowset programs of a geometry.
func newFaultLab(rng *rand.Rand, g sketch.Geometry, counted sides) (*lab, *topo.Fabric, error) {
	fabric, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		return nil, nil, err
	}
	routes, err := topo.NewRoutes(fabric, topo.RouteConfig{Seed: rng.Uint64()})
	if err != nil {
		return nil, nil, err
	}
	cfg := sim.DefaultConfig()
	cfg.Seed = rng.Uint64()
	net, err := sim.New(routes, cfg)
	if err != nil {
		return nil, nil, err
	}
	l, err := newLab(net, g, counted)
	return l, fabric, err
}

// newLab installs flowset programs of a geometry in all switches of a network that
// has not run yet. Switches export at once, as the paper's do.
func newLab(net *sim.Network, g sketch.Geometry, counted sides) (*lab, error) {
	l := &lab{net: net}
	mgmt, err := simhost.NewManagement(net, simhost.DefaultManagementConfig(), l.receive)
	if err != nil {
		return nil, err
	}
	if l.incoming, err = newFeed(0); err != nil {
		return nil, err
	}
	if counted != incomingOnly {
		if l.outgoing, err = newFeed(outgoingLists); err != nil {
			return nil, err
		}
	}
	host := simhost.DefaultConfig()
	host.Carrier = mgmt
	for _, id := range net.Fabric().Switches() {
		cfg := flowset.DefaultConfig()
		cfg.Slot, cfg.Bursts, cfg.Seed = slotLength, 1, net.Config().Seed
		cfg.IPv4, cfg.IPv6 = flowset.Table{Geometry: g, Layout: flowset.Layout4}, flowset.Table{}
		dev := simhost.Describe(net, id, 0)
		in, err := flowset.New(dev, cfg)
		if err != nil {
			return nil, err
		}
		programs := []inswitch.Program{in}
		if counted != incomingOnly {
			cfg.List, cfg.Seed, cfg.Outgoing, cfg.Linger = outgoingLists, ^cfg.Seed, true, longestWait
			out, err := flowset.New(dev, cfg)
			if err != nil {
				return nil, err
			}
			programs = append(programs, out)
			if counted == bothByDeparture {
				programs[1] = departures{out}
			}
		}
		if _, err := simhost.Attach(net, id, inswitch.NewPipeline(programs...), host); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// sides are the packets that the switches of a lab count.
type sides uint8

const (
	incomingOnly sides = iota
	bothSides
	bothByDeparture // outgoing packets in the slot in which they leave
)

// longestWait is more than a packet waits in a queue of 150 KB at 10 Gb/s.
const longestWait = 200 * time.Microsecond

// departures counts outgoing packets in the slot in which they leave.
type departures struct{ *flowset.Program }

func (d departures) Observe(ev *inswitch.Event, act *inswitch.Actions) {
	waited := ev.Latency
	ev.Latency = 0
	d.Program.Observe(ev, act)
	ev.Latency = waited
}

func newFeed(lists dta.ListID) (*feed, error) {
	a, err := flows.NewAssembler(flows.DefaultConfig())
	return &feed{lists: lists, assembler: a}, err
}

// receive takes a datagram of reports, all of which are chunks.
func (l *lab) receive(at model.Time, _ model.NodeID, datagram []byte) {
	var r dta.Reader
	var report dta.Report
	err := r.Reset(datagram)
	for err == nil && r.Next(&report) {
		f := l.incoming
		if report.List >= outgoingLists {
			f = l.outgoing
		}
		f.done, err = f.assembler.AddChunk(at, report.Data, f.done)
	}
	if l.err == nil {
		l.err = errors.Join(err, r.Err())
	}
}

// decode decodes a feed's flowsets.
func (l *lab) decode(f *feed) error {
	if l.err != nil {
		return fmt.Errorf("collect flowsets: %w", l.err)
	}
	for _, fs := range f.assembler.Flush(f.done) {
		if l.silent != nil && l.silent(fs.Switch) {
			continue
		}
		d := flows.SingleDecode(fs)
		if d.Undecoded > 0 {
			return fmt.Errorf("switch %d slot %d: %d of %d flows were not decoded, so its table is too small for this run", d.Switch, d.Slot, d.Undecoded, fs.Counts.Flows)
		}
		f.contents = append(f.contents, d)
	}
	f.done = nil
	return nil
}

// maps decodes a feed and returns the fabric's map of each slot from the first
// on; a slot without reports has an empty one.
func (l *lab) maps(f *feed) ([]*paths.Map, error) {
	if err := l.decode(f); err != nil {
		return nil, err
	}
	var out []*paths.Map
	for i := range f.contents {
		slot := paths.SlotOf(&f.contents[i])
		for int64(len(out)) <= slot {
			out = append(out, paths.NewMap(int64(len(out)), slotLength))
		}
		out[slot].AddFlowset(&f.contents[i])
	}
	return out, nil
}

// switchSlot is a slot of a switch.
type switchSlot struct {
	sw   model.NodeID
	slot uint32
}

// drops compares the incoming and outgoing flowsets of each switch and slot, and counts
// the flows that it could not compare. The feeds must be decoded.
func (l *lab) drops() (list []loss.Drop, uncertain int) {
	sent := map[switchSlot]*flows.Decoded{}
	for i := range l.outgoing.contents {
		d := &l.outgoing.contents[i]
		sent[switchSlot{d.Switch, d.Slot}] = d
	}
	for i := range l.incoming.contents {
		in := &l.incoming.contents[i]
		out := sent[switchSlot{in.Switch, in.Slot}]
		if out == nil {
			uncertain += len(in.Records)
			continue
		}
		some, unknown := loss.Inside(in, out)
		list, uncertain = append(list, some...), uncertain+unknown
	}
	return list, uncertain
}
