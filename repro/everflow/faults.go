package everflow

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/inswitch/mirror"
	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/sim"
	wire "github.com/weft-telemetry/weft/wire/mirror"
)

// faultCase is a fault and the finding that traces must give.
type faultCase struct {
	name string
	kind trace.Kind
	// make injects the fault, and returns the switches that may be reported;
	// none for a healthy fabric.
	make func(l *lab) (sim.Fault, []model.NodeID)
}

// Nodes of the fat-tree with k = 4: hosts, ToRs, leaves, spines.
const (
	firstToR   = 16
	firstLeaf  = 24
	firstSpine = 32
)

func aboveToR(l *lab) model.NodeID { return model.NodeID(firstLeaf + l.rng.IntN(12)) }

func prefix(l *lab, host model.NodeID) netip.Prefix {
	return netip.PrefixFrom(l.Network.Fabric().Node(host).IPv4.Netip(), 32)
}

var troubles = []faultCase{
	{name: "none"},
	{"a switch loses a third", trace.Drop, func(l *lab) (sim.Fault, []model.NodeID) {
		at := aboveToR(l)
		return sim.LossySwitch{Switch: at, Share: 0.3}, []model.NodeID{at}
	}},
	{"a wire loses half", trace.Drop, func(l *lab) (sim.Fault, []model.NodeID) {
		at := model.NodeID(firstLeaf + l.rng.IntN(8))
		return sim.Lossy{
			Port:  model.Port{Node: at, Port: model.PortID(3 + l.rng.IntN(2))},
			Share: 0.5,
		}, []model.NodeID{at}
	}},
	{"a table is wrong for a third of flows", trace.Drop, func(l *lab) (sim.Fault, []model.NodeID) {
		at := aboveToR(l)
		return sim.CorruptTable{Switch: at, Share: 0.3, Seed: l.rng.Uint64()}, []model.NodeID{at}
	}},
	{"two switches forward to each other", trace.Loop, func(l *lab) (sim.Fault, []model.NodeID) {
		pod, host := l.rng.IntN(4), model.NodeID(0)
		for host = model.NodeID(l.rng.IntN(16)); int(host)/4 == pod; host = model.NodeID(l.rng.IntN(16)) {
		}
		tor, leaf := model.NodeID(firstToR+2*pod+l.rng.IntN(2)), model.NodeID(firstLeaf+2*pod+l.rng.IntN(2))
		to := prefix(l, host)
		return sim.Reroute{Entries: []sim.Entry{
			{Switch: leaf, To: to, Via: []model.NodeID{tor}},
			{Switch: tor, To: to, Via: []model.NodeID{leaf}},
		}}, []model.NodeID{tor, leaf}
	}},
}

var faults = claim.Claim{
	ID: "everflow-faults", Where: "section 4.1, packet trace",
	Says:      "complete traces show loops, by a device that appears twice, and drops, by a last hop that is not where the destination is attached",
	Published: "both are found",
	Mutations: []claim.Mutation{upperMirrors},
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		trials := o.Pick(40, 5)
		res := claim.Result{Pass: true, Notes: []string{
			fmt.Sprintf("%d runs of each kind in a fat-tree of 16 hosts with 200 flows of RDMA, TCP and UDP, every packet mirrored, every second run with a tenth of the mirrors lost; one trace proves nothing then, so that verdicts rest on many (docs/traces.md)", trials),
			"a run in which the fault affected no packet is skipped; passes when every fault that affected packets is found with its kind and location, and nothing else is",
		}}
		table := claim.Table{
			Title:  "single faults",
			Header: []string{"fault", "runs", "affected packets", "found", "false alarms"},
		}
		chart := plot.Chart{
			Title: "faults found", YTitle: "% of runs in which they affected packets",
			Series: []plot.Series{{Name: "found"}},
		}
		found, met, alarms := 0, 0, 0
		for i, tr := range troubles {
			hits, ok, wrong := 0, 0, 0
			for trial := range trials {
				o.Report(float64(i*trials+trial)/float64(trials*len(troubles)), tr.name)
				hit, named, others, err := runFaultCase(ctx, tr, faultRun{
					flows: 200, seed: o.Seed + uint64(1000*i+trial), loss: 0.1 * float64(trial%2), upper: !o.Without(upperMirrors),
				})
				if err != nil {
					return res, err
				}
				hits, ok, wrong = hits+boolToInt(hit), ok+boolToInt(hit && named), wrong+others
			}
			table.Row(tr.name, fmt.Sprint(trials), fmt.Sprint(hits), fmt.Sprint(ok), fmt.Sprint(wrong))
			if tr.make != nil {
				chart.Groups = append(chart.Groups, tr.name)
				chart.Series[0].Y = append(chart.Series[0].Y, 100*float64(ok)/float64(max(hits, 1)))
			}
			found, met, alarms = found+ok, met+hits, alarms+wrong
		}
		res.Measured = fmt.Sprintf("%d of %d faults found, %d false alarms", found, met, alarms)
		res.Pass = found == met && met > 0 && alarms == 0
		res.Tables, res.Plots = []claim.Table{table}, []claim.Plot{{Chart: chart}}
		return res, nil
	},
}

