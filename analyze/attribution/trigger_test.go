package attribution

import (
	"fmt"
	"testing"

	"github.com/weft-telemetry/weft/model"
)

// TestTriggerIsACauseNotAnInterval: the pauses of one host, and contention of the same flows
// in two queues, are one cause each when the beginning of a cycle's first pause goes
// back to both a host and flows.
func TestTriggerIsACauseNotAnInterval(t *testing.T) {
	const host, near, far = 0, 1, 2 // queues: to the host, and two that flows congest
	type part struct {
		queue int32
		kind  Kind
		since float64
		share float64
	}
	flows := func(list ...uint32) (shares []FlowShare) {
		for _, n := range list {
			shares = append(shares, FlowShare{Flow: model.FlowKey{Src: model.Addr4(n)}, From: origin, Until: origin + 1000, Bytes: 1000})
		}
		return shares
	}
	for name, tc := range map[string]struct {
		parts []part
		far   []FlowShare // flows of the queue far; near has 1 to 4
		feeds []Feed      // of far
		want  string
	}{
		"a host that pauses again and again": {
			[]part{{host, HostInjection, 1, 0.33}, {host, HostInjection, 200, 0.19}, {near, Contention, 1, 0.39}}, nil, nil, "host injection 0: 0.52",
		},
		"flows that travel together": {
			[]part{{host, HostInjection, 1, 0.36}, {near, Contention, 1, 0.32}, {far, Contention, 1, 0.14}}, flows(1, 2, 3, 4), nil, "contention 1: 0.46",
		},
		"other flows": {
			[]part{{host, HostInjection, 1, 0.36}, {near, Contention, 1, 0.32}, {far, Contention, 1, 0.14}}, flows(5, 6, 7, 8), nil, "host injection 0: 0.36",
		},
		"flows that have expired, from one queue into the other": {
			[]part{{host, HostInjection, 1, 0.36}, {near, Contention, 1, 0.32}, {far, Contention, 1, 0.14}},
			nil,
			[]Feed{{To: near, Bytes: 60, Curve: []Depth{}}, {To: host, Bytes: 40, Curve: []Depth{}}},
			"contention 1: 0.46",
		},
		"flows that have expired, for the most part to another queue": {
			[]part{{host, HostInjection, 1, 0.36}, {near, Contention, 1, 0.32}, {far, Contention, 1, 0.14}},
			nil,
			[]Feed{{To: near, Bytes: 40, Curve: []Depth{}}, {To: host, Bytes: 60, Curve: []Depth{}}},
			"host injection 0: 0.36",
		},
		"more than that is unexplained": {
			[]part{{host, HostInjection, 1, 0.4}, {near, Unexplained, 0, 0.6}}, nil, nil, "host injection 0: 0.40, unexplained 0.60",
		},
	} {
		t.Run(name, func(t *testing.T) {
			ev := &Evidence{MTU: 1000, Devices: []Device{{Node: 1, Reported: true, Complete: true, Snapshot: origin + 1000}}}
			for i := range 3 {
				ev.Queues = append(ev.Queues, QueueRecord{Queue: Queue{Port: model.Port{Node: 1, Port: model.PortID(i + 1)}}, Rate: model.Gbps})
			}
			ev.Queues[near].Flows, ev.Queues[far].Flows = flows(1, 2, 3, 4), tc.far
			ev.Queues[far].Peer, ev.Queues[far].Feeds = model.Port{Node: 1}, tc.feeds
			e := newEngine(ev, &Victim{Sent: origin, Took: 1000})
			var shares []rootShare
			for _, p := range tc.parts {
				root := e.addRoot(rootKey{queue: p.queue, kind: p.kind, since: p.since}, 900)
				shares = append(shares, rootShare{root, p.share, p.share})
			}
			list, unknown := e.triggers(&cycle{}, shares)
			got := fmt.Sprintf("%v %d: %.2f", list[0].kind, list[0].queue, list[0].share)
			if unknown > 0 {
				got += fmt.Sprintf(", unexplained %.2f", unknown)
			}
			if got != tc.want {
				t.Errorf("the first of %+v is %s; want %s", list, got, tc.want)
			}
		})
	}
}
