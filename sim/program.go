package sim

import (
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/engine"
)

// Stage is a place in a switch where programs run.
type Stage uint8

// Stages, in the order a packet meets them.
const (
	StageIngress Stage = iota // arrived, not yet routed
	StageRouted               // egress port known
	StageEnqueue              // about to join its queue; also what a program sends
	StageDequeue              // about to leave; what is changed here is what the wire sees
	StagePFC                  // a pause frame was received; the packet is that frame
	StageTimer                // a time the program asked for; there is no packet
	numStages
)

// Program runs inside one switch. It sees packets at the stages it names and
// acts through the Context: it may change the packet, make it longer or
// shorter, drop it, send copies and packets of its own, and report.
//
// Stages must not change once the program is attached.
type Program interface {
	Stages() []Stage
	Run(c *Context)
}

// Context is what a program sees of one event and how it acts on it. It is
// valid until Run returns.
type Context struct {
	Stage  Stage
	Switch *Switch
	Packet *Packet    // nil at StageTimer
	Now    model.Time // of the switch's own clock
	In     *Port      // where the packet came in; nil for what the switch itself sends
	Out    *Port      // where it goes; nil before it is routed
	Timer  int        // the number given to After, at StageTimer

	Pause struct { // at StagePFC
		Priority model.Priority
		Time     time.Duration // 0: resume
	}

	program Program
	dropped bool
	taken   bool
}

// Drop ends the packet here. Programs after this one do not see it.
func (c *Context) Drop() { c.dropped = true }

// Take hands the packet to the program's host: it is neither sent on nor
// counted as lost. A poll that ends at the switch is taken.
func (c *Context) Take() { c.taken = true }

// Resize makes the packet longer or shorter, as a label does.
func (c *Context) Resize(delta int32) { c.Packet.Size += delta }

// Clone returns a copy of the packet. It must be sent with Send.
func (c *Context) Clone() *Packet {
	p := c.Switch.net.pool.get()
	*p = *c.Packet
	p.next = nil
	if c.Packet.Extra != nil {
		extra := *c.Packet.Extra
		p.Extra = &extra
	}
	return p
}

// NewPacket returns an empty packet of the switch's own. It must be sent with
// Send.
func (c *Context) NewPacket() *Packet { return c.Switch.net.pool.get() }

// Send puts a packet of the program's own into a port's queue. Programs see it
// at StageDequeue only, so that no program meets its own clones at once. It
// takes room as a packet of the switch's own, which pauses nobody.
func (c *Context) Send(p *Packet, out *Port) {
	p.ingress = 0
	c.Switch.inject(out, p)
}

// After runs the program again at StageTimer, d later.
func (c *Context) After(d time.Duration, number int) {
	n, sw, program := c.Switch.net, c.Switch, c.program
	n.At(n.now+engine.Of(d), func() { sw.timer(program, number) })
}

// programs holds a switch's programs by stage.
type programs struct {
	at [numStages][]Program
}

func (ps *programs) any(s Stage) bool { return len(ps.at[s]) != 0 }

// run shows a packet to the programs of a stage. It returns nil if one of them
// ended it.
func (ps *programs) run(s Stage, sw *Switch, p *Packet, in, out *Port) *Packet {
	c := Context{Stage: s, Switch: sw, Packet: p, In: in, Out: out, Now: sw.Clock()}
	if in == nil && p.ingress != 0 {
		c.In = sw.ports[p.ingress-1]
	}
	if s == StagePFC {
		c.Pause.Priority = p.Priority
		c.Pause.Time = p.pauseFor().Duration()
	}
	for _, prog := range ps.at[s] {
		c.program = prog
		prog.Run(&c)
		if c.dropped {
			at := in
			if at == nil {
				at = out
			}
			sw.net.drop(p, at, DropProgram)
			return nil
		}
		if c.taken {
			sw.net.pool.put(p)
			return nil
		}
	}
	return p
}

// Attach adds a program behind those the switch has.
func (sw *Switch) Attach(p Program) {
	for _, s := range p.Stages() {
		sw.programs.at[s] = append(sw.programs.at[s], p)
	}
	sw.watch()
}

// Start runs a program once at StageTimer, so that it can ask for more.
func (sw *Switch) Start(p Program, number int) { sw.timer(p, number) }

func (sw *Switch) timer(p Program, number int) {
	p.Run(&Context{Stage: StageTimer, Switch: sw, Now: sw.Clock(), Timer: number, program: p})
}

// inject queues a packet that did not come from a wire.
func (sw *Switch) inject(out *Port, p *Packet) {
	if p.Control {
		out.enqueue(p)
		return
	}
	if !sw.admit(out, p) {
		return
	}
	if sw.net.observer != nil {
		sw.net.observer.Enqueued(sw.net.now, p, out)
	}
	out.enqueue(p)
}

// Ports returns the switch's ports; port 1 is the first.
func (sw *Switch) Ports() []*Port { return sw.ports }
