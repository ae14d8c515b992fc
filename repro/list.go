package repro

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weft-telemetry/weft/repro/audit"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/repro/commodity"
	"github.com/weft-telemetry/weft/repro/dta"
	"github.com/weft-telemetry/weft/repro/everflow"
	"github.com/weft-telemetry/weft/repro/flowradar"
	"github.com/weft-telemetry/weft/repro/hawkeye"
	"github.com/weft-telemetry/weft/repro/intlabel"
	"github.com/weft-telemetry/weft/repro/jobs"
	"github.com/weft-telemetry/weft/repro/prove"
	"github.com/weft-telemetry/weft/repro/sim"
)

// Paper is a published system and its claims, in the order of the paper. Five of
// them are none: commodity, prove, audit, sim and jobs hold Weft's own figures.
type Paper struct {
	Name   string
	Title  string
	Claims []claim.Claim
}

// Papers lists all papers.
func Papers() []Paper {
	return []Paper{
		{"flowradar", "FlowRadar: A Better NetFlow for Data Centers", flowradar.Claims()},
		{"everflow", "Packet-Level Telemetry in Large Datacenter Networks", everflow.Claims()},
		{
			"int-label", "INT-label: Lightweight In-band Network-Wide Telemetry via Distributed Labeling",
			intlabel.Claims(),
		},
		{"dta", "Direct Telemetry Access", dta.Claims()},
		{"hawkeye", "Hawkeye: Diagnosing RDMA Network Performance Anomalies with PFC Provenance", hawkeye.Claims()},
		{"prove", "Not a paper: verdicts tested by experiments that are rebuilt from records", prove.Claims()},
		{"audit", "Not a paper: telemetry that names sources which contradict others", audit.Claims()},
		{"jobs", "Not a paper: jobs and what slows them, from flow records", jobs.Claims()},
		{"commodity", "Not a paper: verdicts from the counters and samples of switches on sale", commodity.Claims()},
		{"sim", "Not a paper: the simulator against theory", sim.Claims()},
	}
}

// Entry is a claim and the name of its paper.
type Entry struct {
	claim.Claim
	Paper string
}

// Select returns the selected claims, without repetition, in the order of the
// list. A name is a claim's ID, a paper's name, or "all".
func Select(papers []Paper, names ...string) ([]Entry, error) {
	known := map[string]bool{"all": true}
	var out []Entry
	for _, p := range papers {
		known[p.Name] = true
		for _, c := range p.Claims {
			known[c.ID] = true
			if slices.Contains(names, c.ID) || slices.Contains(names, p.Name) || slices.Contains(names, "all") {
				out = append(out, Entry{c, p.Name})
			}
		}
	}
	for _, name := range names {
		if !known[name] {
			return nil, fmt.Errorf("claim %q, want all, a paper (%s), or a claim that weft repro list shows", name,
				paperNames(papers))
		}
	}
	return out, nil
}

func paperNames(papers []Paper) string {
	names := make([]string, len(papers))
	for i, p := range papers {
		names[i] = p.Name
	}
	return strings.Join(names, ", ")
}
