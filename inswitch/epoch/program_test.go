package epoch

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
	"github.com/weft-telemetry/weft/wire/label"
	"github.com/weft-telemetry/weft/wire/packet"
	"github.com/weft-telemetry/weft/wire/poll"
)

func flowKey(n int) model.FlowKey {
	return model.NewFlowKey(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, 2}), uint16(n)), netip.MustParseAddrPort("10.1.0.2:4791"), model.UDP)
}

// rig is one switch of four ports, of which port 4 leads to a host. It plays
// the host of the program.
type rig struct {
	*Program
	pkt   inswitch.Packet
	ev    inswitch.Event
	act   inswitch.Actions
	frame []byte
	route model.PortID
	sent  []sent
}

// sent is a poll that the program passed on.
type sent struct {
	out  model.PortID
	flag poll.Flag
}

func (r *rig) Seq() uint32                 { return 0 }
func (r *rig) Labels() label.Block         { return label.Block{} }
func (r *rig) MayLabel(label.Params) error { return nil }
func (r *rig) AppendFrame(b []byte, n int) []byte {
	return append(b, r.frame[:min(n, len(r.frame))]...)
}

func (r *rig) Route(*model.FlowKey) (model.PortID, bool) { return r.route, r.route != 0 }
func (r *rig) Queue(model.PortID, model.Priority) inswitch.Queue {
	return inswitch.Queue{}
}

func newRig(t testing.TB, cfg Config) *rig {
	const rate = 8 * model.Gbps // a byte per ns
	p, err := New(cfg, inswitch.Device{ID: 9, Ports: []inswitch.Port{{Rate: rate}, {Rate: rate}, {Rate: rate}, {Rate: rate, Host: true}}})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{Program: p}
	r.pkt.Source = r
	r.ev = inswitch.Event{Packet: &r.pkt, Switch: r}
	return r
}

func (r *rig) show() {
	r.act.Reset()
	r.Observe(&r.ev, &r.act)
}

func (r *rig) packet(at time.Duration, in, out model.PortID, class model.Priority, key model.FlowKey, depth int32) {
	var zero model.FlowKey
	r.pkt.Key, r.pkt.Outer, r.pkt.Size, r.pkt.EtherType = &key, &key, 1000, packet.TypeIPv4
	if key == zero {
		r.pkt.EtherType = 0x0806
	}
	r.ev.Stage, r.ev.Now, r.ev.In, r.ev.Out, r.ev.Priority = inswitch.Enqueue, model.Time(at), in, out, class
	r.ev.Queue = inswitch.Queue{Packets: depth, Bytes: model.Bytes(depth) * 1000}
	r.show()
}

func (r *rig) pause(at time.Duration, port model.PortID, class model.Priority, d time.Duration) {
	r.ev.Stage, r.ev.Now, r.ev.In, r.ev.Out = inswitch.PFC, model.Time(at), port, 0
	r.ev.Pause = inswitch.Pause{Classes: 1 << class}
	r.ev.Pause.Time[class] = d
	r.show()
}

// poll shows a polling packet and notes what was passed on.
func (r *rig) poll(at time.Duration, in model.PortID, p poll.Poll) {
	var none model.FlowKey
	r.pkt.Key, r.pkt.Outer, r.pkt.EtherType = &none, &none, poll.EtherType
	r.frame = p.AppendTo(make([]byte, packet.EthernetSize))
	r.ev.Stage, r.ev.Now, r.ev.In, r.ev.Out = inswitch.Ingress, model.Time(at), in, 0
	r.show()
	r.sent = nil
	for _, s := range r.act.Sends {
		var p poll.Poll
		if _, err := p.Parse(s.Content); err != nil || !s.Control || s.EtherType != poll.EtherType {
			panic(fmt.Sprintf("sent %+v, %v; want a poll by the control queue", s, err))
		}
		for _, out := range s.Ports {
			r.sent = append(r.sent, sent{out, p.Flag})
		}
	}
}

// reports fires the timers that are due and returns the chunks.
func (r *rig) reports(at time.Duration) (chunks []epoch.Chunk) {
	r.ev.Stage, r.ev.Now = inswitch.Timer, model.Time(at)
	r.show()
	for _, rep := range r.act.Reports {
		var c epoch.Chunk
		if _, err := c.Parse(slices.Clone(rep.Data)); err != nil {
			panic(err)
		}
		chunks = append(chunks, c)
	}
	return chunks
}

