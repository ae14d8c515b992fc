package clickhouse

import (
	"encoding/json"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

var traceTable = table[record.Trace]{
	kind: store.Traces,
	columns: joined([]column[record.Trace]{
		timeColumn(func(r *record.Trace) time.Time { return r.Time }),
		columnOf("id", func(r *record.Trace) uint64 { return r.ID }),
	}, flowColumns(func(r *record.Trace) model.FlowKey { return r.Flow }), []column[record.Trace]{
		columnOf("end", func(r *record.Trace) string { return r.End }),
		columnOf("why", func(r *record.Trace) string { return r.Why }),
		columnOf("latency_ns", func(r *record.Trace) int64 { return int64(r.Latency) }),
		columnOf("lost_mirrors", func(r *record.Trace) int64 { return int64(r.LostMirrors) }),
		columnOf("switches", func(r *record.Trace) []string {
			names := make([]string, len(r.Hops))
			for i := range r.Hops {
				names[i] = r.Hops[i].Switch
			}
			return names
		}),
		columnOf("hops", func(r *record.Trace) string {
			b, err := json.Marshal(utcHops(r.Hops))
			if err != nil {
				panic(err) // store.CheckBatch refuses times that JSON does not hold
			}
			return string(b)
		}),
		columnOf("frame", func(r *record.Trace) string { return string(r.Frame) }),
	}),
	selected: `id, flow, end, why, latency_ns, lost_mirrors, hops, frame`,
	scan: func(rows driver.Rows, r *record.Trace, at *position) error {
		var flow, hops, frame string
		var latency, lost int64
		if err := rows.Scan(&at.time, &at.seq, &r.ID, &flow, &r.End, &r.Why, &latency, &lost, &hops, &frame); err != nil {
			return err
		}
		r.Time, r.Latency, r.LostMirrors = at.at(), time.Duration(latency), int(lost)
		if frame != "" {
			r.Frame = []byte(frame)
		}
		if err := json.Unmarshal([]byte(hops), &r.Hops); err != nil {
			return err
		}
		return parseFlow(&r.Flow, flow)
	},
}

// utcHops are hops with times in UTC: those of other zones may not be valid JSON.
func utcHops(hops []record.TraceHop) []record.TraceHop {
	utc := make([]record.TraceHop, len(hops))
	for i := range hops {
		utc[i] = hops[i]
		utc[i].Time = hops[i].Time.UTC()
	}
	return utc
}

var diagnosisTable = table[record.Diagnosis]{
	kind: store.Diagnoses,
	columns: joined([]column[record.Diagnosis]{
		timeColumn(func(r *record.Diagnosis) time.Time { return r.Time }),
		columnOf("id", func(r *record.Diagnosis) string { return r.ID }),
		columnOf("anomaly", func(r *record.Diagnosis) string { return r.Anomaly }),
		columnOf("root_cause", func(r *record.Diagnosis) string { return r.RootCause }),
		columnOf("node", func(r *record.Diagnosis) string { return r.Initial.Node }),
		columnOf("port", func(r *record.Diagnosis) uint16 { return uint16(r.Initial.Port) }),
		columnOf("peer", func(r *record.Diagnosis) string { return r.Initial.Peer }),
	}, flowColumns(func(r *record.Diagnosis) model.FlowKey { return r.Victim }), []column[record.Diagnosis]{
		columnOf("confidence", func(r *record.Diagnosis) float64 { return r.Confidence }),
		columnOf("body", func(r *record.Diagnosis) string { return string(r.Body) }),
	}),
	selected: `id, anomaly, root_cause, node, port, peer, flow, confidence, body`,
	scan: func(rows driver.Rows, r *record.Diagnosis, at *position) error {
		var flow, text string
		var port uint16
		err := rows.Scan(&at.time, &at.seq, &r.ID, &r.Anomaly, &r.RootCause, &r.Initial.Node, &port, &r.Initial.Peer, &flow, &r.Confidence, &text)
		if err != nil {
			return err
		}
		r.Time, r.Initial.Port, r.Body = at.at(), model.PortID(port), body(text)
		return parseFlow(&r.Victim, flow)
	},
}

// incidentTable has a row for every state of an incident: see incidentStates.
var incidentTable = table[record.Incident]{
	kind: store.Incidents,
	columns: []column[record.Incident]{
		timeColumn(func(r *record.Incident) time.Time { return r.Begin }),
		columnOf("id", func(r *record.Incident) string { return r.ID }),
		columnOf("updated", func(r *record.Incident) int64 { return r.Updated.UnixNano() }),
		columnOf("ended", func(r *record.Incident) int64 {
			if r.End.IsZero() {
				return 0
			}
			return r.End.UnixNano()
		}),
		columnOf("open", func(r *record.Incident) uint8 { return truth(r.End.IsZero()) }),
		columnOf("cause", func(r *record.Incident) string { return r.Cause }),
		columnOf("severity", func(r *record.Incident) string { return r.Severity }),
		columnOf("location", func(r *record.Incident) string { return r.Location }),
		columnOf("summary", func(r *record.Incident) string { return r.Summary }),
		columnOf("body", func(r *record.Incident) string { return string(r.Body) }),
	},
	selected: `id, updated, ended, open, cause, severity, location, summary, body`,
	scan: func(rows driver.Rows, r *record.Incident, at *position) error {
		var updated, ended int64
		var open uint8
		var text string
		err := rows.Scan(&at.time, &at.seq, &r.ID, &updated, &ended, &open, &r.Cause, &r.Severity, &r.Location, &r.Summary, &text)
		r.Begin, r.Updated, r.Body = at.at(), instant(updated), body(text)
		if open == 0 {
			r.End = instant(ended)
		}
		return err
	},
}
