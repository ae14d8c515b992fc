package flowset

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/dataplane/simhost"
	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
)

const fabricSlot = time.Millisecond

// fabric is a fat-tree of 16 hosts and 20 switches with RDMA, TCP and UDP of
// both families, buffers that PFC must keep from overflowing, a switch that loses
// one packet in five, and one that drops all of some flows.
func fabric(t *testing.T) *sim.Network {
	t.Helper()
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		t.Fatal(err)
	}
	cfg := sim.DefaultConfig()
	cfg.Buffer = 2 * model.MB
	routes, err := topo.NewRoutes(f, topo.RouteConfig{Seed: cfg.Seed})
	if err != nil {
		t.Fatal(err)
	}
	n, err := sim.New(routes, cfg)
	if err != nil {
		t.Fatal(err)
	}
	var flows []traffic.Flow
	for src := range model.NodeID(16) {
		if src != 15 {
			flows = append(flows, traffic.Flow{Src: src, Dst: 15, Bytes: 200_000, Priority: 3, Start: 1000, V6: src%2 == 0})
		}
		flows = append(
			flows,
			traffic.Flow{Src: src, Dst: (src + 5) % 16, Bytes: 100_000, Priority: 3, Start: 2000},
			traffic.Flow{Src: src, Dst: (src + 9) % 16, Bytes: 30_000, Priority: 1, Transport: traffic.TCP, Start: 3000, V6: true},
			traffic.Flow{Src: src, Dst: (src + 2) % 16, Stop: 3_000_000, Transport: traffic.UDP, Rate: 2 * model.Gbps, Start: 3000},
		)
	}
	if err := n.AddFlows(flows); err != nil {
		t.Fatal(err)
	}
	for _, fault := range []sim.Fault{
		sim.LossySwitch{Switch: n.Switches()[0].ID, Share: 0.2},
		sim.CorruptTable{Switch: n.Switches()[1].ID, Share: 0.3},
	} {
		if err := n.Inject(sim.Injection{At: 500_000, Fault: fault}); err != nil {
			t.Fatal(err)
		}
	}
	for i, sw := range n.Switches() {
		n.SetClock(sw.ID, sim.Clock{Offset: time.Duration(i) * 137 * time.Microsecond, Drift: float64(i) * 1e-6})
	}
	return n
}

// watch is a program that keeps a reference of what its switch sees.
type watch struct{ *reference }

func (watch) Stages() inswitch.Stages { return inswitch.StageSet(inswitch.Ingress) }

func (w watch) Observe(ev *inswitch.Event, _ *inswitch.Actions) {
	key := *ev.Packet.Key
	at := name{v6: key.V6}
	at.slot, _ = slotOf(ev.Now, fabricSlot)
	if !key.V6 && !key.Src.Is4() {
		w.unkeyed[at]++
		return
	}
	out, _ := ev.Switch.Route(ev.Packet.Outer)
	w.count(at, key, ev.Packet.UnlabeledSize(), ev.In, out)
}

