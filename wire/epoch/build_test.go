package epoch

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
)

// report is what a reader makes of all chunks together.
type report struct {
	Ports        []Port
	PortEpochs   []PortEpoch
	Flows        []Flow
	Meters       []Meter
	Pauses       []Pause
	Episodes     []CongestionEpisode
	PairBacklogs []PortPairBacklog
	FlowBacklogs []FlowBacklog
	Intervals    []Intervals
	Histories    []BacklogHistory
	Settings     []Settings
}

func (r *report) read(t interface{ Fatalf(string, ...any) }, c *Chunk) {
	check := func(err error) {
		if err != nil {
			t.Fatalf("records %x: %v", c.Records, err)
		}
	}
	for rd := c.Reader(); rd.Next(); {
		switch rd.Kind() {
		case KindPort:
			var v Port
			_, err := v.Parse(rd.Record())
			check(err)
			r.Ports = append(r.Ports, v)
		case KindPortEpoch:
			var v PortEpoch
			_, err := v.Parse(rd.Record())
			check(err)
			r.PortEpochs = append(r.PortEpochs, v)
		case KindFlow4, KindFlow6:
			var v Flow
			_, err := v.Parse(rd.Record())
			check(err)
			r.Flows = append(r.Flows, v)
		case KindMeter:
			var v Meter
			_, err := v.Parse(rd.Record())
			check(err)
			r.Meters = append(r.Meters, v)
		case KindPause:
			var v Pause
			_, err := v.Parse(rd.Record())
			check(err)
			r.Pauses = append(r.Pauses, v)
		case KindCongestionEpisode:
			var v CongestionEpisode
			_, err := v.Parse(rd.Record())
			check(err)
			r.Episodes = append(r.Episodes, v)
		case KindPortPairBacklog:
			var v PortPairBacklog
			_, err := v.Parse(rd.Record())
			check(err)
			r.PairBacklogs = append(r.PairBacklogs, v)
		case KindFlowBacklog4, KindFlowBacklog6:
			var v FlowBacklog
			_, err := v.Parse(rd.Record())
			check(err)
			r.FlowBacklogs = append(r.FlowBacklogs, v)
		case KindPauseIntervals, KindCongestionIntervals:
			var v Intervals
			_, err := v.Parse(rd.Record())
			check(err)
			r.Intervals = append(r.Intervals, v)
		case KindBacklogHistory:
			var v BacklogHistory
			_, err := v.Parse(rd.Record())
			check(err)
			r.Histories = append(r.Histories, v)
		case KindSettings:
			var v Settings
			_, err := v.Parse(rd.Record())
			check(err)
			r.Settings = append(r.Settings, v)
		default:
			t.Fatalf("kind %d; want one of ours", rd.Kind())
		}
	}
}

// small draws numbers that are often zero, so that empty records occur.
func small(t *rapid.T, name string) uint64 {
	return rapid.SampledFrom([]uint64{0, 0, 0, 1, 1 << 20}).Draw(t, name)
}

