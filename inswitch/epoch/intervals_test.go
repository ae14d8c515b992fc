package epoch

import (
	"testing"
	"time"
	"unsafe"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// readIntervals returns the records of intervals in a report.
func readIntervals(chunks []epoch.Chunk) (list []epoch.Intervals) {
	for i := range chunks {
		for r := chunks[i].Reader(); r.Next(); {
			if r.Kind() == epoch.KindPauseIntervals || r.Kind() == epoch.KindCongestionIntervals {
				var v epoch.Intervals
				must(v.Parse(r.Record()))
				list = append(list, v)
			}
		}
	}
	return list
}

// TestIntervalsEqualAListOfAllEvents: frames that begin, extend, shorten and end
// pauses of several classes at once, pauses that expire, packets that join, leave
// and are dropped. What is reported are the last of all intervals.
func TestIntervalsEqualAListOfAllEvents(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := DefaultConfig()
		r := newRig(t, cfg)
		r.queued = map[int]int32{}
		const ports, lowest, highest = 2, 2, 3
		logs := map[int]*queueLog{}
		log := func(out model.PortID, class model.Priority) *queueLog {
			at := lane(out, class)
			if logs[at] == nil {
				logs[at] = &queueLog{}
			}
			return logs[at]
		}
		now := time.Duration(0)
		for range rapid.IntRange(1, 400).Draw(rt, "events") {
			now += time.Duration(rapid.SampledFrom([]int{0, 0, 1, 1, 2, 5, 30, 300}).Draw(rt, "gap")) * µs
			out := model.PortID(rapid.IntRange(1, ports).Draw(rt, "out"))
			class := model.Priority(rapid.IntRange(lowest, highest).Draw(rt, "class"))
			q := log(out, class)
			flow := rapid.IntRange(1, 4).Draw(rt, "flow")
			r.pkt.KeyID = uint32(rapid.IntRange(0, 1).Draw(rt, "numbered") * flow)
			switch what := rapid.IntRange(0, 11).Draw(rt, "event"); {
			case what < 5:
				q.levels = append(q.levels, level{now, q.packets, !q.pausedAt(now)})
				r.packet(now, 1, out, class, flowKey(flow), int32(q.packets))
				q.packets++
			case what < 8:
				if q.packets == 0 || q.pausedAt(now) {
					continue
				}
				q.packets--
				q.levels = append(q.levels, level{now, q.packets, false})
				r.leave(now, 1, out, class, flowKey(flow), int32(q.packets))
			case what < 9:
				q.packets -= min(q.packets, rapid.IntRange(0, 3).Draw(rt, "dropped"))
			default:
				r.ev.Pause = inswitch.Pause{Classes: uint8(rapid.IntRange(0, 15).Draw(rt, "classes"))}
				for c := range model.Priority(lowest + highest) {
					d := time.Duration(rapid.SampledFrom([]int{0, 0, 1, 3, 10, 100}).Draw(rt, "time")) * µs
					r.ev.Pause.Time[c] = d
					if r.ev.Pause.Classes>>c&1 == 0 {
						continue
					}
					q := log(out, c)
					if d > 0 && !q.pausedAt(now) {
						q.levels = append(q.levels, level{now, q.packets, true})
					}
					q.frames = append(q.frames, frame{now, d, q.packets})
				}
				r.ev.Stage, r.ev.Now, r.ev.In, r.ev.Out = inswitch.PFC, model.Time(now), out, 0
				r.show()
			}
			r.queued[lane(out, class)] = int32(q.packets)
		}
		now += time.Duration(rapid.SampledFrom([]int{0, 5, 9_000, 11_000}).Draw(rt, "until the poll")) * µs
		r.poll(now, 1, request)
		got := readIntervals(r.reports(now + cfg.ReadoutTime))
		var want []epoch.Intervals
		for out := model.PortID(1); out <= ports; out++ {
			for class := range model.Priority(classes) {
				q := log(out, class)
				pauses, congestion := q.pauses(now), q.congestion(now)
				recent := func(all []span) bool { return len(all) > 0 && now-all[len(all)-1].end < pauseMemory }
				if !recent(pauses) && !recent(congestion) {
					continue
				}
				for _, v := range []epoch.Intervals{
					record(pauses, PauseIntervals, now, epoch.Intervals{Port: out, Priority: class}),
					record(congestion, CongestionIntervals, now, epoch.Intervals{Congestion: true, Port: out, Priority: class}),
				} {
					if v.Count > 0 {
						want = append(want, v)
					}
				}
				for at := time.Duration(0); at < now && at < 300*µs; at += µs {
					inside := false
					for _, s := range pauses {
						inside = inside || s.start <= at && at < s.end
					}
					if inside != q.pausedAt(at) {
						rt.Fatalf("the reference itself is wrong at %v: in a pause %v, paused %v", at, inside, q.pausedAt(at))
					}
				}
			}
		}
		if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			rt.Fatalf("intervals (-want +got):\n%s", diff)
		}
	})
}

