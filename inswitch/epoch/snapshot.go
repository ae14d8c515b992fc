package epoch

import (
	"slices"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/epoch"
	"github.com/weft-telemetry/weft/wire/poll"
)

// switchCPU is the switch's control plane CPU. It is slow: reading two epochs
// takes 80 ms, in which the ring of epochs wraps many times. So a poll freezes
// a snapshot at once, encoded as it will be sent, and the readout time passes
// before it is sent. Polls that arrive within Config.SnapshotReuse are answered
// by the same snapshot.
type switchCPU struct {
	pending []snapshot // being read, oldest first
	spare   []snapshot // memory for reuse
	idleAt  model.Time // when the CPU has read all snapshots
}

type snapshot struct {
	taken    model.Time
	ready    model.Time
	builder  epoch.Builder
	chunks   int
	requests []pollArrival // that it answers; records go with the first
}

// pollArrival is a diagnosis request and when its poll first arrived.
type pollArrival struct {
	event     poll.Event
	at        model.Time
	returning bool // on the path of acknowledgements
}

// flags returns those of the answer.
func (a *pollArrival) flags() epoch.Flags {
	if a.returning {
		return epoch.Returning
	}
	return 0
}

// maxPending bounds the snapshots that wait for the CPU, in its memory.
const maxPending = 16

// requestSnapshot freezes a snapshot for a request, or adds the request to the
// newest one.
func (c *switchCPU) requestSnapshot(p *Program, ev *inswitch.Event, act *inswitch.Actions, who poll.Event, returning bool) {
	if n := len(c.pending); n > 0 {
		last := &c.pending[n-1]
		if ev.Now.Sub(last.taken) < p.cfg.SnapshotReuse || n == maxPending {
			if !slices.ContainsFunc(last.requests, func(a pollArrival) bool { return a.event == who }) {
				p.stats.SnapshotsReused++
				last.requests = append(last.requests, pollArrival{who, ev.Now, returning})
			}
			return
		}
	}
	var s snapshot
	if n := len(c.spare); n > 0 {
		s, c.spare = c.spare[n-1], c.spare[:n-1]
	}
	s.taken, s.requests = ev.Now, append(s.requests[:0], pollArrival{who, ev.Now, returning})
	p.freeze(&s, ev)
	p.stats.Snapshots++
	begin := max(ev.Now, c.idleAt)
	s.ready = begin.Add(p.cfg.ReadoutTime)
	c.idleAt = s.ready
	c.pending = append(c.pending, s)
	act.SetTimer(s.ready.Sub(ev.Now), readoutTimer)
}

// freeze encodes all telemetry of the switch.
func (p *Program) freeze(s *snapshot, ev *inswitch.Event) {
	t, b := p.tel, &s.builder
	t.flushAllCounts()
	head := epoch.Header{
		Switch: p.dev.ID, Event: s.requests[0].event, Flags: s.requests[0].flags(), Snapshot: ev.Now, EpochLength: p.cfg.EpochLength,
		Dropped: uint32(p.tel.stats.EvictedLost),
	}
	if p.cfg.FlowSlots == 0 {
		head.Flags |= epoch.NoFlows
	}
	if err := b.Reset(head, p.cfg.ChunkBytes, p.cfg.MaxChunks); err != nil {
		panic("epoch: configuration was checked: " + err.Error())
	}
	b.AddSettings(p.settings())
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
			episode := q.episode
			episode.Port, episode.Priority = model.PortID(out), class
			b.AddCongestionEpisode(episode)
			q.reportIntervals(b, model.PortID(out), class, ev.Now, t.memory)
		}
	}
	p.freezeEpochs(b, ev.Now)
	p.freezeFlows(b, ev.Now)
	s.chunks = b.Finish()
}

// settings returns what the report depends on.
func (p *Program) settings() epoch.Settings {
	return epoch.Settings{
		CongestionThreshold: p.cfg.EpisodeThreshold, PauseBurstGap: epoch.PauseBurstGap, IntervalMemory: p.tel.memory,
		MTU: model.Bytes(p.dev.MTU), Xoff: p.dev.Xoff, Xon: p.dev.Xon,
		PauseIntervals: PauseIntervals, CongestionIntervals: CongestionIntervals,
	}
}

