package attribution

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// largeEvidence is that of a fabric with the switches and ports of a k=16
// fat-tree, in which every queue was paused and congested: 320 switches with 8
// links to others and 8 to hosts, 10,000 flows on five queues each.
func largeEvidence() (*Evidence, *Victim) {
	const switches, ports, flows = 320, 16, 10_000
	random := rand.New(rand.NewPCG(16, 1))
	at := func(us int) model.Time { return origin.Add(time.Duration(us) * time.Microsecond) }
	ev := &Evidence{MTU: 1000}
	for n := range switches {
		ev.Devices = append(ev.Devices, Device{Node: model.NodeID(n), Reported: true, Complete: true, Snapshot: at(1000), ClockError: 2 * time.Microsecond})
		for p := range ports {
			peer := switches + n*ports + p
			if p < ports/2 {
				peer = (n + 1 + p*p*7) % switches
			}
			q := QueueRecord{
				Queue: Queue{Port: model.Port{Node: model.NodeID(n), Port: model.PortID(p + 1)}, Class: 3},
				Peer:  model.Port{Node: model.NodeID(peer), Port: 1}, PeerIsHost: peer >= switches,
				Rate: 100 * model.Gbps, Delay: time.Microsecond, Threshold: 50 * model.KB,
			}
			for c := random.IntN(60); c < 1000; c += 60 + random.IntN(60) {
				q.Pauses = append(q.Pauses, Pause{From: at(c), To: at(c + 5 + random.IntN(50)), Bytes: model.Bytes(random.IntN(200_000))})
			}
			for c := random.IntN(120); c < 1000; c += 120 + random.IntN(60) {
				q.Congestions = append(q.Congestions, Congestion{From: at(c), To: at(c + 20 + random.IntN(90)), Peak: model.Bytes(50_000 + random.IntN(400_000))})
			}
			ev.Queues = append(ev.Queues, q)
		}
	}
	for i := range ev.Queues {
		q := &ev.Queues[i]
		for p := 0; !q.PeerIsHost && p < ports; p++ {
			q.Feeds = append(q.Feeds, Feed{To: int(q.Peer.Node)*ports + p, From: at(0), Until: at(1000), Bytes: model.Bytes(1 + random.IntN(1_000_000))})
		}
	}
	for f := range flows {
		key := model.FlowKey{Src: model.Addr4(uint32(f))}
		for range 5 {
			q := &ev.Queues[random.IntN(len(ev.Queues))]
			q.Flows = append(q.Flows, FlowShare{key, at(0), at(1000), model.Bytes(1 + random.IntN(100_000))})
		}
	}
	return ev, &Victim{Path: []int{0, ports, 2 * ports, 3 * ports, 4*ports + 9}, Sent: at(800), Took: 150 * time.Microsecond, Base: 10 * time.Microsecond, QueuedAt: -1}
}

// TestWorkIsBounded: even where every queue is paused all the time by every
// other, an account follows at most maxStates slices.
func TestWorkIsBounded(t *testing.T) {
	ev, v := largeEvidence()
	e := solved(ev, v)
	if len(e.states) > maxStates {
		t.Errorf("%d states, want at most %d", len(e.states), maxStates)
	}
	a := Attribute(ev, v)
	sum := time.Duration(0)
	for i := range a.Terms {
		sum += a.Terms[i].Time
	}
	if sum != a.Late || a.Explained() == 0 {
		t.Errorf("terms sum to %v of %v, %v explained", sum, a.Late, a.Explained())
	}
	t.Logf("%d states, %d roots, %d terms", len(e.states), len(e.roots), len(a.Terms))
}

func BenchmarkAttribute(b *testing.B) {
	b.Run("k=16", func(b *testing.B) {
		ev, v := largeEvidence()
		b.ReportAllocs()
		for b.Loop() {
			Attribute(ev, v)
		}
	})
	b.Run("incast", func(b *testing.B) {
		ev, v := largeEvidence()
		for i := range ev.Queues {
			ev.Queues[i].Pauses = nil
		}
		ev.Queues[v.Path[4]].Congestions = []Congestion{{From: origin, To: v.Sent.Add(time.Millisecond), Peak: model.MB}}
		b.ReportAllocs()
		for b.Loop() {
			Attribute(ev, v)
		}
	})
}
