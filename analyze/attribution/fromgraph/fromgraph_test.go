package fromgraph

import (
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/attribution"
	"github.com/weft-telemetry/weft/analyze/provenance"
	"github.com/weft-telemetry/weft/dataplane/simhost"
	"github.com/weft-telemetry/weft/inhost/agent"
	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/inswitch/epoch"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/sim/lateness"
	"github.com/weft-telemetry/weft/sim/traffic"
	"github.com/weft-telemetry/weft/topo"
	"github.com/weft-telemetry/weft/wire/dta"
)

const µs = time.Microsecond

// rig is a k=4 fat-tree of 16 hosts whose switches answer polls, with the exact
// accounts of its packets.
type rig struct {
	t         *testing.T
	net       *sim.Network
	routes    *topo.Routes
	collector *provenance.Collector
	requests  []request
}

// request is a diagnosis request, and the exact account of the late packet.
type request struct {
	agent.DiagnosisRequest
	exact lateness.Account
	err   error
}

// runRig runs flows and what start adds for 1 ms.
func runRig(t *testing.T, flows []traffic.Flow, start func(*sim.Network)) *rig {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	cfg := sim.DefaultConfig()
	cfg.Congestion, cfg.Buffer = nil, 2*model.MB
	fabric, err := topo.FatTree(4, topo.DefaultLinks())
	check(err)
	r := &rig{t: t}
	r.routes, err = topo.NewRoutes(fabric, topo.RouteConfig{Seed: cfg.Seed})
	check(err)
	r.net, err = sim.New(r.routes, cfg)
	check(err)
	oracle, err := lateness.Watch(r.net, 2*time.Millisecond)
	check(err)
	check(r.net.AddFlows(flows))
	r.collector, err = provenance.NewCollector(provenance.DefaultConfig(256))
	check(err)
	m, err := simhost.NewManagement(r.net, simhost.DefaultManagementConfig(), func(now model.Time, _ model.NodeID, datagram []byte) {
		var in dta.Reader
		var rep dta.Report
		for _ = in.Reset(datagram); in.Next(&rep); {
			_, _ = r.collector.AddChunk(now, rep.Data)
		}
	})
	check(err)
	host := simhost.DefaultConfig()
	host.Carrier = m
	prog := epoch.DefaultConfig()
	prog.EpochLength, prog.ReadoutTime = 200*µs, 100*µs
	for _, id := range fabric.Switches() {
		p, err := epoch.New(prog, simhost.Describe(r.net, id, 0))
		check(err)
		_, err = simhost.Attach(r.net, id, inswitch.NewPipeline(p), host)
		check(err)
	}
	var agents []agent.Config
	for _, id := range fabric.Hosts() {
		agents = append(agents, agent.DefaultConfig(id))
	}
	_, err = simhost.NewAgents(r.net, 20*µs, agents, func(now model.Time, tr agent.DiagnosisRequest) {
		n := request{DiagnosisRequest: tr}
		if sent, ok := oracle.Nearest(tr.Poll.Flow, r.net.Now()-engine.Of(tr.Measured)); ok {
			n.exact, n.err = oracle.AccountRoundTrip(tr.Poll.Flow, sent)
		}
		r.requests = append(r.requests, n)
	})
	check(err)
	if start != nil {
		start(r.net)
	}
	r.net.Run(engine.Of(3 * time.Millisecond))
	return r
}

// account returns the account of a request.
func (r *rig) account(q *request) (*attribution.Account, *attribution.Evidence, *attribution.Victim) {
	e := r.collector.Evidence(q.Poll.Event)
	g := provenance.Build(e, q.Poll.Flow, r.net.Fabric())
	ev, v := Build(Detection{Victim: q.Poll.Flow, Class: 3, Latency: q.Measured, InFlight: q.Reason == agent.Age}, e, g, r.routes)
	return attribution.Attribute(ev, v), ev, v
}

// overlap returns the share of the lateness on which two accounts agree: place
// and kind.
func overlap(a *attribution.Account, exact *lateness.Account) float64 {
	type cause struct {
		port model.Port
		kind string
	}
	kinds := map[attribution.Kind]string{attribution.Contention: "contention", attribution.HostInjection: "host", attribution.Deadlock: "deadlock"}
	truths := map[lateness.Kind]string{lateness.Contention: "contention", lateness.HostInjection: "host", lateness.DeadlockCycle: "deadlock"}
	got, want := map[cause]float64{}, map[cause]float64{}
	for i := range a.Terms {
		if t := &a.Terms[i]; t.Kind != attribution.Unexplained {
			got[cause{t.Place.Port, kinds[t.Kind]}] += float64(t.Time) / float64(a.Late)
		}
	}
	for i := range exact.Terms {
		t := &exact.Terms[i]
		want[cause{t.Place.Port, truths[t.Kind]}] += float64(t.Time) / float64(exact.Late)
	}
	sum := 0.0
	for c, share := range got {
		sum += min(share, want[c])
	}
	return sum
}

// incast is eight flows from other pods into h0, and from the same hosts eight
// slow ones to h1 on the same ToR.
func incast() (flows []traffic.Flow) {
	for i := range model.NodeID(8) {
		flows = append(flows, traffic.Flow{Src: 8 + i, Dst: 0, Bytes: 2_000_000, Priority: 3, Start: model.Time(20 * µs)})
	}
	return append(flows, victims()...)
}

