package epoch

import (
	"time"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/packet"
	"github.com/weft-telemetry/weft/wire/poll"
	"github.com/weft-telemetry/weft/wire/roce"
)

// handlePoll consumes a polling packet, forwards it towards the cause, and
// freezes a snapshot.
//
//	flag     the packet is forwarded
//	victim   along the victim's path; with "causes" too if that port was paused
//	causes   to every port that received traffic from the ingress port and was
//	         paused itself: the pauses spread from there
//
// It ends at a port to a host (the host paused it, or no one did) and at a port
// without paused packets (its own queue is the cause). At the victim's last switch it
// turns round if the path does not account for the lateness: the acknowledgements may
// have waited.
func (p *Program) handlePoll(ev *inswitch.Event, act *inswitch.Actions) {
	act.Consume()
	p.stats.Polls++
	p.frame = ev.Packet.AppendFrame(p.frame[:0], packet.EthernetSize+poll.MaxSize)
	var in poll.Poll
	if len(p.frame) < packet.EthernetSize {
		p.stats.Malformed++
		return
	}
	if _, err := in.Parse(p.frame[packet.EthernetSize:]); err != nil {
		p.stats.Malformed++
		return
	}
	p.tel.advanceTo(ev.Now)
	want := p.pollHistory.unseenFlags(ev.Now, p.cfg.PollDedupWindow, in.Event, ev.In, in.Flag)
	if want == 0 {
		p.stats.Duplicates++
		return
	}
	p.cpu.requestSnapshot(p, ev, act, in.Event, in.Returning)
	if in.Layout != poll.Prototype {
		if in.HopLimit == 0 {
			p.stats.HopLimitExceeded++
			return
		}
		in.HopLimit--
	}
	p.prepareCopies()
	victim, routed := model.PortID(0), false
	if want&poll.Victim != 0 {
		victim, routed = ev.Switch.Route(&in.Flow)
		routed = routed && victim != 0
	}
	if routed && in.Unexplained > 0 {
		left := in.Unexplained.Duration()
		left -= p.tel.longestWait(victim, ev.Now.Add(-2*left), ev.Now, p.dev.Port(victim).Rate)
		in.Unexplained = poll.LatenessOf(left)
	}
	p.forwardPoll(ev, act, in, want, ev.In, victim)
	if routed && in.Unexplained > 0 && p.dev.Port(victim).FacesHost {
		p.stats.Returned++
		in.Returning, in.Flow = true, roce.AckKey(in.Flow)
		back, _ := ev.Switch.Route(&in.Flow)
		// The receiver may have been paused by this switch, which does not record that.
		p.forwardPoll(ev, act, in, poll.Both, victim, back)
	}
}

// prepareCopies clears the copies of polls. They are made one after another in one
// buffer, so that all are intact when the host executes the actions: it must not move
// meanwhile, even if a poll goes on and turns round.
func (p *Program) prepareCopies() {
	p.out, p.ports = p.out[:0], p.ports[:0]
	copies := 2 * (len(p.dev.Ports) + 1)
	if need := copies * poll.MaxSize; cap(p.out) < need {
		p.out = make([]byte, 0, need)
	}
	if cap(p.ports) < copies {
		p.ports = make([]model.PortID, 0, copies)
	}
}

// forwardPoll sends copies of a poll, which came from an ingress port and whose
// victim's egress port is known or 0, to other switches.
func (p *Program) forwardPoll(ev *inswitch.Event, act *inswitch.Actions, in poll.Poll, want poll.Flag, from, victim model.PortID) {
	in.InPort, in.OutPort = from, victim
	for i := range p.dev.Ports {
		out := model.PortID(i + 1)
		var flag poll.Flag
		if want&poll.Victim != 0 && out == victim {
			flag = poll.Victim
			if p.tel.wasPaused(from, out, ev.Now) {
				flag = poll.Both
			}
		}
		if want&poll.Causes != 0 && p.tel.hadTraffic(from, out) && p.tel.wasPaused(from, out, ev.Now) {
			flag |= poll.Causes
		}
		if flag == 0 || p.dev.Ports[i].FacesHost {
			continue
		}
		in.Flag = flag
		start, first := len(p.out), len(p.ports)
		p.out = in.AppendTo(p.out)
		p.ports = append(p.ports, out)
		act.Send(inswitch.Send{Ports: p.ports[first:], EtherType: poll.EtherType, Content: p.out[start:], Control: true})
		p.stats.Forwarded++
	}
}

// pollHistory remembers recent polls. A poll with the same event, ingress port
// and flag is ignored: a visit along the victim's path must not suppress the
// one that follows the pauses.
type pollHistory struct {
	ring [256]visit
	next int
}

type visit struct {
	at    model.Time
	event poll.Event
	in    model.PortID
	flag  poll.Flag
}

// unseenFlags returns the bits of a flag that were not seen before, and records
// them.
func (s *pollHistory) unseenFlags(now model.Time, again time.Duration, ev poll.Event, in model.PortID,
	flag poll.Flag,
) poll.Flag {
	for i := range s.ring {
		v := &s.ring[i]
		if v.flag != 0 && v.event == ev && v.in == in && now.Sub(v.at) < again {
			flag &^= v.flag
		}
	}
	if flag != 0 {
		s.ring[s.next] = visit{now, ev, in, flag}
		s.next = (s.next + 1) % len(s.ring)
	}
	return flag
}
