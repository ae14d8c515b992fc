package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/scenario/live"
)

// shows reports whether an incident is to be listed. Notices are normal background
// congestion, and listed only if they are asked for.
func (f *incidentsFlags) shows(in *api.Incident) bool {
	q := &f.query
	return (f.all || q.Severity != "" || in.Severity != "notice") && (q.Severity == "" || q.Severity == in.Severity) &&
		(q.State == "" || q.State == in.State) && (q.Cause == "" || q.Cause == in.Cause)
}

// stateText is the state of an incident in a list.
func stateText(in *api.Incident) string {
	if in.MergedInto != "" {
		return "in " + in.MergedInto
	}
	return in.State
}

// nested returns a page with open incidents first, and those that were merged into
// others below these; otherwise the order stays.
func nested(page []api.Incident) []api.Incident {
	parts := map[string][]api.Incident{}
	var roots []api.Incident
	for i := range page {
		if into := page[i].MergedInto; slices.ContainsFunc(page, func(in api.Incident) bool { return in.ID == into }) {
			parts[into] = append(parts[into], page[i])
		} else {
			roots = append(roots, page[i])
		}
	}
	slices.SortStableFunc(roots, func(a, b api.Incident) int { return -strings.Compare(a.State, b.State) })
	list := make([]api.Incident, 0, len(page))
	var add func(in api.Incident)
	add = func(in api.Incident) {
		list = append(list, in)
		own := parts[in.ID]
		delete(parts, in.ID)
		for i := range own {
			add(own[i])
		}
	}
	for i := range roots {
		add(roots[i])
	}
	return list
}

// list reads pages until it has as many incidents as are asked for.
func (f *incidentsFlags) list(ctx context.Context, t *target) (all api.Page[api.Incident], err error) {
	q, most := f.query, f.query.Limit
	all.Items = []api.Incident{}
	for {
		q.Limit = most - len(all.Items)
		page, err := t.Incidents(ctx, q)
		if err != nil {
			return all, err
		}
		for i := range page.Items {
			if f.shows(&page.Items[i]) {
				all.Items = append(all.Items, page.Items[i])
			}
		}
		if all.Next, q.After = page.Next, page.Next; page.Next == "" || len(all.Items) >= most {
			return all, nil
		}
	}
}

// follower prints changes of incidents, a line for each.
type follower struct {
	flags *incidentsFlags
	out   io.Writer
	clock func(in *api.Incident) string
	json  bool
	shown map[string]api.Incident // the last line of open incidents
}

// maxFollowed is how many incidents a follower remembers.
const maxFollowed = 4096

// print prints an incident if something in its line has changed.
func (f *follower) print(in *api.Incident) error {
	if !f.flags.shows(in) {
		return nil
	}
	last, known := f.shown[in.ID]
	if known && last.State == in.State && last.Severity == in.Severity && last.Cause == in.Cause && last.Location == in.Location {
		return nil
	}
	if len(f.shown) >= maxFollowed {
		clear(f.shown)
	}
	f.shown[in.ID] = *in
	if f.json {
		return json.NewEncoder(f.out).Encode(in)
	}
	s := screenOf(f.out)
	line := fmt.Sprintf("%s  %-6s %-8s %-6s %-13s %s  %s", f.clock(in), in.ID, in.Severity, stateText(in), in.Cause, in.Location, in.Summary)
	_, err := fmt.Fprintln(f.out, s.paint(s.fit(line), in.Severity))
	return err
}

// follow prints the incidents of a list, oldest first, and then every change until
// ctx ends.
func (f *incidentsFlags) follow(ctx context.Context, t *target, out io.Writer, asJSON bool) error {
	if t.isScenario() {
		return usagef("--follow of a scenario, want a controller: a run has an end")
	}
	first, err := f.list(ctx, t)
	if err != nil {
		return t.explain(err)
	}
	w := follower{
		flags: f, out: out, json: asJSON, shown: map[string]api.Incident{},
		clock: func(in *api.Incident) string { return t.clock(in.Begin) },
	}
	for _, in := range slices.Backward(first.Items) {
		if err := w.print(&in); err != nil {
			return err
		}
	}
	for e, err := range t.Events(ctx, "incident") {
		if err != nil {
			return t.explain(err)
		}
		if in, ok := e.(api.Incident); ok {
			if err := w.print(&in); err != nil {
				if errors.Is(err, syscall.EPIPE) {
					return nil
				}
				return err
			}
		}
	}
	return nil
}

// completeIncidents has the shell complete values of flags, and ids of incidents from
// the controller.
func (f *incidentsFlags) completeIncidents(cmd *cobra.Command) {
	knownValues(cmd, "cause", anomaly.CauseNames()...)
	knownValues(cmd, "state", "open", "closed")
	knownValues(cmd, "severity", "notice", "warning", "critical")
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) (ids []string, _ cobra.ShellCompDirective) {
		t, err := f.open(cmd, "", live.StartOptions{})
		if err != nil || len(args) > 0 || t.isScenario() {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer t.close()
		page, err := t.Incidents(cmd.Context(), api.IncidentsQuery{Paging: api.Paging{Limit: 100}})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		for i := range page.Items {
			if in := &page.Items[i]; f.shows(in) {
				ids = append(ids, in.ID+"\t"+in.Severity+" "+in.Cause+" at "+in.Location)
			}
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}