// TestIntervalsAscendWhateverTheClockDoes: readers refuse records that do not.
func TestIntervalsAscendWhateverTheClockDoes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := DefaultConfig()
		cfg.SnapshotReuse = 0
		r := newRig(t, cfg)
		now := time.Second
		for i := range rapid.IntRange(1, 200).Draw(rt, "events") {
			now += time.Duration(rapid.IntRange(-20, 25).Draw(rt, "gap")) * µs
			switch rapid.IntRange(0, 3).Draw(rt, "event") {
			case 0:
				r.packet(now, 1, 2, 3, flowKey(1), rapid.Int32Range(0, 9).Draw(rt, "depth"))
			case 1:
				r.leave(now, 1, 2, 3, flowKey(1), rapid.Int32Range(0, 9).Draw(rt, "left"))
			case 2:
				r.pause(now, 2, 3, time.Duration(rapid.IntRange(0, 10).Draw(rt, "time"))*µs)
			default:
				p := request
				p.Event.Number = uint32(i)
				r.poll(now, 1, p)
			}
		}
		readIntervals(r.reports(now + time.Hour)) // panics if one does not parse
	})
}

// TestLongIntervalsSaturate: a pause of a minute began as long ago as an Age can
// say, and one that ended before is not reported.
func TestLongIntervalsSaturate(t *testing.T) {
	r := newRig(t, DefaultConfig())
	r.pause(0, 2, 3, time.Second)
	r.pause(10*time.Second, 2, 3, 60*time.Second)
	now := 70*time.Second + 5*µs
	r.poll(now, 1, request)
	got := readIntervals(r.reports(now + time.Second))
	want := []epoch.Intervals{{Port: 2, Priority: 3, Count: 1, List: [epoch.MaxIntervals]epoch.Interval{{Start: epoch.MaxAge, End: 5000}}}}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("intervals (-want +got):\n%s", diff)
	}
}

// TestSettingsAreReported: one record, the first.
func TestSettingsAreReported(t *testing.T) {
	cfg := DefaultConfig()
	p, err := New(cfg, inswitch.Device{ID: 9, MTU: 4200, Xoff: 70_000, Xon: 30_000, Ports: make([]inswitch.Port, 2)})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, cfg)
	r.Program = p
	r.poll(0, 1, request)
	chunks := r.reports(time.Second)
	rd := chunks[0].Reader()
	var got epoch.Settings
	if !rd.Next() {
		t.Fatal("no records")
	}
	must(got.Parse(rd.Record()))
	want := epoch.Settings{
		CongestionThreshold: 4 * µs, PauseBurstGap: 100 * µs, IntervalMemory: 10 * time.Millisecond,
		MTU: 4200, Xoff: 70_000, Xon: 30_000, PauseIntervals: 16, CongestionIntervals: 8,
	}
	if got != want {
		t.Errorf("settings %+v; want %+v", got, want)
	}
}

// TestIntervalsCostMemoryOnce: after the first pause and the first congestion of a
// queue, nothing is allocated.
func TestIntervalsCostMemoryOnce(t *testing.T) {
	r := newRig(t, DefaultConfig())
	now := time.Duration(0)
	key := flowKey(1)
	round := func() {
		now += 10 * µs
		r.packet(now, 1, 2, 3, key, 9)
		r.leave(now, 1, 2, 3, key, 1)
		r.pause(now, 2, 3, 5*µs)
	}
	round()
	h := r.tel.queue(2, 3).history
	if n := testing.AllocsPerRun(100, round); n > 2 { // the helpers take the key's address, once each
		t.Errorf("a packet and a pause allocate %v times", n)
	}
	if r.tel.queue(2, 3).history != h || h.pauses.earlier.count == 0 || h.congestion.earlier.count == 0 {
		t.Errorf("history %+v; want the first one, wrapped", h)
	}
	if r.tel.queue(1, 3).history != nil {
		t.Error("a queue that was never paused or congested has a history")
	}
	if n := unsafe.Sizeof(*h); n > 720 {
		t.Errorf("a history takes %d bytes; docs/formats/epoch.md says at most 720", n)
	}
}

// TestSummaryEqualsAListOfAllIntervals: a ring that wraps many times, with gaps as
// long as all that it holds and longer.
func TestSummaryEqualsAListOfAllIntervals(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		keep := rapid.IntRange(1, 5).Draw(rt, "keep")
		r := intervalRing{list: make([]interval, keep)}
		var all []span
		now := time.Duration(0)
		for range rapid.IntRange(1, 40).Draw(rt, "intervals") {
			now += time.Duration(rapid.SampledFrom([]int{0, 1, 2, 3, 5, 50}).Draw(rt, "gap"))
			s := span{start: now, end: now + time.Duration(rapid.IntRange(0, 3).Draw(rt, "length")), bytes: rapid.Uint32Range(1, 9).Draw(rt, "bytes")}
			now = s.end
			all = append(all, s)
			if old, full := r.begin(model.Time(s.start), model.Bytes(s.bytes)); full {
				r.include(old, func(sum, i uint32) uint32 { return max(sum, i) })
			}
			r.newest().end = model.Time(s.end)
		}
		want := record(all, keep, now, epoch.Intervals{Congestion: true})
		var b epoch.Builder
		if err := b.Reset(epoch.Header{EpochLength: 1}, 1400, 1); err != nil {
			rt.Fatal(err)
		}
		r.report(&b, model.Time(now), r.newest().end, epoch.Intervals{Congestion: true})
		b.Finish()
		var c epoch.Chunk
		must(c.Parse(b.Chunk(0)))
		if diff := gocmp.Diff([]epoch.Intervals{want}, readIntervals([]epoch.Chunk{c})); diff != "" {
			rt.Fatalf("of %+v (-want +got):\n%s", all, diff)
		}
	})
}