var complaint = poll.Poll{Layout: poll.Weft, Flag: poll.Victim, HopLimit: 8, Event: poll.Event{Host: 1, Number: 1}, Flow: flowKey(1)}

// answer is the content of a report.
type answer struct {
	Ports  []epoch.PortEpoch
	Meters []epoch.Meter
	Flows  []epoch.Flow // of one flow, epoch and queue summed up
	Waves  []epoch.Wave
}

func readAnswer(chunks []epoch.Chunk) (a answer) {
	sums := map[epoch.Flow]*epoch.Flow{}
	for i := range chunks {
		for r := chunks[i].Reader(); r.Next(); {
			switch r.Kind() {
			case epoch.KindPortEpoch:
				var p epoch.PortEpoch
				must(p.Parse(r.Record()))
				a.Ports = append(a.Ports, p)
			case epoch.KindMeter:
				var m epoch.Meter
				must(m.Parse(r.Record()))
				a.Meters = append(a.Meters, m)
			case epoch.KindWave:
				var w epoch.Wave
				must(w.Parse(r.Record()))
				a.Waves = append(a.Waves, w)
			case epoch.KindFlow4, epoch.KindFlow6:
				var f epoch.Flow
				must(f.Parse(r.Record()))
				id := epoch.Flow{Epoch: f.Epoch, Out: f.Out, Priority: f.Priority, Key: f.Key}
				if sums[id] == nil {
					x := id
					x.First = f.First
					sums[id] = &x
				}
				s := sums[id]
				s.First, s.Last = min(s.First, f.First), max(s.Last, f.Last)
				s.Packets += f.Packets
				s.Paused += f.Paused
				s.Bytes += f.Bytes
				s.Depth += f.Depth
				s.PausedDepth += f.PausedDepth
			}
		}
	}
	for _, f := range sums {
		a.Flows = append(a.Flows, *f)
	}
	a.sort()
	return a
}

// since leaves out what is older than an epoch.
func (a *answer) since(oldest uint32) {
	a.Ports = slices.DeleteFunc(a.Ports, func(p epoch.PortEpoch) bool { return p.Epoch < oldest })
	a.Meters = slices.DeleteFunc(a.Meters, func(m epoch.Meter) bool { return m.Epoch < oldest })
	a.Flows = slices.DeleteFunc(a.Flows, func(f epoch.Flow) bool { return f.Epoch < oldest })
}

func (a *answer) sort() {
	slices.SortFunc(a.Ports, func(x, y epoch.PortEpoch) int {
		return cmp.Or(cmp.Compare(x.Epoch, y.Epoch), cmp.Compare(x.Port, y.Port), cmp.Compare(x.Priority, y.Priority))
	})
	slices.SortFunc(a.Meters, func(x, y epoch.Meter) int {
		return cmp.Or(cmp.Compare(x.Epoch, y.Epoch), cmp.Compare(x.In, y.In), cmp.Compare(x.Out, y.Out), cmp.Compare(x.Priority, y.Priority))
	})
	slices.SortFunc(a.Flows, func(x, y epoch.Flow) int {
		return cmp.Or(cmp.Compare(x.Epoch, y.Epoch), cmp.Compare(x.Out, y.Out), cmp.Compare(x.Priority, y.Priority), x.Key.Compare(y.Key))
	})
	slices.SortFunc(a.Waves, func(x, y epoch.Wave) int {
		return cmp.Or(cmp.Compare(x.Port, y.Port), cmp.Compare(x.Priority, y.Priority))
	})
}

func must(_ int, err error) {
	if err != nil {
		panic(err)
	}
}

// ended marks a wave after which the queue was empty.
const ended model.Priority = 99

