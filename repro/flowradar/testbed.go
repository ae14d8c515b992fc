package flowradar

import (
	"errors"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/analyze/flows"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/dataplane/simhost"
	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/inswitch/flowset"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sketch"
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
}

// outgoingLists is the first list of outgoing flowsets.
const outgoingLists = 1 << 16

// newLab installs flowset programs of a geometry in all switches of a network that
// has not run yet. Switches export at once, as the paper's do.
func newLab(net *sim.Network, g sketch.Geometry, outgoing bool) (*lab, error) {
	l := &lab{net: net}
	mgmt, err := simhost.NewManagement(net, simhost.DefaultManagementConfig(), l.receive)
	if err != nil {
		return nil, err
	}
	if l.incoming, err = newFeed(0); err != nil {
		return nil, err
	}
	if outgoing {
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
		if outgoing {
			cfg.List, cfg.Seed = outgoingLists, ^cfg.Seed
			out, err := flowset.New(dev, cfg)
			if err != nil {
				return nil, err
			}
			programs = append(programs, egressProgram{out})
		}
		if _, err := simhost.Attach(net, id, inswitch.NewPipeline(programs...), host); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// egressProgram shows packets to the program where they leave the switch instead
// of where they come in, after the queue that may drop them.
//
// Paper: a switch may keep two flowsets, one for incoming flows and one for
// outgoing ones.
type egressProgram struct{ *flowset.Program }

func (egressProgram) Stages() inswitch.Stages {
	return inswitch.StageSet(inswitch.Dequeue, inswitch.Timer)
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

// maps decodes a feed and returns the fabric's map of each slot from the first
// on; a slot without reports has an empty one.
func (l *lab) maps(f *feed) ([]*paths.Map, error) {
	if l.err != nil {
		return nil, fmt.Errorf("collect flowsets: %w", l.err)
	}
	sets := f.assembler.Flush(f.done)
	var out []*paths.Map
	for _, fs := range sets {
		if l.silent != nil && l.silent(fs.Switch) {
			continue
		}
		d := flows.SingleDecode(fs)
		if d.Undecoded > 0 {
			return nil, fmt.Errorf("switch %d slot %d: %d of %d flows were not decoded, so its table is too small for this run", d.Switch, d.Slot, d.Undecoded, fs.Counts.Flows)
		}
		slot := paths.SlotOf(&d)
		for int64(len(out)) <= slot {
			out = append(out, paths.NewMap(int64(len(out)), slotLength))
		}
		out[slot].AddFlowset(&d)
	}
	return out, nil
}
