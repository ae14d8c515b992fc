package record

import "time"

// IncidentAction is what an operator did about an incident.
type IncidentAction struct {
	Time     time.Time `json:"time"` // by the fabric's clock
	Incident string    `json:"incident"`
	Kind     string    `json:"kind"` // of those that control/handling lists
	Who      string    `json:"who"`
	Text     string    `json:"text,omitempty"`
	Until    time.Time `json:"until,omitzero"` // of a mute
}
