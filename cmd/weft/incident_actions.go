package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/scenario/live"
)

// incidentActionFlags are the flags of weft incidents ack and its siblings.
type incidentActionFlags struct {
	targetFlags
	text   string
	length time.Duration
	until  string
}

// incidentActionCommands are what operators do about an incident.
func (a *app) incidentActionCommands() (list []*cobra.Command) {
	for _, c := range []struct {
		use, short, example string
		args                int
		reason              bool
	}{
		{"ack ID", "Say that you are working on an incident", "weft incidents ack i12", 1, true},
		{"unack ID", "Take an acknowledgement back", "weft incidents unack i12", 1, true},
		{"mute ID", "Hold back the alerts of an incident until a time", "weft incidents mute i12 --for 2h", 1, true},
		{"unmute ID", "End a mute before its time", "weft incidents unmute i12", 1, true},
		{"assign ID NAME", "Assign an incident to someone; '' to no one", "weft incidents assign i12 alice", 2, false},
		{"comment ID TEXT", "Write something about an incident", "weft incidents comment i12 'optics ordered'", 2, false},
	} {
		var f incidentActionFlags
		kind, _, _ := strings.Cut(c.use, " ")
		cmd := &cobra.Command{
			Use: c.use, Short: c.short, Example: "  " + c.example, Args: argumentCount(c.args, c.args),
			Long: c.short + `. Who did it, when and what is kept in the controller's
store and audit log, and shown in the incident's timeline.`,
			RunE: func(cmd *cobra.Command, args []string) error {
				if len(args) == 2 {
					f.text = args[1]
				}
				return f.run(a, cmd, kind, args[0])
			},
		}
		f.register(cmd)
		if c.reason {
			cmd.Flags().StringVar(&f.text, "text", "", "why")
		}
		if kind == "mute" {
			cmd.Flags().DurationVar(&f.length, "for", time.Hour, "how long, by the fabric's clock; at most 744h")
			cmd.Flags().StringVar(&f.until, "until", "", "until when instead, e.g. 2026-01-02T15:04:05Z")
		}
		list = append(list, cmd)
	}
	return list
}

func (f *incidentActionFlags) run(a *app, cmd *cobra.Command, kind, id string) error {
	r := api.IncidentActionRequest{Kind: kind, Text: f.text}
	switch {
	case f.until != "" && cmd.Flags().Changed("for"):
		return usagef("--for and --until, want one of them")
	case f.until != "":
		until, err := time.Parse(time.RFC3339, f.until)
		if err != nil {
			return usagef("--until %q, want a time such as 2026-01-02T15:04:05Z", f.until)
		}
		r.Until = until
	case kind == "mute":
		if f.length < time.Second || f.length > 744*time.Hour {
			return usagef("--for %v, want 1s to 744h", f.length)
		}
		r.ForMs = f.length.Milliseconds()
	}
	t, err := f.open(cmd, "", live.StartOptions{})
	if err != nil {
		return err
	}
	defer t.close()
	if t.isScenario() {
		return usagef("%s of a scenario's incident, want a controller: nothing of a run is kept", kind)
	}
	done, err := t.ActOnIncident(cmd.Context(), id, r)
	if err != nil {
		return t.explain(err)
	}
	if a.format == "json" {
		return printJSON(cmd.OutOrStdout(), done)
	}
	text := ""
	switch {
	case done.Until != nil:
		text = ", no alerts until " + t.clock(*done.Until)
	case kind == "assign" && done.Text != "":
		text = " to " + done.Text
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s by %s%s\n", id, kind, done.Who, text)
	return err
}

// handlingText is what operators did about an incident, for its first line.
func handlingText(t *target, h *api.Handling) (text string) {
	if h == nil {
		return ""
	}
	if h.AckedBy != "" {
		text += ", acknowledged by " + h.AckedBy
	}
	if h.Assignee != "" {
		text += ", assigned to " + h.Assignee
	}
	if h.MutedUntil != nil {
		text += ", muted until " + t.clock(*h.MutedUntil)
	}
	return text
}
