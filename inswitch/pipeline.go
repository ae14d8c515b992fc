package inswitch

import "slices"

// Program is one telemetry program in one switch. The host calls it for one
// event at a time, and whatever else the program offers (settings that a
// controller changes, counters) only between events.
type Program interface {
	// Stages returns the stages at which the program receives events. They do not
	// change.
	Stages() Stages
	// Observe handles an event and adds its actions to act, which is empty
	// before. It keeps neither.
	Observe(ev *Event, act *Actions)
}

// Host executes actions. The data plane implements it.
type Host interface {
	// Execute carries out a program's actions, except for the verdict. Program is
	// its number in the pipeline, which the host passes to Pipeline.RunTimer for
	// its timers. After a change of the packet, ev.Packet shows the changed one.
	Execute(program int, ev *Event, act *Actions)
}

// Pipeline runs the programs of one switch in a fixed order, the same at every
// stage. A program sees the packet as earlier programs changed it, and does not
// see packets that they dropped or consumed.
//
// Hence the recommended order: programs that only observe (epoch, flowset) before
// those that act, so that they count what others drop; mirror before label, so
// that a mirrored packet is as it arrived; label last, so that the size that
// others saw is the one that was queued.
type Pipeline struct {
	programs []Program
	at       [numStages]*Step // the first
	nonIP    *Step            // the first at Ingress for packets that are not IP
	bypass   *Step            // the first at Dequeue for packets that bypass the queue
	stages   Stages
	act      Actions
}

// Step is a program at a stage and the steps after it; nil is none. (A linked
// list, because a pipeline runs for every packet: an index and a length would
// have to be kept across every call.)
type Step struct {
	program Program
	number  int
	next    *Step
}

// NewPipeline returns a pipeline of programs in this order.
func NewPipeline(programs ...Program) *Pipeline {
	pl := &Pipeline{programs: programs}
	for i, p := range slices.Backward(programs) {
		s := p.Stages()
		for stage := range numStages {
			if s.Has(stage) || stage == Dequeue && s&QueuedDequeue != 0 {
				pl.at[stage] = &Step{p, i, pl.at[stage]}
				pl.stages |= StageSet(stage)
			}
		}
		if s.Has(Ingress) || s&NonIPIngress != 0 {
			pl.nonIP = &Step{p, i, pl.nonIP}
			pl.stages |= StageSet(Ingress)
		}
		if s.Has(Dequeue) {
			pl.bypass = &Step{p, i, pl.bypass}
		}
	}
	return pl
}

// Stages returns the stages at which any program receives events.
func (pl *Pipeline) Stages() Stages { return pl.stages }

// Programs returns the programs in their order.
func (pl *Pipeline) Programs() []Program { return pl.programs }

// Run passes an event of any stage but Timer to its programs, one after the
// other, and has the host execute their actions. The host carries out the
// verdict, which it ignores at PFC.
func (pl *Pipeline) Run(ev *Event, host Host) Verdict {
	s := pl.at[ev.Stage]
	switch {
	case ev.Stage == Ingress && !ev.Packet.IsIP():
		s = pl.nonIP
	case ev.Stage == Dequeue && ev.BypassesQueue:
		s = pl.bypass
	}
	return s.Run(ev, &pl.act, host)
}

// FirstStep returns where Run begins at a stage, except for packets of
// FirstNonIPStep and FirstBypassStep. A host that knows which packet it has may
// keep these steps and run them itself.
func (pl *Pipeline) FirstStep(stage Stage) *Step { return pl.at[stage] }

// FirstNonIPStep is FirstStep for packets at Ingress that are not IP.
func (pl *Pipeline) FirstNonIPStep() *Step { return pl.nonIP }

// FirstBypassStep is FirstStep for packets at Dequeue that were not queued.
func (pl *Pipeline) FirstBypassStep() *Step { return pl.bypass }

// Run passes an event to this program and those after it. The actions are the
// host's memory, empty before and after.
func (s *Step) Run(ev *Event, act *Actions, host Host) Verdict {
	for ; s != nil; s = s.next {
		if s.program.Observe(ev, act); !act.pending {
			continue
		}
		if v := execute(s.number, ev, act, host); v != Pass && ev.Stage != PFC {
			return v
		}
	}
	return Pass
}

// RunTimer passes an event at Timer to the program that set the timer. When a
// host starts, it calls every program of stage Timer with StartTimer.
func (pl *Pipeline) RunTimer(program int, ev *Event, host Host) {
	pl.programs[program].Observe(ev, &pl.act)
	if pl.act.pending {
		execute(program, ev, &pl.act, host)
	}
}

func execute(program int, ev *Event, act *Actions, host Host) Verdict {
	v := act.Verdict
	host.Execute(program, ev, act)
	act.Reset()
	return v
}
