package attribution

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// TestOldSnapshotOfTheNextSwitch: the snapshot of tor is older than the pause of
// leaf>tor. What was queued at tor>h1 was sent on long before; tor>h2, which holds
// packets of leaf>tor, was paused by h2 at the snapshot. A pause that begins while that
// is taken to go on is due to h2; a later one is unexplained, and never contention of
// flows in either queue.
func TestOldSnapshotOfTheNextSwitch(t *testing.T) {
	const leaf, tor, h1, h2 = 1, 2, 3, 4
	at := func(us int) model.Time { return origin.Add(time.Duration(us) * time.Microsecond) }
	curve := func(list ...int) (points []Depth) { // µs, KB
		for i := 0; i < len(list); i += 2 {
			points = append(points, Depth{at(list[i]), model.Bytes(list[i+1]) * 1000})
		}
		return points
	}
	toH1, toH2 := curve(0, 0, 2, 100, 10, 0), curve(30, 0, 35, 60)
	for name, tc := range map[string]struct {
		paused int // from when on leaf>tor was paused
		feeds  []Feed
		want   Kind
		reason Reason
	}{
		"while the host's pause may go on": {45, []Feed{{To: 1, Bytes: 1, Curve: toH1}, {To: 2, Bytes: 1, Curve: toH2}}, HostInjection, 0},
		"later":                            {200, []Feed{{To: 1, Bytes: 1, Curve: toH1}, {To: 2, Bytes: 1, Curve: toH2}}, Unexplained, TooLate},
		"later, held at the snapshot": {
			200, []Feed{{To: 1, Bytes: 1, Curve: toH1}, {To: 2, From: at(30), Until: at(9999), Bytes: 60_000, Held: true}}, Unexplained, TooLate,
		},
	} {
		t.Run(name, func(t *testing.T) {
			queue := func(node, port model.PortID, peer model.NodeID) QueueRecord {
				return QueueRecord{
					Queue: Queue{Port: model.Port{Node: model.NodeID(node), Port: port}}, Peer: model.Port{Node: peer, Port: 1},
					PeerIsHost: peer != tor, Rate: 100 * model.Gbps, Threshold: 50_000,
				}
			}
			ev := &Evidence{
				MTU: 1000,
				Devices: []Device{
					{Node: leaf, Reported: true, Complete: true, Snapshot: at(tc.paused + 10)},
					{Node: tor, Reported: true, Complete: true, Snapshot: at(40)},
				},
				Queues: []QueueRecord{queue(leaf, 1, tor), queue(tor, 2, h1), queue(tor, 3, h2)},
			}
			ev.Queues[0].Pauses, ev.Queues[0].Feeds = []Pause{{From: at(tc.paused), Open: true}}, tc.feeds
			ev.Queues[1].Curve, ev.Queues[1].Congestions = toH1, []Congestion{{From: at(1), To: at(6), Peak: 100_000}}
			ev.Queues[2].Curve, ev.Queues[2].Pauses = toH2, []Pause{{From: at(30), Open: true}}
			ev.Queues[2].Depths = []Depth{{at(40), 60_000}}
			v := &Victim{Path: []int{0, 1}, Sent: at(tc.paused + 1), Took: 9 * time.Microsecond, InFlight: true, QueuedAt: -1}
			a := Attribute(ev, v)
			if len(a.Terms) == 0 || a.Terms[0].Kind != tc.want || a.Terms[0].Reason != tc.reason || 2*a.Terms[0].Time < a.Late {
				t.Errorf("late by %v: terms %+v; want most of it %v (%v)", a.Late, a.Terms, tc.want, tc.reason)
			}
			for i := range a.Terms {
				if n := &a.Terms[i]; n.Kind == Contention {
					t.Errorf("%v of contention at %v; want none", n.Time, n.Place.Port)
				}
			}
		})
	}
}
