package hawkeye

import (
	"time"

	"github.com/weft-telemetry/weft/dataplane/simhost"
	"github.com/weft-telemetry/weft/inhost/agent"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/truth"
	"github.com/weft-telemetry/weft/wire/poll"
)

// agentInterval is how often agents check flows whose packets are not
// acknowledged.
const agentInterval = 10 * time.Microsecond

// minRepoll is the minimum time between two detections of one flow.
const minRepoll = time.Millisecond

// hostAgents are the agents of all hosts, one for each threshold at every host.
// Each detection is polled at every epoch length.
type hostAgents struct {
	run    *run
	hosts  []*hostWatcher
	buffer []agent.DiagnosisRequest
}

// hostWatcher observes the flows of one host.
type hostWatcher struct {
	all           *hostAgents
	host          *sim.Host
	agents        []*agent.Agent // by threshold
	number        uint32         // of detections
	pauseListener simhost.PauseMonitor
}

func newHostAgents(r *run) (*hostAgents, error) {
	c := &hostAgents{run: r}
	for _, h := range r.net.Hosts() {
		w := &hostWatcher{all: c, host: h}
		for _, late := range r.lab.thresholds {
			cfg := agent.DefaultConfig(h.ID)
			cfg.RTTFactor, cfg.MinRepollInterval = late, max(r.lab.time(minRepoll), minRepoll)
			cfg.AcksWithData = r.net.AcksWithData()
			one, err := agent.New(cfg)
			if err != nil {
				return nil, err
			}
			w.agents = append(w.agents, one)
		}
		h.ObserveFlows(w)
		c.hosts = append(c.hosts, w)
	}
	r.net.At(engine.Of(agentInterval), c.tick)
	return c, nil
}

// tick advances all agents.
func (c *hostAgents) tick() {
	for _, w := range c.hosts {
		w.pauseListener.Observe(w.host, c.run.net.Now())
		for i, a := range w.agents {
			c.buffer = a.Tick(w.host.Clock(), c.buffer[:0])
			for _, t := range c.buffer {
				w.poll(i, t)
			}
		}
	}
	c.run.net.At(c.run.net.Now()+engine.Of(agentInterval), c.tick)
}

// Started and the others are called by the simulator.
func (w *hostWatcher) Started(now model.Time, f *sim.FlowInfo) {
	for i := range w.agents {
		e := agent.FlowExpectation{BaseRTT: f.BaseRTT, Rate: f.Rate, CompletionTime: f.Ideal}
		w.agents[i].StartFlow(now, f.Key, e)
	}
}

// Sent passes the event on.
func (w *hostWatcher) Sent(now model.Time, key *model.FlowKey, end int64) {
	for i := range w.agents {
		w.agents[i].OnSent(now, *key, end)
	}
}

// Acked passes the event on.
func (w *hostWatcher) Acked(now model.Time, key *model.FlowKey, end int64) {
	for i, a := range w.agents {
		if t, ok := a.OnAcked(now, *key, end); ok {
			w.poll(i, t)
		}
	}
}

// Ended passes the event on.
func (w *hostWatcher) Ended(now model.Time, key *model.FlowKey) {
	for i, a := range w.agents {
		if t, ok := a.EndFlow(now, *key); ok {
			w.poll(i, t)
		}
	}
}

// poll polls for a detection at every epoch length.
func (w *hostWatcher) poll(threshold int, t agent.DiagnosisRequest) {
	r := w.all.run
	variants := len(r.lab.thresholds) * len(r.lab.lengths)
	if w.pauseListener.Observe(w.host, r.net.Now()); w.pauseListener.PausedWithin(t.Measured, r.net.Now()) {
		t.Poll.Flag = poll.Both
	}
	for i := range r.lab.lengths {
		v := threshold*len(r.lab.lengths) + i
		t.Poll.Event = poll.Event{Host: w.host.ID, Number: w.number*uint32(variants) + uint32(v)}
		simhost.SendPoll(w.host, &t.Poll)
		d := detection{
			latePacket: latePacket{r.net.Now(), t.Measured, t.Reason, r.flows[t.Poll.Flow]},
			event:      t.Poll.Event, variant: v, key: t.Poll.Flow, hostPaused: simhost.FlowPortPaused(w.host, t.Poll.Flow),
		}
		if r.lab.fullPolling {
			d.fullPoll = poll.Event{Host: w.host.ID | wholeFabric, Number: t.Poll.Event.Number}
			r.fullPolls = append(r.fullPolls, d.fullPoll)
			d.causal = truth.WaitFor(r.net).Closure(truth.FlowNode(d.flow, false)).Switches()
		}
		r.detections = append(r.detections, d)
	}
	w.number++
}

// wholeFabric marks the events of full polling; no host has such an id.
const wholeFabric model.NodeID = 1 << 24
