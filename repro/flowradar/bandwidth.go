package flowradar

import (
	"context"
	"fmt"

	"github.com/weft-telemetry/weft/inswitch/flowset"
	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/wire/dta"
	wire "github.com/weft-telemetry/weft/wire/flowset"
)

var bandwidth = claim.Claim{
	ID: "flowradar-bandwidth", Where: "section 5.1, figure 4",
	Says:      "a switch sends flowsets of 100K flows per slot with this much bandwidth, for slots of 10 ms and of 100 ms; it is a small share of a rack switch's 44 links of 10 Gb/s",
	Published: "2.3 Gb/s, 0.23 Gb/s, less than 0.52 %",
	Run:       runBandwidth,
}

func runBandwidth(_ context.Context, _ claim.Options) (claim.Result, error) {
	const rack = 44 * 10e9
	t := claim.Table{Title: "slots of 10 ms, flowsets planned for 99 % decoded by themselves", Header: []string{
		"flows", "flowset", "in datagrams of 1,500 bytes", "of 9,000 bytes", "with Weft's cells, 1,500 bytes",
	}}
	gigabits := func(bytes float64, slot float64) float64 { return bytes * 8 / slot / 1e9 }
	show := func(v float64) string { return fmt.Sprintf("%.3g Gb/s", v) }
	var xs, plain, sent []float64
	var at100K float64
	for _, n := range []int{1_000, 10_000, 100_000, 1_000_000} {
		plan, err := flowset.Plan(n, 0.99, flowset.Single)
		if err != nil {
			return claim.Result{}, err
		}
		table := gigabits(float64(plan.Memory(prototypeLayout)), 0.01)
		if n == 100_000 {
			at100K = table
		}
		var framed [3]float64
		for i, c := range []struct {
			layout wire.Layout
			mtu    int
		}{{prototypeLayout, 1500}, {prototypeLayout, 9000}, {flowset.Layout4, 1500}} {
			bytes, err := onTheWire(&plan, c.layout, c.mtu)
			if err != nil {
				return claim.Result{}, err
			}
			framed[i] = gigabits(float64(bytes), 0.01)
		}
		t.Row(fmt.Sprint(n), show(table), show(framed[0]), show(framed[1]), show(framed[2]))
		xs, plain, sent = append(xs, float64(n)), append(plain, table), append(sent, framed[0])
	}
	share := at100K * 1e9 / rack
	return claim.Result{
		Measured: fmt.Sprintf("%s, %s, %s", show(at100K), show(at100K/10), percent(share)),
		Pass:     at100K <= 2.3 && at100K/10 <= 0.23 && share < 0.0052+0.00005,
		Notes: []string{
			"the verdict is on the flowset itself, with the prototype's cells of 18 bytes, as the paper counts; chunks, reports and headers down to Ethernet come on top, as the table shows",
		},
		Tables: []claim.Table{t},
		Plots: []claim.Plot{{Chart: plot.Chart{
			Title: "Export with slots of 10 ms", XTitle: "flows per slot", YTitle: "Gb/s", LogX: true, LogY: true,
			Series: []plot.Series{
				{Name: "flowset", X: xs, Y: plain},
				{Name: "with headers, datagrams of 1,500 bytes", X: xs, Y: sent},
				{Name: "published", X: []float64{100_000}, Y: []float64{2.3}, Dashed: true},
			},
		}}},
	}, nil
}

// onTheWire returns the bytes of all frames that a flowset is exported in.
func onTheWire(plan *flowset.Sizing, l wire.Layout, mtu int) (int, error) {
	const ethernet, ipv4, udp, preambleGapFCS = 14, 20, 8, 24
	h := wire.Header{Length: slotLength, Geometry: wire.Geometry(plan.Geometry), Layout: l}
	report := dta.Report{Primitive: dta.Append}
	around := ipv4 + udp + dta.HeaderSize + report.Size()
	split, err := h.Split(mtu - around)
	if err != nil {
		return 0, err
	}
	total := 0
	for span, ok := split.Next(); ok; span, ok = split.Next() {
		unit := 1
		if span.Section == wire.Cells {
			unit = l.Size()
		}
		total += int(span.Count)*unit + wire.Overhead + around + ethernet + preambleGapFCS
	}
	return total, nil
}