// TestTelemetryEqualsAListOfAllPackets plays random packets and pauses, and
// compares a snapshot with sums over a list of everything that happened.
func TestTelemetryEqualsAListOfAllPackets(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := DefaultConfig()
		cfg.Length = time.Duration(rapid.IntRange(50, 2000).Draw(rt, "length")) * time.Microsecond
		cfg.Epochs = rapid.IntRange(1, 4).Draw(rt, "epochs")
		cfg.Flows = rapid.SampledFrom([]int{2, 8, 4096}).Draw(rt, "flows")
		cfg.Seed = rapid.Uint64().Draw(rt, "seed")
		r := newRig(t, cfg)
		ports := map[[3]uint32]*epoch.PortEpoch{}
		meters := map[[4]uint32]*epoch.Meter{}
		flows := map[epoch.Flow]*epoch.Flow{}
		waves := map[[2]uint32]*epoch.Wave{}
		pausedUntil := map[[2]uint32]time.Duration{}
		number := func(at time.Duration) uint32 { return uint32(at / cfg.Length) }
		port := func(n uint32, id model.PortID, class model.Priority) *epoch.PortEpoch {
			k := [3]uint32{n, uint32(id), uint32(class)}
			if ports[k] == nil {
				ports[k] = &epoch.PortEpoch{Epoch: n, Port: id, Priority: class}
			}
			return ports[k]
		}
		now := time.Duration(0)
		for range rapid.IntRange(1, 300).Draw(rt, "events") {
			now += time.Duration(rapid.IntRange(0, 200).Draw(rt, "gap")) * time.Microsecond
			n, class := number(now), model.Priority(rapid.IntRange(2, 3).Draw(rt, "class"))
			out := model.PortID(rapid.IntRange(1, 4).Draw(rt, "out"))
			if rapid.IntRange(0, 5).Draw(rt, "pause") == 0 {
				d := time.Duration(rapid.IntRange(0, 300).Draw(rt, "time")) * time.Microsecond
				r.pause(now, out, class, d)
				q := [2]uint32{uint32(out), uint32(class)}
				if d > 0 && (now >= pausedUntil[q] || ports[[3]uint32{n, q[0], q[1]}] != nil) {
					port(n, out, class).PauseFrames++
				}
				if d > 0 || now < pausedUntil[q] {
					pausedUntil[q] = now + d
				}
				continue
			}
			in := model.PortID(rapid.IntRange(1, 4).Draw(rt, "in"))
			depth := rapid.Int32Range(0, 50).Draw(rt, "depth")
			key := flowKey(rapid.IntRange(1, 12).Draw(rt, "flow"))
			r.packet(now, in, out, class, key, depth)
			p := port(n, out, class)
			id := epoch.Flow{Epoch: n, Out: out, Priority: class, Key: key}
			if flows[id] == nil {
				x := id
				x.First = now - time.Duration(n)*cfg.Length
				flows[id] = &x
			}
			f := flows[id]
			f.Last = now - time.Duration(n)*cfg.Length
			p.Packets++
			f.Packets++
			f.Bytes += 1000
			q := [2]uint32{uint32(out), uint32(class)}
			if depth == 0 && waves[q] != nil {
				waves[q].Priority = ended // the next deep packet begins a new one
			}
			if now < pausedUntil[q] {
				p.Paused++
				f.Paused++
				p.PausedDepth += uint64(depth)
				f.PausedDepth += uint64(depth)
			} else {
				p.Depth += uint64(depth)
				f.Depth += uint64(depth)
				if depth >= 4 { // µs at a byte per ns
					if waves[q] == nil || waves[q].Priority == ended {
						waves[q] = &epoch.Wave{Port: out, Priority: class, From: model.Time(now)}
					}
					waves[q].To, waves[q].Most = model.Time(now), max(waves[q].Most, 1000*uint64(depth))
				}
			}
			k := [4]uint32{n, uint32(in), uint32(out), uint32(class)}
			if meters[k] == nil {
				meters[k] = &epoch.Meter{Epoch: n, In: in, Out: out, Priority: class}
			}
			meters[k].Packets++
			meters[k].Bytes += 1000
		}
		r.poll(now, 1, complaint)
		got := readAnswer(r.reports(now + cfg.Collect))
		var want answer
		oldest := int64(number(now)) - int64(cfg.Epochs) + 1
		got.since(uint32(max(oldest, 0))) // queues that stand still tell more
		for _, p := range ports {
			if int64(p.Epoch) >= oldest && !p.IsZero() {
				want.Ports = append(want.Ports, *p)
			}
		}
		for _, m := range meters {
			if int64(m.Epoch) >= oldest {
				want.Meters = append(want.Meters, *m)
			}
		}
		for _, f := range flows {
			if int64(f.Epoch) >= oldest {
				want.Flows = append(want.Flows, *f)
			}
		}
		for q, w := range waves {
			w.Priority = model.Priority(q[1])
			want.Waves = append(want.Waves, *w)
		}
		want.sort()
		if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			rt.Fatalf("snapshot (-want +got):\n%s", diff)
		}
		if r.Stats().Lost != 0 {
			rt.Fatalf("%d evicted flows lost; want none with room for %d", r.Stats().Lost, cfg.Evicted)
		}
	})
}

