package flowfindings

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/loss"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
)

const slot = 10 * time.Millisecond

var epoch = time.Date(2026, 1, 2, 15, 0, 0, 0, time.UTC)

func slots(first, last int) api.FindingTime {
	return api.FindingTime{
		First: epoch.Add(time.Duration(first) * slot), Last: epoch.Add(time.Duration(last+1) * slot), Slots: last - first + 1,
	}
}

func flows(ids ...int) api.AffectedFlows {
	f := api.AffectedFlows{}
	for _, id := range ids {
		at := func(host byte) netip.AddrPort {
			return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, host}), uint16(id))
		}
		f.Flows = append(f.Flows, model.NewFlowKey(at(2), at(3), model.UDP))
	}
	return f
}

func newLog(t *testing.T, cfg Config) *Log {
	t.Helper()
	l, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

var leaf, tor = api.PortRef{Node: "leaf0", Port: 2}, api.PortRef{Node: "tor1", Port: 3}

// all is a range that contains everything.
func all(l *Log) api.FlowFindings { return l.Find(epoch.Add(-time.Hour), epoch.Add(time.Hour)) }

func checkSame(t *testing.T, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestPathRows: the same fault in several slots is one row, with each flow once.
// Another location, and a stall, are separate rows.
func TestPathRows(t *testing.T) {
	l := newLog(t, DefaultConfig())
	hole := api.PathFinding{Kind: "blackhole", At: leaf, FindingTime: slots(3, 3), AffectedFlows: flows(4, 1)}
	hole.PassedFlows = 7
	l.AddPath(hole)
	hole.FindingTime, hole.AffectedFlows, hole.Confirmed, hole.PassedFlows = slots(4, 4), flows(9, 4), true, 5
	hole.Next = &tor
	l.AddPath(hole)
	l.AddPath(hole) // of the same slot
	hole.FindingTime = slots(6, 6)
	l.AddPath(hole)
	stall := api.PathFinding{Kind: "blackhole", At: leaf, FindingTime: slots(6, 6), AffectedFlows: flows(4), Stalled: true}
	l.AddPath(stall)
	loop := api.PathFinding{Kind: "loop", At: leaf, Switches: []string{"leaf0", "tor1"}, FindingTime: slots(5, 5)}
	l.AddPath(loop)

	at := slots(3, 6)
	at.Slots = 3
	want := api.PathFinding{
		Kind: "blackhole", Confirmed: true, At: leaf, Next: &tor, FindingTime: at,
		AffectedFlows: flows(1, 4, 9), PassedFlows: 7,
	}
	checkSame(t, all(l).Paths, []api.PathFinding{want, stall, loop})
	// A result is a copy.
	slices.Reverse(all(l).Paths[0].Flows)
	checkSame(t, all(l).Paths[0].AffectedFlows, flows(1, 4, 9))
}

// TestLossRows: packets of a link add up, and the link with most losses comes first.
// Losses are selective only if they are in all windows.
func TestLossRows(t *testing.T) {
	l := newLog(t, DefaultConfig())
	add := func(from api.PortRef, pattern string, at api.FindingTime, lost, sent uint64, f api.AffectedFlows) {
		l.AddLoss(api.LinkLoss{
			From: from, To: &tor, FindingTime: at, LostPackets: lost, SentPackets: sent, Pattern: pattern, AffectedFlows: f,
		})
	}
	spine := api.PortRef{Node: "spine0", Port: 1}
	add(spine, "selective", slots(0, 4), 20, 30, flows(1))
	add(leaf, "selective", slots(0, 4), 10, 100, flows(1, 1))
	add(leaf, "scattered", slots(5, 9), 12, 200, flows(2, 1))
	add(leaf, "selective", slots(10, 14), 1, 2, flows(3))
	add(leaf, "whole-path", slots(10, 14), 5, 6, flows(3))
	checkSame(t, all(l).Losses, []api.LinkLoss{
		{
			From: leaf, To: &tor, FindingTime: slots(0, 14), LostPackets: 23, SentPackets: 302, Pattern: "scattered",
			AffectedFlows: flows(1, 2, 3),
		},
		{
			From: spine, To: &tor, FindingTime: slots(0, 4), LostPackets: 20, SentPackets: 30, Pattern: "selective",
			AffectedFlows: flows(1),
		},
		{
			From: leaf, To: &tor, FindingTime: slots(10, 14), LostPackets: 5, SentPackets: 6, Pattern: "whole-path",
			AffectedFlows: flows(3),
		},
	})
}

// TestLoadRows: an imbalance keeps its worst window, a periodic sender its newest
// finding, and every burst is a row.
func TestLoadRows(t *testing.T) {
	l := newLog(t, DefaultConfig())
	ports := []api.PortShare{{PortRef: leaf, Flows: 9, Packets: 90}}
	l.AddImbalance(api.ECMPImbalance{
		Switch: "leaf0", FindingTime: slots(0, 4), Cause: "burst", Ratio: 1.6, Heavy: flows(1).Flows, Ports: ports,
	})
	l.AddImbalance(api.ECMPImbalance{
		Switch: "leaf0", FindingTime: slots(5, 9), Cause: "hash", Ratio: 2, Ports: ports,
	})
	l.AddImbalance(api.ECMPImbalance{
		Switch: "leaf0", FindingTime: slots(10, 14), Cause: "burst", Ratio: 1.5, Ports: ports,
	})
	l.AddImbalance(api.ECMPImbalance{
		Switch: "leaf1", FindingTime: slots(5, 9), Cause: "hash", Ratio: 3, Ports: ports,
	})
	l.AddBurst(api.MicroburstFinding{
		Port: tor, FindingTime: slots(2, 3), LoadShare: .5, AffectedFlows: flows(2, 1),
	})
	l.AddBurst(api.MicroburstFinding{Port: tor, FindingTime: slots(8, 8), LoadShare: .4, AffectedFlows: flows(1)})
	l.AddPeriodicSender(api.PeriodicSender{Port: tor, Source: "10.0.0.2", FindingTime: slots(8, 8), Bursts: 5})
	l.AddPeriodicSender(api.PeriodicSender{
		Port: tor, Source: "10.0.0.2", FindingTime: slots(12, 12), Bursts: 6, MeanShare: .1,
	})
	got := all(l)
	if im := got.Imbalances; len(im) != 2 || im[0].Switch != "leaf1" || im[1].Ratio != 2 || im[1].Cause != "hash" ||
		len(im[1].Heavy) != 0 || im[1].FindingTime != slots(0, 14) {
		t.Errorf("imbalances %+v; want leaf1, then leaf0 at its worst", im)
	}
	if b := got.Bursts; len(b) != 2 || b[0].LoadShare != .5 || b[1].LoadShare != .4 {
		t.Errorf("bursts %+v; want two", b)
	}
	if p := got.PeriodicSenders; len(p) != 1 || p[0].Bursts != 6 || p[0].MeanShare != .1 ||
		p[0].First != slots(8, 8).First || p[0].Last != slots(12, 12).Last {
		t.Errorf("periodic senders %+v; want one, of 6 bursts", p)
	}
}

// TestRange: findings that overlap the range, whose end is exclusive. The rows of a
// lasting finding are one item, and only those in the range count.
func TestRange(t *testing.T) {
	cfg := DefaultConfig()
	cfg.MaxSpan = 10 * slot
	l := newLog(t, cfg)
	for i := range 30 {
		l.AddLoss(api.LinkLoss{
			From: leaf, FindingTime: slots(i, i), LostPackets: 1, SentPackets: 2, AffectedFlows: flows(i / 10),
		})
	}
	for _, tc := range []struct {
		from, to int // slots
		lost     uint64
		first    int
	}{{0, 30, 30, 0}, {0, 1, 10, 0}, {10, 20, 10, 10}, {9, 11, 20, 0}, {29, 99, 10, 20}, {30, 99, 0, 0}, {-5, 0, 0, 0}} {
		t.Run(fmt.Sprintf("%d-%d", tc.from, tc.to), func(t *testing.T) {
			got := l.Find(slots(tc.from, 0).First, slots(tc.to, 0).First).Losses
			if tc.lost == 0 {
				checkSame(t, got, []api.LinkLoss{})
				return
			}
			if len(got) != 1 || got[0].LostPackets != tc.lost || got[0].SentPackets != 2*tc.lost ||
				got[0].Slots != int(tc.lost) || got[0].First != slots(tc.first, 0).First ||
				len(got[0].Flows) != int(tc.lost)/10 {
				t.Errorf("losses %+v; want one item of %d packets from slot %d", got, tc.lost, tc.first)
			}
		})
	}
}

// TestBounds: the log evicts the rows that ended first and counts them, for ranges
// that may miss one. Flows beyond the limit are marked.
func TestBounds(t *testing.T) {
	l := newLog(t, Config{MaxRows: 3, MaxFlows: 2, MaxSpan: time.Minute})
	hole := func(port model.PortID, at api.FindingTime, f api.AffectedFlows) {
		l.AddPath(api.PathFinding{
			Kind: "blackhole", At: api.PortRef{Node: "leaf0", Port: port}, FindingTime: at, AffectedFlows: f,
		})
	}
	hole(1, slots(0, 0), flows(1))
	hole(2, slots(1, 1), flows(1))
	hole(3, slots(2, 2), flows(3, 2, 1))
	hole(1, slots(3, 3), flows(1, 2)) // lasts
	if got := all(l); got.Omitted != 0 || len(got.Paths) != 3 {
		t.Errorf("%d findings, %d omitted; want 3 and none", len(got.Paths), got.Omitted)
	}
	hole(4, slots(4, 4), flows(1))
	hole(5, slots(5, 5), flows(1))
	got := all(l)
	var kept []model.PortID
	for i := range got.Paths {
		kept = append(kept, got.Paths[i].At.Port)
	}
	checkSame(t, kept, []model.PortID{1, 4, 5})
	if got.Omitted != 2 {
		t.Errorf("%d omitted; want 2", got.Omitted)
	}
	if after := l.Find(slots(3, 3).First, slots(9, 9).Last); after.Omitted != 0 || len(after.Paths) != 3 {
		t.Errorf("%d findings, %d omitted after the evicted ones had ended; want 3 and none", len(after.Paths), after.Omitted)
	}
	if f := got.Paths[0].AffectedFlows; f.Truncated || len(f.Flows) != 2 {
		t.Errorf("flows %+v; want two, all", f)
	}
	hole(4, slots(6, 6), flows(7, 8, 9))
	if f := all(l).Paths[1].AffectedFlows; !f.Truncated || len(f.Flows) != 2 {
		t.Errorf("flows %+v; want two, truncated", f)
	}
	for _, wrong := range []Config{{}, {MaxRows: 1, MaxFlows: 1}, {MaxRows: 1, MaxSpan: 1}, {MaxFlows: 1, MaxSpan: 1}} {
		if _, err := New(wrong); err == nil {
			t.Errorf("New(%+v) is accepted", wrong)
		}
	}
}

// TestPatternsOfTheAPI: the document of the API lists the patterns of analyze/loss.
func TestPatternsOfTheAPI(t *testing.T) {
	field, _ := reflect.TypeFor[api.LinkLoss]().FieldByName("Pattern")
	want := fmt.Sprintf("%v,%v,%v", loss.Scattered, loss.Selective, loss.WholePath)
	if got := field.Tag.Get("enum"); got != want {
		t.Errorf("patterns of the API are %q; want %q", got, want)
	}
}
