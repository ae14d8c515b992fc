package bench

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/dataplane/simhost"
	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/inswitch/epoch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/poll"
)

// incident holds the reports of the switches of a fat-tree of k=16 about 10,000
// flows, many of which an incast pauses. All switches report: no diagnosis request
// can bring more.
type incident struct {
	routes *topo.Routes
	victim model.FlowKey
	event  poll.Event
	chunks [][]byte
}

const (
	incidentPods  = 16
	incidentFlows = 10_000
	incidentFanin = 128
	incasts       = 12
	incidentTime  = 399 * time.Microsecond // the end of the second epoch
)

// newIncident simulates it.
func newIncident() (*incident, error) {
	f, err := topo.FatTree(incidentPods, topo.DefaultLinks())
	if err != nil {
		return nil, err
	}
	in := &incident{event: poll.Event{Host: f.Hosts()[0], Number: 1}}
	if in.routes, err = topo.NewRoutes(f, topo.RouteConfig{Seed: 1}); err != nil {
		return nil, err
	}
	cfg := sim.DefaultConfig()
	cfg.AckControl = true
	n, err := sim.New(in.routes, cfg)
	if err != nil {
		return nil, err
	}
	programs, err := in.attach(n)
	if err != nil {
		return nil, err
	}
	incast := traffic.DefaultIncast()
	incast.Fanin, incast.Rounds, incast.Period = incidentFanin, incasts, time.Microsecond
	incast.Bytes, incast.Start = 200*model.KB, model.Time(50*time.Microsecond)
	flows, err := traffic.Generate(1, traffic.HostsOf(f), incast, shortFlows(f, incidentFlows-incasts*incidentFanin))
	if err != nil {
		return nil, err
	}
	if err := n.AddFlows(flows); err != nil {
		return nil, err
	}
	n.Run(engine.Of(incidentTime))
	for i := range n.Flows() {
		if key, spec := n.FlowKey(i); spec.Group > 0 {
			in.victim = key
			break
		}
	}
	for _, sw := range n.Switches() {
		in.answerPoll(programs[sw.ID], sw)
	}
	if len(in.chunks) == 0 {
		return nil, fmt.Errorf("no switch reports")
	}
	return in, nil
}

// shortFlows are flows of 50 KB between random hosts.
func shortFlows(f *topo.Fabric, n int) traffic.List {
	hosts := f.Hosts()
	list := make(traffic.List, n)
	rng := rand.New(rand.NewPCG(2, 0))
	for i := range list {
		src := rng.IntN(len(hosts))
		list[i] = traffic.Flow{
			Src: hosts[src], Dst: hosts[(src+1+rng.IntN(len(hosts)-1))%len(hosts)], Bytes: 50 * model.KB, Priority: 3,
			Start: model.Time(rng.Int64N(int64(incidentTime * 3 / 4))),
		}
	}
	return list
}

func (in *incident) attach(n *sim.Network) (map[model.NodeID]*epoch.Program, error) {
	programs := map[model.NodeID]*epoch.Program{}
	cfg := epoch.DefaultConfig()
	cfg.EpochLength = 200 * time.Microsecond
	for _, id := range n.Fabric().Switches() {
		p, err := epoch.New(cfg, simhost.Describe(n, id, 0))
		if err != nil {
			return nil, err
		}
		programs[id] = p
		if _, err := simhost.Attach(n, id, inswitch.NewPipeline(p), simhost.Config{}); err != nil {
			return nil, err
		}
	}
	return programs, nil
}

// answerPoll has a switch answer the poll.
func (in *incident) answerPoll(p *epoch.Program, sw *sim.Switch) {
	ev := inswitch.Event{Stage: inswitch.Timer, Now: sw.Clock(), Switch: ports{sw}}
	var act inswitch.Actions
	p.RequestSnapshot(&ev, &act, in.event)
	ev.Now, ev.Timer = ev.Now.Add(act.Timers[0].Delay), act.Timers[0].Timer
	act.Reset()
	p.Observe(&ev, &act)
	for _, r := range act.Reports {
		in.chunks = append(in.chunks, append([]byte(nil), r.Data...))
	}
}

// ports answers a program's queries about a simulated switch that does not run.
type ports struct{ *sim.Switch }

// Route is never called.
func (ports) Route(*model.FlowKey) (model.PortID, bool) { return 0, false }

// Queue returns a queue's state.
func (p ports) Queue(out model.PortID, class model.Priority) inswitch.Queue {
	q := p.Ports()[out-1]
	return inswitch.Queue{
		Bytes: model.Bytes(q.QueueBytes(class)), Packets: q.QueuePackets(class),
		Paused: q.Paused(class),
	}
}

// assembleReports assembles the reports.
func (in *incident) assembleReports() (*provenance.Evidence, error) {
	c, err := provenance.NewCollector(provenance.DefaultConfig(1))
	if err != nil {
		return nil, err
	}
	for _, b := range in.chunks {
		if _, err := c.AddChunk(0, b); err != nil {
			return nil, err
		}
	}
	return c.Evidence(in.event), nil
}