// TestPollsFollowTheCause is Table 1 and Fig. 6 of the paper as cases.
func TestPollsFollowTheCause(t *testing.T) {
	traffic := func(r *rig, in, out model.PortID, paused bool) {
		if paused {
			r.pause(0, out, 3, 10*µs)
		}
		r.packet(5*µs, in, out, 3, flowKey(1), 3)
	}
	for name, tc := range map[string]struct {
		flag  poll.Flag
		route model.PortID
		setup func(r *rig)
		want  []sent
	}{
		"victim's way, no pause":        {poll.Victim, 2, func(r *rig) { traffic(r, 1, 2, false) }, []sent{{2, poll.Victim}}},
		"victim's way, paused":          {poll.Victim, 2, func(r *rig) { traffic(r, 1, 2, true) }, []sent{{2, poll.Both}}},
		"victim's way ends at its host": {poll.Victim, 4, func(r *rig) { traffic(r, 1, 4, true) }, nil},
		"no route":                      {poll.Victim, 0, func(*rig) {}, nil},
		"causes, traffic and pause":     {poll.Causes, 2, func(r *rig) { traffic(r, 1, 3, true) }, []sent{{3, poll.Causes}}},
		"causes, no traffic from there": {poll.Causes, 2, func(r *rig) { traffic(r, 2, 3, true) }, nil},
		"causes, not paused: the end":   {poll.Causes, 2, func(r *rig) { traffic(r, 1, 3, false) }, nil},
		"causes end at a host":          {poll.Causes, 2, func(r *rig) { traffic(r, 1, 4, true) }, nil},
		"both, one port":                {poll.Both, 2, func(r *rig) { traffic(r, 1, 2, true) }, []sent{{2, poll.Both}}},
		"both, two ports":               {poll.Both, 2, func(r *rig) { traffic(r, 1, 2, false); traffic(r, 1, 3, true) }, []sent{{2, poll.Victim}, {3, poll.Causes}}},
		"an old pause does not count":   {poll.Causes, 2, func(r *rig) { r.pause(0, 3, 3, µs); r.packet(5*µs, 1, 3, 3, flowKey(1), 0) }, nil},
		"useless":                       {0, 2, func(r *rig) { traffic(r, 1, 2, true) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, DefaultConfig())
			tc.setup(r)
			r.route = tc.route
			p := complaint
			p.Flag = tc.flag
			r.poll(100*µs, 1, p)
			if !slices.Equal(r.sent, tc.want) {
				t.Errorf("passed on %v; want %v", r.sent, tc.want)
			}
			if r.act.Verdict != inswitch.Taken {
				t.Error("the poll went on with the traffic; want it taken")
			}
		})
	}
}

// TestReportsHoldWhatPollsFollow: a neighbour that sends no more waits for a
// queue that others still use. The poll goes there for what it sent last, and
// the report says so.
func TestReportsHoldWhatPollsFollow(t *testing.T) {
	cfg := DefaultConfig()
	r := newRig(t, cfg)
	r.packet(5*µs, 1, 3, 3, flowKey(1), 3)
	r.packet(6*µs, 1, 2, 3, flowKey(2), 3) // to a port that nobody pauses
	r.pause(10*µs, 3, 3, 10*time.Millisecond)
	for at := 100 * µs; at < 4*cfg.Length; at += 100 * µs {
		r.packet(at, 2, 3, 3, flowKey(3), 3)
	}
	p := complaint
	p.Flag = poll.Causes
	if r.poll(4*cfg.Length, 1, p); !slices.Equal(r.sent, []sent{{3, poll.Causes}}) {
		t.Fatalf("passed on %v; want it where the last traffic went", r.sent)
	}
	var old []epoch.Meter
	for _, m := range readAnswer(r.reports(4*cfg.Length + cfg.Collect)).Meters {
		if m.Epoch == 0 {
			old = append(old, m)
		}
	}
	if want := []epoch.Meter{{In: 1, Out: 3, Priority: 3, Packets: 1, Bytes: 1000}}; !slices.Equal(old, want) {
		t.Errorf("of the first epoch the report tells %+v; want %+v", old, want)
	}
}

