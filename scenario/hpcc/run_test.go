package hpcc

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
)

func runSetup(t *testing.T, s *Setup) *sim.Network {
	t.Helper()
	n, err := s.Network()
	if err != nil {
		t.Fatal(err)
	}
	n.Run(engine.Time(s.Stop) * engine.Nanosecond)
	return n
}

// A lone flow over one switch takes the time of its packets on the first link,
// of one more packet on the second, and of the acknowledgement. All times are
// whole nanoseconds: 1048 bytes at 100 Gb/s take 83, 60 take 4.
func TestLoneFlowsTakeTheOriginalsTime(t *testing.T) {
	s := build(t, "star")
	n := runSetup(t, s)
	var got [3]sim.FlowRecord
	for _, r := range n.Records() {
		got[r.ID] = r
	}
	for i, w := range []struct{ fct, ideal engine.Time }{
		// 1000 packets, one more on the second link, four links of 1 µs, two
		// acknowledgements; 4160 ns of round trip and 1,048,000 bytes.
		{1000*83 + 83 + 4000 + 4 + 4, 4160 + 83840},
		// The second link has 25 Gb/s: the first packet reaches it alone, then
		// it sends 1048, 1048 and 548 bytes without a gap. The ideal is
		// 4400 ns and 2644 bytes at 25 Gb/s, 846.08 ns.
		{83 + 335 + 335 + 175 + 4000 + 19 + 4, 4400 + 846},
		// 49 bytes take 3.92 ns.
		{3 + 3 + 4000 + 4 + 4, 4160 + 3},
	} {
		r := got[i]
		w.fct, w.ideal = w.fct*engine.Nanosecond, w.ideal*engine.Nanosecond
		if !r.Finished || r.FCT() != w.fct || r.Ideal != w.ideal {
			t.Errorf("flow %d of %v: finished %v in %v, ideal %v; want %v and %v", i, s.Flows[i].Bytes, r.Finished, r.FCT(), r.Ideal, w.fct, w.ideal)
		}
		if r.Key.SrcPort != s.Flows[i].SrcPort || r.Key != s.key(&s.Flows[i]) {
			t.Errorf("flow %d is %v; want %v", i, r.Key, s.key(&s.Flows[i]))
		}
	}
	if n.Counts.Pauses != 0 || n.Counts.Marked != 0 {
		t.Errorf("%d pauses and %d marks; want none", n.Counts.Pauses, n.Counts.Marked)
	}
}

// The flows meet a dead link and go on over the other spine.
func TestLinkDownReroutes(t *testing.T) {
	s := build(t, "diamond")
	if s.Down == nil || s.Down.At != 2_000_100_000 {
		t.Fatalf("outage is %+v; want one at 2.0001s", s.Down)
	}
	via := func(node model.NodeID, flow int) bool {
		hops, err := s.Routes.Path(s.key(&s.Flows[flow]), 0)
		return err == nil && len(hops) == 5 && hops[2].Node == node
	}
	if !via(3, 0) && !via(3, 1) {
		t.Fatal("no flow goes over s3; want one that the outage hits")
	}
	n := runSetup(t, s)
	if n.Finished != 2 {
		t.Errorf("%d flows finished; want 2", n.Finished)
	}
	// Until the outage the host sends 100 µs at 100 Gb/s, 1204 packets of 83 ns;
	// all 8000 follow.
	old, other := n.Port(model.Port{Node: 1, Port: 2}).TxPkts, n.Port(model.Port{Node: 1, Port: 3}).TxPkts
	if old == 0 || old > 1205 || other < 8000-1205 {
		t.Errorf("s1 sent %d packets to s3 and %d to s4; want at most 1205 and the rest", old, other)
	}
	for i := range s.Flows {
		hops, err := s.Down.Routes.Path(s.key(&s.Flows[i]), 0)
		if err != nil || hops[2].Node != 4 {
			t.Errorf("after the outage flow %d goes %v, %v; want over s4", i, hops, err)
		}
	}
}

// A ring of routes, senders without control and without windows, a small
// buffer: the run must deadlock.
func TestRingDeadlocks(t *testing.T) {
	s := build(t, "ring")
	n := runSetup(t, s)
	stuck := 0
	for _, p := range n.Ports() {
		if sw := p.Switch(); sw != nil && p.Peer().Switch() != nil && p.Paused(3) {
			stuck++
		}
	}
	if n.Finished != 0 || stuck != 3 {
		t.Errorf("%d flows finished, %d ports between switches paused at the end; want none and 3", n.Finished, stuck)
	}
	if n.Counts.Drops[sim.DropBuffer] != 0 {
		t.Errorf("%d packets dropped; want none", n.Counts.Drops[sim.DropBuffer])
	}
}

