package everflow

import (
	"context"
	"fmt"
	"math"

	"github.com/weft-telemetry/weft/analyze/trace"
	"github.com/weft-telemetry/weft/inswitch/mirror"
	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/sim/traffic"
)

// sizeClasses are flows by payload, up to and including the last of each.
var sizeClasses = []struct {
	name string
	most model.Bytes
}{{"up to 10 KB", 10_000}, {"up to 100 KB", 100_000}, {"up to 1 MB", 1_000_000}, {"more", math.MaxInt64}}

var everyFlow = claim.Claim{
	ID: "everflow-every-flow", Where: "section 3.2, match and mirror",
	Says:      "one packet in n misses many small flows where sizes are skewed; mirrors of SYN, FIN and RST trace every TCP flow",
	Published: "every TCP flow; a sample is biased to large ones",
	Mutations: []claim.Mutation{flagMirrors},
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		flows := o.Pick(1500, 300)
		res := claim.Result{Notes: []string{
			fmt.Sprintf("%d TCP flows in a fat-tree of 16 hosts, sizes by a Pareto law of 1 KB and more with exponent 1.1, cut at 3 MB; a flow is traced when one of its packets was seen on its whole path", flows),
			"passes when SYN, FIN and RST trace all flows, and a sample of one in 100 fewer than half of those up to 10 KB",
		}}
		table := claim.Table{
			Title:  "share of flows that are traced",
			Header: []string{"payload", "flows", "one in 100", "SYN, FIN, RST"},
		}
		traced := [2][]uint64{}
		var count []uint64
		for side := range 2 {
			o.Report(float64(side)/2, "sample, then flags")
			seen := map[model.FlowKey]bool{}
			l, err := newLab(setup{seed: o.Seed, mirrors: func(_ model.NodeID, c *mirror.Config) {
				c.Protocol, c.TCPFlags, c.SampleOneIn = false, side == 1, uint32(100*(1-side))
				if o.Without(flagMirrors) {
					c.TCPFlags, c.SampleOneIn = false, 100
				}
			}, closed: func(t *trace.Trace) {
				if t.End == trace.Arrived && t.MirrorsLost == 0 {
					seen[t.Key] = true
				}
			}})
			if err != nil {
				return res, err
			}
			var list []traffic.Flow
			for range flows {
				src, dst := l.rng.IntN(16), l.rng.IntN(15)
				if dst >= src {
					dst++
				}
				size := min(1000*math.Pow(1-l.rng.Float64(), -1/1.1), 3e6)
				list = append(list, traffic.Flow{
					Src: model.NodeID(src), Dst: model.NodeID(dst),
					Bytes: model.Bytes(size), Start: model.Time(l.rng.IntN(10_000_000)), Transport: traffic.TCP, Rate: 10 * model.Gbps,
				})
			}
			if err := l.AddFlows(list); err != nil {
				return res, err
			}
			if err := l.run(ctx, 20*ms); err != nil {
				return res, err
			}
			count, traced[side] = make([]uint64, len(sizeClasses)), make([]uint64, len(sizeClasses))
			for id := range l.Flows() {
				key, spec := l.FlowKey(id)
				c := 0
				for spec.Bytes > sizeClasses[c].most {
					c++
				}
				count[c]++
				if seen[key] {
					traced[side][c]++
				}
			}
		}
		chart := plot.Chart{
			Title: "flows that are traced", YTitle: "%",
			Series: []plot.Series{{Name: "one in 100"}, {Name: "SYN, FIN, RST"}},
		}
		all, of := [2]uint64{}, uint64(0)
		for c, class := range sizeClasses {
			table.Row(class.name, fmt.Sprint(count[c]), percent(traced[0][c], count[c]),
				percent(traced[1][c], count[c]))
			of += count[c]
			if count[c] == 0 {
				continue
			}
			chart.Groups = append(chart.Groups, class.name)
			for side := range 2 {
				all[side] += traced[side][c]
				chart.Series[side].Y = append(chart.Series[side].Y, 100*float64(traced[side][c])/float64(count[c]))
			}
		}
		res.Measured = fmt.Sprintf("flags: %s of flows; one in 100: %s, and %s of those up to 10 KB",
			percent(all[1], of), percent(all[0], of), percent(traced[0][0], count[0]))
		res.Pass = all[1] == of && 2*traced[0][0] < count[0]
		res.Tables, res.Plots = []claim.Table{table}, []claim.Plot{{Chart: chart}}
		return res, nil
	},
}

