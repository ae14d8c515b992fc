package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/internal/plural"
	"github.com/weft-telemetry/weft/model"
)

// flowFindings returns what the flow analyses found in a range, nil if the controller
// does not analyse flows.
func (t *target) flowFindings(ctx context.Context, r api.Range) (*api.FlowFindings, error) {
	found, err := t.AllFlowFindings(ctx, r)
	if errors.Is(err, api.ErrUnsupported) || errors.Is(err, api.ErrNotFound) { // one of before they were in the API
		return nil, nil
	}
	return &found, err
}

// printFlowFindings prints what the flow analyses found, in one section each.
func printFlowFindings(w io.Writer, t *target, f *api.FlowFindings) error {
	for _, section := range []struct {
		title string
		rows  table
	}{
		{"forwarding faults", pathFindingRows(t, f.Paths)},
		{"losses by link", linkLossRows(f.Losses)},
		{"ECMP imbalance", imbalanceRows(f.Imbalances)},
		{"bursts", burstRows(t, f.Bursts)},
		{"periodic senders", periodicSenderRows(t, f.PeriodicSenders)},
	} {
		if len(section.rows.rows) == 1 { // the heading
			fmt.Fprintf(w, "\n%s: none\n", section.title)
			continue
		}
		fmt.Fprintf(w, "\n%s\n", section.title)
		if err := section.rows.print(w); err != nil {
			return err
		}
	}
	if f.Omitted > 0 {
		fmt.Fprintf(w, "\n%s omitted: the controller keeps the newest ones only\n",
			plural.Count(int(f.Omitted), "older finding"))
	}
	return nil
}

func pathFindingRows(t *target, list []api.PathFinding) (rows table) {
	rows.row("FINDING", "AT", "NEXT HOP", "START", "END", "SLOTS", "FLOWS", "PASSED", "STATE")
	for i := range list {
		f := &list[i]
		at, next, state := f.At.String(), "-", "suspected"
		if len(f.Switches) > 0 {
			at = strings.Join(append(slices.Clone(f.Switches), f.Switches[0]), " → ")
		}
		if f.Next != nil {
			next = f.Next.Node
		}
		switch {
		case f.Stalled:
			state = "stalled (PFC pause)"
		case f.Confirmed:
			state = "confirmed"
		}
		rows.row(pathFindingName(f.Kind), at, next, t.clock(f.First), t.clock(f.Last), f.Slots, flowCount(&f.AffectedFlows),
			f.PassedFlows, state)
	}
	return rows
}

// pathFindingName formats the API's name of a forwarding fault for people.
func pathFindingName(kind string) string {
	if kind == "blackhole" {
		return "black hole"
	}
	return strings.ReplaceAll(kind, "-", " ")
}

func linkLossRows(list []api.LinkLoss) (rows table) {
	rows.row("FROM", "TO", "LOST", "SENT", "FLOWS", "PATTERN")
	for i := range list {
		l := &list[i]
		to := "-"
		if l.To != nil {
			to = l.To.String()
		}
		rows.row(l.From, to, l.LostPackets, l.SentPackets, flowCount(&l.AffectedFlows),
			strings.ReplaceAll(l.Pattern, "-", " "))
	}
	return rows
}

func imbalanceRows(list []api.ECMPImbalance) (rows table) {
	rows.row("SWITCH", "BUSIEST/MEAN", "CAUSE", "FLOWS BY PORT")
	for i := range list {
		im := &list[i]
		var flows []string
		for _, p := range im.Ports {
			flows = append(flows, fmt.Sprintf("%s %d", p.Interface, p.Flows))
		}
		rows.row(im.Switch, fmt.Sprintf("%.2f", im.Ratio), im.Cause, strings.Join(flows, ", "))
	}
	return rows
}

func burstRows(t *target, list []api.MicroburstFinding) (rows table) {
	rows.row("PORT", "START", "END", "LOAD", "FLOWS", "NEW FLOWS")
	for i := range list {
		b := &list[i]
		rows.row(b.Port, t.clock(b.First), t.clock(b.Last), model.FormatShare(b.LoadShare),
			flowCount(&b.AffectedFlows), b.NewFlows)
	}
	return rows
}

func periodicSenderRows(t *target, list []api.PeriodicSender) (rows table) {
	rows.row("PORT", "SENDER", "LAST BURST", "BURSTS", "PERIOD", "LOAD", "MEAN LOAD")
	for i := range list {
		p := &list[i]
		rows.row(p.Port, p.Source, t.clock(p.Last), p.Bursts, model.FormatDuration(time.Duration(p.PeriodNs)),
			model.FormatShare(p.LoadShare), model.FormatShare(p.MeanShare))
	}
	return rows
}

// flowCount formats how many flows a finding affects.
func flowCount(f *api.AffectedFlows) string {
	if f.Truncated {
		return fmt.Sprintf("%d+", len(f.Flows))
	}
	return fmt.Sprint(len(f.Flows))
}

// hasForwardingFault reports whether a loop, a black hole or a wrong route is
// confirmed. Flows that PFC stalls are not forwarded wrongly.
func hasForwardingFault(f *api.FlowFindings) bool {
	return slices.ContainsFunc(f.Paths, func(p api.PathFinding) bool {
		return p.Confirmed && !p.Stalled && p.Kind != "silent-link"
	})
}
