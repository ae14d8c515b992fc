package epoch

import (
	"bytes"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
)

// keyID gives keys numbers that share few slots, and some keys two of them.
func keyID(flow, variant int) uint32 {
	return uint32(flow%3 + recentSlots*(flow+100*variant))
}

// TestKeyIDsChangeNothing shows the same packets, pauses and polls to two
// switches, of which one has numbers for keys, and compares their reports byte
// for byte.
func TestKeyIDsChangeNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := DefaultConfig()
		cfg.EpochLength = time.Duration(rapid.IntRange(20, 2000).Draw(rt, "length")) * µs
		cfg.FlowSlots = rapid.SampledFrom([]int{0, 2, 8, 4096}).Draw(rt, "flows")
		cfg.MaxEvicted = rapid.SampledFrom([]int{0, 3, 4096}).Draw(rt, "evicted")
		cfg.SnapshotReuse = 0
		with, without := newRig(t, cfg), newRig(t, cfg)
		now := time.Duration(0)
		both := func(do func(r *rig)) {
			do(with)
			do(without)
		}
		for range rapid.IntRange(1, 300).Draw(rt, "events") {
			now += time.Duration(rapid.IntRange(-2, 20).Draw(rt, "gap")) * µs
			class := model.Priority(rapid.IntRange(2, 3).Draw(rt, "class"))
			in, out := model.PortID(rapid.IntRange(0, 2).Draw(rt, "in")), model.PortID(rapid.IntRange(1, 2).Draw(rt, "out"))
			flow := rapid.IntRange(0, 6).Draw(rt, "flow")
			with.pkt.KeyID = 0
			if variant := rapid.IntRange(0, 9).Draw(rt, "variant"); variant < 9 && flow > 0 {
				with.pkt.KeyID = keyID(flow, variant/8)
			}
			var key model.FlowKey
			if flow > 0 {
				key = flowKey(flow)
			}
			switch what := rapid.IntRange(0, 19).Draw(rt, "event"); {
			case what < 12:
				depth := rapid.Int32Range(0, 2).Draw(rt, "depth")
				passes := depth == 0 && rapid.Bool().Draw(rt, "passes")
				both(func(r *rig) {
					r.ev.BypassesQueue = passes
					r.packet(now, in, out, class, key, depth)
				})
			case what < 17:
				both(func(r *rig) { r.leave(now, in, out, class, key, 0) })
			case what < 19:
				d := time.Duration(rapid.IntRange(0, 30).Draw(rt, "time")) * µs
				both(func(r *rig) { r.pause(now, max(in, 1), class, d) })
			default:
				both(func(r *rig) { r.poll(now, 1, request) })
			}
		}
		request := request
		request.Event.Number++ // no poll that was seen before
		both(func(r *rig) {
			r.poll(now, 1, request)
			r.reports(now + time.Hour)
		})
		if a, b := with.Stats(), without.Stats(); a != b {
			rt.Fatalf("stats with numbers %+v; want those without, %+v", a, b)
		}
		if len(with.act.Reports) != len(without.act.Reports) {
			rt.Fatalf("%d reports with numbers; want %d", len(with.act.Reports), len(without.act.Reports))
		}
		for i, r := range with.act.Reports {
			if want := without.act.Reports[i].Data; !bytes.Equal(r.Data, want) {
				rt.Fatalf("report %d with numbers\n%x\nwant that without\n%x", i, r.Data, want)
			}
		}
	})
}

// TestRecentFlowsTouchNoRecord checks that packets of recent flows are
// counted separately, and flushed to the records on demand.
func TestRecentFlowsTouchNoRecord(t *testing.T) {
	r := newRig(t, DefaultConfig())
	r.pkt.KeyID = 7
	for range 5 {
		r.ev.BypassesQueue = true
		r.packet(µs, 1, 2, 3, flowKey(1), 0)
	}
	if k := &r.tel.recentFlows[7]; k.packets != 3 || k.bytes != 3000 {
		t.Errorf("%d packets, %d bytes not flushed; want all after the second: 3, 3000", k.packets, k.bytes)
	}
	if n := r.Stats().Packets; n != 5 {
		t.Errorf("%d packets counted; want 5", n)
	}
}

// TestARecentFlowFindsItsSecondSlot queues two flows that share their first
// slot: when the first one has gone, the other is still in its second slot, and
// only there.
func TestARecentFlowFindsItsSecondSlot(t *testing.T) {
	cfg := DefaultConfig()
	r := newRig(t, cfg)
	slot := func(flow int) uint64 {
		key := flowKey(flow)
		return hash(lane(2, 3), &key, cfg.Seed) & r.tel.occupancy.mask
	}
	other := 2
	for slot(other) != slot(1) {
		other++
	}
	join := func(flow int) {
		r.pkt.KeyID = uint32(flow)
		r.packet(µs, 1, 2, 3, flowKey(flow), 1)
	}
	join(other)
	join(1)
	join(1)
	r.pkt.KeyID = uint32(other)
	r.leave(µs, 1, 2, 3, flowKey(other), 2)
	join(1)
	if k := &r.tel.recentFlows[1]; k.packets == 0 {
		t.Fatal("flow 1 is not known; want this test to see it")
	}
	var got []backlog
	for _, w := range r.tel.occupancy.flows {
		if w.packets > 0 {
			got = append(got, w.backlog)
		}
	}
	if want := (backlog{packets: 3, bytes: 3000}); len(got) != 1 || got[0] != want {
		t.Errorf("the backlog is %+v; want all of flow 1 in one slot: %+v", got, want)
	}
}
