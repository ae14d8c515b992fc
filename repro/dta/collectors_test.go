package dta

import (
	"testing"

	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/repro/dta/peer"
	wire "github.com/weft-telemetry/weft/wire/dta"
)

func TestPackedPostcardsArePaths(t *testing.T) {
	rng := claim.Rand(1, 1)
	keys := []peer.Key{fabricKey(rng), fabricKey(rng)}
	run := packReports(wire.Postcarding, keys, []uint32{1, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 2, false)
	i := 0
	err := forEachReport(run, func(r *wire.Report) bool {
		want := keys[1]
		if i >= fiveHops {
			want = keys[0]
		}
		if peer.Key(r.Key) != want || int(r.Hop) != i%fiveHops || r.Path != fiveHops || r.Redundancy != 2 {
			t.Errorf("report %d is %+v; want hop %d of key %x", i, r, i%fiveHops, want)
		}
		i++
		return true
	})
	if err != nil || i != 10 {
		t.Errorf("%d reports, %v; want 10", i, err)
	}
	if err := forEachReport(run, func(*wire.Report) bool { return false }); err == nil {
		t.Error("a full collector was not noticed")
	}
	if err := forEachReport(run[:len(run)-1], func(*wire.Report) bool { return true }); err == nil {
		t.Error("a run that ends inside a report was not noticed")
	}
}

func TestRateTableIsInTimesTheLog(t *testing.T) {
	table, chart := rateTable(rates{log: 2, hash: 4, cuckoo: 5, write: 20, write2: 10, postcard: 30, append: 40})
	if len(table.Rows) != len(chart.Groups) || table.Rows[7][2] != "20.00" {
		t.Errorf("table %v with groups %q; want as many rows, and Append 20 times the log", table.Rows, chart.Groups)
	}
}