// star runs flows, "from to priority port bytes start" each, between hosts 1 to
// 4 on switch 0, without marks and windows, and returns their completion times.
func star(t *testing.T, flows ...string) (took []engine.Time) {
	t.Helper()
	s := setup(t, map[string]string{
		"config.txt":   "TOPOLOGY_FILE topology.txt\nFLOW_FILE flow.txt\nENABLE_QCN 0\nCC_MODE 0\nHAS_WIN 0\nSIMULATOR_STOP_TIME 2.1\n",
		"topology.txt": "5 1 4\n0\n0 1 100Gbps 1us 0\n0 2 100Gbps 1us 0\n0 3 100Gbps 1us 0\n0 4 100Gbps 1us 0\n",
		"flow.txt":     fmt.Sprintf("%d\n%s\n", len(flows), strings.Join(flows, "\n")),
	})
	n := runSetup(t, s)
	took = make([]engine.Time, len(flows))
	for _, r := range n.Records() {
		took[r.ID] = r.FCT() / engine.Nanosecond
	}
	return took
}

// A NIC sends a packet of each flow in turn. The sixth packet leaves after five
// others; each takes 83 ns on two links, then two round trips of 2 µs, and the
// acknowledgement 4 ns on two links.
func TestNICTakesTurns(t *testing.T) {
	got := star(t, "1 2 3 100 2000 2", "1 2 3 100 2000 2", "1 3 3 100 2000 2")
	want := []engine.Time{4*83 + 83 + 4008, 5*83 + 83 + 4008, 6*83 + 83 + 4008}
	if !slices.Equal(got, want) {
		t.Errorf("three flows of two packets take %v ns; want %v", got, want)
	}
}

// Packets of priority 0 go before all others. Of two hosts that send 100 packets
// each to a third, the first packet of priority 3 gets through; then all of
// priority 0 do, each one packet late; then the rest.
func TestPriorityZeroGoesFirst(t *testing.T) {
	got := star(t, "1 3 3 100 100000 2", "2 3 0 100 100000 2")
	want := []engine.Time{200*83 + 83 + 4008, 101*83 + 83 + 4008}
	if !slices.Equal(got, want) {
		t.Errorf("priorities 3 and 0 take %v ns; want %v", got, want)
	}
}

// pauseLog records pause frames as pfc.txt has them.
type pauseLog struct {
	sim.NopObserver
	lines []string
}

func (h *pauseLog) PauseReceived(now engine.Time, p *sim.Port, _ model.Priority, stop bool) {
	kind, event := 0, 0
	if p.Switch() != nil {
		kind = 1
	}
	if stop {
		event = 1
	}
	h.lines = append(h.lines, fmt.Sprintf("%d %d %d %d %d", now/engine.Nanosecond, p.Node, kind, p.ID, event))
}

// In a star that starts all at once the first pause and resume of each sender
// are at the original's nanosecond. From then on senders are synchronized, and
// their order depends on the order in which they were resumed, which is not
// reproduced; the number of frames is.
func TestPausesAreTheOriginals(t *testing.T) {
	const senders = 6
	s := setup(t, incast(senders, "1us", 400_000, "CC_MODE 0\nHAS_WIN 0\nENABLE_QCN 0\nEPOCH_TIME 1000\nBUFFER_SIZE 600\n"))
	o := newOriginal(s)
	o.run()
	n, err := s.Network()
	if err != nil {
		t.Fatal(err)
	}
	h := &pauseLog{}
	n.Observe(h)
	n.Run(engine.Time(s.Stop) * engine.Nanosecond)
	slices.Sort(h.lines) // nodes run one after the other
	slices.Sort(o.pfc)
	if len(o.pfc) < 20 || len(h.lines) != len(o.pfc) {
		t.Fatalf("%d frames received; want the original's %d, at least 20", len(h.lines), len(o.pfc))
	}
	if got, want := h.lines[:2*senders], o.pfc[:2*senders]; !slices.Equal(got, want) {
		t.Errorf("frames received:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
