package intlabel

import (
	"testing"

	"github.com/weft-telemetry/weft/model"
)

// A ToR's probe crosses 20 links of the testbed: 2 up, 2 across and 4 to spines,
// 4 down, 8 to ToRs of the other pod. None goes to a host, none loops.
func TestFloods(t *testing.T) {
	l := newLab(hulaPackets, 1)
	l.packets = 500
	out, err := l.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	floods := int(4 * (out.span + 10*ms) / l.interval)
	if out.probes%20 != 0 || out.probes < 20*(floods-4) || out.probes > 20*(floods+4) || out.dropped > 0 || out.arrived != out.sent {
		t.Errorf("%d probes of about %d floods, %d of %d packets arrived, %d dropped; want 20 probes each and all packets", out.probes, floods, out.arrived, out.sent, out.dropped)
	}
}

// Where queues are just long enough for users, probes as large as their packets
// cause drops; fewer and smaller probes cause fewer. Labels, which are counted in
// bytes, cause next to none: a few, where the queue has no byte to spare.
func TestProbesFillQueues(t *testing.T) {
	l := newLab(noTelemetry, 1)
	l.packets, l.link = 3000, 4*model.Mbps
	queue, err := l.shortest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l.queue = queue
	drops := func(s strategy, every float64, size int32) int {
		l.strategy, l.interval, l.probeSize = s, millis(every), size
		out, err := l.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return out.dropped
	}
	often, seldom, small := drops(hulaPackets, 10, userFrame), drops(hulaPackets, 100, userFrame), drops(hulaBytes, 10, 0)
	if often < 100 || seldom*10 > often || small*10 > often {
		t.Errorf("%d packets lost to probes every 10 ms, %d every 100 ms, %d to small ones; want many, few, few", often, seldom, small)
	}
	if none, labels := drops(noTelemetry, 10, 0), drops(baseA, 10, 0); none > 0 || labels*50 > often {
		t.Errorf("%d packets lost without telemetry, %d with labels, %d with probes; want none, next to none, many", none, labels, often)
	}
	l.queue = queue - slot
	if drops(noTelemetry, 10, 0) == 0 {
		t.Errorf("no packet lost with a shorter queue than %d bytes; want some", queue)
	}
}