// TestBuilderReachesReader draws a report, builds it, reads it back chunk by
// chunk and expects the records that say something, in order, up to the ones
// counted as dropped.
func TestBuilderReachesReader(t *testing.T) {
	var b Builder // used again: nothing of an earlier report may show
	rapid.Check(t, func(t *rapid.T) {
		h := Header{Switch: 5, Snapshot: 9, EpochLength: 1 << 20}
		size := Overhead + maxRecord + rapid.IntRange(0, 300).Draw(t, "spare")
		limit := rapid.IntRange(1, 12).Draw(t, "limit")
		if err := b.Reset(h, size, limit); err != nil {
			t.Fatalf("Reset(%d, %d) = %v", size, limit, err)
		}
		var want report
		said, evicted := 0, false
		largest, tooLong := maxRecord, uint32(0) // records of intervals vary; small chunks hold not all of them
		for range rapid.IntRange(0, 60).Draw(t, "records") {
			epoch, prio := uint32(small(t, "epoch")), model.Priority(rapid.IntRange(0, 7).Draw(t, "priority"))
			before := b.head.Dropped
			switch rapid.IntRange(1, 11).Draw(t, "kind") {
			case 1:
				v := Port{Port: 1, Priority: prio, Remaining: time.Duration(small(t, "remaining")), Sent: small(t, "sent")}
				v.Paused = v.Remaining > 0
				b.AddPort(v)
				if v.Remaining|time.Duration(v.Sent) != 0 {
					said++
					if b.head.Dropped == before {
						want.Ports = append(want.Ports, v)
					}
				}
			case 2:
				v := PortEpoch{Epoch: epoch, Port: 1, Priority: prio, Packets: uint32(small(t, "packets")), PausedDepth: small(t, "depth")}
				b.AddPortEpoch(v)
				if v.Packets != 0 || v.PausedDepth != 0 {
					said++
					if b.head.Dropped == before {
						want.PortEpochs = append(want.PortEpochs, v)
					}
				}
			case 3:
				v := rapid.SampledFrom([]Flow{sampleFlow, sampleFlow6, {Key: sampleFlow.Key}}).Draw(t, "flow")
				v.Epoch, v.Priority = epoch, prio
				b.AddFlow(&v)
				if v.Packets != 0 {
					said++
					if b.head.Dropped == before {
						want.Flows = append(want.Flows, v)
						evicted = evicted || v.Evicted
					}
				}
			case 4:
				v := Meter{Epoch: epoch, In: 1, Out: 2, Priority: prio, Bytes: small(t, "bytes")}
				b.AddMeter(v)
				if v.Bytes != 0 {
					said++
					if b.head.Dropped == before {
						want.Meters = append(want.Meters, v)
					}
				}
			case 5:
				v := Pause{Port: 1, Priority: prio, Pauses: small(t, "pauses"), BytesAtBurstStart: small(t, "bytes at burst start")}
				b.AddPause(v)
				if v.Pauses != 0 {
					said++
					if b.head.Dropped == before {
						want.Pauses = append(want.Pauses, v)
					}
				}
			case 6:
				v := PortPairBacklog{In: 1, Out: 2, Priority: prio, Packets: uint32(small(t, "packets"))}
				b.AddPortPairBacklog(v)
				if v.Packets != 0 {
					said++
					if b.head.Dropped == before {
						want.PairBacklogs = append(want.PairBacklogs, v)
					}
				}
			case 7:
				key := rapid.SampledFrom([]model.FlowKey{sampleFlow.Key, sampleFlow6.Key}).Draw(t, "key")
				v := FlowBacklog{PortPairBacklog{In: 1, Out: 2, Priority: prio, Packets: uint32(small(t, "packets"))}, key}
				b.AddFlowBacklog(&v)
				if v.Packets != 0 {
					said++
					if b.head.Dropped == before {
						want.FlowBacklogs = append(want.FlowBacklogs, v)
					}
				}
			case 8:
				v := CongestionEpisode{Port: 1, Priority: prio, Last: 5, MaxBytes: small(t, "most")}
				b.AddCongestionEpisode(v)
				if v.MaxBytes != 0 {
					said++
					if b.head.Dropped == before {
						want.Episodes = append(want.Episodes, v)
					}
				}
			case 9:
				v := rapid.SampledFrom([]Intervals{samplePauses, sampleCongestion, {}}).Draw(t, "intervals")
				for n := rapid.IntRange(0, MaxIntervals).Draw(t, "more"); n > 0 && v.Count > 0 && !v.Open; n-- {
					v.Add(Interval{Start: Age(2 * n), End: Age(2*n - 1)})
				}
				b.AddIntervals(&v)
				if v.Count != 0 {
					said++
					if b.head.Dropped == before {
						want.Intervals = append(want.Intervals, v)
					}
					if v.size() <= size-Overhead {
						largest = max(largest, v.size())
					} else {
						tooLong++
					}
				}
			case 10:
				v := Settings{MTU: model.Bytes(small(t, "mtu"))}
				b.AddSettings(v)
				if v.MTU != 0 {
					said++
					if b.head.Dropped == before {
						want.Settings = append(want.Settings, v)
					}
				}
			case 11:
				v := BacklogHistory{In: 2, Out: 1, Priority: prio}
				for i := range rapid.IntRange(0, MaxBacklogPoints).Draw(t, "points") {
					v.Add(BacklogPoint{At: Age(100 - i), Bytes: uint32(small(t, "backlog"))})
				}
				b.AddBacklogHistory(&v)
				if v.Count > 0 {
					said++
					if b.head.Dropped == before {
						want.Histories = append(want.Histories, v)
					}
					if n := BacklogHistorySize(int(v.Count)); n <= size-Overhead {
						largest = max(largest, n)
					} else {
						tooLong++
					}
				}
			}
		}

		var got report
		n := b.Finish()
		if n < 1 || n > limit {
			t.Fatalf("%d chunks; want 1 to %d", n, limit)
		}
		h.Dropped = uint32(said - len(want.Ports) - len(want.PortEpochs) - len(want.Flows) - len(want.Meters) -
			len(want.Pauses) - len(want.PairBacklogs) - len(want.FlowBacklogs) - len(want.Episodes) - len(want.Intervals) - len(want.Settings) - len(want.Histories))
		if h.Dropped > 0 {
			h.Flags |= Truncated
		}
		if evicted {
			h.Flags |= Evictions
		}
		for i := range n {
			var c Chunk
			wire := b.Chunk(i)
			if used, err := c.Parse(wire); err != nil || used != len(wire) || used > size {
				t.Fatalf("Parse(chunk %d of %d bytes) = %d, %v; want all, at most %d", i, len(wire), used, err, size)
			}
			if c.Header != h || int(c.Index) != i || int(c.Total) != n {
				t.Fatalf("chunk %d of %d: %+v, %d of %d; want %+v", i, n, c.Header, c.Index, c.Total, h)
			}
			if i < n-1 && len(wire)+largest <= size {
				t.Fatalf("chunk %d has %d bytes of %d: any record would still fit", i, len(wire), size)
			}
			got.read(t, &c)
		}
		if h.Dropped > tooLong && n < limit {
			t.Fatalf("%d records dropped with %d chunks of %d", h.Dropped, n, limit)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("report (-want +got):\n%s", diff)
		}
	})
}