// TestFabric runs flowsets on all switches and compares every table that
// arrives at the collector with a map that was fed by the same events.
func TestFabric(t *testing.T) {
	n := fabric(t)
	rigs := map[model.NodeID]*rig{}
	var reader dta.Reader
	mgmt, err := simhost.NewManagement(n, simhost.DefaultManagementConfig(), func(_ model.Time, from model.NodeID, datagram []byte) {
		var rep dta.Report
		for reader.Reset(datagram); reader.Next(&rep); {
			if want := dta.ListID(500 + from); rep.List != want {
				t.Errorf("switch %d reports to list %d; want %d", from, rep.List, want)
			}
			rigs[from].out = append(rigs[from].out, slices.Clone(rep.Data))
		}
		if err := reader.Err(); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	references := map[model.NodeID]*reference{}
	var hosts []*simhost.Switch
	for _, sw := range n.Switches() {
		p, err := New(simhost.Describe(n, sw.ID, 0), fabricConfig(sw.ID))
		if err != nil {
			t.Fatal(err)
		}
		references[sw.ID], rigs[sw.ID] = newReference(), &rig{t: t}
		cfg := simhost.DefaultConfig()
		cfg.Carrier = mgmt
		host, err := simhost.Attach(n, sw.ID, inswitch.NewPipeline(watch{references[sw.ID]}, p), cfg)
		if err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, host)
	}
	n.Run(5900 * engine.Microsecond)
	for _, h := range hosts {
		if s := h.Stats(); len(s.Lost) > 0 || len(s.Refused) > 0 {
			t.Errorf("reports lost %v, actions refused %v; want none", s.Lost, s.Refused)
		}
	}
	tables, packets := 0, uint64(0)
	seeds := map[uint64]bool{}
	for id, r := range rigs {
		r.out = whole(t, r.out)
		for at, f := range r.collect() {
			references[id].check(t, at, f)
			if f.Switch != id {
				t.Errorf("switch %d exports a flowset of %d", id, f.Switch)
			}
			tables++
			packets += f.Counts.Packets
			seeds[f.Seed] = true
		}
	}
	if tables < 20*2*4 || packets < 10_000 || len(seeds) != 20 {
		t.Errorf("compared %d tables with %d packets under %d seeds; want at least 160, 10000 and 20", tables, packets, len(seeds))
	}
}

// whole leaves out the slot that the end of the run has cut.
func whole(t *testing.T, chunks [][]byte) (out [][]byte) {
	t.Helper()
	last := uint32(0)
	slotIn := func(b []byte) uint32 { return uint32(b[20])<<24 | uint32(b[21])<<16 | uint32(b[22])<<8 | uint32(b[23]) }
	for _, c := range chunks {
		last = max(last, slotIn(c))
	}
	for _, c := range chunks {
		if slotIn(c) < last {
			out = append(out, c)
		}
	}
	return out
}

func fabricConfig(sw model.NodeID) Config {
	cfg := tiny()
	cfg.Slot, cfg.List = fabricSlot, dta.ListID(500+sw)
	cfg.IPv4.TableCells, cfg.IPv6.TableCells = 200, 200
	cfg.IPv4.FilterBits, cfg.IPv6.FilterBits = 1<<15, 1<<15
	return cfg
}

// TestFabricIsPassive compares all flow records of a run with flowsets on all
// switches with those of a run without.
func TestFabricIsPassive(t *testing.T) {
	run := func(on bool) ([]sim.FlowRecord, sim.Counts) {
		n := fabric(t)
		arrived := 0
		mgmt, err := simhost.NewManagement(n, simhost.DefaultManagementConfig(), func(model.Time, model.NodeID, []byte) { arrived++ })
		if err != nil {
			t.Fatal(err)
		}
		for _, sw := range n.Switches() {
			if !on {
				continue
			}
			p, err := New(simhost.Describe(n, sw.ID, 0), fabricConfig(sw.ID))
			if err != nil {
				t.Fatal(err)
			}
			cfg := simhost.DefaultConfig()
			cfg.Carrier = mgmt
			if _, err := simhost.Attach(n, sw.ID, inswitch.NewPipeline(p), cfg); err != nil {
				t.Fatal(err)
			}
		}
		n.Run(5 * engine.Millisecond)
		if on && arrived == 0 {
			t.Error("no flowset arrived")
		}
		n.Counts.Events = 0 // timers are events
		records := n.Records()
		slices.SortFunc(records, func(a, b sim.FlowRecord) int { return a.ID - b.ID })
		return records, n.Counts
	}
	records, counts := run(false)
	watched, watchedCounts := run(true)
	if counts.Pauses == 0 || counts.Drops == [len(counts.Drops)]int64{} || len(records) < 30 {
		t.Fatalf("%d pauses, %v drops, %d records: the traffic shows nothing", counts.Pauses, counts.Drops, len(records))
	}
	if diff := cmp.Diff(records, watched); diff != "" {
		t.Errorf("flow records differ with flowsets (-without +with):\n%s", diff)
	}
	if diff := cmp.Diff(counts, watchedCounts); diff != "" {
		t.Errorf("counts differ with flowsets (-without +with):\n%s", diff)
	}
}
