package core

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model/record"
)

// CloseLeftOpen closes the incidents that an earlier controller left open when it
// stopped: they were not watched since, so their end is not known. It returns how many
// there were. Call it before a controller begins to write.
func CloseLeftOpen(ctx context.Context, s Store) (n int, err error) {
	var left record.Batch
	q := record.Query{}
	for {
		page, err := s.Incidents(ctx, q)
		if err != nil {
			return 0, fmt.Errorf("read open incidents: %w", err)
		}
		for i := range page.Items {
			if r := page.Items[i]; r.End.IsZero() {
				if r, err = endUnknown(r); err != nil {
					return 0, err
				}
				left.Incidents = append(left.Incidents, r)
			}
		}
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	if len(left.Incidents) == 0 {
		return 0, nil
	}
	if err := s.Append(ctx, &left); err != nil {
		return 0, fmt.Errorf("close incidents that were left open: %w", err)
	}
	return len(left.Incidents), nil
}

// endUnknown closes an incident with its last evidence. What else its body has stays
// as it is, also if another version wrote it.
func endUnknown(r record.Incident) (record.Incident, error) {
	body := map[string]json.RawMessage{}
	var timeline []api.TimelineEntry
	err := json.Unmarshal(r.Body, &body)
	if err == nil && body["timeline"] != nil {
		err = json.Unmarshal(body["timeline"], &timeline)
	}
	if err != nil {
		return r, fmt.Errorf("incident %s: %w", r.ID, err)
	}
	end := r.Updated
	if n := len(timeline); n > 0 && timeline[n-1].Time.After(end) {
		end = timeline[n-1].Time
	}
	timeline = append(timeline, api.TimelineEntry{Time: end, Kind: "end", Source: "controller", Text: "closed: the controller stopped; when it ended is not known"})
	body["end_unknown"] = json.RawMessage("true")
	if body["timeline"], err = json.Marshal(timeline); err == nil {
		r.Body, err = json.Marshal(body)
	}
	r.End = r.Updated
	return r, err
}
