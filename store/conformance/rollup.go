package conformance

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// testRollup checks sums computed by hand.
func testRollup(t *testing.T, s Store) {
	port := func(ms int, queue model.Bytes, samples uint64) record.PortSample {
		return record.PortSample{Time: base.Add(time.Duration(ms) * time.Millisecond), Node: "s", Port: 3, Queue: queue, Latency: time.Duration(queue) * 2, Paused: 0.5, Samples: samples}
	}
	counter := func(ms int, packets uint64, flows float64) record.Counter {
		return record.Counter{Time: base.Add(time.Duration(ms) * time.Millisecond), Period: 100 * time.Millisecond, Name: "c", Packets: packets, Bytes: 10 * packets, Flows: flows}
	}
	mustAppend(t, s, &record.Batch{Ports: []record.PortSample{port(0, 100, 1), port(999, 400, 3)}, Counters: []record.Counter{counter(0, 1, 5), counter(999, 2, 7)}})
	mustAppend(t, s, &record.Batch{Ports: []record.PortSample{port(500, 1000, 0), port(1000, 7, 1)}, Counters: []record.Counter{counter(500, 4, 6), counter(1000, 8, 1)}})
	for range 2 {
		ports, err := walk(s.Ports, record.Query{Step: time.Second})
		wantPorts := []record.PortSample{
			{Time: base.Add(time.Second), Node: "s", Port: 3, Queue: 7, QueueMax: 7, Latency: 14, Paused: 0.5, Samples: 1},
			{Time: base, Node: "s", Port: 3, Queue: 460, QueueMax: 1000, Latency: 920, Paused: 0.5, Samples: 5}, // (100 + 3·400 + 1000) / 5
		}
		if d := cmp.Diff(wantPorts, ports); err != nil || d != "" {
			t.Errorf("ports by second, %v (- want, + got):\n%s", err, d)
		}
		counters, err := walk(s.Counters, record.Query{Step: 90 * time.Second})
		wantCounters := []record.Counter{{Time: base, Period: 2 * time.Minute, Name: "c", Packets: 15, Bytes: 150, Flows: 7}}
		if d := cmp.Diff(wantCounters, counters); err != nil || d != "" {
			t.Errorf("counters by 90 s, %v (- want, + got):\n%s", err, d)
		}
		// Maintenance of rollups does not change the sums.
		if _, err := s.Maintain(context.Background(), base.Add(time.Hour)); err != nil {
			t.Fatalf("Maintain: %v", err)
		}
	}
}

// testRollupLimits checks sums beyond 64 bits: they saturate.
func testRollupLimits(t *testing.T, s Store) {
	for range 2 {
		mustAppend(t, s, &record.Batch{
			Ports: []record.PortSample{
				{Time: base, Node: "s", Port: 1, Queue: math.MaxInt64, Latency: math.MinInt64, Samples: math.MaxUint64},
				{Time: base, Node: "s", Port: 1, Queue: math.MaxInt64, Latency: math.MinInt64, Samples: math.MaxUint64},
			},
			Counters: []record.Counter{
				{Time: base, Name: "c", Packets: math.MaxUint64, Bytes: 1 << 63},
				{Time: base, Name: "c", Packets: math.MaxUint64, Bytes: 1},
			},
		})
	}
	ports, err := walk(s.Ports, record.Query{Step: time.Second})
	if err != nil || len(ports) != 1 || ports[0].Samples != math.MaxUint64 || ports[0].Queue < math.MaxInt64/2 {
		t.Errorf("ports = %+v, %v; want one with all samples and a large queue", ports, err)
	}
	counters, err := walk(s.Counters, record.Query{Step: time.Minute})
	if err != nil || len(counters) != 1 || counters[0].Packets != math.MaxUint64 || counters[0].Bytes != math.MaxUint64 {
		t.Errorf("counters = %+v, %v; want one at its limit", counters, err)
	}
}
