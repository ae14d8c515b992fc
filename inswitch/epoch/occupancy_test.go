package epoch

import (
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
	"github.com/weft-telemetry/weft/wire/poll"
)

const µs = time.Microsecond

// dequeue shows a packet that goes.
func (r *rig) leave(at time.Duration, in, out model.PortID, class model.Priority, key model.FlowKey, left int32) {
	r.pkt.Key, r.pkt.Outer, r.pkt.Size = &key, &key, 1000
	r.ev.Stage, r.ev.Now, r.ev.In, r.ev.Out, r.ev.Priority = inswitch.Dequeue, model.Time(at), in, out, class
	r.ev.Queue, r.ev.BypassesQueue = inswitch.Queue{Packets: left, Bytes: model.Bytes(left) * 1000}, false
	r.show()
}

type queued struct {
	in  model.PortID
	key model.FlowKey
}

// TestOccupancyEqualsTheQueues passes random packets through queues, some
// of which are dropped in the queue, and others that bypass it, and compares
// what the switch says waits with what does.
func TestOccupancyEqualsTheQueues(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig(t, DefaultConfig())
		type id struct {
			out   model.PortID
			class model.Priority
		}
		queues := map[id][]queued{}
		doubt := map[id]bool{} // a packet was dropped since the queue was last empty
		for range rapid.IntRange(1, 200).Draw(rt, "events") {
			q := id{model.PortID(rapid.IntRange(1, 3).Draw(rt, "out")), model.Priority(rapid.IntRange(2, 3).Draw(rt, "class"))}
			list := queues[q]
			if len(list) == 0 {
				doubt[q] = false
			}
			switch what := rapid.IntRange(0, 9).Draw(rt, "event"); {
			case what < 6:
				p := queued{model.PortID(rapid.IntRange(1, 4).Draw(rt, "in")), flowKey(rapid.IntRange(1, 9).Draw(rt, "flow"))}
				r.ev.BypassesQueue = len(list) == 0 && rapid.Bool().Draw(rt, "passes")
				r.packet(0, p.in, q.out, q.class, p.key, int32(len(list)))
				if !r.ev.BypassesQueue {
					queues[q] = append(list, p)
				}
			case what < 9 && len(list) > 0:
				r.leave(0, list[0].in, q.out, q.class, list[0].key, int32(len(list)-1))
				queues[q] = list[1:]
			case len(list) > 0:
				queues[q], doubt[q] = list[1:], true
			}
		}
		var want, got map[epoch.PortPairBacklog]int
		want, got = map[epoch.PortPairBacklog]int{}, map[epoch.PortPairBacklog]int{}
		flows, reported := map[epoch.FlowBacklog]int{}, map[epoch.FlowBacklog]int{}
		for q, list := range queues {
			for _, p := range list {
				if !doubt[q] {
					want[epoch.PortPairBacklog{In: p.in, Out: q.out, Priority: q.class}]++
					flows[epoch.FlowBacklog{PortPairBacklog: epoch.PortPairBacklog{Out: q.out, Priority: q.class}, Key: p.key}]++
				}
			}
		}
		r.poll(0, 1, request)
		for _, c := range r.reports(DefaultConfig().ReadoutTime) {
			for rd := c.Reader(); rd.Next(); {
				switch rd.Kind() {
				case epoch.KindPortPairBacklog:
					var h epoch.PortPairBacklog
					must(h.Parse(rd.Record()))
					if q := (id{h.Out, h.Priority}); !doubt[q] && len(queues[q]) > 0 {
						got[epoch.PortPairBacklog{In: h.In, Out: h.Out, Priority: h.Priority}] += int(h.Packets)
					}
				case epoch.KindFlowBacklog4:
					var w epoch.FlowBacklog
					must(w.Parse(rd.Record()))
					if q := (id{w.Out, w.Priority}); !doubt[q] && len(queues[q]) > 0 {
						reported[epoch.FlowBacklog{PortPairBacklog: epoch.PortPairBacklog{Out: w.Out, Priority: w.Priority}, Key: w.Key}] += int(w.Packets)
					}
				}
			}
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			rt.Fatalf("waiting by pair of ports (-want +got):\n%s", diff)
		}
		if diff := gocmp.Diff(flows, reported); diff != "" {
			rt.Fatalf("waiting by flow (-want +got):\n%s", diff)
		}
	})
}

