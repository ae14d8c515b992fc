package epoch

import (
	"slices"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/epoch"
	"github.com/weft-telemetry/weft/wire/poll"
)

// processor is the switch's CPU. It is slow: reading two epochs takes 80 ms,
// in which the ring of epochs wraps many times. So a poll freezes a snapshot at
// once, encoded as it will be sent, and the processor's time passes before it
// leaves. Polls that come shortly after are answered by the same snapshot.
type processor struct {
	pending []snapshot // being read, oldest first
	spare   []snapshot // memory to use again
	free    model.Time // when the processor has read all
}

type snapshot struct {
	taken   model.Time
	ready   model.Time
	builder epoch.Builder
	chunks  int
	who     []asked // complaints it answers; records go with the first
}

// asked is a complaint, and when its poll came first.
type asked struct {
	who poll.Event
	at  model.Time
}

// maxPending bounds the snapshots that wait for the processor, in its memory.
const maxPending = 16

// ask makes a snapshot for a complaint, or lets the newest one answer it.
func (c *processor) ask(p *Program, ev *inswitch.Event, act *inswitch.Actions, who poll.Event) {
	if n := len(c.pending); n > 0 {
		last := &c.pending[n-1]
		if ev.Now.Sub(last.taken) < p.cfg.Interval || n == maxPending {
			if !slices.ContainsFunc(last.who, func(a asked) bool { return a.who == who }) {
				p.stats.Reused++
				last.who = append(last.who, asked{who, ev.Now})
			}
			return
		}
	}
	var s snapshot
	if n := len(c.spare); n > 0 {
		s, c.spare = c.spare[n-1], c.spare[:n-1]
	}
	s.taken, s.who = ev.Now, append(s.who[:0], asked{who, ev.Now})
	p.freeze(&s, ev, who)
	p.stats.Snapshots++
	begin := max(ev.Now, c.free)
	s.ready = begin.Add(p.cfg.Collect)
	c.free = s.ready
	c.pending = append(c.pending, s)
	act.After(s.ready.Sub(ev.Now), readout)
}

// freeze encodes all that the switch knows.
func (p *Program) freeze(s *snapshot, ev *inswitch.Event, who poll.Event) {
	t, b := p.tel, &s.builder
	t.settleAll()
	head := epoch.Header{Switch: p.dev.ID, Event: who, Snapshot: ev.Now, EpochLength: p.cfg.Length, Dropped: uint32(p.tel.stats.Lost)}
	if p.cfg.Flows == 0 {
		head.Flags |= epoch.NoFlows
	}
	if err := b.Reset(head, p.cfg.Chunk, p.cfg.Chunks); err != nil {
		panic("epoch: configuration was checked: " + err.Error())
	}
	for out := 1; out <= t.ports; out++ {
		for class := range model.Priority(classes) {
			q := t.queue(model.PortID(out), class)
			if q.joined == 0 && q.pauseFrames == 0 {
				continue
			}
			state := ev.Switch.Queue(model.PortID(out), class)
			b.AddPort(epoch.Port{
				Port: model.PortID(out), Priority: class, Paused: ev.Now < q.pausedUntil,
				Remaining: max(q.pausedUntil.Sub(ev.Now), 0), PauseFrames: q.pauseFrames,
				Queued: uint64(state.Bytes), Sent: q.joined - min(q.joined, uint64(max(state.Packets, 0))),
			})
			pauses := q.pauses
			pauses.Port, pauses.Priority, pauses.PausedTime = model.PortID(out), class, q.pausedFor(ev.Now)
			if ev.Now >= q.pausedUntil {
				pauses.LastEnd = q.pausedUntil
			}
			b.AddPause(pauses)
			wave := q.wave
			wave.Port, wave.Priority = model.PortID(out), class
			b.AddCongestionEpisode(wave)
		}
	}
	p.freezeEpochs(b, ev.Now)
	p.freezeFlows(b, ev.Now)
	s.chunks = b.Finish()
}