// victims are eight slow flows from other pods to h1.
func victims() (flows []traffic.Flow) {
	for i := range model.NodeID(8) {
		flows = append(flows, traffic.Flow{Src: 8 + i, Dst: 1, Bytes: 500_000, Priority: 3, Start: model.Time(100 * µs), Rate: 5 * model.Gbps})
	}
	return flows
}

// TestAccountsAreNearTheExactOnes: what the reports say of a late packet is near
// what the simulator knows, by the share of the lateness with the right place
// and kind.
func TestAccountsAreNearTheExactOnes(t *testing.T) {
	for name, tc := range map[string]struct {
		flows []traffic.Flow
		fault sim.Fault
		mean  float64 // at least
		top   float64 // share of the requests with the right top cause, at least
	}{
		"incast":       {flows: incast(), mean: 0.85, top: 0.8}, // some have two causes of nearly the same length
		"storm":        {flows: victims(), fault: sim.Storm{Host: 1, Priority: 3}, mean: 0.9, top: 1},
		"pulsed storm": {flows: victims(), fault: sim.Storm{Host: 1, Priority: 3, On: 30 * µs, Off: 10 * µs}, mean: 0.9, top: 1},
		"storm beside": {flows: append(victims(), traffic.Flow{Src: 5, Dst: 0, Bytes: 2_000_000, Priority: 3}), fault: sim.Storm{Host: 0, Priority: 3}, mean: 0.9, top: 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := runRig(t, tc.flows, func(n *sim.Network) {
				if tc.fault == nil {
					return
				}
				if err := n.Inject(sim.Injection{At: model.Time(150 * µs), For: 400 * µs, Fault: tc.fault}); err != nil {
					t.Fatal(err)
				}
			})
			r.compare(tc.mean, tc.top)
		})
	}
}

// compare compares the accounts of all requests with the exact ones.
func (r *rig) compare(wantMean, wantTop float64) {
	r.t.Helper()
	names := attribution.FabricNames(r.net.Fabric())
	mean, top, n := 0.0, 0.0, 0.0
	for i := range r.requests {
		q := &r.requests[i]
		if q.err != nil || q.exact.Late == 0 {
			continue
		}
		a, ev, v := r.account(q)
		agree := overlap(a, &q.exact)
		n, mean = n+1, mean+agree
		if cause := a.TopCause(); cause != nil && cause.Place.Port == q.exact.Terms[0].Place.Port {
			top++
		} else if testing.Verbose() {
			line := a.Timeline(ev, v)
			r.t.Logf("%.2f of %v measured by %v\n%s\n%s%s", agree, q.Measured, q.Reason, a.Sentence(names), line.Draw(names, 100), q.exact.String())
		}
	}
	if n == 0 {
		r.t.Fatal("no request with an exact account")
	}
	r.t.Logf("%.0f requests: %.2f of the lateness agree, %.2f of the top causes", n, mean/n, top/n)
	if mean/n < wantMean || top/n < wantTop {
		r.t.Errorf("%.2f of the lateness agree, %.2f of the top causes; want %.2f, %.2f", mean/n, top/n, wantMean, wantTop)
	}
}

// TestMixedRuns: incasts of 3 to 13 flows that are paused by their receiver in
// half of the runs, and flows beside them. The error of an account is the share
// of the lateness with a wrong place or kind, or with none.
func TestMixedRuns(t *testing.T) {
	var errs []float64
	for run := range 6 {
		receiver := model.NodeID(run % 4)
		var flows []traffic.Flow
		for i := range model.NodeID(3 + 2*run) {
			flows = append(flows, traffic.Flow{
				Src: 4 + i%12, Dst: receiver, Bytes: model.Bytes(100_000 * (1 + run)), Priority: 3, Start: model.Time(20*µs + 3*µs*time.Duration(i)),
			})
		}
		for i := range model.NodeID(8) {
			flows = append(flows, traffic.Flow{Src: 8 + i, Dst: (receiver + 1) % 4, Bytes: 500_000, Priority: 3, Start: model.Time(10 * µs), Rate: 5 * model.Gbps})
		}
		r := runRig(t, flows, func(n *sim.Network) {
			if run%2 == 0 {
				return
			}
			if err := n.Inject(sim.Injection{At: model.Time(60 * µs), For: 100 * µs, Fault: sim.Storm{Host: receiver, Priority: 3}}); err != nil {
				t.Fatal(err)
			}
		})
		for i := range r.requests {
			if q := &r.requests[i]; q.err == nil && q.exact.Late > 0 {
				a, _, _ := r.account(q)
				errs = append(errs, 1-overlap(a, &q.exact))
			}
		}
	}
	slices.Sort(errs)
	median, p95 := errs[len(errs)/2], errs[len(errs)*95/100]
	t.Logf("%d accounts: median error %.2f, p95 %.2f", len(errs), median, p95)
	if len(errs) < 50 || median > 0.17 || p95 > 0.36 {
		t.Errorf("%d accounts with a median error of %.2f, p95 %.2f; want 50, at most 0.17, 0.36", len(errs), median, p95)
	}
}
