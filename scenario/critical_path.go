package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
)

// CriticalPath is the chain of flows and computations that determined when a
// traffic item was complete: each waited for the one before. Its parts add up
// to Length.
type CriticalPath struct {
	Name      string        `json:"name"` // of the traffic item
	Length    time.Duration `json:"length_ns"`
	Computing time.Duration `json:"computing_ns"` // as planned
	Transfers time.Duration `json:"transfers_ns"` // as on an empty fabric
	Waiting   time.Duration `json:"waiting_ns"`   // for the start of its first flow
	Late      time.Duration `json:"late_ns"`      // beyond that
	// Delayed says who was late, the latest first.
	Delayed []Delayed `json:"delayed"`
}

// Delayed is a host whose computations were late, or two hosts whose transfers
// were, on a critical path.
type Delayed struct {
	By        string        `json:"by"` // "h3", or "h0>h4"
	Computing bool          `json:"computing"`
	Late      time.Duration `json:"late_ns"`
	Step      int           `json:"step,omitempty"` // group in which it was latest; 0: no groups
}

// maxDelayed bounds the list of a critical path.
const maxDelayed = 8

// String prints the path in a sentence.
func (c *CriticalPath) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "critical path of %s: %v, of which %v computing and %v transfers on an empty fabric, %v late", c.Name,
		model.FormatDuration(c.Length), model.FormatDuration(c.Computing), model.FormatDuration(c.Transfers), model.FormatDuration(c.Late))
	for i, d := range c.Delayed {
		if i == 0 {
			b.WriteString("; delayed by ")
		} else {
			b.WriteString(", ")
		}
		what := "transfers"
		if d.Computing {
			what = "computing"
		}
		fmt.Fprintf(&b, "%s %s (+%v", d.By, what, model.FormatDuration(d.Late))
		if d.Step > 0 {
			fmt.Fprintf(&b, ", most in step %d", d.Step)
		}
		b.WriteString(")")
	}
	return b.String()
}

// criticalPaths returns the path of each traffic item whose flows wait for each
// other and have all finished.
func (x *session) criticalPaths() []CriticalPath {
	out := []CriticalPath{}
	records := make([]*sim.FlowRecord, x.flows)
	cores, queues := make(map[coreEnd]int), make(map[queueID][]*sim.FlowRecord)
	for _, list := range [][]sim.FlowRecord{x.net.Records(), x.net.Computations()} {
		for i := range list {
			r := &list[i]
			if records[r.ID] = r; r.Spec.IsComputation() {
				cores[coreEnd{r.Spec.Src, r.Spec.Core, r.Finish}] = r.ID
			} else if q := (queueID{r.Spec.Src, r.Spec.Queue}); q.queue != 0 {
				queues[q] = append(queues[q], r)
			}
		}
	}
	for _, q := range queues {
		slices.SortFunc(q, func(a, b *sim.FlowRecord) int { return cmp.Compare(a.Start, b.Start) })
	}
	for i, p := range x.parts {
		last, chained := -1, false
		for id := p.first; id < p.end; id++ {
			r := records[id]
			if r == nil || !r.Finished {
				last = -1
				break
			}
			chained = chained || len(r.Spec.After) > 0
			if last < 0 || r.Finish > records[last].Finish {
				last = id
			}
		}
		if last >= 0 && chained {
			w := pathWalk{x: x, records: records, cores: cores, queues: queues, first: p.first, late: make(map[lateKey]*Delayed)}
			out = append(out, w.walk(x.s.Traffic[i].Name, last))
		}
	}
	return out
}

// coreEnd is where and when a computation ended.
type coreEnd struct {
	host model.NodeID
	core uint8
	at   engine.Time
}

// queueID is a send queue of a host.
type queueID struct {
	host  model.NodeID
	queue uint32
}

type lateKey struct {
	src, dst model.NodeID
}

// pathWalk follows one critical path backwards.
type pathWalk struct {
	x       *session
	records []*sim.FlowRecord
	cores   map[coreEnd]int
	queues  map[queueID][]*sim.FlowRecord // by start
	first   int                           // index of the item's first flow
	late    map[lateKey]*Delayed
	worst   map[lateKey]time.Duration
}

func (w *pathWalk) walk(name string, last int) CriticalPath {
	w.worst = make(map[lateKey]time.Duration)
	c := CriticalPath{Name: name, Length: w.records[last].Finish.Duration()}
	var computing, transfers, waiting engine.Time
	until := w.records[last].Finish
	for id := last; id >= 0; {
		r := w.records[id]
		took := until - r.Start
		planned := min(took, r.Ideal)
		if r.Spec.IsComputation() {
			computing += planned
		} else {
			transfers += planned
		}
		w.addLateness(r, r.Spec.Dst, took-planned)
		before, known := w.predecessor(r)
		gap := r.Start - known
		if before < 0 {
			waiting = gap
			break
		}
		thinking := min(gap, engine.Of(r.Spec.Delay))
		computing += thinking
		w.addLateness(r, r.Spec.Src, gap-thinking)
		id, until = before, known
	}
	c.Computing, c.Transfers, c.Waiting = computing.Duration(), transfers.Duration(), waiting.Duration()
	c.Late = c.Length - c.Computing - c.Transfers - c.Waiting
	for _, d := range w.late {
		c.Delayed = append(c.Delayed, *d)
	}
	slices.SortFunc(c.Delayed, func(a, b Delayed) int { return cmp.Or(cmp.Compare(b.Late, a.Late), cmp.Compare(a.By, b.By)) })
	c.Delayed = c.Delayed[:min(len(c.Delayed), maxDelayed)]
	return c
}

// predecessor returns what a flow or computation waited for last, and when its
// host knew of the end; -1 and the start of the run where it waited for nothing.
func (w *pathWalk) predecessor(r *sim.FlowRecord) (id int, known engine.Time) {
	id = -1
	for _, a := range r.Spec.After {
		dep := w.records[w.first+a]
		at := dep.Finish
		if dep.Spec.Dst == r.Spec.Src && dep.Arrived > 0 {
			at = dep.Arrived
		}
		if id < 0 || at > known {
			id, known = w.first+a, at
		}
	}
	if r.Spec.IsComputation() {
		// It may have waited for its core.
		if on, ok := w.cores[coreEnd{r.Spec.Src, r.Spec.Core, r.Start}]; ok && on != r.ID && r.Start > known {
			return on, r.Start
		}
	}
	if q := w.queues[queueID{r.Spec.Src, r.Spec.Queue}]; r.Spec.Queue != 0 && r.Start > known+engine.Of(r.Spec.Delay) {
		// It may have waited for the one before it in its queue to be sent.
		at, _ := slices.BinarySearchFunc(q, r.Start, func(f *sim.FlowRecord, t engine.Time) int { return cmp.Compare(f.Start, t) })
		if at > 0 && q[at-1].Finish > r.Start {
			return q[at-1].ID, r.Start
		}
	}
	return id, known
}

// addLateness adds the lateness of a flow to that of its host, or of its host and
// another.
func (w *pathWalk) addLateness(r *sim.FlowRecord, dst model.NodeID, by engine.Time) {
	late := by.Duration()
	if late <= 0 {
		return
	}
	src := r.Spec.Src
	key := lateKey{src, dst}
	d := w.late[key]
	if d == nil {
		d = &Delayed{By: w.x.fabric.Node(src).Name, Computing: src == dst}
		if src != dst {
			d.By += ">" + w.x.fabric.Node(dst).Name
		}
		w.late[key] = d
	}
	d.Late += late
	if late > w.worst[key] {
		w.worst[key], d.Step = late, r.Spec.Group
	}
}