// minAffectedPackets is how many packets must be lost or loop for a fault to
// count as effective: verdicts need three at least, and the first of a flow does
// not count.
const minAffectedPackets = 20

// faultRun configures one run of a fault.
type faultRun struct {
	flows int
	seed  uint64
	loss  float64 // of mirrors
	upper bool    // leaves and spines mirror, too
}

// runFaultCase runs one fault, and reports whether it affected packets, whether it
// was found, and how many findings are about something else.
func runFaultCase(ctx context.Context, tr faultCase, run faultRun) (hit, named bool, others int, err error) {
	l, err := newLab(setup{
		seed: run.seed, loss: run.loss,
		mirrors: func(id model.NodeID, c *mirror.Config) {
			c.SampleOneIn = 1
			if id >= firstLeaf && !run.upper {
				c.SampleOneIn, c.TCPFlags, c.Protocol = 0, false, false
			}
		},
	})
	if err != nil {
		return false, false, 0, err
	}
	if err := l.addFlows(run.flows); err != nil {
		return false, false, 0, err
	}
	var at []model.NodeID
	if tr.make != nil {
		var fault sim.Fault
		fault, at = tr.make(l)
		if err := l.Inject(sim.Injection{Fault: fault}); err != nil {
			return false, false, 0, err
		}
	}
	if err := l.run(ctx, 10*ms); err != nil {
		return false, false, 0, err
	}
	lost := int64(0)
	for _, n := range l.Counts.Drops {
		lost += n
	}
	for _, f := range l.Findings() {
		if tr.make != nil && f.Kind == tr.kind && slices.Contains(at, f.Switch) {
			named = true
		} else {
			others++
		}
	}
	return lost >= minAffectedPackets, named, others, nil
}

var storage = claim.Claim{
	ID: "everflow-storage", Where: "section 4.1, packet trace",
	Says:      "only traces that are abnormal, marked or of protocols are stored; the vast majority is aggregated into counters",
	Published: "the vast majority of traces",
	Mutations: []claim.Mutation{aggregation},
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		res := claim.Result{Notes: []string{
			"a fat-tree of 16 hosts in which one wire loses packets; each kept trace is stored as analyzers keep it, and counters every 10 s, 300 bytes for each link, whatever their values",
			"passes when more than 90 % of traces are aggregated at every loss rate up to 1 %, and what is stored is less than a tenth of the mirrors' bytes. NAKs, CNPs and retransmissions that the loss causes are protocol traffic and are kept",
		}, Pass: true}
		table := claim.Table{
			Title:  "stored and aggregated traces",
			Header: []string{"loss of the wire", "traces", "aggregated", "mirrors' bytes", "stored bytes", "share"},
		}
		chart := plot.Chart{
			Title: "traces that are aggregated into counters", XTitle: "loss of one wire (%)",
			YTitle: "%", Series: []plot.Series{{Name: "aggregated"}},
		}
		rates := []float64{0, 0.1, 1, 10}
		for i, loss := range rates {
			o.Report(float64(i)/float64(len(rates)), fmt.Sprintf("%v %% lost", loss))
			bytes := uint64(0)
			l, err := newLab(setup{
				seed: o.Seed, keepAll: o.Without(aggregation),
				mirrors: func(_ model.NodeID, c *mirror.Config) { c.SampleOneIn = 1 }, seen: func(_ model.Time,
					m *wire.Mirror,
				) {
					bytes += uint64(wire.HeadSize + len(m.Frame))
				},
			})
			if err != nil {
				return res, err
			}
			if err := l.addFlows(o.Pick(600, 200)); err != nil {
				return res, err
			}
			if loss > 0 {
				if err := l.Inject(sim.Injection{Fault: sim.Lossy{
					Port:  model.Port{Node: firstLeaf, Port: 3},
					Share: loss / 100,
				}}); err != nil {
					return res, err
				}
			}
			if err := l.run(ctx, 10*ms); err != nil {
				return res, err
			}
			s := l.Watch.Stats()
			kept := uint64(0)
			for _, n := range s.Kept {
				kept += n
			}
			const perLink = 300
			stored := uint64(s.Memory) + perLink*uint64(len(l.Watch.Counters()))
			table.Row(fmt.Sprintf("%v %%", loss), fmt.Sprint(s.Closed), percent(s.Closed-kept, s.Closed),
				fmt.Sprint(bytes), fmt.Sprint(stored), percent(stored, bytes))
			share := float64(s.Closed-kept) / float64(max(s.Closed, 1))
			chart.Series[0].X, chart.Series[0].Y = append(chart.Series[0].X, loss), append(chart.Series[0].Y, 100*share)
			if loss <= 1 {
				res.Pass = res.Pass && share > 0.9 && stored*10 < bytes
			}
			if loss == 1 {
				res.Measured = fmt.Sprintf("at 1 %% loss %s aggregated, %s of the bytes stored",
					percent(s.Closed-kept, s.Closed), percent(stored, bytes))
			}
		}
		res.Tables, res.Plots = []claim.Table{table}, []claim.Plot{{Chart: chart}}
		return res, nil
	},
}
