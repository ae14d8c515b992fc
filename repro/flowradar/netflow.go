package flowradar

import (
	"context"
	"fmt"

	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/repro/flowradar/peer"
)

var netflow = claim.Claim{
	ID: "flowradar-netflow", Where: "section 5.1, figure 3",
	Says:      "NetFlow on a perfect hash, which no switch has, needs this much for 100K flows, with and without timestamps; a plain hash table without collisions in 99 % of slots needs terabytes",
	Published: "2.5 MB, 1.7 MB, 8.5 TB",
	Run: func(context.Context, claim.Options) (claim.Result, error) {
		full, bare, plain := peer.NetFlowBytes(100_000, true), peer.NetFlowBytes(100_000,
			false), peer.PlainHashBytes(100_000, 0.99)
		t := claim.Table{
			Title:  "bytes by number of flows",
			Header: []string{"flows", "NetFlow", "without timestamps", "plain hash"},
		}
		var xs, ys, zs []float64
		for _, n := range []int{1_000, 10_000, 100_000, 1_000_000} {
			a, b := float64(peer.NetFlowBytes(n, true)), float64(peer.NetFlowBytes(n, false))
			t.Row(fmt.Sprint(n), megabytes(a), megabytes(b), fmt.Sprintf("%.3g GB", peer.PlainHashBytes(n, 0.99)/1e9))
			xs, ys, zs = append(xs, float64(n)), append(ys, a/1e6), append(zs, b/1e6)
		}
		return claim.Result{
			Measured: fmt.Sprintf("%s, %s, %.2g TB", megabytes(float64(full)), megabytes(float64(bare)), plain/1e12),
			Pass: withinShare(float64(full), 2.5e6, 0.01) && withinShare(float64(bare), 1.7e6, 0.01) &&
				withinShare(plain, 8.5e12, 0.01),
			Notes:  []string{"computed: 13-byte key, 4-byte counter, two 4-byte timestamps"},
			Tables: []claim.Table{t},
			Plots: []claim.Plot{{Chart: plot.Chart{
				Title: "NetFlow on a perfect hash", XTitle: "flows", YTitle: "MB", LogX: true, LogY: true,
				Series: []plot.Series{{Name: "with timestamps", X: xs, Y: ys}, {Name: "without", X: xs, Y: zs}},
			}}},
		}, nil
	},
}
