package attribution

import (
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo"
)

// smallFabric is h0, h1 – leaf0 – spine0 – leaf1 – h2, h3.
func smallFabric(t *testing.T) *topo.Fabric {
	t.Helper()
	link := topo.LinkSpec{Rate: 100 * model.Gbps, Delay: time.Microsecond}
	f, err := topo.LeafSpine(2, 1, 2, topo.Links{Host: link, Fabric: link})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestSentenceNamesTheFabric(t *testing.T) {
	f := smallFabric(t)
	id := func(name string) model.NodeID {
		n, ok := f.ByName(name)
		if !ok {
			t.Fatalf("no node %q", name)
		}
		return n
	}
	place := func(node string, port model.PortID, peer string) Place {
		return Place{Queue: Queue{Port: model.Port{Node: id(node), Port: port}}, Peer: model.Port{Node: id(peer), Port: 1}}
	}
	port := func(node, peer string) model.PortID {
		for i, p := range f.Node(id(node)).Ports {
			if p.Peer.Node == id(peer) {
				return model.PortID(i + 1)
			}
		}
		t.Fatalf("no link from %s to %s", node, peer)
		return 0
	}
	last, first := place("leaf1", port("leaf1", "h2"), "h2"), place("spine0", port("spine0", "leaf1"), "leaf1")
	flow := func(src, dst string) model.FlowKey {
		return model.FlowKey{Src: f.Node(id(src)).IPv4, Dst: f.Node(id(dst)).IPv4}
	}
	us := func(n float64) time.Duration { return time.Duration(n * float64(time.Microsecond)) }
	a := &Account{Flow: flow("h0", "h2"), Late: us(71.2), Terms: []Term{
		{
			Kind: Contention, Place: &last, Time: us(66.3), Queued: us(14.4), Deadlock: -1,
			Via:      []PausedQueue{{Place: first, Time: us(51.9), Waited: us(51.9)}},
			Culprits: []Culprit{{flow("h0", "h2"), 0.6}, {flow("h1", "h2"), 0.4}},
		},
		{Kind: Unexplained, Time: us(4.9), Deadlock: -1},
	}}
	names := FabricNames(f)
	want := "h0 → h2 was late by 71 µs: 52 µs paused at " + names.Interface(first.Port) + ", because " + names.Link(last.Port) +
		" was congested by 2 flows; 14 µs queued there; 5 µs unexplained"
	if got := a.Sentence(names); got != want {
		t.Errorf("sentence\n%s\nwant\n%s", got, want)
	}
	if strings.Contains(names.Interface(first.Port), "→") || !strings.HasSuffix(names.Link(last.Port), "→ h2") {
		t.Errorf("interface %q, link %q", names.Interface(first.Port), names.Link(last.Port))
	}
	if got := names.Node(77); got != "node 77" {
		t.Errorf("unknown node %q", got)
	}
	a = &Account{Flow: flow("h0", "h2")}
	if got := a.Sentence(names); got != "h0 → h2 was not late" || a.Confidence() != 1 {
		t.Errorf("%q, confidence %v of a packet that was not late", got, a.Confidence())
	}
}

// TestSentencePartsSumToTheWhole: rounded parts sum to the rounded lateness.
func TestSentencePartsSumToTheWhole(t *testing.T) {
	w := sentenceWriter{unit: twoDigits(100 * time.Microsecond)}
	sum := time.Duration(0)
	for range 8 {
		text, _ := w.time(12500 * time.Nanosecond)
		d, err := time.ParseDuration(strings.ReplaceAll(text, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		sum += d
	}
	if sum != 100*time.Microsecond {
		t.Errorf("eight parts of 12.5 µs sum to %v", sum)
	}
	for d, want := range map[time.Duration]time.Duration{1: 1, 9: 1, 10: 1, 99: 1, 100: 10, 71234: 1000, 3 * time.Millisecond: 100 * time.Microsecond} {
		if got := twoDigits(d); got != want {
			t.Errorf("second digit of %v is one of %v, want %v", d, got, want)
		}
	}
}
