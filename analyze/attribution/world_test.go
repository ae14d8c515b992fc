package attribution

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
)

const (
	worldSwitches = 4
	worldColumns  = 64
)

// anyWorld draws evidence of four switches, each with a link to each other and
// to a host, and a packet on a path of up to four of their queues. Times are
// multiples of a microsecond.
func anyWorld(t *rapid.T) (*Evidence, *Victim) {
	ev := &Evidence{MTU: 1000}
	number := func(label string, low, high int) int { return rapid.IntRange(low, high).Draw(t, label) }
	at := func(c int) model.Time { return origin.Add(time.Duration(c) * time.Microsecond) }
	for n := range 2 * worldSwitches {
		ev.Devices = append(ev.Devices, Device{
			Node: model.NodeID(n), Reported: n >= worldSwitches || number("reported", 0, 9) > 0, Complete: true, Snapshot: at(worldColumns),
			ClockError: time.Duration(number("clock error", 0, 2)) * time.Microsecond,
		})
	}
	for from := range worldSwitches {
		for to := range worldSwitches {
			node := to
			if to == from {
				node = worldSwitches + from // its host
			}
			q := QueueRecord{
				Queue: Queue{Port: model.Port{Node: model.NodeID(from), Port: model.PortID(to + 1)}, Class: 3},
				Peer:  model.Port{Node: model.NodeID(node), Port: model.PortID(from + 1)}, PeerIsHost: to == from,
				Rate: 96 * model.Gbps, Delay: time.Duration(number("delay", 1, 3)) * time.Microsecond / 2, Threshold: model.Bytes(number("threshold", 1, 3)) * 12000,
			}
			amount := func() model.Bytes { return model.Bytes(number("bytes", 0, 12)) * 12000 }
			for c := number("first", 0, 30); c < worldColumns; {
				end := c + number("length", 1, 20)
				switch number("kind", 0, 3) {
				case 0:
					q.Pauses = append(q.Pauses, Pause{From: at(c), To: at(end), Open: end >= worldColumns, Bytes: amount(), Coverage: float64(number("coverage", 1, 4)) / 4})
				case 1:
					q.Congestions = append(q.Congestions, Congestion{From: at(c), To: at(end), Open: end >= worldColumns, Peak: amount()})
				case 2:
					q.Congestions = append(q.Congestions, Congestion{From: at(c), To: at(end), Peak: amount()})
					q.Pauses = append(q.Pauses, Pause{From: at(end), To: at(end + 10), Bytes: amount()})
					end += 10
				}
				c = end + number("gap", 0, 15)
			}
			for f := range number("flows", 0, 3) {
				q.Flows = append(q.Flows, FlowShare{model.FlowKey{Src: model.Addr4(uint32(f))}, at(0), at(worldColumns), model.Bytes(1 + number("flow", 0, 9))})
			}
			ev.Queues = append(ev.Queues, q)
		}
	}
	for i := range ev.Queues {
		q := &ev.Queues[i]
		for to := range ev.Queues {
			if ev.Queues[to].Queue.Port.Node == q.Peer.Node && number("feeds", 0, 1) == 1 {
				split := number("split", 0, worldColumns)
				q.Feeds = append(q.Feeds,
					Feed{To: to, From: at(0), Until: at(split), Bytes: model.Bytes(number("took", 1, 9)) * 10000},
					Feed{To: to, From: at(split), Until: at(worldColumns + 1), Bytes: model.Bytes(number("held", 1, 9)) * 10000, Held: number("is held", 0, 1) == 1})
			}
		}
	}
	return ev, anyVictim(t, ev, number)
}

func anyVictim(t *rapid.T, ev *Evidence, number func(string, int, int) int) *Victim {
	v := &Victim{
		Sent: origin.Add(time.Duration(number("sent", 0, 50)) * time.Microsecond),
		Took: time.Duration(number("took", 0, 40)) * time.Microsecond, QueuedAt: -1, InFlight: number("in flight", 0, 2) == 0,
		ClockError: time.Duration(number("host clock", 0, 1)) * time.Microsecond,
	}
	at := number("start", 0, worldSwitches-1)
	for hop := range number("hops", 1, 4) {
		to := number("next", 0, worldSwitches-1)
		v.Path = append(v.Path, at*worldSwitches+to)
		if v.InFlight && number("queued here", 0, 3) == 0 {
			v.QueuedAt = hop
		}
		if to == at {
			break
		}
		at = to
	}
	v.Base = min(v.Took, time.Duration(number("base", 0, 4))*time.Microsecond)
	return v
}

// clone returns evidence whose records can be changed.
func (ev *Evidence) clone() *Evidence {
	c := &Evidence{MTU: ev.MTU, Devices: slices.Clone(ev.Devices), Queues: slices.Clone(ev.Queues)}
	for i := range c.Queues {
		q := &c.Queues[i]
		q.Pauses, q.Congestions, q.Depths = slices.Clone(q.Pauses), slices.Clone(q.Congestions), slices.Clone(q.Depths)
		q.Feeds, q.Flows = slices.Clone(q.Feeds), slices.Clone(q.Flows)
	}
	return c
}

// eachTime changes all times of the queues that match, and of the devices if
// given.
func (ev *Evidence) eachTime(of func(q *QueueRecord) bool, change func(model.Time) model.Time) {
	for i := range ev.Queues {
		q := &ev.Queues[i]
		if !of(q) {
			continue
		}
		for j := range q.Pauses {
			q.Pauses[j].From, q.Pauses[j].To = change(q.Pauses[j].From), change(q.Pauses[j].To)
		}
		for j := range q.Congestions {
			q.Congestions[j].From, q.Congestions[j].To = change(q.Congestions[j].From), change(q.Congestions[j].To)
		}
		for j := range q.Depths {
			q.Depths[j].At = change(q.Depths[j].At)
		}
		for j := range q.Flows {
			q.Flows[j].From, q.Flows[j].Until = change(q.Flows[j].From), change(q.Flows[j].Until)
		}
	}
}
