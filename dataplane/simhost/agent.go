package simhost

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/inhost/agent"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/wire/poll"
)

// Agents are detection agents at work in simulated hosts.
type Agents struct {
	net       *sim.Network
	hosts     []*agentHost
	tick      engine.Time
	onRequest func(at model.Time, t agent.DiagnosisRequest)
	buffer    []agent.DiagnosisRequest
	stopped   bool
}

// agentHost is one host's agent: it hears what the host's flows do and has the
// host send polls, by the queue that PFC never pauses.
type agentHost struct {
	all    *Agents
	host   *sim.Host
	agent  *agent.Agent
	pauses PauseMonitor
}

// NewAgents runs an agent in every host that config is given for. Tick is how
// often they look at flows from which nothing comes back; told hears of every
// complaint, at the time of its host's clock.
func NewAgents(n *sim.Network, tick time.Duration, configs []agent.Config, told func(at model.Time, t agent.DiagnosisRequest)) (*Agents, error) {
	if tick <= 0 {
		return nil, fmt.Errorf("simhost: agents look every %v, want more than 0", tick)
	}
	a := &Agents{net: n, tick: engine.Of(tick), onRequest: told}
	for _, cfg := range configs {
		if !n.Fabric().HasNode(cfg.Host) || n.Host(cfg.Host) == nil {
			return nil, fmt.Errorf("simhost: agent at node %d, want a host", cfg.Host)
		}
		one, err := agent.New(cfg)
		if err != nil {
			return nil, err
		}
		h := &agentHost{all: a, host: n.Host(cfg.Host), agent: one}
		h.host.ObserveFlows(h)
		a.hosts = append(a.hosts, h)
	}
	n.At(n.Now()+a.tick, a.tickAll)
	return a, nil
}

// Stop ends their work.
func (a *Agents) Stop() { a.stopped = true }

// tickAll has all agents look at their flows.
func (a *Agents) tickAll() {
	if a.stopped {
		return
	}
	for _, h := range a.hosts {
		h.pauses.PausedRecently(h.host, a.net.Now())
		a.buffer = h.agent.Tick(h.host.Clock(), a.buffer[:0])
		for i := range a.buffer {
			h.send(a.buffer[i])
		}
	}
	a.net.At(a.net.Now()+a.tick, a.tickAll)
}

// PollFlow has the host of a flow poll about it once more, and reports whether it
// does: a flow that has ended is not asked about.
func (a *Agents) PollFlow(key model.FlowKey) bool {
	for _, h := range a.hosts {
		if t, ok := h.agent.FollowUp(h.host.Clock(), key); ok {
			h.send(t)
			return true
		}
	}
	return false
}

// Stats adds up what the agents count.
func (a *Agents) Stats() (s agent.Stats) {
	for _, h := range a.hosts {
		one := h.agent.Stats()
		s.Polls += one.Polls
		s.Suppressed += one.Suppressed
		s.LateAcks += one.LateAcks
	}
	return s
}

// Started and the others are told by the simulator.
func (h *agentHost) Started(now model.Time, f *sim.FlowInfo) {
	h.agent.StartFlow(now, f.Key, agent.FlowExpectation{BaseRTT: f.BaseRTT, Rate: f.Rate, CompletionTime: f.Ideal})
}

// Sent passes on.
func (h *agentHost) Sent(now model.Time, key *model.FlowKey, end int64) {
	h.agent.OnSent(now, *key, end)
}

// Acked passes on.
func (h *agentHost) Acked(now model.Time, key *model.FlowKey, end int64) {
	if t, ok := h.agent.OnAcked(now, *key, end); ok {
		h.send(t)
	}
}

// Ended passes on.
func (h *agentHost) Ended(now model.Time, key *model.FlowKey) {
	if t, ok := h.agent.EndFlow(now, *key); ok {
		h.send(t)
	}
}

// PauseMonitor knows whether a host was paused lately. It must listen a few times per
// pauseRecency.
type PauseMonitor struct {
	pauses    int64 // frames that the host's ports have heard
	lastPause engine.Time
}

// pauseRecency is how long a pause of the host's own port is worth following.
const pauseRecency = 100 * time.Microsecond

// PausedRecently reports whether the host was paused lately.
func (e *PauseMonitor) PausedRecently(h *sim.Host, now engine.Time) bool {
	frames := int64(0)
	for _, p := range h.Ports() {
		frames += p.PausesReceived
	}
	if frames != e.pauses {
		e.pauses, e.lastPause = frames, now
	}
	return e.pauses > 0 && now-e.lastPause < engine.Of(pauseRecency)
}

// sendReady has the host poll: for causes, too, if it was paused lately.
func (h *agentHost) send(t agent.DiagnosisRequest) {
	if h.all.stopped {
		return
	}
	if h.pauses.PausedRecently(h.host, h.all.net.Now()) {
		t.Poll.Flag = poll.Both
	}
	if h.all.onRequest != nil {
		h.all.onRequest(t.Poll.Origin, t)
	}
	SendPoll(h.host, &t.Poll)
}

// FlowPortPaused reports whether the port that a flow leaves its host by is paused.
func FlowPortPaused(h *sim.Host, key model.FlowKey) bool {
	out := h.EgressPort(key)
	for class := range model.Priority(8) {
		if out.Paused(class) {
			return true
		}
	}
	return false
}

// SendPoll has a host send a poll, by the port that its flow leaves by and the
// queue that PFC never pauses. Where that port is paused in other classes, its
// switch is to look for the causes of that, too, as switches do for each other.
func SendPoll(h *sim.Host, ask *poll.Poll) {
	if FlowPortPaused(h, ask.Flow) {
		ask.Flag |= poll.Causes
	}
	p := h.NewPacket()
	p.Kind, p.Control, p.TTL = sim.KindOther, true, 1
	e := h.Extra(p)
	e.EtherType = poll.EtherType
	e.Content = ask.AppendTo(e.Content)
	p.Payload = int32(len(e.Content))
	p.Size = max(ethernetSize+p.Payload, minFrame)
	h.Send(p, h.EgressPort(ask.Flow))
}
