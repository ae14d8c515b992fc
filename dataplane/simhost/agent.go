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

// Agents run detection agents in simulated hosts.
type Agents struct {
	net       *sim.Network
	hosts     []*agentHost
	tick      engine.Time
	onRequest func(at model.Time, t agent.DiagnosisRequest)
	buffer    []agent.DiagnosisRequest
	stopped   bool
}

// agentHost is one host's agent: it observes the host's flows and has the host
// send polls, in the queue that PFC never pauses.
type agentHost struct {
	all    *Agents
	host   *sim.Host
	agent  *agent.Agent
	pauses PauseMonitor
}

// NewAgents runs an agent in every host that has a config. Tick is how often
// they check flows without acknowledgements; onRequest is called with every
// diagnosis request, at the time of its host's clock.
func NewAgents(n *sim.Network, tick time.Duration, configs []agent.Config,
	onRequest func(at model.Time, t agent.DiagnosisRequest),
) (*Agents, error) {
	if tick <= 0 {
		return nil, fmt.Errorf("simhost: agent tick %v, want more than 0", tick)
	}
	a := &Agents{net: n, tick: engine.Of(tick), onRequest: onRequest}
	for _, cfg := range configs {
		if !n.Fabric().HasNode(cfg.Host) || n.Host(cfg.Host) == nil {
			return nil, fmt.Errorf("simhost: agent at node %d, want a host", cfg.Host)
		}
		cfg.AcksWithData = n.AcksWithData()
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

// Stop stops all agents.
func (a *Agents) Stop() { a.stopped = true }

// tickAll lets all agents check their flows.
func (a *Agents) tickAll() {
	if a.stopped {
		return
	}
	for _, h := range a.hosts {
		h.pauses.Observe(h.host, a.net.Now())
		a.buffer = h.agent.Tick(h.host.Clock(), a.buffer[:0])
		for i := range a.buffer {
			h.send(a.buffer[i])
		}
	}
	a.net.At(a.net.Now()+a.tick, a.tickAll)
}

// PollFlow has the host of a flow poll it again, and reports whether it did: a
// flow that has ended is not polled.
func (a *Agents) PollFlow(key model.FlowKey) bool {
	for _, h := range a.hosts {
		if t, ok := h.agent.FollowUp(h.host.Clock(), key); ok {
			h.send(t)
			return true
		}
	}
	return false
}

// Stats returns the sum of the agents' counters.
func (a *Agents) Stats() (s agent.Stats) {
	for _, h := range a.hosts {
		one := h.agent.Stats()
		s.Polls += one.Polls
		s.Suppressed += one.Suppressed
		s.LateAcks += one.LateAcks
	}
	return s
}

// Started and the methods below are called by the simulator.
func (h *agentHost) Started(now model.Time, f *sim.FlowInfo) {
	h.agent.StartFlow(now, f.Key, agent.FlowExpectation{BaseRTT: f.BaseRTT, Rate: f.Rate, CompletionTime: f.Ideal})
}

// Sent forwards to the agent.
func (h *agentHost) Sent(now model.Time, key *model.FlowKey, end int64) {
	h.agent.OnSent(now, *key, end)
}

// Acked forwards to the agent.
func (h *agentHost) Acked(now model.Time, key *model.FlowKey, end int64) {
	if t, ok := h.agent.OnAcked(now, *key, end); ok {
		h.send(t)
	}
}

// Ended forwards to the agent.
func (h *agentHost) Ended(now model.Time, key *model.FlowKey) {
	if t, ok := h.agent.EndFlow(now, *key); ok {
		h.send(t)
	}
}

// PauseMonitor remembers when a host was paused last.
type PauseMonitor struct {
	pauses    int64 // frames that the host's ports have received
	lastPause engine.Time
}

// Observe looks whether the host has been paused since the last call.
func (e *PauseMonitor) Observe(h *sim.Host, now engine.Time) {
	frames := int64(0)
	for _, p := range h.Ports() {
		frames += p.PausesReceived
	}
	if frames != e.pauses {
		e.pauses, e.lastPause = frames, now
	}
}

// PausedWithin reports whether the host was paused within a time, as far as was
// observed.
func (e *PauseMonitor) PausedWithin(d time.Duration, now engine.Time) bool {
	return e.pauses > 0 && now-e.lastPause < engine.Of(d)
}

// send has the host poll: for causes, too, if it was paused since the late packet was
// sent.
func (h *agentHost) send(t agent.DiagnosisRequest) {
	if h.all.stopped {
		return
	}
	now := h.all.net.Now()
	if h.pauses.Observe(h.host, now); h.pauses.PausedWithin(t.Measured, now) {
		t.Poll.Flag = poll.Both
	}
	if h.all.onRequest != nil {
		h.all.onRequest(t.Poll.Origin, t)
	}
	SendPoll(h.host, &t.Poll)
}

// FlowPortPaused reports whether a flow's egress port at its host is paused.
func FlowPortPaused(h *sim.Host, key model.FlowKey) bool {
	out := h.EgressPort(key)
	for class := range model.Priority(8) {
		if out.Paused(class) {
			return true
		}
	}
	return false
}

// SendPoll has a host send a poll, from its flow's egress port and in the queue
// that PFC never pauses. If that port is paused in other priorities, the switch
// traces the causes of that, too, as switches do for each other.
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
