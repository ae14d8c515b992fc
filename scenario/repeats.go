package scenario

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
)

// Skipped is the rest of a job whose iterations repeated, and which was not simulated.
// The times of its end assume that every iteration to come takes as long as one of the
// last steadyPeriods: as their mean, the shortest and the longest of them, and that the last
// one, which none overlaps, differs by less than a period.
type Skipped struct {
	Name      string        `json:"name"` // of the traffic item
	Simulated int           `json:"simulated"`
	Total     int           `json:"total"`
	Period    time.Duration `json:"period_ns"` // mean, from one end to the next
	Shortest  time.Duration `json:"shortest_ns"`
	Longest   time.Duration `json:"longest_ns"`
	End       model.Time    `json:"end"`
	Earliest  model.Time    `json:"earliest"`
	Latest    model.Time    `json:"latest"`
}

// String says what was assumed, and what follows from it.
func (s *Skipped) String() string {
	return fmt.Sprintf("iterations %d to %d of %s were not simulated: the last %d took %v each (%v to %v); "+
		"if they go on like this, the last one ends at %v, between %v and %v",
		s.Simulated+1, s.Total, s.Name, steadyPeriods, model.FormatDuration(s.Period), model.FormatDuration(s.Shortest),
		model.FormatDuration(s.Longest), s.End, s.Earliest, s.Latest)
}

// steadyPeriods is how many iterations in a row must take as long as each other, but for
// Options.SkipRepeats of their mean.
const steadyPeriods = 16

// repeats finds the instant from which a job only repeats itself.
type repeats struct {
	x      *session
	spread float64
	item   int         // of Scenario.Traffic
	sizes  []int       // flows of each iteration
	others int         // flows of other items
	from   engine.Time // the last fault, migration or change of routes
	look   int         // finished flows at which to look again

	skipped *Skipped // once the job is steady
	why     string   // else: what was missing when last looked
}

// watchRepeats finds the job of a scenario, if its run is to end when it is steady.
func (x *session) watchRepeats(o Options) error {
	if o.SkipRepeats == 0 {
		return nil
	}
	if !(o.SkipRepeats > 0 && o.SkipRepeats < 1) {
		return fmt.Errorf("iterations that differ by %v of their mean, want a share above 0 and below 1", o.SkipRepeats)
	}
	r := &repeats{x: x, spread: o.SkipRepeats, item: -1, why: fmt.Sprintf("fewer than %d iterations ended", steadyPeriods+1)}
	for i := range x.s.Traffic {
		switch x.s.Traffic[i].Generator.(type) {
		case traffic.Collective, traffic.RingAllReduce, traffic.AllToAll, traffic.Pipeline:
		default:
			continue
		}
		if r.item >= 0 {
			return wrap(x.s.Traffic[i].Position, "traffic "+x.s.Traffic[i].Name, fmt.Errorf(
				"a second job beside %s, want one to skip repeated iterations: those of the other change when one ends", x.s.Traffic[r.item].Name))
		}
		r.item = i
	}
	if r.item < 0 {
		return fmt.Errorf("no job whose iterations repeat, want a collective, an all-reduce, an all-to-all or a pipeline")
	}
	p := x.parts[r.item]
	for id := p.first; id < p.end; id++ {
		if _, spec := x.net.FlowKey(id); spec.Group > 0 {
			r.sizes = append(r.sizes, make([]int, max(0, spec.Group-len(r.sizes)))...)
			r.sizes[spec.Group-1]++
		}
	}
	r.others = x.flows - (p.end - p.first)
	r.from = x.lastChange()
	if len(r.sizes) > steadyPeriods {
		for _, flows := range r.sizes[:steadyPeriods+1] {
			r.look += flows
		}
	}
	x.repeats = r
	return nil
}

// lastChange is when the scenario has changed the fabric for the last time.
func (x *session) lastChange() (last engine.Time) {
	for i := range x.s.Faults {
		f := &x.s.Faults[i]
		end := timeOf(f.At) + engine.Of(f.For)
		if d, ok := f.Fault.(sim.LinkDown); ok && d.Up > 0 && f.For == 0 {
			end = engine.Of(MaxDuration) // it flaps to the end
		}
		last = max(last, end)
	}
	for i := range x.s.Migrations {
		m := &x.s.Migrations[i]
		longest := m.Delay + m.Spread
		for _, late := range m.Late {
			longest = max(longest, late)
		}
		last = max(last, timeOf(m.At)+engine.Of(longest))
	}
	for i := range x.s.Changes {
		last = max(last, timeOf(x.s.Changes[i].At))
	}
	return last
}

