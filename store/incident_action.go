package store

import (
	"fmt"

	"github.com/weft-telemetry/weft/model/record"
)

// CheckIncidentAction returns an error for an action that cannot be stored.
func CheckIncidentAction(a *record.IncidentAction) error {
	until := valid
	if !a.Until.IsZero() {
		until = checkTime(a.Until)
	}
	if p := firstProblem(checkTime(a.Time), until, checkTexts(a.Incident, a.Kind, a.Who, a.Text)); p != valid {
		return fmt.Errorf("incident action: %w: %s", ErrRecord, p.detail)
	}
	return nil
}
