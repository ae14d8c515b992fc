package loss

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// sentLog is what truly happened to the packets of a flow.
type sentLog struct {
	path []topo.Hop
	lost []lostPacket
}

type lostPacket struct {
	after int   // index of the last switch that counted it
	slot  int64 // by that switch's clock
}

// continuous sends a flow without a silent slot. Of its packets, one in oneIn is lost.
func (l *lab) continuous(rt *rapid.T, key model.FlowKey, path []topo.Hop, slots, oneIn int) *sentLog {
	log := &sentLog{path: path}
	perSlot := rapid.IntRange(2, 12).Draw(rt, "packets per slot")
	delay := time.Duration(rapid.IntRange(1, 500).Draw(rt, "delay")) * time.Microsecond
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
	for n := range slots * perSlot {
		at := model.Time(n) * model.Time(slot) / model.Time(perSlot)
		lost := len(path)
		if rng.IntN(oneIn) == 0 {
			lost = rng.IntN(len(path) - 1)
			passed := at.Add(time.Duration(lost)*delay + l.skew[path[lost].Node])
			log.lost = append(log.lost, lostPacket{lost, int64(passed) / int64(slot)})
		}
		l.send(path, key, at, delay, lost)
	}
	return log
}

// between counts the losses between two switches of the path up to a slot.
func (s *sentLog) between(from, to model.NodeID, last int64) (n uint64) {
	begin, end := 0, len(s.path)
	for i, h := range s.path {
		if h.Node == from {
			begin = i
		}
		if h.Node == to {
			end = i
		}
	}
	for _, p := range s.lost {
		if p.after >= begin && p.after < end && p.slot <= last {
			n++
		}
	}
	return n
}

// TestNoLossIsInventedAfterLostReports sends flows that never rest, past clocks that differ,
// and loses reports at random, the first ones too. Whatever is reported as lost by a slot,
// was lost there by then.
func TestNoLossIsInventedAfterLostReports(t *testing.T) {
	found := 0
	rapid.Check(t, func(rt *rapid.T) {
		l := newLab(t)
		hosts, switches := l.routes.Fabric().Hosts(), l.routes.Fabric().Switches()
		for _, sw := range switches {
			l.skew[sw] = time.Duration(rapid.IntRange(0, 4000).Draw(rt, "skew")) * time.Microsecond
		}
		slots := rapid.IntRange(3, 40).Draw(rt, "slots")
		key := l.key(hosts[0], hosts[15], 7)
		log := l.continuous(rt, key, l.path(t, key), slots, rapid.SampledFrom([]int{2, 5, 1000}).Draw(rt, "one in"))
		l.gaps = map[gap]bool{}
		for range rapid.IntRange(0, 6).Draw(rt, "lost reports") {
			at := rapid.SampledFrom(log.path).Draw(rt, "switch").Node
			l.gaps[gap{int64(rapid.IntRange(0, slots).Draw(rt, "slot")), at}] = true
		}
		first := rapid.IntRange(0, 4).Draw(rt, "first slot") // when the tracker begins
		tr, err := NewTracker(DefaultConfig(topo.NewIntent(l.routes)))
		if err != nil {
			t.Fatal(err)
		}
		sums, all := map[Segment]uint64{}, uint64(0)
		for _, m := range l.maps()[first:] {
			for _, e := range tr.Observe(m) {
				found++
				name := e.Describe(l.routes.Fabric())
				if e.WholePath {
					rt.Fatalf("%s; the flow took one path", name)
				}
				sums[e.Segment] += e.Packets
				all += e.Packets
				if n := log.between(log.path[0].Node, 0, m.Slot); n < all {
					rt.Fatalf("%s, %d on the whole path so far; but %d were", name, all, n)
				}
				if n := log.between(e.From.Node, e.To.Node, m.Slot); n < sums[e.Segment] {
					rt.Fatalf("%s, %d in all so far; but %d were", name, sums[e.Segment], n)
				}
			}
		}
	})
	if found == 0 {
		t.Error("no loss was found at all: nothing was checked")
	}
}

// TestLossAfterALostReportIsFound: a flow never rests, and a report of any switch of its path
// is lost in slot 10. Then packets are lost. All of them are reported but as many as pass in
// two slots, and the first as soon as more are lost than pass in two.
func TestLossAfterALostReportIsFound(t *testing.T) {
	const begin, slots, perSlot = 12, 112, 20
	for _, oneIn := range []int{2, 5, 10} {
		l := newLab(t)
		hosts := l.routes.Fabric().Hosts()
		key := l.key(hosts[0], hosts[15], 7)
		path := l.path(t, key)
		lost := uint64(0)
		for n := range slots * perSlot {
			end := len(path)
			if n >= begin*perSlot && n%oneIn == 1 {
				end, lost = 2, lost+1
			}
			l.send(path, key, model.Time(n)*model.Time(slot)/perSlot, 10*time.Microsecond, end)
		}
		for _, h := range path {
			l.gaps = map[gap]bool{{10, h.Node}: true}
			tr, events := track(t, l)
			if len(events) == 0 {
				t.Fatalf("one in %d is lost, and nothing is found; want it within %d slots", oneIn, 2*oneIn+1)
			}
			if e := events[0]; e.FoundSlot > int64(begin+2*oneIn+1) || e.From.Node != path[2].Node {
				t.Errorf("one in %d: %s; want it after switch %d within %d slots of slot %d", oneIn, e.Describe(l.routes.Fabric()), path[2].Node, 2*oneIn+1, begin)
			}
			var sum uint64
			for _, e := range events {
				sum += e.Packets
			}
			if sum > lost || sum+2*perSlot < lost {
				t.Errorf("one in %d: %d packets found; want %d, or up to %d fewer", oneIn, sum, lost, 2*perSlot)
			}
			if s := tr.Stats(); s.Restarted == 0 || s.Uncertain != 0 {
				t.Errorf("stats %+v; want a restart, and nothing uncertain", s)
			}
		}
	}
}

// TestSlowSlotEndsTheSurplus: after a report is lost, a flow sends one packet in a slot. From
// then on no more than that one can hide losses: ten losses in ten later slots are found at
// the end, all but one.
func TestSlowSlotEndsTheSurplus(t *testing.T) {
	const slots, perSlot, slow = 40, 20, 15
	l := newLab(t)
	hosts := l.routes.Fabric().Hosts()
	key := l.key(hosts[0], hosts[15], 7)
	path := l.path(t, key)
	for n := range slots * perSlot {
		s, end := n/perSlot, len(path)
		if s == slow && n%perSlot != perSlot/2 {
			continue
		}
		if s > slow && s <= slow+10 && n%perSlot == 3 {
			end = 1
		}
		l.send(path, key, model.Time(n)*model.Time(slot)/perSlot, 10*time.Microsecond, end)
	}
	for _, h := range path {
		l.gaps = map[gap]bool{{10, h.Node}: true}
		_, events := track(t, l)
		var sum uint64
		for _, e := range events {
			sum += e.Packets
		}
		if sum < 9 || sum > 10 {
			t.Errorf("report of switch %d lost: %d packets found; want 9 or 10", h.Node, sum)
		}
	}
}
