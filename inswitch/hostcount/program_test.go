package hostcount

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/keyed"
	"github.com/weft-telemetry/weft/wire/packet"
)

// tor has hosts at its first two ports.
var tor = inswitch.Device{ID: 9, Ports: []inswitch.Port{{FacesHost: true}, {FacesHost: true}, {}, {}}}

// arrival is an event of a packet.
func arrival(stage inswitch.Stage, in, out model.PortID, key *model.FlowKey, class model.Priority, size int32) inswitch.Event {
	return inswitch.Event{
		Stage: stage, In: in, Out: out, Priority: class,
		Packet: &inswitch.Packet{Key: key, Outer: key, Size: size, EtherType: packet.TypeIPv4},
	}
}

// addReports adds what an event reported to sums by key.
func addReports(t rapid.TB, sums map[keyed.HostKey]uint64, act *inswitch.Actions) {
	t.Helper()
	for i := range act.Reports {
		r := &act.Reports[i]
		var key keyed.HostKey
		if err := r.Check(); err != nil || r.Primitive != dta.KeyIncrement || r.Redundancy != keyed.Copies || key.Parse(r.Key) != nil || r.Delta == 0 {
			t.Fatalf("report %+v, %v; want a Key-Increment of a host's counter", r, err)
		}
		sums[key] += r.Delta
	}
}

// TestEvictionsAddUp compares the sums of all reports with a map of all packets, for
// caches that hold every host and such that hold almost none.
func TestEvictionsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, err := New(tor, Config{Period: time.Millisecond, Places: rapid.SampledFrom([]int{1, 4, 256}).Draw(t, "places")})
		if err != nil {
			t.Fatal(err)
		}
		want, got := map[keyed.HostKey]uint64{}, map[keyed.HostKey]uint64{}
		var counted keyed.Counts
		var act inswitch.Actions
		for range rapid.IntRange(0, 200).Draw(t, "events") {
			act.Reset()
			var ev inswitch.Event
			switch rapid.IntRange(0, 9).Draw(t, "event") {
			case 0:
				ev = inswitch.Event{Stage: inswitch.Timer, Timer: tick}
			default:
				src, dst := rapid.Uint32Range(1, 20).Draw(t, "source"), rapid.Uint32Range(1, 20).Draw(t, "destination")
				key := model.FlowKey{Src: model.Addr4(src), Dst: model.Addr4(dst)}
				in, out := model.PortID(rapid.IntRange(0, 4).Draw(t, "in")), model.PortID(rapid.IntRange(1, 4).Draw(t, "out"))
				class := model.Priority(rapid.IntRange(0, 7).Draw(t, "class"))
				size := rapid.Int32Range(64, 9000).Draw(t, "size")
				ev = arrival(inswitch.Ingress, in, 0, &key, class, size)
				host, bytes := key.Src, keyed.SentBytes
				if rapid.Bool().Draw(t, "leaves") {
					ev = arrival(inswitch.Dequeue, in, out, &key, class, size)
					host, bytes, in = key.Dst, keyed.ReceivedBytes, out
					ev.Packet.ECN = uint8(rapid.IntRange(0, 3).Draw(t, "ECN"))
				}
				if in != 1 && in != 2 {
					break
				}
				add := func(m keyed.Metric, n uint64) {
					want[keyed.HostKey{Switch: 9, Host: host, Class: class, Metric: m}] += n
					counted[m] += n
				}
				add(bytes, uint64(size))
				add(bytes+1, 1)
				if ev.Packet.ECN == 3 {
					add(keyed.ReceivedMarked, 1)
				}
			}
			p.Observe(&ev, &act)
			addReports(t, got, &act)
		}
		if st := p.Stats(); st.Counted != counted {
			t.Fatalf("counted %v; want %v", st.Counted, counted)
		}
		act.Reset()
		p.Observe(&inswitch.Event{Stage: inswitch.Timer, Timer: tick}, &act)
		addReports(t, got, &act)
		if st := p.Stats(); st.Evicted != counted {
			t.Fatalf("evicted %v of %v when a period has ended", st.Evicted, counted)
		}
		if len(got) != len(want) {
			t.Fatalf("%d counters reported; want %d", len(got), len(want))
		}
		for k, n := range want {
			if got[k] != n {
				t.Fatalf("reports of %+v add up to %d; want %d", k, got[k], n)
			}
		}
	})
}

// TestLabelsAreNotCounted: a labelled packet counts as its host sent it.
func TestLabelsAreNotCounted(t *testing.T) {
	p, _ := New(tor, DefaultConfig())
	key := model.FlowKey{Src: model.Addr4(1), Dst: model.Addr4(2)}
	ev := arrival(inswitch.Dequeue, 3, 1, &key, 0, 1000)
	ev.Packet.LabelCount = 2
	p.Observe(&ev, &inswitch.Actions{})
	p.Observe(&inswitch.Event{Stage: inswitch.Timer, Timer: tick}, &inswitch.Actions{})
	if got := p.Stats().Evicted[keyed.ReceivedBytes]; got != uint64(ev.Packet.UnlabeledSize()) || got >= 1000 {
		t.Errorf("counted %d bytes of a labelled packet; want %d", got, ev.Packet.UnlabeledSize())
	}
}

func TestSwitchWithoutHostsDoesNothing(t *testing.T) {
	p, err := New(inswitch.Device{ID: 1, Ports: make([]inswitch.Port, 4)}, DefaultConfig())
	if err != nil || p.Stages() != 0 {
		t.Errorf("stages of a spine = %b, %v; want none", p.Stages(), err)
	}
}

func TestObserveAllocatesNothing(t *testing.T) {
	p, err := New(tor, Config{Period: time.Second, Places: 4})
	if err != nil {
		t.Fatal(err)
	}
	keys := make([]model.FlowKey, 16)
	for i := range keys {
		keys[i] = model.FlowKey{Src: model.Addr4(uint32(i)), Dst: model.Addr4(uint32(i + 1))}
	}
	ev := arrival(inswitch.Ingress, 1, 0, &keys[0], 3, 1000)
	timer := inswitch.Event{Stage: inswitch.Timer, Timer: tick}
	var act inswitch.Actions
	if n := testing.AllocsPerRun(100, func() {
		for i := range keys {
			act.Reset()
			ev.Packet.Outer = &keys[i]
			p.Observe(&ev, &act)
		}
		act.Reset()
		p.Observe(&timer, &act)
	}); n != 0 {
		t.Errorf("Observe allocates %v times; want 0", n)
	}
	if p.Stats().Collisions == 0 {
		t.Error("16 hosts in 4 places never collided; want evictions")
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []Config{{Places: 1}, {Period: time.Second}, {Period: time.Second, Places: 3}, {Period: time.Second, Places: 1 << 15}} {
		if _, err := New(tor, c); err == nil {
			t.Errorf("New(%+v) = nil; want an error", c)
		}
	}
}