// freezeEpochs encodes the counters and backlogs of queues and port pairs.
func (p *Program) freezeEpochs(b *epoch.Builder, now model.Time) {
	t := p.tel
	for i := range t.epochs {
		if e := &t.epochs[i]; e.Port != 0 && t.shouldReport(e.Epoch, e.Port, e.Priority, now) {
			b.AddPortEpoch(*e)
		}
	}
	side := t.ports + 1
	for c, table := range t.meters {
		class := model.Priority(c)
		for i := range table {
			in, out := model.PortID(i/side%side), model.PortID(i%side)
			if m := &table[i]; m.packets > 0 && (t.shouldReport(m.number, out, class, now) ||
				t.leadsToPausedPort(m, in, out, now)) {
				b.AddMeter(epoch.Meter{Epoch: m.number, In: in, Out: out, Priority: class, Packets: m.packets, Bytes: m.bytes})
			}
		}
	}
	for c, table := range t.occupancy.pairs {
		class := model.Priority(c)
		for i := range table {
			in, out := model.PortID(i/side), model.PortID(i%side)
			if table[i].history != nil && in != 0 {
				table[i].history.report(b, now, epoch.BacklogHistory{In: in, Out: out, Priority: class})
			}
			if h := t.occupancy.current(&table[i].backlog, out, class); h.packets > 0 && in != 0 {
				b.AddPortPairBacklog(epoch.PortPairBacklog{In: in, Out: out, Priority: class, Packets: h.packets, Bytes: h.bytes})
			}
		}
	}
}

// freezeFlows encodes the counters and backlogs of flows.
func (p *Program) freezeFlows(b *epoch.Builder, now model.Time) {
	t := p.tel
	for i := range t.occupancy.flows {
		w := &t.occupancy.flows[i]
		if h := t.occupancy.current(&w.backlog, w.out, w.class); h.packets > 0 {
			b.AddFlowBacklog(&epoch.FlowBacklog{PortPairBacklog: epoch.PortPairBacklog{
				In: w.in, Out: w.out, Priority: w.class,
				Packets: h.packets, Bytes: h.bytes,
			}, Key: w.key})
		}
	}
	for _, table := range t.flows {
		for i := range table {
			if f := &table[i]; f.Packets > 0 && t.shouldReport(f.Epoch, f.Out, f.Priority, now) {
				b.AddFlow(&f.Flow)
			}
		}
	}
	for i := range t.evicted {
		if f := &t.evicted[i]; t.shouldReport(f.Epoch, f.Out, f.Priority, now) {
			b.AddFlow(f)
		}
	}
}

// readoutTimer fires when the CPU has read a snapshot.
const readoutTimer inswitch.TimerID = 1

// NextReadout returns when the switch CPU will have read the next snapshot.
func (p *Program) NextReadout() (model.Time, inswitch.TimerID, bool) {
	if len(p.cpu.pending) == 0 {
		return 0, 0, false
	}
	return p.cpu.pending[0].ready, readoutTimer, true
}

// sendReady sends the snapshots that the CPU has read.
func (c *switchCPU) sendReady(p *Program, ev *inswitch.Event, act *inswitch.Actions) {
	for len(c.pending) > 0 && c.pending[0].ready <= ev.Now {
		s := c.pending[0]
		copy(c.pending, c.pending[1:])
		c.pending = c.pending[:len(c.pending)-1]
		for i := range s.chunks {
			p.emitChunk(act, s.builder.Chunk(i))
		}
		for _, a := range s.requests[1:] {
			p.reportReference(act, &s, a)
		}
		c.spare = append(c.spare, s)
	}
}

func (p *Program) emitChunk(act *inswitch.Actions, chunk []byte) {
	p.stats.Reports++
	act.Report(dta.Report{Primitive: dta.Append, List: p.cfg.List, Data: chunk})
}

// reportReference answers a request by referring to the snapshot that was sent
// for another.
func (p *Program) reportReference(act *inswitch.Actions, s *snapshot, a pollArrival) {
	c := epoch.Chunk{
		Header: epoch.Header{
			Flags: epoch.ByReference | a.flags(), Switch: p.dev.ID, Event: a.event, Snapshot: s.taken,
			EpochLength: p.cfg.EpochLength,
		},
		Total:   1,
		Records: epoch.PollRef{ReceivedAt: a.at}.AppendTo(nil),
	}
	p.emitChunk(act, c.AppendTo(nil))
}