func TestAVisitOnTheVictimsWayDoesNotSwallowTheCause(t *testing.T) {
	r := newRig(t, DefaultConfig())
	r.route = 2
	r.pause(0, 2, 3, time.Millisecond)
	r.packet(1*µs, 1, 2, 3, flowKey(1), 1)
	r.poll(10*µs, 1, complaint)
	p := complaint
	p.Flag = poll.Both
	if r.poll(11*µs, 1, p); !slices.Equal(r.sent, []sent{{2, poll.Causes}}) {
		t.Errorf("passed on %v after a visit with flag victim; want the causes only", r.sent)
	}
	if r.poll(12*µs, 1, p); len(r.sent) != 0 || r.Stats().Repeated != 1 {
		t.Errorf("passed on %v the third time, %+v; want nothing, and counted", r.sent, r.Stats())
	}
	if r.poll(12*µs, 3, p); len(r.sent) == 0 {
		t.Error("nothing passed on for a poll by another port; want it taken")
	}
	if r.poll(time.Second, 1, p); len(r.sent) == 0 {
		t.Error("nothing passed on a second later; want the poll taken again")
	}
}

func TestOneSnapshotAnswersTwoComplaints(t *testing.T) {
	cfg := DefaultConfig()
	r := newRig(t, cfg)
	r.packet(1*µs, 1, 2, 3, flowKey(1), 1)
	r.poll(10*µs, 1, complaint)
	second := complaint
	second.Event.Number = 2
	r.poll(20*µs, 1, second)
	r.packet(30*µs, 1, 3, 3, flowKey(2), 1) // after the freeze
	if got := r.reports(cfg.Collect); len(got) != 0 {
		t.Fatalf("%d chunks before the processor is done; want none", len(got))
	}
	got := r.reports(cfg.Collect + 10*µs)
	if len(got) != 2 || got[0].Event.Number != 1 || got[1].Event.Number != 2 || got[1].Flags != epoch.Elsewhere || got[1].Snapshot != got[0].Snapshot {
		t.Fatalf("chunks %+v; want the records for the first, a reference for the second", got)
	}
	var asked epoch.Asked
	if _, err := asked.Parse(got[1].Records); err != nil || asked.At.Sub(got[0].Snapshot) != 10*µs {
		t.Errorf("the second was asked at %v, %v; want 10 µs after the snapshot at %v", asked.At, err, got[0].Snapshot)
	}
	if a := readAnswer(got); len(a.Flows) != 1 || a.Flows[0].Key != flowKey(1) {
		t.Errorf("flows %+v; want the one of before the freeze", a.Flows)
	}
	if s := r.Stats(); s.Snapshots != 1 || s.Reused != 1 {
		t.Errorf("stats %+v; want one snapshot, reused once", s)
	}
}

func TestMalformedPollsAndHopLimit(t *testing.T) {
	r := newRig(t, DefaultConfig())
	r.route = 2
	p := complaint
	p.HopLimit = 0
	if r.poll(0, 1, p); len(r.sent) != 0 || r.Stats().Exhausted != 1 {
		t.Errorf("passed on %v with no hop left, %+v; want nothing", r.sent, r.Stats())
	}
	r.poll(0, 1, complaint)
	r.frame = r.frame[:20]
	r.show()
	if r.Stats().Malformed != 1 {
		t.Errorf("stats %+v of a poll that is cut off; want it counted", r.Stats())
	}
}

func TestObserveAllocatesNothing(t *testing.T) {
	r := newRig(t, DefaultConfig())
	n := 0
	step := func() {
		n++
		r.packet(time.Duration(n)*10*time.Microsecond, model.PortID(1+n%3), model.PortID(1+n%4), 3, flowKey(n%50), 5)
	}
	for range 1000 {
		step()
	}
	key := flowKey(7)
	if a := testing.AllocsPerRun(1000, func() {
		n++
		r.pkt.Key = &key
		r.ev.Now = model.Time(n * 10000)
		r.show()
	}); a != 0 {
		t.Errorf("Observe allocates %v times; want 0", a)
	}
}

func BenchmarkEnqueue(b *testing.B) {
	r := newRig(b, DefaultConfig())
	keys := make([]model.FlowKey, 1000)
	for i := range keys {
		keys[i] = flowKey(i)
	}
	r.packet(0, 1, 2, 3, keys[0], 5)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r.pkt.Key = &keys[i%len(keys)]
		r.ev.Now += 80
		r.act.Reset()
		r.Observe(&r.ev, &r.act)
	}
}
