package intlabel

import (
	"context"
	"fmt"

	"github.com/weft-telemetry/weft/repro/claim"
)

var idlePorts = claim.Claim{
	ID: "int-label-idle-ports", Where: "section 7",
	Says:      "ports without traffic carry no labels; probes along the paths that are missing cover them, as active probing does, and no others are sent",
	Published: "no figure: INT-path covers all ports by probes, INT-label those with traffic",
	Mutations: []claim.Mutation{idleProbes},
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		rates := []float64{0.02, 0.1, 1, 5} // Mb/s of each server
		labs, xs := labsFor(o, []strategy{baseA, probedA}, rates, func(l *lab, v float64) {
			l.rate = v * 125
			l.packets = int(2 * l.rate * float64(o.Pick(60, 15)))
		})
		points, err := sweep(ctx, o, labs, xs)
		if err != nil {
			return claim.Result{}, err
		}
		res := claim.Result{Pass: true, Notes: []string{
			setting + "; here their rate varies, T = 50 ms, and coverage is of all ports of all switches, with traffic or without",
			"a port without a label for longer than T that sent nothing since the last look, every 12.5 ms, is on the path of a probe: one packet of UDP, from a host, whose path the routes give; commands to hosts take 1 ms",
			"passes when at every rate at least 99 % of all ports are labelled in every window after the first, every user packet arrives, and there is at most one probe for two ports and T",
		}}
		t := claim.Table{
			Title:  "all ports, by rate of a server",
			Header: []string{"Mb/s", "ports", "reported, labels alone", "reported, with probes", "worst window", "probes per T", "probes' share of packets", "user packets lost"},
		}
		alone, probed := pointsOf(points, baseA), pointsOf(points, probedA)
		least, most := 1.0, 0.0
		for i, p := range probed {
			mean, worst := reported(p)
			without, _ := reported(alone[i])
			perT := float64(p.outcome.probes) / (p.span.Seconds() / p.interval.Seconds())
			least, most = min(least, worst), max(most, perT/float64(p.ports))
			res.Pass = res.Pass && worst >= 0.99 && perT <= float64(p.ports)/2 && p.arrived == p.sent
			t.Row(fmt.Sprint(p.x), fmt.Sprint(p.ports), percent(without), percent(mean), percent(worst), fmt.Sprintf("%.1f", perT),
				percent(float64(p.outcome.probes)/float64(p.sent+p.outcome.probes)), fmt.Sprint(p.sent-p.arrived))
		}
		last := len(rates) - 1
		low, _ := reported(alone[0])
		high, _ := reported(alone[last])
		res.Measured = fmt.Sprintf("at least %s of ports in every window with %.2f probes a port and T or fewer; labels alone %s at %v Mb/s and %s at %v Mb/s",
			percent(least), most, percent(low), rates[0], percent(high), rates[last])
		res.Tables = []claim.Table{t}
		res.Plots = []claim.Plot{chart("coverage of all ports", "Mb/s of a server", "reported ports", points,
			func(p point) float64 { mean, _ := reported(p); return mean }, baseA, probedA)}
		return res, nil
	},
}

// reported returns the share of all ports that were reported in a window after the first,
// on average and in the worst.
func reported(p point) (mean, worst float64) {
	worst = 1
	windows := p.windows[min(1, len(p.windows)):]
	for i := range windows {
		share := 1 - float64(windows[i].Unreported)/float64(p.ports)
		mean, worst = mean+share/float64(len(windows)), min(worst, share)
	}
	return mean, worst
}
