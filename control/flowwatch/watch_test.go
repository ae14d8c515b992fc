package flowwatch

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/load"
	"github.com/weft-telemetry/weft/analyze/paths"
	"github.com/weft-telemetry/weft/dataplane/simhost"
	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/inswitch/flowset"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/sim/truth"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
)

// lab is a fabric at work: persistent flows between all racks, flowsets in its
// switches, clocks a millisecond apart, and a watch that gets the reports.
type lab struct {
	t     testing.TB
	net   *sim.Network
	truth *truth.Recorder
	watch *Watch
	slots []*Slot
	found []time.Duration // when the watch gave out each slot, by the run's clock
	each  func(*Slot)     // gets every slot, if it is set
}

const ms = time.Millisecond

// newLab makes a fat-tree of k=4. Every host sends a packet of 1000 bytes every
// half millisecond to three others.
func newLab(t testing.TB, seed uint64, deploy func(topo.Node) bool) *lab {
	sizing, err := flowset.Plan(400, 0.999, flowset.Single)
	check(t, err)
	return newSizedLab(t, seed, &sizing, deploy)
}

// newSizedLab is newLab with flowsets of a size.
func newSizedLab(t testing.TB, seed uint64, sizing *flowset.Sizing, deploy func(topo.Node) bool) *lab {
	return newLabOf(t, seed, sim.DefaultConfig(), traffic.Flow{Transport: traffic.UDP, DstPort: 5000}, sizing, deploy)
}

// newLabOf is newSizedLab with a fabric's settings, and flows like one.
func newLabOf(t testing.TB, seed uint64, cfg sim.Config, like traffic.Flow, sizing *flowset.Sizing, deploy func(topo.Node) bool) *lab {
	links := topo.DefaultLinks()
	links.Host.Rate, links.Fabric.Rate = 10*model.Gbps, 10*model.Gbps
	f, err := topo.FatTree(4, links)
	check(t, err)
	routes, err := topo.NewRoutes(f, topo.RouteConfig{Seed: seed})
	check(t, err)
	n, err := sim.New(routes, cfg)
	check(t, err)
	l := &lab{t: t, net: n}
	o := truth.Options{Drops: true, MaxDrops: 1 << 20}
	l.truth, err = truth.Record(n, o)
	check(t, err)
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, id := range f.Switches() {
		n.SetClock(id, sim.Clock{Offset: time.Duration(rng.Int64N(int64(ms)))})
	}
	l.watch, err = New(DefaultConfig(n.Intent()))
	check(t, err)
	l.attach(seed, sizing, deploy)
	var flows []traffic.Flow
	for i, src := range f.Hosts() {
		for _, step := range []int{1, 5, 9} {
			like.Src, like.Dst = src, f.Hosts()[(i+step)%len(f.Hosts())]
			like.Start, like.Stop = model.Time(rng.IntN(int(ms/2))), model.Time(200*ms)
			like.Rate, like.SrcPort = 16*model.Mbps, uint16(1000+step)
			flows = append(flows, like)
		}
	}
	check(t, n.AddFlows(flows))
	return l
}

// attach runs flowsets in the switches that are deployed.
func (l *lab) attach(seed uint64, sizing *flowset.Sizing, deploy func(topo.Node) bool) {
	var r dta.Reader
	var rep dta.Report
	mgmt, err := simhost.NewManagement(l.net, simhost.DefaultManagementConfig(), func(at model.Time, _ model.NodeID, datagram []byte) {
		for err := r.Reset(datagram); err == nil && r.Next(&rep); {
			check(l.t, l.watch.IngestReport(at, rep.Data))
			l.add(at, l.watch.Complete())
		}
		l.add(at, l.watch.Tick(at))
		check(l.t, r.Err())
	})
	check(l.t, err)
	cfg := flowset.DefaultConfig()
	cfg.IPv4, cfg.IPv6 = flowset.Table{Geometry: sizing.Geometry, Layout: flowset.Layout4}, flowset.Table{}
	host := simhost.DefaultConfig()
	host.Carrier = mgmt
	for _, id := range l.net.Fabric().Switches() {
		if deploy != nil && !deploy(*l.net.Fabric().Node(id)) {
			continue
		}
		cfg.Seed = seed + uint64(id)*1e9
		p, err := flowset.New(simhost.Describe(l.net, id, 0), cfg)
		check(l.t, err)
		_, err = simhost.Attach(l.net, id, inswitch.NewPipeline(p), host)
		check(l.t, err)
	}
}

func (l *lab) add(at model.Time, slots iter.Seq[*Slot]) {
	for s := range slots {
		l.slots = append(l.slots, s)
		l.found = append(l.found, time.Duration(at))
		if l.each != nil {
			l.each(s)
		}
	}
}

func (l *lab) run(until time.Duration) {
	l.net.Run(engine.Of(until))
	l.add(l.net.Now().Model(), l.watch.Flush(l.net.Now().Model()))
}

