package proof

import (
	"context"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/model"
)

const (
	maxVictims = 32 // flows of an incident that are read
	maxOthers  = 32 // that pass its place
	// Of uneven load there are no victims, and few flows are uneven under any hash.
	maxUnevenAt = 128 // flows at each switch
	maxUneven   = 512
	// maxBefore bounds the time before an incident that shows what flows usually do.
	maxBefore = 10 * time.Second
	minBefore = 100 * time.Millisecond
)

// ReadFlows asks for the flow records of an incident about packets that do not arrive: its
// victims, and the largest of the others that pass its places, from some time before.
func ReadFlows(ctx context.Context, records api.FlowRecords, in *api.IncidentDetail) (list []api.FlowDetail, err error) {
	end := in.Updated
	if in.End != nil {
		end = *in.End
	}
	r := api.Range{From: in.Begin.Add(-min(max(end.Sub(in.Begin), minBefore), maxBefore)), To: end}
	seen := map[model.FlowKey]bool{}
	read := func(key model.FlowKey) error {
		if seen[key] {
			return nil
		}
		seen[key] = true
		d, err := records.Flow(ctx, key, r)
		if err == nil && d.Slots > 0 {
			list = append(list, d)
		}
		return err
	}
	for i := range in.Victims {
		if f := in.Victims[i].Flow; f != nil && len(seen) < maxVictims {
			if err := read(f.Flow); err != nil {
				return nil, err
			}
		}
	}
	each, most := maxOthers, maxVictims+maxOthers
	if in.Cause == anomaly.Imbalance.String() {
		each, most = maxUnevenAt, maxUneven
		r.From = in.Begin
	}
	for _, place := range PlacesOf(in) {
		page, err := records.Flows(ctx, api.FlowsQuery{Range: r, Paging: api.Paging{Limit: each}, Node: place.Node})
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			if len(seen) >= most {
				break
			}
			if err := read(page.Items[i].Flow); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}
