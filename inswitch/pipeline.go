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

// FacesHost carries out actions. The data plane implements it.
type Host interface {
	// Execute carries out what a program wants, save the verdict. Program is its
	// number in the pipeline; its timers come back to Pipeline.Wake with it.
	// SetTimer a change of the packet, ev.Packet shows what is now true.
	Execute(program int, ev *Event, act *Actions)
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
	at       [numStages]*Step // the first
	nonIP    *Step            // the first at Ingress for what is not IP
	bypass   *Step            // the first at Dequeue for what did not wait
	stages   Stages
	act      Actions
}

// Step is a program at a stage and what comes behind it; nil is none. (A list,
// because a pipeline is gone through for every packet: an index and a length
// would have to be kept across every call.)
type Step struct {
	program Program
	number  int
	next    *Step
}

// NewPipeline makes a pipeline of programs in this order.
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
	case ev.Stage == Ingress && !ev.Packet.IsIP():
		s = pl.nonIP
	case ev.Stage == Dequeue && ev.BypassesQueue:
		s = pl.bypass
	}
	return s.Run(ev, &pl.act, host)
}

// FirstStep is where Run begins at a stage, but for packets that Strange and Passing
// are for. A host that knows which packet it has may keep these and run them
// itself.
func (pl *Pipeline) FirstStep(stage Stage) *Step { return pl.at[stage] }

// NonIPIngress is First for packets at Ingress that are not IP.
func (pl *Pipeline) FirstNonIPStep() *Step { return pl.nonIP }

// FirstBypassStep is First for packets at Dequeue that did not wait.
func (pl *Pipeline) FirstBypassStep() *Step { return pl.bypass }

// Run shows an event to this program and those behind it. The actions are the
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

// RunTimer shows an event at Timer to the one program it is for. When a host
// starts, it wakes every program of stage Timer with the timer Start.
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