// steady reports whether the rest of the run can be skipped. It looks when a fiftieth more
// of the flows have finished, since each look reads all of their records.
func (r *repeats) steady() bool {
	if len(r.sizes) <= steadyPeriods || r.x.net.Finished < r.look {
		return false
	}
	r.look = r.x.net.Finished + max(r.sizes[0], r.x.net.Finished/50)
	if r.x.net.Now() <= r.from {
		r.why = fmt.Sprintf("the scenario changes the fabric until %v", r.x.clock(r.from))
		return false
	}
	ends, others := r.iterationEnds()
	switch {
	case others < r.others:
		r.why = fmt.Sprintf("%d of the %d flows beside %s had not ended", r.others-others, r.others, r.x.s.Traffic[r.item].Name)
	case len(ends) <= steadyPeriods:
		r.why = fmt.Sprintf("%d iterations ended, and %d are needed", len(ends), steadyPeriods+1)
	case len(ends) == len(r.sizes):
		r.why = "all had ended"
	default:
		return r.judge(ends)
	}
	return false
}

// iterationEnds returns when the first iterations ended, up to one that has not, and how
// many flows of other traffic have ended.
func (r *repeats) iterationEnds() (ends []engine.Time, others int) {
	left := slices.Clone(r.sizes)
	at := make([]engine.Time, len(left))
	for _, rec := range slices.Concat(r.x.net.Records(), r.x.net.Computations()) {
		switch g := rec.Spec.Group; {
		case !rec.Finished:
		case r.x.partOf(rec.ID) != r.item:
			others++
		case g > 0:
			left[g-1]--
			at[g-1] = max(at[g-1], rec.Finish)
		}
	}
	n := slices.IndexFunc(left, func(flows int) bool { return flows > 0 })
	if n < 0 {
		n = len(left)
	}
	return at[:n], others
}

// judge compares the last periods.
func (r *repeats) judge(ends []engine.Time) bool {
	last := ends[len(ends)-steadyPeriods-1:]
	shortest, longest := last[1]-last[0], last[1]-last[0]
	for i := 1; i < len(last); i++ {
		shortest, longest = min(shortest, last[i]-last[i-1]), max(longest, last[i]-last[i-1])
	}
	end := last[steadyPeriods]
	mean := (end - last[0]) / steadyPeriods
	if spread := float64(longest-shortest) / float64(mean); !(spread <= r.spread) {
		r.why = fmt.Sprintf("the last %d took %v to %v, which differ by more than %v %%", steadyPeriods,
			model.FormatDuration(shortest.Duration()), model.FormatDuration(longest.Duration()), 100*r.spread)
		return false
	}
	// In nanoseconds: picoseconds of millions of iterations overflow.
	left, ended := time.Duration(len(r.sizes)-len(ends)), r.x.clock(end)
	up := (longest + engine.Nanosecond - 1).Duration()
	r.skipped = &Skipped{
		Name: r.x.s.Traffic[r.item].Name, Simulated: len(ends), Total: len(r.sizes),
		Period: mean.Duration(), Shortest: shortest.Duration(), Longest: up,
		End: ended.Add(left * mean.Duration()), Earliest: ended.Add((left - 1) * shortest.Duration()), Latest: ended.Add((left + 1) * up),
	}
	return true
}

// skips reports whether a flow belongs to an iteration that was skipped.
func (r *repeats) skips(id int, spec *traffic.Flow) bool {
	return r != nil && r.skipped != nil && r.x.partOf(id) == r.item && spec.Group > r.skipped.Simulated
}

// note says in a sentence what was skipped, or why nothing was.
func (r *repeats) note() string {
	if r.skipped != nil {
		return r.skipped.String()
	}
	return fmt.Sprintf("no iterations of %s were skipped: %s", r.x.s.Traffic[r.item].Name, r.why)
}