func TestBuilderKeepsWhatTheSwitchLost(t *testing.T) {
	h := header() // two records lost before
	h.Flags = Truncated
	var b Builder
	if err := b.Reset(h, Overhead+maxRecord, 1); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		b.AddPort(samplePort) // two fit into 81 bytes
	}
	b.Finish()
	var c Chunk
	if _, err := c.Parse(b.Chunk(0)); err != nil || c.Dropped != 5 || c.Flags != Truncated {
		t.Errorf("Parse = %v, dropped %d, flags %b; want nil, 5, %b", err, c.Dropped, c.Flags, Truncated)
	}
}

func TestResetErrors(t *testing.T) {
	var b Builder
	for name, tc := range map[string]struct {
		size, limit int
		length      time.Duration
		want        string
	}{
		"size":     {136, 1, 1, "epoch: chunk size 136, want at least 137"},
		"no chunk": {1400, 0, 1, "epoch: chunk limit 0, want 1 to 65535"},
		"too many": {1400, 65536, 1, "epoch: chunk limit 65536, want 1 to 65535"},
		"length":   {1400, 1, 0, "epoch: epoch length 0s, want more than 0"},
	} {
		t.Run(name, func(t *testing.T) {
			err := b.Reset(Header{EpochLength: tc.length}, tc.size, tc.limit)
			if err == nil || err.Error() != tc.want {
				t.Errorf("Reset(%v, %d, %d) = %v; want %s", tc.length, tc.size, tc.limit, err, tc.want)
			}
		})
	}
}

// build is a report of 1000 flows, as a busy switch sends it.
func build(b *Builder) int {
	if err := b.Reset(header(), 1465, 1000); err != nil {
		panic(err)
	}
	for range 1000 {
		b.AddFlow(&sampleFlow)
	}
	return b.Finish()
}

func TestBuilderAllocs(t *testing.T) {
	var b Builder
	build(&b)
	if n := testing.AllocsPerRun(10, func() { build(&b) }); n != 0 {
		t.Errorf("a second report allocates %v times", n)
	}
}

func BenchmarkBuild(b *testing.B) {
	var bu Builder
	for b.Loop() {
		build(&bu)
	}
	b.ReportMetric(1000*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrecord/s")
}

func BenchmarkRead(b *testing.B) {
	var bu Builder
	n := build(&bu)
	var c Chunk
	var f Flow
	for b.Loop() {
		for i := range n {
			if _, err := c.Parse(bu.Chunk(i)); err != nil {
				b.Fatal(err)
			}
			for r := c.Reader(); r.Next(); {
				f.Parse(r.Record())
			}
		}
	}
	b.ReportMetric(1000*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrecord/s")
}
