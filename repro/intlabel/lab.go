package intlabel

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weft-telemetry/weft/analyze/coverage"
	"github.com/weft-telemetry/weft/control/portwatch"
	"github.com/weft-telemetry/weft/dataplane/simhost"
	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/inswitch/label"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/scenario/labels"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
	wire "github.com/weft-telemetry/weft/wire/label"
)

const ms = time.Millisecond

// Setup of the paper's section 6.1, where a claim does not say otherwise.
const (
	payload   = 1000              // bytes of a packet
	perServer = 625.0             // packets per second: 5 Mb/s
	window    = 100 * ms          // telemetry interval: 10 times per second
	interval  = 50 * ms           // T
	userPort  = 5000              // destination of packets; nothing else goes there
	testbed   = 1000 * model.Mbps // rate of links
)

// strategy is one of the paper's algorithms.
type strategy struct {
	name     string
	odds     label.Probability
	rest     float64 // T1/T; 1: no probabilistic labels
	adaptive bool
	aging    bool // adaptive with the prototype's aging database
	silent   bool // no labels at all
	probes   bool // instead of labels, HULA's
	idle     bool // packets over ports without traffic, to be labelled
}

var (
	baseA = strategy{name: "Base A", odds: label.ProbabilityF1(), rest: 1}
	baseB = strategy{name: "Base B", odds: label.ProbabilityF1()}
	proA  = strategy{name: "Pro on Base A", odds: label.ProbabilityF1(), rest: 1, adaptive: true}
	proB  = strategy{name: "Pro on Base B", odds: label.ProbabilityF1(), adaptive: true}
	// The prototype's controller of section 5: time-outs in place of Algorithm 3.
	agingA = strategy{name: "Pro by time-outs on Base A", odds: label.ProbabilityF1(), rest: 1, adaptive: true, aging: true}
	agingB = strategy{name: "Pro by time-outs on Base B", odds: label.ProbabilityF1(), adaptive: true, aging: true}
	// Section 7: active probes where there is no traffic.
	probedA = strategy{name: "Base A and probes", odds: label.ProbabilityF1(), rest: 1, idle: true}
)

// lab is one run of the testbed: the Clos of 12 switches and 8 servers.
type lab struct {
	strategy
	interval     time.Duration
	window       time.Duration
	rate         float64 // packets per second of each sender
	packets      int     // of all senders together
	senders      []int   // servers, from 0; nil: the first and the last, as in the paper; none: all
	link         model.Rate
	queue        model.Bytes // capacity of an egress queue; 0: unlimited
	loss         float64     // share of packets that each link between switches loses
	scatter      bool        // packets of a pair take all paths, not one
	toLastPacket bool        // run to the last packet, though not all senders may send to the end
	pods         int         // of a fat-tree; 0: the testbed
	seed         uint64

	probeSize int32 // on the wire; 0: as large as their content
}

// newLab is the default testbed.
func newLab(s strategy, seed uint64) lab {
	return lab{
		strategy: s, interval: interval, window: window, rate: perServer, packets: 10_000, link: testbed,
		seed: seed,
	}
}

// outcome is the result of a run.
type outcome struct {
	windows []portwatch.Window
	sum     coverage.Window
	times   [6]int // packets by the number of their labels; 0 is never exported
	exports int
	labels  int // written by switches
	probes  int // HULA's sent by switches, including copies; or over idle ports, by hosts
	ports   int // of all switches
	load    labels.Load
	sent    int
	arrived int
	dropped int        // by switches; at the end some are in flight
	busiest model.Rate // of a link between switches, over the whole run
	span    time.Duration
}

func (o *outcome) coverage() float64 { return o.sum.Coverage() }

// lost returns the share of packets that did not arrive.
func (o *outcome) lost() float64 { return 1 - float64(o.arrived)/float64(max(o.sent, 1)) }