// freezeEpochs encodes what queues and pairs of ports did and hold.
func (p *Program) freezeEpochs(b *epoch.Builder, now model.Time) {
	t := p.tel
	for i := range t.epochs {
		if e := &t.epochs[i]; e.Port != 0 && t.telling(e.Epoch, e.Port, e.Priority, now) {
			b.AddPortEpoch(*e)
		}
	}
	side := t.ports + 1
	for c, table := range t.meters {
		class := model.Priority(c)
		for i := range table {
			in, out := model.PortID(i/side%side), model.PortID(i%side)
			if m := &table[i]; m.packets > 0 && (t.telling(m.number, out, class, now) || t.followed(m, in, out, now)) {
				b.AddMeter(epoch.Meter{Epoch: m.number, In: in, Out: out, Priority: class, Packets: m.packets, Bytes: m.bytes})
			}
		}
	}
	for c, table := range t.here.pairs {
		class := model.Priority(c)
		for i := range table {
			in, out := model.PortID(i/side), model.PortID(i%side)
			if h := t.here.now(&table[i], out, class); h.packets > 0 && in != 0 {
				b.AddPortPairBacklog(epoch.PortPairBacklog{In: in, Out: out, Priority: class, Packets: h.packets, Bytes: h.bytes})
			}
		}
	}
}

// freezeFlows encodes what flows did and have waiting.
func (p *Program) freezeFlows(b *epoch.Builder, now model.Time) {
	t := p.tel
	for i := range t.here.flows {
		w := &t.here.flows[i]
		if h := t.here.now(&w.held, w.out, w.class); h.packets > 0 {
			b.AddFlowBacklog(&epoch.FlowBacklog{PortPairBacklog: epoch.PortPairBacklog{In: w.in, Out: w.out, Priority: w.class, Packets: h.packets, Bytes: h.bytes}, Key: w.key})
		}
	}
	for _, table := range t.flows {
		for i := range table {
			if f := &table[i]; f.Packets > 0 && t.telling(f.Epoch, f.Out, f.Priority, now) {
				b.AddFlow(&f.Flow)
			}
		}
	}
	for i := range t.gone {
		if f := &t.gone[i]; t.telling(f.Epoch, f.Out, f.Priority, now) {
			b.AddFlow(f)
		}
	}
}

// readout is the timer at which the processor has read a snapshot.
const readout inswitch.TimerID = 1

// Due is when the switch's processor will have read the next snapshot.
func (p *Program) Due() (model.Time, inswitch.TimerID, bool) {
	if len(p.cpu.pending) == 0 {
		return 0, 0, false
	}
	return p.cpu.pending[0].ready, readout, true
}

// wake sends what the processor has read by now.
func (c *processor) wake(p *Program, ev *inswitch.Event, act *inswitch.Actions) {
	for len(c.pending) > 0 && c.pending[0].ready <= ev.Now {
		s := c.pending[0]
		copy(c.pending, c.pending[1:])
		c.pending = c.pending[:len(c.pending)-1]
		for i := range s.chunks {
			p.report(act, s.builder.Chunk(i))
		}
		for _, a := range s.who[1:] {
			p.refer(act, &s, a)
		}
		c.spare = append(c.spare, s)
	}
}

func (p *Program) report(act *inswitch.Actions, chunk []byte) {
	p.stats.Reports++
	act.Report(dta.Report{Primitive: dta.Append, List: p.cfg.List, Data: chunk})
}

// refer answers a complaint by naming the snapshot that was sent for another.
func (p *Program) refer(act *inswitch.Actions, s *snapshot, a asked) {
	c := epoch.Chunk{
		Header:  epoch.Header{Flags: epoch.ByReference, Switch: p.dev.ID, Event: a.who, Snapshot: s.taken, EpochLength: p.cfg.Length},
		Total:   1,
		Records: epoch.PollRef{ReceivedAt: a.at}.AppendTo(nil),
	}
	p.report(act, c.AppendTo(nil))
}
