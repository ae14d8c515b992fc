package inswitch

import "slices"

// Program is one telemetry program in one switch. The host calls it for one
// event at a time, and whatever else the program offers (settings that a
// controller changes, counters) only between events.
type Program interface {
	// Stages are those at which the program wants to see events. They do not
	// change.
	Stages() Stages
	// Observe takes an event and says in act, which comes empty, what is to be
	// done. It keeps neither.
	Observe(ev *Event, act *Actions)
}

// Host carries out actions. The data plane implements it.
type Host interface {
	// Do carries out what a program wants, save the verdict. Program is its
	// number in the pipeline; its timers come back to Pipeline.Wake with it.
	// After a change of the packet, ev.Packet shows what is now true.
	Do(program int, ev *Event, act *Actions)
}

// Pipeline runs the programs of one switch in a fixed order, the same at every
// stage. A program sees what those before it did to the packet, and does not
// see what they dropped or took.
//
// Hence the order to give: programs that only look (epoch, flowset) before
// those that act, so that they count what others drop; mirror before label, so
// that a mirrored packet is as it arrived; label last, so that the size that
// others saw is the one that waited in the queue.
type Pipeline struct {
	programs []Program
	at       [numStages]*step // the first
	strange  *step            // the first at Ingress for what is not IP
	passing  *step            // the first at Dequeue for what did not wait
	stages   Stages
	act      Actions
}

// step is a program at a stage and what comes behind it. (A list, because a
// pipeline is gone through for every packet: an index and a length would have to
// be kept across every call.)
type step struct {
	program Program
	number  int
	next    *step
}

// NewPipeline makes a pipeline of programs in this order.
func NewPipeline(programs ...Program) *Pipeline {
	pl := &Pipeline{programs: programs}
	for i, p := range slices.Backward(programs) {
		s := p.Stages()
		for stage := range numStages {
			if s.Has(stage) || stage == Dequeue && s&Waiting != 0 {
				pl.at[stage] = &step{p, i, pl.at[stage]}
				pl.stages |= At(stage)
			}
		}
		if s.Has(Ingress) || s&Strange != 0 {
			pl.strange = &step{p, i, pl.strange}
			pl.stages |= At(Ingress)
		}
		if s.Has(Dequeue) {
			pl.passing = &step{p, i, pl.passing}
		}
	}
	return pl
}

// Stages are those at which some program wants to see events.
func (pl *Pipeline) Stages() Stages { return pl.stages }

// Programs returns the programs in their order.
func (pl *Pipeline) Programs() []Program { return pl.programs }

// Run shows an event of any stage but Timer to its programs, one after the
// other, and has the host carry out what they want. The host carries out the
// verdict, which it ignores at PFC.
func (pl *Pipeline) Run(ev *Event, host Host) Verdict {
	s := pl.at[ev.Stage]
	switch {
	case ev.Stage == Ingress && !ev.Packet.IP():
		s = pl.strange
	case ev.Stage == Dequeue && ev.Passes:
		s = pl.passing
	}
	for ; s != nil; s = s.next {
		s.program.Observe(ev, &pl.act)
		if !pl.act.used {
			continue
		}
		if v := pl.settle(s.number, ev, host); v != Pass && ev.Stage != PFC {
			return v
		}
	}
	return Pass
}

// Wake shows an event at Timer to the one program it is for. When a host
// starts, it wakes every program of stage Timer with the timer Start.
func (pl *Pipeline) Wake(program int, ev *Event, host Host) {
	pl.programs[program].Observe(ev, &pl.act)
	if pl.act.used {
		pl.settle(program, ev, host)
	}
}

func (pl *Pipeline) settle(program int, ev *Event, host Host) Verdict {
	v := pl.act.Verdict
	host.Do(program, ev, &pl.act)
	pl.act.Reset()
	return v
}
