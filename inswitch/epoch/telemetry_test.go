package epoch

import (
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// ended marks a episode after which the queue was empty.
const ended model.Priority = 99

// TestTelemetryEqualsAListOfAllPackets feeds random packets and pauses, and
// compares a snapshot with sums over a list of everything that happened.
func TestTelemetryEqualsAListOfAllPackets(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := DefaultConfig()
		cfg.EpochLength = time.Duration(rapid.IntRange(50, 2000).Draw(rt, "length")) * time.Microsecond
		cfg.Epochs = rapid.IntRange(1, 4).Draw(rt, "epochs")
		cfg.FlowSlots = rapid.SampledFrom([]int{2, 8, 4096}).Draw(rt, "flows")
		cfg.Seed = rapid.Uint64().Draw(rt, "seed")
		r := newRig(t, cfg)
		ports := map[[3]uint32]*epoch.PortEpoch{}
		meters := map[[4]uint32]*epoch.Meter{}
		flows := map[epoch.Flow]*epoch.Flow{}
		episodes := map[[2]uint32]*epoch.CongestionEpisode{}
		pausedUntil := map[[2]uint32]time.Duration{}
		number := func(at time.Duration) uint32 { return uint32(at / cfg.EpochLength) }
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
				x.First = now - time.Duration(n)*cfg.EpochLength
				flows[id] = &x
			}
			f := flows[id]
			f.Last = now - time.Duration(n)*cfg.EpochLength
			p.Packets++
			f.Packets++
			f.Bytes += 1000
			q := [2]uint32{uint32(out), uint32(class)}
			if depth == 0 && episodes[q] != nil {
				episodes[q].Priority = ended // the next packet above the threshold begins a new one
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
					if episodes[q] == nil || episodes[q].Priority == ended {
						episodes[q] = &epoch.CongestionEpisode{Port: out, Priority: class, First: model.Time(now)}
					}
					episodes[q].Last, episodes[q].MaxBytes = model.Time(now), max(episodes[q].MaxBytes, 1000*uint64(depth))
				}
			}
			k := [4]uint32{n, uint32(in), uint32(out), uint32(class)}
			if meters[k] == nil {
				meters[k] = &epoch.Meter{Epoch: n, In: in, Out: out, Priority: class}
			}
			meters[k].Packets++
			meters[k].Bytes += 1000
		}
		r.poll(now, 1, request)
		got := readAnswer(r.reports(now + cfg.ReadoutTime))
		var want answer
		oldest := int64(number(now)) - int64(cfg.Epochs) + 1
		got.since(uint32(max(oldest, 0))) // stalled queues report more
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
		for q, w := range episodes {
			w.Priority = model.Priority(q[1])
			want.Episodes = append(want.Episodes, *w)
		}
		want.sort()
		if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			rt.Fatalf("snapshot (-want +got):\n%s", diff)
		}
		if r.Stats().EvictedLost != 0 {
			rt.Fatalf("%d evicted flows lost; want none with capacity for %d", r.Stats().EvictedLost, cfg.MaxEvicted)
		}
	})
}
