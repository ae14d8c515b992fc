package recent

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"sort"
	"sync/atomic"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/store"
)

// Series identifies a series of a rollup: a port of a node, or a counter.
type Series struct {
	Name string
	Port model.PortID
}

// Compare orders series by name, then port.
func (s Series) Compare(o Series) int {
	return cmp.Or(cmp.Compare(s.Name, o.Name), cmp.Compare(s.Port, o.Port))
}

// Row holds the sums of a series in one step.
type Row[S any] struct {
	Series
	Sums S
}

// Steps holds the newest steps of a rollup. One goroutine adds and removes; any
// number read.
type Steps[S any] struct {
	add   func(to *S, more *S)
	limit int // rows
	now   atomic.Pointer[StepsView[S]]
}

// StepsView is an immutable snapshot of Steps.
// Invariant: it has every step of the store that begins later than Floor, complete.
type StepsView[S any] struct {
	add   func(to *S, more *S)
	floor int64
	rows  int
	steps []step[S] // in order
}

type step[S any] struct {
	begin int64
	rows  []Row[S] // by series
}

// NewSteps makes steps of at most most rows. The database has steps up to floor
// that are not in memory; add adds sums.
func NewSteps[S any](add func(to *S, more *S), most int, floor int64) *Steps[S] {
	s := &Steps[S]{add: add, limit: most}
	s.now.Store(&StepsView[S]{add: add, floor: floor})
	return s
}

// AddRows adds rows to a step: rows of the same series are added up.
func (s *Steps[S]) AddRows(begin int64, rows []Row[S]) {
	next := *s.now.Load()
	if begin <= next.floor {
		return
	}
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b Row[S]) int { return a.Compare(b.Series) })
	next.steps = slices.Clone(next.steps)
	at, there := slices.BinarySearchFunc(next.steps, begin, func(t step[S], ns int64) int { return cmp.Compare(t.begin, ns) })
	if there {
		old := next.steps[at].rows
		rows = next.merge(old, rows)
		next.rows -= len(old)
	} else {
		next.steps = slices.Insert(next.steps, at, step[S]{begin: begin})
	}
	next.steps[at].rows = rows
	next.rows += len(rows)
	for next.rows > s.limit {
		next.floor = next.steps[0].begin
		next.rows -= len(next.steps[0].rows)
		next.steps = next.steps[1:]
	}
	s.now.Store(&next)
}

// merge merges two sorted runs of rows and adds up rows of the same series.
func (v *StepsView[S]) merge(a, b []Row[S]) []Row[S] {
	out := make([]Row[S], 0, max(len(a), len(b)))
	for len(a) > 0 && len(b) > 0 {
		switch c := a[0].Compare(b[0].Series); {
		case c < 0:
			out, a = append(out, a[0]), a[1:]
		case c > 0:
			out, b = append(out, b[0]), b[1:]
		default:
			out = append(out, a[0])
			v.add(&out[len(out)-1].Sums, &b[0].Sums)
			a, b = a[1:], b[1:]
		}
	}
	return append(append(out, a...), b...)
}

// RemoveBefore removes steps before a time, which the database has removed, too.
func (s *Steps[S]) RemoveBefore(before int64) {
	next := *s.now.Load()
	n := sort.Search(len(next.steps), func(i int) bool { return next.steps[i].begin >= before })
	for _, old := range next.steps[:n] {
		next.rows -= len(old.rows)
	}
	next.steps = next.steps[n:]
	s.now.Store(&next)
}

// View returns a snapshot of the steps.
func (s *Steps[S]) View() *StepsView[S] { return s.now.Load() }

// Floor is the time after which the view has every step.
func (v *StepsView[S]) Floor() int64 { return v.floor }

// NewestFirst iterates over wider steps, newest first: those that begin from first
// to last and later than the floor, with the rows of a node or counter ("" is
// all), in order. Width is a multiple of the steps' width.
func (v *StepsView[S]) NewestFirst(name string, width time.Duration, first, last int64) iter.Seq2[int64, []Row[S]] {
	return func(yield func(int64, []Row[S]) bool) {
		if v.floor == math.MaxInt64 {
			return
		}
		first = max(first, v.floor+1)
		for end := len(v.steps); end > 0; {
			begin := store.FloorStep(v.steps[end-1].begin, width)
			from := sort.Search(end, func(i int) bool { return v.steps[i].begin >= begin })
			if begin < first {
				return
			}
			if begin <= last {
				var rows []Row[S]
				for i := range v.steps[from:end] {
					rows = v.merge(rows, v.steps[from+i].rowsOf(name))
				}
				if len(rows) > 0 && !yield(begin, rows) {
					return
				}
			}
			end = from
		}
	}
}

// rowsOf returns the rows of a name.
func (t *step[S]) rowsOf(name string) []Row[S] {
	if name == "" {
		return t.rows
	}
	low := sort.Search(len(t.rows), func(i int) bool { return t.rows[i].Name >= name })
	high := low + sort.Search(len(t.rows)-low, func(i int) bool { return t.rows[low+i].Name > name })
	return t.rows[low:high]
}
