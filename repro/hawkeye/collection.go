package hawkeye

import (
	"context"
	"fmt"
	"math"

	inepoch "github.com/weft-telemetry/weft/inswitch/epoch"
	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/wire/epoch"
)

// Sizes of the evaluation: a switch of 64 ports that keeps 4,096 flows in each
// epoch, dumped in packets of 200 bytes or read by the switch CPU.
const (
	evalPorts   = 64
	evalFlows   = 4096
	phvBytes    = 200
	reportBytes = 1500
)

// portMemory returns the memory for ports and port pairs in one class.
func portMemory(epochs int) model.Bytes {
	return model.Bytes(epochs * (evalPorts*epoch.PortEpochSize + evalPorts*evalPorts*epoch.MeterSize))
}

// intervalMemory returns the memory for pause and congestion intervals in one
// class, and for the histories of backlogs.
func intervalMemory() model.Bytes {
	return model.Bytes(evalPorts*(epoch.IntervalsSize(inepoch.PauseIntervals)+epoch.IntervalsSize(inepoch.CongestionIntervals)) +
		inepoch.MaxBacklogHistories*epoch.BacklogHistorySize(inepoch.BacklogPoints))
}

// flowMemory returns the memory for flows.
func flowMemory(epochs, flows int) model.Bytes {
	return model.Bytes(epochs * flows * epoch.Flow4Size)
}

var reduction = claim.Claim{
	ID: "hawkeye-collection", Where: "section 4.5, figure 14",
	Says:      "a switch CPU that leaves zeros out and fills packets sends far less than a dump by the data plane",
	Published: "over 80 % fewer bytes, about 95 % fewer packets",
	Mutations: []claim.Mutation{switchCPU},
	Run: func(ctx context.Context, o claim.Options) (claim.Result, error) {
		const epochs = 2
		dump := float64(portMemory(epochs) + intervalMemory() + flowMemory(epochs, evalFlows))
		var fewerBytes, fewerPackets []float64
		s := study{lab: best(o), sets: single(rows), traces: o.Pick(10, 1), methods: []method{hawkeyeMethod}}
		s.more = func(_ int, _ *run, _ method, list []diagnosis) {
			for i := range list {
				for _, r := range list[i].evidence.Reports {
					sent := float64(r.Bytes)
					if o.Without(switchCPU) {
						sent = dump
					}
					packets := math.Ceil(sent / reportBytes)
					fewerBytes = append(fewerBytes, 100*(1-sent/dump))
					fewerPackets = append(fewerPackets, 100*(1-packets/(dump/phvBytes)))
				}
			}
		}
		if _, err := s.run(ctx, o); err != nil {
			return claim.Result{}, err
		}
		enough := func(list []float64, least float64) float64 {
			n := 0
			for _, v := range list {
				if v >= least {
					n++
				}
			}
			return share(n, len(list))
		}
		b, p := enough(fewerBytes, 80), enough(fewerPackets, 95)
		t := claim.Table{Title: "reports", Header: []string{
			"reports", "at least 80 % fewer bytes",
			"at least 95 % fewer packets",
		}}
		t.Row(fmt.Sprint(len(fewerBytes)), fmt.Sprintf("%.1f %%", 100*b), fmt.Sprintf("%.1f %%", 100*p))
		return claim.Result{
			Measured: fmt.Sprintf("%.1f %% of reports have at least 80 %% fewer bytes, %.1f %% at least 95 %% fewer packets",
				100*b, 100*p),
			Pass: b >= 0.9 && p >= 0.9,
			Notes: []string{setting, "against a dump of 64 ports, their pairs and intervals and 4,096 flows in 2 epochs by packets of " +
				"200 bytes; passes when nine of ten reports save as much as published"},
			Tables: []claim.Table{t},
			Plots: []claim.Plot{{Chart: plot.Chart{
				Title: "savings of reading by the switch CPU", XTitle: "% less than a dump", YTitle: "share of reports",
				Series: []plot.Series{{Name: "bytes", Values: fewerBytes}, {Name: "packets", Values: fewerPackets}},
			}}},
		}, nil
	},
}
