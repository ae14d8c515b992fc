package api

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model/record"
)

// TestPortCounters: a port's counters are those of its own samples, losses, polled
// queues and traced packets in the range.
func TestPortCounters(t *testing.T) {
	s, k := newServer(t)
	at := func(ms int) time.Time { return epoch0.Add(time.Duration(ms) * time.Millisecond) }
	f := k.fabric
	sw := f.Node(f.Switches()[0])
	peer := f.Node(sw.Ports[0].Peer.Node).Name
	port, other := sw.Ports[0].ID, sw.Ports[1].ID
	k.batch = record.Batch{
		Ports: []record.PortSample{
			{Time: at(-10), Node: sw.Name, Port: port, Queue: 100, QueueMax: 900, Latency: 5, Paused: .5, Samples: 1},
			{Time: at(-20), Node: sw.Name, Port: port, Queue: 300, Latency: 7, Paused: .1, Samples: 3},
			{Time: at(-20), Node: sw.Name, Port: other, Queue: 5000, Samples: 1},
			{Time: at(-5000), Node: sw.Name, Port: port, Queue: 9000, Samples: 1},
		},
		Losses: []record.Loss{
			{Time: at(-10), Flow: k.flow(1), From: sw.Name, To: peer, Packets: 2, Pattern: "random"},
			{Time: at(-15), Flow: k.flow(1), From: sw.Name, To: peer, Packets: 3, Pattern: "random"},
			{Time: at(-15), Flow: k.flow(2), From: sw.Name, To: peer, Packets: 40, Pattern: "selective"},
			{Time: at(-15), Flow: k.flow(3), From: "elsewhere", To: sw.Name, Packets: 500, Pattern: "random"},
		},
		Diagnoses: []record.Diagnosis{{Time: at(-30), ID: "d1", Body: encode(DiagnosisBody{Graph: Graph{Ports: []GraphPort{
			{Node: sw.Name, Port: port, Priority: 3, PauseFrames: 4, Packets: 90, PausedPackets: 8, DepthPackets: 2},
			{Node: sw.Name, Port: port, Priority: 1, PauseFrames: 1},
			{Node: sw.Name, Port: other, Priority: 3, PauseFrames: 77},
		}}})}, {Time: at(-40), ID: "d0", Body: encode(DiagnosisBody{Graph: Graph{Ports: []GraphPort{
			{Node: sw.Name, Port: port, Priority: 3, PauseFrames: 2, Packets: 99, PausedPackets: 1, DepthPackets: 6},
		}}})}},
		Traces: []record.Trace{
			{Time: at(-10), ID: 1, Hops: []record.TraceHop{{Switch: sw.Name, Out: port, ECN: 3}, {Switch: "elsewhere", Out: port, ECN: 3}}},
			{Time: at(-11), ID: 2, Hops: []record.TraceHop{{Switch: sw.Name, Out: port, ECN: 1}, {Switch: sw.Name, Out: other, ECN: 3}}},
		},
	}
	c, err := s.portCounters(t.Context(), &portInput{Range: Range{Last: "1s"}, Node: sw.Name, Port: sw.Ports[0].Name})
	if err != nil {
		t.Fatal(err)
	}
	if c.QueueMaxBytes != 900 || c.LatencyMaxNs != 7 || c.Samples != 4 || c.PausedShare < .199 || c.PausedShare > .201 {
		t.Errorf("samples: %+v", c)
	}
	if len(c.Losses) != 2 || c.Losses[0] != (PortLoss{"selective", 40, 1}) || c.Losses[1] != (PortLoss{"random", 5, 1}) {
		t.Errorf("losses: %+v", c.Losses)
	}
	want := []QueueCounters{{Priority: 1, Reports: 1, PauseFrames: 1}, {Priority: 3, Reports: 2, PauseFrames: 4, Packets: 99, PausedPackets: 8, DepthPackets: 6}}
	if len(c.Queues) != 2 || c.Queues[0] != want[0] || c.Queues[1] != want[1] {
		t.Errorf("queues: %+v, want %+v", c.Queues, want)
	}
	if c.TracedPackets != 2 || c.MarkedPackets != 1 || !c.Complete {
		t.Errorf("traces: %+v", c)
	}
	if _, err := s.portCounters(t.Context(), &portInput{Node: sw.Name, Port: "Ethernet999"}); err == nil {
		t.Error("a port that does not exist has counters")
	}
}