func (l *lab) inject(at, span time.Duration, f sim.Fault) {
	check(l.t, l.truth.Inject(sim.Injection{At: model.Time(at), For: span, Fault: f}))
}

func (l *lab) node(name string) model.NodeID {
	id, ok := l.net.Fabric().ByName(name)
	if !ok {
		l.t.Fatalf("no node %q", name)
	}
	return id
}

// sure returns the findings that are certain, with the first time each kind
// and place was found.
func (l *lab) sure() map[string]time.Duration {
	found := map[string]time.Duration{}
	for i, s := range l.slots {
		for _, f := range s.Paths {
			if !f.Confirmed {
				continue
			}
			name := fmt.Sprintf("%v %s", f.Kind, l.net.Fabric().Node(f.At.Node).Name)
			if f.Kind == paths.Loop {
				name = "loop"
				for _, id := range f.Switches {
					name += " " + l.net.Fabric().Node(id).Name
				}
			}
			if _, ok := found[name]; !ok {
				found[name] = l.found[i]
			}
		}
	}
	return found
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (l *lab) dst(host string) netip.Prefix {
	return netip.PrefixFrom(l.net.Fabric().Node(l.node(host)).IPv4.Netip(), 32)
}

// lost adds up losses by flow: what the watch found, and what happened. Losses
// on the last link are seen by no switch.
func (l *lab) lost() (found, real map[model.FlowKey]uint64) {
	found, real = map[model.FlowKey]uint64{}, map[model.FlowKey]uint64{}
	for _, s := range l.slots {
		for _, e := range s.Losses {
			found[e.Flow] += e.Packets
		}
	}
	for _, d := range l.truth.Drops() {
		real[d.Key]++
	}
	return found, real
}

func TestHealthyFabricWithRouteChangeShowsNothing(t *testing.T) {
	end := race.Less(260*ms, 100*ms)
	for seed := range race.Less(uint64(3), 1) {
		l := newLab(t, seed, nil)
		l.net.At(engine.Of(63*ms), func() { // other hash, other paths, in the middle of a slot
			cfg := l.net.Routes().Config()
			cfg.Seed += 99
			routes, err := topo.NewRoutes(l.net.Fabric(), cfg)
			check(t, err)
			l.net.SetIntendedRoutes(routes, func(sw model.NodeID) time.Duration { return time.Duration(sw) * 50 * time.Microsecond })
		})
		l.run(end)
		for _, s := range l.slots {
			for _, f := range s.Paths {
				t.Errorf("seed %d: %s; want nothing found", seed, f.Describe(l.net.Fabric()))
			}
			for _, e := range s.Losses {
				t.Errorf("seed %d: %s; want nothing lost", seed, e.Describe(l.net.Fabric()))
			}
			for _, d := range s.Decoded {
				if s.Index < int64(end/slot)-1 && !d.Complete() { // the last slot's export was cut off by the end
					t.Errorf("seed %d: slot %d of switch %d: %d undecoded; want all", seed, d.Slot, d.Switch, d.Undecoded)
				}
			}
		}
		if want := int(end/slot) - 1; len(l.slots) < want {
			t.Errorf("%d slots; want %d and more", len(l.slots), want)
		}
	}
}

func TestClaimLoopIsFound(t *testing.T) {
	race.LeaveToPlainRun(t)
	l := newLab(t, 1, nil)
	// tor1 has moved h3 away and sends up to leaf0, which has not heard of it.
	l.inject(65*ms, 0, sim.Reroute{Entries: []sim.Entry{{Switch: l.node("tor1"), To: l.dst("h3"), Via: []model.NodeID{l.node("leaf0")}}}})
	l.run(140 * ms)
	found := l.sure()
	at, ok := found["loop leaf0 tor1"]
	if !ok {
		at, ok = found["loop tor1 leaf0"]
	}
	if !ok {
		t.Fatalf("found %v; want the loop of leaf0 and tor1", found)
	}
	// The slot ends at 70 ms by the slowest clock, its reports take most of the
	// next one. The loop shows with them, and is sure with the next.
	if at > 92*ms {
		t.Errorf("loop of 65 ms sure at %v; want with the reports of the next slot", at)
	}
	suspected := slices.IndexFunc(l.slots, func(s *Slot) bool {
		return slices.ContainsFunc(s.Paths, func(f paths.Finding) bool { return f.Kind == paths.Loop })
	})
	if got := l.found[suspected]; got > 82*ms {
		t.Errorf("loop of 65 ms suspected at %v; want with the reports of its slot", got)
	}
	if _, ok := found["wrong route tor1"]; !ok {
		t.Errorf("found %v; want tor1 named for its wrong route", found)
	}
	for name := range found {
		if name != "loop leaf0 tor1" && name != "loop tor1 leaf0" && name != "wrong route tor1" {
			t.Errorf("found %q; want nothing else", name)
		}
	}
}

func TestClaimBlackHoleIsFound(t *testing.T) {
	race.LeaveToPlainRun(t)
	for name, deploy := range map[string]func(topo.Node) bool{
		"everywhere": nil,
		"ToRs alone": func(n topo.Node) bool { return n.Role == topo.ToR },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, 2, deploy)
			l.inject(65*ms, 0, sim.Reroute{Entries: []sim.Entry{
				{Switch: l.node("leaf0"), To: l.dst("h2")},
				{Switch: l.node("leaf1"), To: l.dst("h2")},
			}})
			l.run(140 * ms)
			found := l.sure()
			if len(found) == 0 {
				t.Fatal("nothing found; want black holes")
			}
			for name, at := range found {
				want := []string{"black hole leaf0", "black hole leaf1", "silent link leaf0", "silent link leaf1"}
				if deploy != nil {
					want = []string{"black hole tor0"}
					for i := range 8 {
						want = append(want, fmt.Sprintf("black hole tor%d", i))
					}
				}
				if !slices.Contains(want, name) || at > 102*ms {
					t.Errorf("found %q at %v; want one of %q by 102 ms", name, at, want)
				}
			}
			found2, real := l.lost()
			for key, n := range found2 {
				if n > real[key] {
					t.Errorf("%v: %d lost packets reported, %d were; want no more", key, n, real[key])
				}
			}
		})
	}
}

