package embedded

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// TestSecondsStayInTheirMemory: sums of old seconds are evicted, with the flows that have
// none left, and a view knows from when on it is complete.
func TestSecondsStayInTheirMemory(t *testing.T) {
	const limit = 64 * model.KiB
	s := newFlowSeconds(limit, math.MinInt64)
	path := &numberedPath{id: 1, slot: 1e7, switches: []string{"e1"}}
	base := time.Unix(1_700_000_000, 0)
	for second := range 500 {
		b := &record.Batch{}
		var paths []*numberedPath
		for i := range 10 {
			b.Flows = append(b.Flows, record.FlowSlot{
				Time: base.Add(time.Duration(second)*time.Second + time.Duration(i)*time.Millisecond), Packets: 1,
				Flow: model.FlowKey{Src: model.Addr4(uint32(second)), SrcPort: uint16(i), Proto: model.UDP},
			})
			paths = append(paths, path)
		}
		b.Losses = []record.Loss{{Time: base.Add(time.Duration(second) * time.Second), Flow: b.Flows[0].Flow, From: "e1", Packets: 1}}
		s.addBatch(b, paths, int64(second)*11)
	}
	v := s.view()
	if v.bytes+summedFlowSize*len(s.flows) > int(limit) || len(v.seconds) < 10 {
		t.Errorf("%d seconds of %d bytes and %d flows; want some within %v", len(v.seconds), v.bytes, len(s.flows), limit)
	}
	if len(s.flows) != 10*len(v.seconds) || v.flows > 10*(len(v.seconds)+2) || v.flows != len(s.flows)+len(s.free) {
		t.Errorf("%d flows, indices below %d, %d free; want 10 of each of %d seconds", len(s.flows), v.flows, len(s.free), len(v.seconds))
	}
	if want := base.Add(500*time.Second - time.Duration(len(v.seconds))*time.Second).UnixNano(); v.begin != want {
		t.Errorf("complete from %d on; want %d, where the oldest second begins", v.begin, want)
	}
	if v.seq != 500*11 {
		t.Errorf("the newest record has number %d; want %d", v.seq, 500*11)
	}
	s.removeBefore(base.Add(495*time.Second + 1).UnixNano())
	if n := len(s.view().seconds); n != 4 {
		t.Errorf("%d seconds after all before the middle of second 495 were removed; want 4", n)
	}
}

// TestViewsDoNotChange: a reader keeps what it had when records arrive.
func TestViewsDoNotChange(t *testing.T) {
	s := newFlowSeconds(model.MiB, math.MinInt64)
	path := &numberedPath{id: 1}
	add := func() {
		s.addBatch(&record.Batch{
			Flows:  []record.FlowSlot{{Time: time.Unix(5, 0), Packets: 1}},
			Losses: []record.Loss{{Time: time.Unix(5, 0), Packets: 1}},
		}, []*numberedPath{path}, s.view().seq)
	}
	add()
	before := s.view()
	add()
	for view, want := range map[*secondsView]uint64{before: 1, s.view(): 2} {
		x := view.seconds[0]
		if x.rows[0].packets != want || x.losses[0].packets != want || x.seq != int64(2*want) {
			t.Errorf("view of batch %d has %d packets, %d lost, up to record %d", want, x.rows[0].packets, x.losses[0].packets, x.seq)
		}
	}
}

func TestLargest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.IntRange(0, 50), 0, 100).Draw(t, "list")
		n := rapid.IntRange(1, 20).Draw(t, "n")
		want := slices.Sorted(slices.Values(list))
		want = want[:min(n, len(want))]
		if got := largest(list, n, cmp.Compare[int]); !slices.Equal(got, want) {
			t.Fatalf("largest of %d: %v, want %v", n, got, want)
		}
	})
}

// TestFlowsKeepTheirNumbers: as many flows as half of those in memory keep theirs, in
// whatever order they return.
func TestFlowsKeepTheirNumbers(t *testing.T) {
	n := flowIDs{most: 200}
	n.reset(0, 0)
	flows := map[string]int64{}
	for round := range 50 {
		for i := range 100 {
			r := &record.FlowSlot{Flow: model.FlowKey{SrcPort: uint16((i*(2*round+1) + round) % 100)}, Src: "h1", Dst: fmt.Sprint("h", i%3)}
			r.Dst = fmt.Sprint("h", r.Flow.SrcPort%3)
			id, _ := n.number(r)
			name := fmt.Sprint(r.Flow, r.Dst)
			if was := flows[name]; was != 0 && was != id {
				t.Fatalf("round %d: %s has number %d, had %d", round, name, id, was)
			}
			flows[name] = id
		}
	}
	if n.twice || len(n.recent)+len(n.former) > 200 {
		t.Errorf("twice %t, %d and %d flows in memory", n.twice, len(n.recent), len(n.former))
	}
	for i := range 1000 {
		n.number(&record.FlowSlot{Flow: model.FlowKey{SrcPort: uint16(i)}})
	}
	if !n.twice || len(n.recent)+len(n.former) > 200 {
		t.Errorf("after 1000 flows: twice %t, %d and %d flows in memory, want at most 200", n.twice, len(n.recent), len(n.former))
	}
}
