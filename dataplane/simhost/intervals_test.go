package simhost

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/inswitch/epoch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/poll"
)

// queueTimes is what an observer saw of one queue: its pauses, and every length.
type queueTimes struct {
	pauses  []provenance.Interval
	at      []engine.Time
	lengths []int64
}

// pauseObserver keeps the times of all queues of switches.
type pauseObserver struct {
	sim.NopObserver
	queues map[provenance.Queue]*queueTimes
}

func (o *pauseObserver) queue(p *sim.Port, prio model.Priority) *queueTimes {
	q := provenance.Queue{Port: model.Port{Node: p.Switch().ID, Port: p.ID}, Priority: prio}
	if o.queues[q] == nil {
		o.queues[q] = &queueTimes{}
	}
	return o.queues[q]
}

func (o *pauseObserver) PauseChanged(now engine.Time, at *sim.Port, prio model.Priority, stop bool) {
	if at.Switch() == nil {
		return
	}
	q := o.queue(at, prio)
	if t := model.Time(now.Duration()); stop {
		q.pauses = append(q.pauses, provenance.Interval{Start: t, Open: true, Bytes: model.Bytes(at.QueueBytes(prio))})
	} else {
		last := &q.pauses[len(q.pauses)-1]
		last.End, last.Open = t, false
	}
}

func (o *pauseObserver) level(now engine.Time, p *sim.Packet, out *sim.Port) {
	if out.Switch() == nil {
		return
	}
	q := o.queue(out, p.Priority)
	q.at, q.lengths = append(q.at, now), append(q.lengths, out.QueueBytes(p.Priority))
}

func (o *pauseObserver) Enqueued(now engine.Time, p *sim.Packet, out *sim.Port) { o.level(now, p, out) }

func (o *pauseObserver) Dequeued(now engine.Time, p *sim.Packet, out *sim.Port) { o.level(now, p, out) }

// TestReportedIntervalsAreTheSimulators: an incast pauses ports back to the senders.
// What switches report of their pauses is what the simulator did, to the nanosecond,
// and in the congestion that they report the queues were long.
func TestReportedIntervalsAreTheSimulators(t *testing.T) {
	cfg := sim.DefaultConfig()
	cfg.Congestion = nil
	cfg.Buffer = 2 * model.MB
	n := fatTree(t, cfg)
	truth := &pauseObserver{queues: map[provenance.Queue]*queueTimes{}}
	n.Observe(truth)
	hosts := n.Fabric().Hosts()
	for i := range 8 { // from the other pods into h0
		add(t, n, traffic.Flow{Src: hosts[8+i], Dst: hosts[0], Bytes: 2_000_000, Priority: 3})
	}
	collector, err := provenance.NewCollector(provenance.DefaultConfig(64))
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewManagement(n, DefaultManagementConfig(), func(now model.Time, _ model.NodeID, datagram []byte) {
		var r dta.Reader
		var rep dta.Report
		for _ = r.Reset(datagram); r.Next(&rep); {
			if _, err := collector.AddChunk(now, rep.Data); err != nil {
				t.Errorf("report: %v", err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	host := DefaultConfig()
	host.Carrier = m
	prog := epoch.DefaultConfig()
	prog.ReadoutTime = 100 * time.Microsecond
	for _, id := range n.Fabric().Switches() {
		p, err := epoch.New(prog, Describe(n, id, 0))
		if err != nil {
			t.Fatal(err)
		}
		attach(t, n, id, host, p)
	}
	event := poll.Event{Number: 1}
	n.At(engine.Of(400*time.Microsecond), func() {
		key, _ := n.FlowKey(0)
		SendPoll(n.Host(hosts[8]), &poll.Poll{Layout: poll.Weft, Flag: poll.Both, HopLimit: 8, Event: event, Flow: key})
	})
	n.Run(1 * ms)
	e := collector.Evidence(event)
	key, _ := n.FlowKey(0)
	g := provenance.Build(e, key, n.Fabric())
	exact, summaries, congested := 0, 0, 0
	for i := range g.Nodes {
		node := &g.Nodes[i]
		q := truth.queues[node.Queue]
		if q == nil {
			continue
		}
		for j, got := range node.PauseIntervals {
			if got.Coverage != 1 {
				summaries++
				continue
			}
			exact++
			var before []provenance.Interval // the snapshot
			for _, p := range q.pauses {
				if p.Start <= node.Snapshot {
					if p.Open || p.End > node.Snapshot {
						p.Open, p.End = true, node.Snapshot
					}
					p.Coverage = 1
					before = append(before, p)
				}
			}
			if want := before[len(before)-(len(node.PauseIntervals)-j)]; got != want {
				t.Errorf("%v: pause %d of %d: %+v; want %+v", node.Queue, j, len(node.PauseIntervals), got, want)
			}
		}
		threshold := int64(float64(n.Switch(node.Queue.Node).Ports()[node.Queue.Port.Port-1].Rate()) / 8 * prog.EpisodeThreshold.Seconds())
		for _, got := range node.CongestionIntervals {
			if got.Coverage != 1 {
				continue
			}
			congested++
			longest := int64(0)
			for k, at := range q.at {
				if now := model.Time(at.Duration()); now >= got.Start && now < got.End {
					longest = max(longest, q.lengths[k])
					if q.lengths[k] < threshold/2 {
						t.Errorf("%v: %d bytes queued at %v, in congestion %+v", node.Queue, q.lengths[k], at, got)
					}
				}
			}
			if int64(got.Bytes) < threshold || int64(got.Bytes) > max(longest, threshold) {
				t.Errorf("%v: congestion %+v; want the largest queue in it from %d to %d", node.Queue, got, threshold, longest)
			}
		}
	}
	if exact < 20 || congested < 3 {
		t.Errorf("%d pauses, %d summaries, %d times of congestion in %d reports; want many", exact, summaries, congested, len(e.Reports))
	}
}
