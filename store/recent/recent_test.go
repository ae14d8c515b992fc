package recent

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

var losses = Shape[record.Loss]{
	Time:    func(r *record.Loss) time.Time { return r.Time },
	Flow:    func(r *record.Loss) *model.FlowKey { return &r.Flow },
	Matches: func(r *record.Loss, q *record.Query) bool { return q.Flow.IsZero() || q.Flow == r.Flow },
	Clone:   func(*record.Loss) {},
	Size:    func(*record.Loss) int { return 1 },
}

func flow(i int) model.FlowKey {
	return model.FlowKey{Src: model.Addr4(1), Dst: model.Addr4(2), SrcPort: uint16(i), Proto: model.UDP}
}

// kept is a record of the reference implementation.
type kept struct {
	Position
	flow model.FlowKey
}

// TestNewestFirstEqualsReference compares a set with a list of all records that
// were ever added: after the floor they are the same, and the set stays within its
// limit.
func TestNewestFirstEqualsReference(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		most := rapid.IntRange(0, 3*blockLen).Draw(rt, "most")
		s := New(losses, model.Bytes(most), rapid.SampledFrom([]int64{math.MinInt64, 0, 500}).Draw(rt, "floor"))
		var reference []kept
		seq, clock := int64(1), 0
		for range rapid.IntRange(1, 5).Draw(rt, "steps") {
			if rapid.IntRange(0, 4).Draw(rt, "forget") == 0 {
				before := int64(rapid.IntRange(0, clock+1).Draw(rt, "before"))
				s.RemoveBefore(before)
				reference = slices.DeleteFunc(reference, func(k kept) bool { return k.Time < before })
				continue
			}
			n := rapid.SampledFrom([]int{1, 3, 100, blockLen + 1}).Draw(rt, "records")
			late := rapid.IntRange(0, 2000).Draw(rt, "late")
			batch := make([]record.Loss, n)
			for i := range batch {
				clock++
				ns := int64(clock - (i*7919)%(late+1)) // some are late
				batch[i] = record.Loss{Time: time.Unix(0, ns), Flow: flow(i % 5)}
				reference = append(reference, kept{Position{ns, seq + int64(i)}, batch[i].Flow})
			}
			s.AddRecords(batch, seq)
			seq += int64(n)
		}
		v := s.View()
		if v.bytes > most {
			rt.Fatalf("%d bytes; want at most %d", v.bytes, most)
		}
		var q record.Query
		if rapid.Bool().Draw(rt, "one flow") {
			q.Flow = flow(3)
		}
		before := Position{math.MaxInt64, math.MaxInt64}
		if len(reference) > 0 && rapid.Bool().Draw(rt, "from a position on") {
			before = rapid.SampledFrom(reference).Draw(rt, "before").Position
		}
		first, last := int64(rapid.IntRange(-5, clock).Draw(rt, "first")), int64(rapid.IntRange(0, clock+5).Draw(rt, "last"))
		var want, got []Position
		for _, k := range reference {
			if k.Time > v.Floor() && k.Time >= first && k.Time <= last && k.Compare(before) < 0 && (q.Flow.IsZero() || q.Flow == k.flow) {
				want = append(want, k.Position)
			}
		}
		slices.SortFunc(want, func(a, b Position) int { return b.Compare(a) })
		for p := range v.NewestFirst(&q, before, first, last) {
			got = append(got, p)
		}
		if !slices.Equal(got, want) {
			rt.Fatalf("Back from %d to %d before %v has %d records %.200v; want %d: %.200v", first, last, before, len(got), got, len(want), want)
		}
	})
}

// TestViewsAreImmutable: later additions do not change a view.
func TestViewsAreImmutable(t *testing.T) {
	s := New(losses, 1000, math.MinInt64)
	add := func(seq int64) {
		batch := make([]record.Loss, 100)
		for i := range batch {
			batch[i].Time = time.Unix(0, seq+int64(i*37%100))
		}
		s.AddRecords(batch, seq)
	}
	for i := range int64(5) {
		add(100 * i)
	}
	v := s.View()
	for i := range int64(20) {
		add(250 + 100*i)
	}
	n := 0
	for range v.NewestFirst(&record.Query{}, Position{math.MaxInt64, 0}, math.MinInt64, math.MaxInt64) {
		n++
	}
	if n != 500 || v.Floor() != math.MinInt64 {
		t.Errorf("a view of 500 records has %d, from %d on", n, v.Floor())
	}
	if f := s.View().Floor(); f == math.MinInt64 {
		t.Error("a set of 1000 records accepted 2500, and reports that it is complete")
	}
}
