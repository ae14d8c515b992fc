package hawkeye

import (
	"time"

	"github.com/weft-telemetry/weft/dataplane/simhost"
	"github.com/weft-telemetry/weft/inhost/agent"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/wire/poll"
)

// tick is how often agents look at flows from which nothing comes back.
const tick = 10 * time.Microsecond

// again is between two complaints about one flow, at least.
const again = time.Millisecond

// crowd is the agents of all hosts, at every host one for each threshold. What
// they complain about is asked at every length of the epoch.
type crowd struct {
	run    *run
	hosts  []*watcher
	buffer []agent.DiagnosisRequest
}

// watcher hears what the flows of one host do.
type watcher struct {
	crowd  *crowd
	host   *sim.Host
	agents []*agent.Agent // by threshold
	late   []*agent.Agent // the same, that only note who is late
	number uint32         // of complaints
	ear    simhost.PauseMonitor
}

func newCrowd(r *run) (*crowd, error) {
	c := &crowd{run: r}
	for _, h := range r.net.Hosts() {
		w := &watcher{crowd: c, host: h}
		for _, late := range r.lab.thresholds {
			cfg := agent.DefaultConfig(h.ID)
			cfg.RTTFactor, cfg.MinRepollInterval = late, again
			one, err := agent.New(cfg)
			if err != nil {
				return nil, err
			}
			cfg.MinRepollInterval = echo
			note, err := agent.New(cfg)
			if err != nil {
				return nil, err
			}
			w.agents, w.late = append(w.agents, one), append(w.late, note)
		}
		h.Watch(w)
		c.hosts = append(c.hosts, w)
	}
	r.net.At(engine.Of(tick), c.look)
	return c, nil
}

func (c *crowd) look() {
	for _, w := range c.hosts {
		w.ear.PausedRecently(w.host, c.run.net.Now())
		for i, a := range w.agents {
			c.buffer = a.Tick(w.host.Clock(), c.buffer[:0])
			for _, t := range c.buffer {
				w.complain(i, t)
			}
			c.buffer = w.late[i].Tick(w.host.Clock(), c.buffer[:0])
			for _, t := range c.buffer {
				w.note(i, t)
			}
		}
	}
	c.run.net.At(c.run.net.Now()+engine.Of(tick), c.look)
}

// Started and the others are told by the simulator.
func (w *watcher) Started(now model.Time, f *sim.Watched) {
	for i := range w.agents {
		e := agent.FlowExpectation{BaseRTT: f.BaseRTT, Rate: f.Rate, CompletionTime: f.Ideal}
		w.agents[i].StartFlow(now, f.Key, e)
		w.late[i].StartFlow(now, f.Key, e)
	}
}

// Sent passes on.
func (w *watcher) Sent(now model.Time, key *model.FlowKey, end int64) {
	for i := range w.agents {
		w.agents[i].OnSent(now, *key, end)
		w.late[i].OnSent(now, *key, end)
	}
}

// Acked passes on.
func (w *watcher) Acked(now model.Time, key *model.FlowKey, end int64) {
	for i, a := range w.agents {
		if t, ok := a.OnAcked(now, *key, end); ok {
			w.complain(i, t)
		}
		if t, ok := w.late[i].OnAcked(now, *key, end); ok {
			w.note(i, t)
		}
	}
}

// Ended passes on.
func (w *watcher) Ended(now model.Time, key *model.FlowKey) {
	for i, a := range w.agents {
		if t, ok := a.EndFlow(now, *key); ok {
			w.complain(i, t)
		}
		if t, ok := w.late[i].EndFlow(now, *key); ok {
			w.note(i, t)
		}
	}
}

// note keeps that a packet was late, for scoring: the host may have complained
// of its flow just before, and then keeps silent.
func (w *watcher) note(threshold int, t agent.DiagnosisRequest) {
	r := w.crowd.run
	if r.net.Now() > engine.Of(r.trace.end) {
		return // the history has ended
	}
	r.late[threshold] = append(r.late[threshold], lateness{r.net.Now(), t.Measured, t.Reason, r.flows[t.Poll.Flow]})
}

// complain asks at every length of the epoch.
func (w *watcher) complain(threshold int, t agent.DiagnosisRequest) {
	r := w.crowd.run
	variants := len(r.lab.thresholds) * len(r.lab.lengths)
	if w.ear.PausedRecently(w.host, r.net.Now()) {
		t.Poll.Flag = poll.Both
	}
	for i := range r.lab.lengths {
		v := threshold*len(r.lab.lengths) + i
		t.Poll.Event = poll.Event{Host: w.host.ID, Number: w.number*uint32(variants) + uint32(v)}
		simhost.SendPoll(w.host, &t.Poll)
		c := complaint{
			lateness: lateness{r.net.Now(), t.Measured, t.Reason, r.flows[t.Poll.Flow]},
			event:    t.Poll.Event, variant: v, key: t.Poll.Flow, stopped: simhost.FlowPortPaused(w.host, t.Poll.Flow),
		}
		if r.lab.full {
			c.whole = poll.Event{Host: w.host.ID | wholeFabric, Number: t.Poll.Event.Number}
			r.ask = append(r.ask, c.whole)
		}
		r.complaints = append(r.complaints, c)
	}
	w.number++
}

// wholeFabric marks the events of full polling; no host has such an id.
const wholeFabric model.NodeID = 1 << 24
