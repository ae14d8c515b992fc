package diagnose_test

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/analyze/diagnose"
	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/epoch"
	"github.com/weft-telemetry/weft/wire/poll"
)

// One switch with three hosts: h1 and h2 congest the port to h0, which delays
// h1's flow. The switch's answer to a poll becomes a graph, the graph a verdict.
func Example() {
	fabric, err := topo.LeafSpine(1, 1, 3, topo.DefaultLinks())
	if err != nil {
		panic(err)
	}
	routes, err := topo.NewRoutes(fabric, topo.RouteConfig{Seed: 1})
	if err != nil {
		panic(err)
	}
	leaf, _ := fabric.ByName("leaf0")
	port := func(host string) model.PortID {
		id, _ := fabric.ByName(host)
		return fabric.Node(leaf).PortsTo(id)[0]
	}
	flow := func(from, to string) model.FlowKey {
		src, _ := fabric.ByName(from)
		dst, _ := fabric.ByName(to)
		return model.FlowKey{
			Src: fabric.Node(src).IPv4, Dst: fabric.Node(dst).IPv4, SrcPort: 10000, DstPort: 4791, Proto: model.UDP,
		}
	}

	// What the switch reports of the queue to h0: 300 kB, 20 of h1 and 280 of h2, and
	// that it has been congested for 100 µs.
	const priority = 3
	report := &provenance.Report{
		Header: epoch.Header{
			Switch: leaf, Snapshot: model.Time(10 * time.Millisecond), EpochLength: time.Millisecond,
		},
		Ports:      []epoch.Port{{Port: port("h0"), Priority: priority, Queued: 300_000, Sent: 1000}},
		PortEpochs: []epoch.PortEpoch{{Epoch: 9, Port: port("h0"), Priority: priority, Packets: 300}},
		Episodes: []epoch.CongestionEpisode{{
			Port: port("h0"), Priority: priority, First: model.Time(9900 * time.Microsecond), Last: model.Time(10 * time.Millisecond), MaxBytes: 300_000,
		}},
	}
	for host, packets := range map[string]uint32{"h1": 20, "h2": 280} {
		backlog := epoch.PortPairBacklog{
			In: port(host), Out: port("h0"), Priority: priority, Packets: packets, Bytes: uint64(packets) * 1000,
		}
		key := flow(host, "h0")
		report.PortPairBacklogs = append(report.PortPairBacklogs, backlog)
		report.FlowBacklogs = append(report.FlowBacklogs, epoch.FlowBacklog{PortPairBacklog: backlog, Key: key})
		report.Flows = append(report.Flows, epoch.Flow{
			Epoch: 9, Out: port("h0"), Priority: priority, Key: key, Packets: packets, Bytes: uint64(packets) * 1000,
			Last: time.Millisecond - 1, Depth: 100 * uint64(packets),
		})
	}

	d, err := diagnose.New(diagnose.DefaultConfig(topo.NewIntent(routes)))
	if err != nil {
		panic(err)
	}
	detection := diagnose.Detection{Event: poll.Event{Host: 1, Number: 1}, Victim: flow("h1", "h0")}
	evidence := &provenance.Evidence{Event: detection.Event, Reports: []*provenance.Report{report}}
	graph := provenance.Build(evidence, detection.Victim, fabric)
	verdict := d.Diagnose(detection, evidence, graph)[0].View(fabric)

	fmt.Println(verdict.Anomaly, "at", verdict.Initial)
	fmt.Println("culprit:", verdict.Culprits[0].Src, "→", verdict.Culprits[0].Dst)
	// Output:
	// flow-contention at leaf0 Ethernet0 → h0
	// culprit: h2 → h0
}