var consistent = claim.Claim{
	ID: "everflow-consistent", Where: "section 3.2, footnote 2",
	Says:      "all switches sample the same packets, so that a sampled packet is traced completely; with sFlow, where each switch samples independently, it hardly ever is",
	Published: "the same set at all switches",
	Mutations: []claim.Mutation{commonSeed},
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		res := claim.Result{Notes: []string{
			"flows of RDMA, TCP and UDP, IPv4 and IPv6, in a fat-tree of 16 hosts; complete means that every switch of the path mirrored the packet. UDP packets without IPID that are equal in all hashed fields are sampled together",
			"for sFlow the same program samples with a different seed at each switch; passes when 99.9 % and more are complete with one seed, and fewer than 1 % of those that pass five switches with different seeds",
		}}
		table := claim.Table{
			Title:  "sampled packets that are traced completely, by switches on their path",
			Header: []string{"sampling", "one in", "1 switch", "3 switches", "5 switches", "all"},
		}
		chart := plot.Chart{
			Title: "sampled packets that are traced completely", XTitle: "one in", YTitle: "%",
			LogX: true, Series: []plot.Series{{Name: "the same at all switches"}, {Name: "independent per switch"}},
		}
		res.Pass = true
		rates := []uint32{4, 16, 64}
		for i, every := range rates {
			for side, name := range []string{"the same", "independent"} {
				o.Report(float64(2*i+side)/float64(2*len(rates)), fmt.Sprintf("one in %d, %s", every, name))
				var whole, of [6]uint64
				intent := &labRoutes{}
				l, err := newLab(setup{seed: o.Seed, mirrors: func(id model.NodeID, c *mirror.Config) {
					c.TCPFlags, c.Protocol, c.SampleOneIn = false, false, every
					if side == 1 || o.Without(commonSeed) {
						c.Seed = uint64(id) + 1
					}
				}, closed: func(t *trace.Trace) {
					n := intent.switchesOn(t.Key)
					if n < 1 || n > 5 || t.Repeats > 0 {
						return // retransmitted: two packets look like one
					}
					of[n]++
					if len(t.Hops) == n {
						whole[n]++
					}
				}})
				if err != nil {
					return res, err
				}
				intent.lab = l
				if err := l.addFlows(o.Pick(400, 120)); err != nil {
					return res, err
				}
				if err := l.run(ctx, 10*ms); err != nil {
					return res, err
				}
				sum, total := whole[1]+whole[3]+whole[5], of[1]+of[3]+of[5]
				table.Row(name, fmt.Sprint(every), percent(whole[1], of[1]), percent(whole[3], of[3]),
					percent(whole[5], of[5]), percent(sum, total))
				s := &chart.Series[side]
				s.X, s.Y = append(s.X, float64(every)), append(s.Y, 100*float64(sum)/float64(max(total, 1)))
				if side == 0 {
					res.Pass = res.Pass && total > 0 && float64(sum) >= 0.999*float64(total)
				} else {
					res.Pass = res.Pass && of[5] > 0 && float64(whole[5]) < 0.01*float64(of[5])
				}
				if every == 16 {
					res.Measured += fmt.Sprintf("%s, one in 16: %s complete; ", name, percent(sum, total))
				}
			}
		}
		res.Measured = res.Measured[:len(res.Measured)-2]
		res.Tables, res.Plots = []claim.Table{table}, []claim.Plot{{Chart: chart}}
		return res, nil
	},
}

// labRoutes gives access to a lab's routes, once there is one.
type labRoutes struct{ *lab }

// switchesOn returns how many switches a flow passes.
func (r *labRoutes) switchesOn(key model.FlowKey) int {
	from, ok := r.Network.Fabric().ByAddr(key.Src)
	if !ok {
		return 0
	}
	path, err := r.Routes().Path(key, from)
	if err != nil {
		return 0
	}
	return len(path) - 2
}