func TestClaimLossMapEqualsTruth(t *testing.T) {
	race.LeaveToPlainRun(t)
	l := newLab(t, 3, nil)
	bad := model.Port{Node: l.node("leaf0"), Port: l.net.Fabric().Node(l.node("leaf0")).PortsTo(l.node("tor1"))[0]}
	l.inject(50*ms, 100*ms, sim.Lossy{Port: bad, Share: 0.05})
	l.run(260 * ms)
	found, real := l.lost()
	if len(real) == 0 {
		t.Fatal("nothing was lost; the test tests nothing")
	}
	if fmt.Sprint(found) != fmt.Sprint(real) {
		t.Errorf("losses found %v; want %v", found, real)
	}
	for _, s := range l.slots {
		for _, e := range s.Losses {
			if e.From != bad || e.To.Node != l.node("tor1") {
				t.Errorf("%s; want between leaf0 and tor1", e.Describe(l.net.Fabric()))
			}
		}
	}
	if worst := l.watch.TakeLinks()[0]; worst.From != bad {
		t.Errorf("worst link %+v; want that of %v", worst.Segment, bad)
	}
}

func TestCorruptTableHitsAShareOfFlows(t *testing.T) {
	race.LeaveToPlainRun(t)
	l := newLab(t, 4, nil)
	spine := l.node("spine0")
	l.inject(50*ms, 0, sim.CorruptTable{Switch: spine, Share: 0.3, Seed: 5})
	l.run(160 * ms)
	found := l.sure()
	if _, ok := found["black hole spine0"]; !ok {
		t.Errorf("found %v; want a black hole at spine0", found)
	}
	for name := range found {
		if name != "black hole spine0" && name != "silent link spine0" {
			t.Errorf("found %q; want spine0 alone", name)
		}
	}
}

func TestDeadLinkIsSilent(t *testing.T) {
	race.LeaveToPlainRun(t)
	l := newLab(t, 5, nil)
	l.inject(50*ms, 0, sim.LinkDown{Port: model.Port{Node: l.node("spine0"), Port: 1}})
	l.run(160 * ms)
	for name := range l.sure() {
		if name != "silent link spine0" && name != "silent link leaf0" {
			t.Errorf("found %q; want the link of spine0 and leaf0 silent", name)
		}
	}
	if len(l.sure()) == 0 {
		t.Error("nothing found; want the link of spine0 and leaf0 silent")
	}
}

func TestPolarisedHashIsTheCause(t *testing.T) {
	race.LeaveToPlainRun(t)
	l := newLab(t, 6, nil)
	var more []traffic.Flow // enough flows for the statistics
	hosts := l.net.Fabric().Hosts()
	for i := range 300 {
		more = append(more, traffic.Flow{
			Src: hosts[i%2], Dst: hosts[8+i%8], Stop: model.Time(100 * ms), Rate: 4 * model.Mbps,
			Transport: traffic.UDP, SrcPort: uint16(20000 + i), DstPort: 5001,
		})
	}
	check(t, l.net.AddFlows(more))
	l.inject(0, 0, sim.HashPolarization{})
	l.run(140 * ms)
	list := l.watch.TakeImbalances()
	leaf := slices.IndexFunc(list, func(im load.Imbalance) bool { return l.net.Fabric().Node(im.Switch).Role == topo.Leaf })
	if leaf < 0 || list[leaf].Cause != load.Hash {
		t.Errorf("imbalances %+v; want one at a leaf, by the hash", list)
	}
}
