package core

import (
	"fmt"

	"github.com/weft-telemetry/weft/control/alerts"
	"github.com/weft-telemetry/weft/control/api"
)

// alertStage is the account of alerts, of all targets together.
func alertStage(n *alerts.Notifier) api.Stage {
	st := api.Stage{Name: "alerts", Title: "Alerts to other systems", Unit: "alerts"}
	var replaced uint64
	var lost alerts.Losses
	var over uint64
	for _, s := range n.Stats() {
		st.In, st.Out, st.Queued, st.QueueLimit = st.In+s.In, st.Out+s.Out, st.Queued+s.Waiting, st.QueueLimit+n.QueueLimit()
		replaced += s.Replaced
		lost.QueueFull, lost.Rejected = lost.QueueFull+s.Losses.QueueFull, lost.Rejected+s.Losses.Rejected
		lost.Expired, lost.Stopped = lost.Expired+s.Losses.Expired, lost.Stopped+s.Losses.Stopped
		over = s.OverIncidents
	}
	st.Losses = []api.StageLoss{
		{Reason: "queue full", About: "the oldest of more than alerts.queue that wait", Count: lost.QueueFull},
		{Reason: "rejected", About: "refused by the target for good, see the log", Count: lost.Rejected},
		{Reason: "expired", About: "not delivered within alerts.expire", Count: lost.Expired},
		{Reason: "stopped", About: "not delivered before the controller stopped", Count: lost.Stopped},
		{Reason: "too many incidents", About: "incidents without an alert, because thousands were open", Count: over},
		{Reason: "replaced", About: "by a later state of the same alert that waited", Count: replaced, Expected: true},
	}
	return st
}

// addAlertProblems adds targets that do not take alerts.
func addAlertProblems(h *api.Health, n *alerts.Notifier) {
	for _, s := range n.Stats() {
		if s.Err == nil {
			continue
		}
		h.Alerts = append(h.Alerts, fmt.Sprintf("alerts to %s are not delivered, %d wait; check the target and alerts.targets: %v", s.Target, s.Waiting, s.Err))
		if h.State == "ok" {
			h.State = "degraded"
		}
	}
}
