package provenance

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
	"github.com/weft-telemetry/weft/wire/poll"
)

func key(n int) model.FlowKey {
	return model.NewFlowKey(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, 2}), uint16(n)),
		netip.MustParseAddrPort("10.1.0.2:4791"), model.UDP)
}

// report encodes a switch's report on a number of flows, in small chunks.
func report(sw model.NodeID, ev poll.Event, at model.Time, flows int) (chunks [][]byte) {
	var b epoch.Builder
	if err := b.Reset(epoch.Header{Switch: sw, Event: ev, Snapshot: at, EpochLength: time.Millisecond}, 200,
		1000); err != nil {
		panic(err)
	}
	b.AddPort(epoch.Port{Port: 1, Priority: 3, Queued: 5})
	for i := range flows {
		b.AddFlow(&epoch.Flow{Out: 1, Priority: 3, Key: key(i), Packets: uint32(i + 1)})
	}
	for i := range b.Finish() {
		chunks = append(chunks, slices.Clone(b.Chunk(i)))
	}
	return chunks
}

func reference(sw model.NodeID, ev poll.Event, at model.Time) []byte {
	return epoch.Chunk{Header: epoch.Header{
		Flags: epoch.ByReference, Switch: sw, Event: ev, Snapshot: at,
		EpochLength: time.Millisecond,
	}, Total: 1}.AppendTo(nil)
}

// TestCollectorTakesChunksInAnyOrder shuffles, doubles and loses chunks of two
// switches and two detections.
func TestCollectorTakesChunksInAnyOrder(t *testing.T) {
	first, second := poll.Event{Host: 1, Number: 1}, poll.Event{Host: 2, Number: 1}
	rapid.Check(t, func(rt *rapid.T) {
		c, err := NewCollector(DefaultConfig(8))
		if err != nil {
			rt.Fatal(err)
		}
		all := append(report(7, first, 100, 10), report(8, first, 110, 5)...)
		all = append(all, reference(7, second, 100))
		lost := rapid.IntRange(-1, len(all)-2).Draw(rt, "lost")
		var sent [][]byte
		for i, b := range all {
			if i != lost {
				sent = append(sent, b, b)
			}
		}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		rng.Shuffle(len(sent), func(i, j int) { sent[i], sent[j] = sent[j], sent[i] })
		for _, b := range sent {
			if _, err := c.AddChunk(0, b); err != nil {
				rt.Fatal(err)
			}
		}
		e := c.Evidence(first)
		flows := 0
		for _, r := range e.Reports {
			flows += len(r.Flows)
		}
		if lost < 0 && (!e.Complete() || flows != 15 || len(e.Reports) != 2) {
			rt.Fatalf("complete %v, %d flows of %d switches; want all 15 of 2", e.Complete(), flows, len(e.Reports))
		}
		if lost >= 0 && e.Complete() && len(e.Reports) == 2 {
			rt.Fatalf("evidence without chunk %d is called complete", lost)
		}
		other := c.Evidence(second)
		if len(other.Reports)+len(other.Pending) != 1 {
			rt.Fatalf("evidence of the second detection has %d reports, %d pending; want switch 7 in one of them",
				len(other.Reports), len(other.Pending))
		}
	})
}

// TestWhenAPollCame: a snapshot answers the detection that it was taken for, and
// another, whose poll came later. Until a newer snapshot answers that one, too.
func TestWhenAPollCame(t *testing.T) {
	first, second := poll.Event{Host: 1, Number: 1}, poll.Event{Host: 2, Number: 1}
	c, _ := NewCollector(DefaultConfig(8))
	later := epoch.Chunk{
		Header: epoch.Header{
			Flags: epoch.ByReference, Switch: 7, Event: second, Snapshot: 100,
			EpochLength: time.Millisecond,
		},
		Total: 1, Records: epoch.PollRef{ReceivedAt: 140}.AppendTo(nil),
	}.AppendTo(nil)
	for _, b := range append(report(7, first, 100, 1), later, reference(8, second, 110), report(8, first, 110, 1)[0]) {
		if _, err := c.AddChunk(0, b); err != nil {
			t.Fatal(err)
		}
	}
	if a := c.Evidence(first).PolledAt; len(a) != 0 {
		t.Errorf("the first was polled at %v; want none, as it was at the snapshots", a)
	}
	if a := c.Evidence(second).PolledAt; len(a) != 1 || a[7] != 140 {
		t.Errorf("the second was polled at %v; want switch 7 at 140, and nothing of 8, which does not say", a)
	}
	if _, err := c.AddChunk(0, report(7, second, 200, 1)[0]); err != nil {
		t.Fatal(err)
	}
	if a := c.Evidence(second).PolledAt; len(a) != 0 {
		t.Errorf("with a newer snapshot it was polled at %v; want none", a)
	}
}

func TestCollectorForgetsTheOldest(t *testing.T) {
	c, _ := NewCollector(DefaultConfig(2))
	for n := range uint32(3) {
		if _, err := c.AddChunk(0, report(7, poll.Event{Number: n}, model.Time(n), 1)[0]); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.Evidence(poll.Event{Number: 0}).Reports) != 0 || len(c.Evidence(poll.Event{Number: 2}).Reports) != 1 ||
		c.Stats().Evicted != 1 || len(c.snapshots) != 2 {
		t.Errorf("stats %+v, %d snapshots; want the first of three forgotten", c.Stats(), len(c.snapshots))
	}
}

func TestCollectorRefusesWhatCannotBe(t *testing.T) {
	c, _ := NewCollector(DefaultConfig(2))
	good := report(7, poll.Event{}, 1, 10)
	if _, err := c.AddChunk(0, good[0][:30]); err == nil || c.Stats().Malformed != 1 {
		t.Errorf("Add of a cut chunk = %v, %+v; want an error, counted", err, c.Stats())
	}
	if _, err := c.AddChunk(0, good[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := c.AddChunk(0, report(7, poll.Event{}, 1, 1)[0]); !errors.Is(err, ErrConflict) {
		t.Errorf("Add of a chunk of another total = %v; want %v", err, ErrConflict)
	}
}
