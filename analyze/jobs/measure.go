package jobs

import (
	"cmp"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// maxSteps bounds the steps that a job lists, the newest; all are measured.
const maxSteps = 1000

// measure computes steps, ranks and cells from the rhythm.
func (j *Job) measure(a *Activity) {
	steps := j.rhythm.steps
	var exchange, period []int
	j.Steps = nil
	for i, s := range steps {
		n := s.last - s.first + 1
		exchange = append(exchange, n)
		if i > 0 {
			period = append(period, s.first-steps[i-1].first)
		}
		j.Steps = append(j.Steps, Step{a.time(s.first), time.Duration(n) * a.Slot})
	}
	j.Steps = j.Steps[max(len(j.Steps)-maxSteps, 0):]
	j.Exchange, j.Period = time.Duration(median(exchange))*a.Slot, time.Duration(median(period))*a.Slot

	first := make([][]int, len(j.Hosts)) // slot of the first send of each rank in each step; -1: none
	last := make([][]int, len(j.Hosts))  // of its last send or receive
	for i := range j.Hosts {
		first[i], last[i] = unset(len(steps)), unset(len(steps))
	}
	type edge struct{ src, dst int }
	cells := map[edge]*cell{}
	for _, f := range j.flows {
		src, dst := j.members[f.src], j.members[f.dst]
		c := cells[edge{src, dst}]
		if c == nil {
			c = newCell(f, len(steps))
			cells[edge{src, dst}] = c
		}
		c.add(f, steps)
		f.spans(steps, func(i int, s span) {
			if first[src][i] < 0 || s.first < first[src][i] {
				first[src][i] = s.first
			}
			last[src][i], last[dst][i] = max(last[src][i], s.last), max(last[dst][i], s.last)
		})
	}
	j.Ranks = j.Ranks[:0:0]
	for i, h := range j.Hosts {
		var think []int
		for s := 1; s < len(steps); s++ {
			if first[i][s] >= 0 && last[i][s-1] >= 0 {
				think = append(think, first[i][s]-last[i][s-1]-1)
			}
		}
		j.Ranks = append(j.Ranks, Rank{Host: h, Think: time.Duration(median(think)) * a.Slot})
	}
	j.Cells = j.Cells[:0:0]
	for e, c := range cells {
		out := c.result(steps, a.Slot)
		j.Ranks[e.src].Sent += out.Bytes
		j.Cells = append(j.Cells, out)
	}
	slices.SortFunc(j.Cells, func(x, y Cell) int {
		return cmp.Or(cmp.Compare(j.members[x.Src], j.members[y.Src]), cmp.Compare(j.members[x.Dst], j.members[y.Dst]))
	})
	think := make([]int64, len(j.Ranks))
	for i := range j.Ranks {
		think[i] = int64(j.Ranks[i].Think)
	}
	usual := time.Duration(median(think))
	for i := range j.Ranks {
		j.Ranks[i].Late = max(j.Ranks[i].Think-usual, 0)
	}
}

func unset(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = -1
	}
	return list
}

// spans calls visit with the first and the last slot of a flow in each step in which it sent.
func (f *flow) spans(steps []span, visit func(step int, s span)) {
	i := 0
	for k := 0; k < len(f.points); {
		for i < len(steps) && steps[i].last < f.points[k].slot {
			i++
		}
		if i == len(steps) {
			return
		}
		if f.points[k].slot < steps[i].first {
			k++
			continue
		}
		s := span{f.points[k].slot, f.points[k].slot}
		for ; k < len(f.points) && f.points[k].slot <= steps[i].last; k++ {
			s.last = f.points[k].slot
		}
		visit(i, s)
	}
}

// cell adds up the flows from one rank to another.
type cell struct {
	largest      *flow
	first, last  []int // by step
	bytes        []int64
	sent, active int64
}

func newCell(f *flow, steps int) *cell {
	return &cell{largest: f, first: unset(steps), last: unset(steps), bytes: make([]int64, steps)}
}

func (c *cell) add(f *flow, steps []span) {
	if f.bytes > c.largest.bytes {
		c.largest = f
	}
	f.spans(steps, func(i int, s span) {
		if c.first[i] < 0 || s.first < c.first[i] {
			c.first[i] = s.first
		}
		c.last[i] = max(c.last[i], s.last)
	})
	sums := make([]float64, len(steps))
	f.inSteps(steps, sums)
	for i, n := range sums {
		c.bytes[i] += int64(n)
	}
	for _, p := range f.points {
		c.sent += int64(p.bytes)
	}
	c.active += int64(len(f.points))
}

func (c *cell) result(steps []span, slot time.Duration) Cell {
	var wait, took []int
	for i, s := range steps {
		if c.first[i] >= 0 {
			wait, took = append(wait, c.first[i]-s.first), append(took, c.last[i]-c.first[i]+1)
		}
	}
	out := Cell{
		Src: c.largest.src, Dst: c.largest.dst, Bytes: uint64(median(c.bytes)), Path: c.largest.path,
		Wait: time.Duration(median(wait)) * slot, Took: time.Duration(median(took)) * slot,
	}
	if c.active > 0 {
		out.Rate = model.Rate(float64(c.sent) * 8 / (float64(c.active) * slot.Seconds()))
	}
	return out
}
