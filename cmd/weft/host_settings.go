package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/weft-telemetry/weft/dataplane/hostcounters"
	"github.com/weft-telemetry/weft/inhost/settings"
)

// printSettings writes the settings of this host, for weft check --hosts.
func printSettings(w io.Writer) error {
	h, err := hostcounters.ReadSettings()
	if err != nil {
		return err
	}
	return printJSON(w, h)
}

// addSettings adds the present settings of this host.
func (v *hostView) addSettings() {
	h, err := hostcounters.ReadSettings()
	if err != nil {
		v.Missing = append(v.Missing, "settings: "+err.Error())
		return
	}
	v.Settings = h
}

// printSettings prints how interfaces are set up, and what did not answer.
func (v *hostView) printSettings(w io.Writer, rows int) error {
	if v.Settings == nil || len(v.Settings.Interfaces) == 0 {
		return nil
	}
	list := v.Settings.Interfaces
	fmt.Fprintln(w)
	var t table
	t.row("INTERFACE", "MTU", "PFC", "PAUSE FRAMES", "DSCP TO PRIORITY", "ECN OF RDMA", "NOT ANSWERED")
	for i := range list[:min(len(list), rows)] {
		in := &list[i]
		t.row(in.Name, in.MTU, pfcText(in), pauseText(in.Pause), dscpText(in), ecnText(in.RDMA), unansweredText(in))
	}
	return t.print(w)
}

func pfcText(in *settings.Interface) string {
	if in.PFC == nil {
		return "?"
	}
	return in.PFC.Enabled.String()
}

func pauseText(p *settings.Pause) string {
	switch {
	case p == nil:
		return "?"
	case p.Obey && p.Send:
		return "received, sent"
	case p.Obey:
		return "received"
	case p.Send:
		return "sent"
	}
	return "off"
}

// dscpText prints the DSCPs of each priority, such as 26>3.
func dscpText(in *settings.Interface) string {
	if in.Apps == nil {
		return "?"
	}
	of := in.PrioritiesOfDSCP()
	if len(of) == 0 {
		return "none"
	}
	var parts []string
	for _, dscp := range slices.Sorted(maps.Keys(of)) {
		parts = append(parts, fmt.Sprintf("%d>%d", dscp, of[dscp]))
	}
	return joinSome(parts, 4)
}

// ecnText prints the priorities whose marks are answered with CNPs, and those that heed CNPs.
func ecnText(ports []settings.RDMA) string {
	var parts []string
	for _, r := range ports {
		if r.NotifyECN != nil || r.ReactECN != nil {
			parts = append(parts, fmt.Sprintf("np %s, rp %s", setText(r.NotifyECN), setText(r.ReactECN)))
		}
	}
	if len(parts) == 0 {
		return "?"
	}
	return strings.Join(parts, "; ")
}

func setText(p *settings.Priorities) string {
	if p == nil {
		return "?"
	}
	return p.String()
}

// unansweredText says which questions a driver does not answer, by the reason.
func unansweredText(in *settings.Interface) string {
	by := map[string][]string{}
	for _, question := range slices.Sorted(maps.Keys(in.Unanswered)) {
		by[in.Unanswered[question]] = append(by[in.Unanswered[question]], question)
	}
	var parts []string
	for _, why := range slices.Sorted(maps.Keys(by)) {
		parts = append(parts, strings.Join(by[why], ", ")+": "+why)
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, "; ")
}