// TestAStalledQueueKeepsItsHistory pauses a queue forever and polls much
// later, when others have continued for many epochs.
func TestAStalledQueueKeepsItsHistory(t *testing.T) {
	cfg := DefaultConfig()
	r := newRig(t, cfg)
	r.packet(10*µs, 1, 2, 3, flowKey(1), 5)
	r.packet(20*µs, 1, 3, 3, flowKey(2), 5)
	r.pause(30*µs, 2, 3, time.Second)
	for i := range 20 {
		at := time.Duration(i+1) * cfg.EpochLength
		r.packet(at, 1, 3, 3, flowKey(2), 0)
		r.pause(at, 2, 3, time.Second) // only prolongs
	}
	r.poll(21*cfg.EpochLength, 1, request)
	a := readAnswer(r.reports(21*cfg.EpochLength + cfg.ReadoutTime))
	first := 0
	for _, f := range a.Flows {
		if f.Epoch == 0 {
			first++
			if f.Key != flowKey(1) {
				t.Errorf("old record of %v; want only those of the stalled queue", f.Key)
			}
		}
	}
	if first != 1 || a.Ports[0].Epoch != 0 || a.Ports[0].Port != 2 || a.Ports[0].Packets != 1 {
		t.Errorf("flows %+v, ports %+v; want what port 2 did before it stopped", a.Flows, a.Ports)
	}
}

func TestPausesAreAddedUp(t *testing.T) {
	r := newRig(t, DefaultConfig())
	r.packet(0, 1, 2, 3, flowKey(1), 0)
	r.pause(10*µs, 2, 3, 100*µs)
	r.pause(50*µs, 2, 3, 100*µs) // prolongs
	r.pause(60*µs, 2, 3, 0)      // ends
	r.pause(70*µs, 2, 3, 0)
	r.pause(100*µs, 2, 3, 20*µs) // expires
	r.pause(200*µs, 2, 3, 300*µs)
	r.poll(250*µs, 1, request)
	var got epoch.Pause
	for _, c := range r.reports(time.Second) {
		for rd := c.Reader(); rd.Next(); {
			if rd.Kind() == epoch.KindPause {
				must(got.Parse(rd.Record()))
			}
		}
	}
	want := epoch.Pause{Port: 2, Priority: 3, LastStart: model.Time(200 * µs), LastEnd: model.Time(120 * µs), BurstStart: model.Time(10 * µs), Pauses: 3, PausedTime: 120 * µs}
	if got != want {
		t.Errorf("pauses %+v; want %+v", got, want)
	}
}

// TestTheCauseOfASilentPortIsFollowed: a packet of port 1 has waited since its egress port
// was paused; that pause is over, and no packet has arrived since.
// A poll for causes is forwarded to the paused port, and finds the counters there.
// Once the packet has left, and another went elsewhere, it is not.
func TestTheCauseOfASilentPortIsFollowed(t *testing.T) {
	cfg := DefaultConfig()
	ask := request
	ask.Flag = poll.Causes
	for name, tc := range map[string]struct {
		again time.Duration // a packet by port 1 to another port; 0: none
		want  []sent
	}{
		"silent":    {want: []sent{{3, poll.Causes}}},
		"continues": {again: 5 * cfg.EpochLength},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, cfg)
			r.pause(10*µs, 3, 3, 50*µs)
			r.packet(20*µs, 1, 3, 3, flowKey(1), 5)
			if tc.again > 0 {
				r.leave(tc.again, 1, 3, 3, flowKey(1), 0)
				r.packet(tc.again, 1, 2, 3, flowKey(2), 0)
			}
			r.poll(5*cfg.EpochLength+10*µs, 1, ask)
			if !slices.Equal(r.sent, tc.want) {
				t.Errorf("sent %v; want %v", r.sent, tc.want)
			}
			a := readAnswer(r.reports(5*cfg.EpochLength + 10*µs + cfg.ReadoutTime))
			if !slices.ContainsFunc(a.Ports, func(p epoch.PortEpoch) bool { return p.Epoch == 0 && p.Port == 3 && p.Paused == 1 }) {
				t.Errorf("ports %+v; want what port 3 did before its pause ended", a.Ports)
			}
		})
	}
}
