package recent

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/store"
)

// TestStepsAreSums compares steps with a list of all rows that were added: every
// wider step after the floor is the sum of its parts, and the number of rows stays
// within the limit.
func TestStepsAreSums(t *testing.T) {
	const unit = int64(time.Second)
	rapid.Check(t, func(rt *rapid.T) {
		most := rapid.IntRange(0, 60).Draw(rt, "most")
		floor := rapid.SampledFrom([]int64{math.MinInt64, 3 * unit}).Draw(rt, "floor")
		s := NewSteps(func(to, more *int) { *to += *more }, most, floor)
		type part struct {
			begin int64
			Row[int]
		}
		var reference []part
		for range rapid.IntRange(0, 40).Draw(rt, "adds") {
			at := int64(rapid.IntRange(-10, 30).Draw(rt, "at")) * unit
			if rapid.IntRange(0, 9).Draw(rt, "forget") == 0 {
				s.RemoveBefore(at)
				reference = slices.DeleteFunc(reference, func(p part) bool { return p.begin < at })
				continue
			}
			var rows []Row[int]
			for i := range rapid.IntRange(1, 5).Draw(rt, "series") {
				series := Series{fmt.Sprint("s", i%3), model.PortID(i)}
				rows = append(rows, Row[int]{series, rapid.IntRange(1, 9).Draw(rt, "sum")})
			}
			s.AddRows(at, rows)
			for _, r := range rows {
				reference = append(reference, part{at, r})
			}
		}
		v := s.View()
		if v.rows > most {
			rt.Fatalf("%d rows; want at most %d", v.rows, most)
		}
		width := time.Duration(rapid.IntRange(1, 7).Draw(rt, "width")) * time.Second
		name := rapid.SampledFrom([]string{"", "s1", "none"}).Draw(rt, "name")
		first, last := int64(rapid.IntRange(-12, 30).Draw(rt, "first"))*unit, int64(rapid.IntRange(-10, 40).Draw(rt, "last"))*unit
		want := map[int64]map[Series]int{}
		for _, p := range reference {
			begin := store.FloorStep(p.begin, width)
			if begin <= v.Floor() || begin < first || begin > last || name != "" && name != p.Name {
				continue
			}
			if want[begin] == nil {
				want[begin] = map[Series]int{}
			}
			want[begin][p.Series] += p.Sums
		}
		before := int64(math.MaxInt64)
		for begin, rows := range v.NewestFirst(name, width, first, last) {
			if begin >= before {
				rt.Fatalf("step %d comes after %d; want the newest first", begin, before)
			}
			before = begin
			if !slices.IsSortedFunc(rows, func(a, b Row[int]) int { return a.Compare(b.Series) }) {
				rt.Fatalf("rows %v are not by series", rows)
			}
			for _, r := range rows {
				if want[begin][r.Series] != r.Sums {
					rt.Fatalf("%v in step %d is %d; want %d", r.Series, begin, r.Sums, want[begin][r.Series])
				}
				delete(want[begin], r.Series)
			}
			if len(want[begin]) == 0 {
				delete(want, begin)
			}
		}
		if len(want) > 0 {
			rt.Fatalf("not given: %v", want)
		}
	})
}