// run simulates the lab.
func (l lab) run(ctx context.Context) (outcome, error) {
	var out outcome
	links := topo.DefaultLinks()
	links.Host.Rate, links.Fabric.Rate = testbed, l.link
	f, err := topo.Clos(topo.DefaultClos(), links)
	if l.pods > 0 {
		f, err = topo.FatTree(l.pods, links)
	}
	if err != nil {
		return out, err
	}
	routes, err := topo.NewRoutes(f, topo.RouteConfig{Seed: l.seed})
	if err != nil {
		return out, err
	}
	cfg := sim.DefaultConfig()
	cfg.Seed, cfg.MTU, cfg.LossyQueue = l.seed, payload, l.queue
	n, err := sim.New(routes, cfg)
	if err != nil {
		return out, err
	}
	flows, end := l.traffic(f)
	counts := &counter{}
	n.Observe(counts)
	var ctl *labels.Control
	var programs []*label.Program
	var probing []*hula
	switch {
	case l.probes:
		probing = l.probe(n)
	case !l.silent:
		if ctl, programs, err = l.attach(n, &out); err != nil {
			return out, err
		}
	}
	if err := n.AddFlows(flows); err != nil {
		return out, err
	}
	if err := l.losePackets(n); err != nil {
		return out, err
	}
	for at := time.Duration(0); at < end; at += l.window {
		n.Run(engine.Of(at))
		if err := ctx.Err(); err != nil {
			return out, err
		}
	}
	n.Run(engine.Of(end + 10*ms)) // packets in flight arrive
	out.span = end
	if ctl != nil {
		out.windows, out.sum, out.load = ctl.Watch.Windows(), ctl.Watch.Coverage(), ctl.Load
		out.probes = int(ctl.Watch.Stats().Probes)
	}
	for _, h := range probing {
		out.probes += h.sent
	}
	for _, sw := range n.Switches() {
		out.ports += len(sw.Ports())
	}
	for _, p := range programs {
		s := p.Stats()
		out.labels += int(s.Interval + s.Random + s.SampledFlow)
	}
	out.sent, out.arrived, out.dropped = len(flows), counts.arrived, counts.dropped
	for _, sw := range n.Switches() {
		for _, p := range sw.Ports() {
			if p.Peer().Switch() != nil {
				out.busiest = max(out.busiest, model.Rate(float64(p.TxData)*8/end.Seconds()))
			}
		}
	}
	return out, nil
}

// losePackets makes the links between switches unreliable.
func (l lab) losePackets(n *sim.Network) error {
	if l.loss == 0 {
		return nil
	}
	for _, sw := range n.Switches() {
		for _, p := range sw.Ports() {
			if p.Peer().Switch() == nil {
				continue
			}
			wire := sim.Lossy{Port: model.Port{Node: p.Node, Port: p.ID}, Share: l.loss}
			if err := n.Inject(sim.Injection{Fault: wire}); err != nil {
				return err
			}
		}
	}
	return nil
}

// attach runs labels in all switches, with a collector of their exports.
func (l lab) attach(n *sim.Network, out *outcome) (*labels.Control, []*label.Program, error) {
	all := map[model.NodeID][]inswitch.Program{}
	var list []*label.Program
	for _, id := range n.Fabric().Switches() {
		cfg := label.DefaultConfig()
		cfg.Interval, cfg.MinInterval, cfg.Probability = l.interval, time.Duration(l.rest*float64(l.interval)), l.odds
		cfg.Seed = l.seed
		p, err := label.New(cfg, simhost.Describe(n, id, 0))
		if err != nil {
			return nil, nil, err
		}
		all[id], list = []inswitch.Program{p}, append(list, p)
	}
	cfg := portwatch.Config{States: coverage.DefaultConfig(n.Fabric()), Window: l.window, KeepWindows: 1 << 20}
	if l.adaptive {
		// The paper leaves k open. Here k·T is half the telemetry interval, so
		// that a port's shift is raised before its window ends, and it stays
		// raised for ten such spans, as in the prototype.
		cfg.Tuner = &coverage.TunerConfig{Interval: l.window / 2, Patience: 1, FreshPeriods: 10, MaxShift: 6, Aging: l.aging}
	}
	commands := labels.Channel{Delay: ms, Seed: l.seed}
	if l.idle {
		cfg.Probing = &portwatch.Probing{
			Routes: n.Routes(), After: l.interval, Port: labels.ProbePort,
			Prober: labels.NewProber(n, simhost.NewProbers(n, nil), commands),
		}
	}
	ctl, err := labels.New(n, all, 0, cfg, commands)
	if err != nil {
		return nil, nil, err
	}
	mgmt := simhost.DefaultManagementConfig()
	mgmt.Seed = l.seed
	host := simhost.DefaultConfig()
	host.Carrier, err = simhost.NewManagement(n, mgmt, func(at model.Time, from model.NodeID, datagram []byte) {
		ctl.ReceiveDatagram(at, from, datagram)
		out.count(datagram)
	})
	if err != nil {
		return nil, nil, err
	}
	for _, id := range n.Fabric().Switches() {
		if _, err := simhost.Attach(n, id, inswitch.NewPipeline(all[id]...), host); err != nil {
			return nil, nil, err
		}
	}
	return ctl, list, nil
}

