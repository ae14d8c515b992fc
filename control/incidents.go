package control

import (
	"encoding/json"
	"fmt"

	"github.com/weft-telemetry/weft/analyze/incident"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// incidentRecord is an incident as it is kept and shown.
func (c *Controller) incidentRecord(in *incident.Incident) record.Incident {
	r := record.Incident{
		ID: fmt.Sprintf("i%d", in.ID), Begin: c.time(in.Begin), Updated: c.time(in.Last),
		Cause: in.Cause.String(), Severity: in.Severity().String(), Place: c.place(in.Place), Summary: in.Text,
	}
	if in.Closed {
		r.End = c.time(in.Last)
	}
	r.Body, _ = json.Marshal(in) // values of ours, which have no reason to fail
	return r
}

// place names a port, or a node where no port is known.
func (c *Controller) place(p model.Port) string {
	if p.Port == 0 || !c.fabric.Has(p.Node) {
		return c.name(p.Node)
	}
	return fmt.Sprintf("%s:%d", c.name(p.Node), p.Port)
}