// count adds the exports of a datagram to the histogram.
func (o *outcome) count(datagram []byte) {
	var r dta.Reader
	if r.Reset(datagram) != nil {
		return // the watch counts it
	}
	for rep := (dta.Report{}); r.Next(&rep); {
		var e wire.Export
		if _, err := e.Parse(rep.Data); err == nil {
			o.times[e.Labels.Len()]++
			o.exports++
		}
	}
}

// traffic draws packets with random gaps from each sender to random servers.
func (l lab) traffic(f *topo.Fabric) (flows []traffic.Flow, end time.Duration) {
	hosts := f.Hosts()
	senders := l.senders
	if senders == nil {
		senders = []int{0, len(hosts) - 1}
	} else if len(senders) == 0 {
		for i := range hosts {
			senders = append(senders, i)
		}
	}
	rng := claim.Rand(l.seed, 1)
	each := l.packets / len(senders)
	for _, s := range senders {
		at := 0.0
		last := map[model.NodeID]model.Time{}
		for i := range each {
			at += rng.ExpFloat64() / l.rate * 1e9
			dst := hosts[(s+1+rng.IntN(len(hosts)-1))%len(hosts)]
			start := max(model.Time(at), last[dst]+model.Time(l.minGap()))
			last[dst] = start
			flows = append(flows, traffic.Flow{
				Src: hosts[s], Dst: dst, Start: start, Bytes: payload, Transport: traffic.UDP,
				SrcPort: l.choosePort(rng, i, uint16(1000+int(dst))), DstPort: userPort,
			})
		}
		// With fewer senders, ports would go silent in the middle of a window.
		if last := time.Duration(at); end == 0 || l.toLastPacket == (last > end) {
			end = last
		}
	}
	return slices.DeleteFunc(flows, func(f traffic.Flow) bool { return f.Start > model.Time(end) }), end
}

// minGap is the least time between two packets of a pair: one at a time.
func (l lab) minGap() time.Duration {
	return 10 * time.Microsecond * time.Duration(testbed/min(l.link, testbed))
}

// choosePort selects a packet's egress port.
func (l lab) choosePort(rng *rand.Rand, i int, fixed uint16) uint16 {
	if l.scatter {
		return uint16(1024 + i%60_000)
	}
	return fixed
}

// counter counts user packets that arrive or are dropped.
type counter struct {
	sim.NopObserver
	arrived, dropped int
}

// Delivered implements sim.Observer.
func (c *counter) Delivered(_ engine.Time, p *sim.Packet, _ *sim.Host) {
	if p.Key.DstPort == userPort {
		c.arrived++
	}
}

// Dropped implements sim.Observer.
func (c *counter) Dropped(_ engine.Time, p *sim.Packet, _ *sim.Port, _ sim.Reason) {
	if p.Key.DstPort == userPort {
		c.dropped++
	}
}

func percent(v float64) string { return fmt.Sprintf("%.4g %%", 100*v) }
