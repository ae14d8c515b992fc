package embedded

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

// table describes how records of one type are stored: row in the order of the
// table's columns, scan in the order of columns, which omits derived ones. A row's
// times are in UTC: DuckDB's driver judges a time by its year where it was taken.
type table[T any] struct {
	kind    store.Kind
	columns string                                                             // after time and seq
	read    func(ctx context.Context, w *pageWalk[T], where *conditions) error // if one query does not read them
	row     func(r *T, seq int64) []driver.Value
	scan    func(rows *sql.Rows, r *T, at *recordPosition) error
	size    func(r *T) int // approximate size in memory
}

// recordPosition is a record's order.
type recordPosition struct {
	time time.Time
	seq  int64
}

// keyRow appends the columns of a flow: as text, and each part.
func keyRow(row []driver.Value, k model.FlowKey) []driver.Value {
	text := k.String()
	if k.IsZero() {
		return append(row, text, "", "", uint16(0), uint16(0), uint8(0))
	}
	// "tcp 10.0.0.2:40000 > 10.0.1.2:80": the addresses are parts of the text.
	_, ends, _ := strings.Cut(text, " ")
	src, dst, _ := strings.Cut(ends, " > ")
	return append(row, text, host(src), host(dst), k.SrcPort, k.DstPort, uint8(k.Proto))
}

// host is the address of "address:port" or "[address]:port".
func host(endpoint string) string {
	return strings.Trim(endpoint[:strings.LastIndexByte(endpoint, ':')], "[]")
}

// flowText scans a flow that is stored as text.
type flowText struct{ key *model.FlowKey }

func (f flowText) Scan(v any) error {
	s, ok := v.(string)
	if !ok {
		return fmt.Errorf("flow is %T", v)
	}
	return f.key.UnmarshalText([]byte(s))
}

// bodyText scans JSON that is stored as text; an empty text is nil.
type bodyText struct{ body *json.RawMessage }

func (b bodyText) Scan(v any) error {
	s, ok := v.(string)
	if !ok {
		return fmt.Errorf("body is %T", v)
	}
	*b.body = nil
	if s != "" {
		*b.body = json.RawMessage(s)
	}
	return nil
}

// duckList scans a LIST column.
type duckList struct{ list *[]any }

func (l *duckList) Scan(v any) error {
	list, ok := v.([]any)
	if !ok {
		return fmt.Errorf("list is %T", v)
	}
	*l.list = list
	return nil
}

var lossTable = table[record.Loss]{
	kind:    store.Losses,
	columns: `flow, from_node, to_node, packets, sent, pattern`,
	row: func(r *record.Loss, seq int64) []driver.Value {
		row := append(make([]driver.Value, 0, 13), r.Time.UTC(), seq)
		return append(keyRow(row, r.Flow), r.From, r.To, r.Packets, r.Sent, r.Pattern)
	},
	scan: func(rows *sql.Rows, r *record.Loss, at *recordPosition) error {
		err := rows.Scan(&at.time, &at.seq, flowText{&r.Flow}, &r.From, &r.To, &r.Packets, &r.Sent, &r.Pattern)
		r.Time = at.time
		return err
	},
	size: func(r *record.Loss) int { return 200 + len(r.Pattern) },
}

var portTable = table[record.PortSample]{
	kind:    store.Ports,
	columns: `node, port, queue_bytes, latency_ns, load_bps, paused, samples, queue_max_bytes`,
	row: func(r *record.PortSample, seq int64) []driver.Value {
		return []driver.Value{
			r.Time.UTC(), seq, r.Node, uint16(r.Port),
			int64(r.Queue), int64(r.Latency), int64(r.Load), r.Paused, r.Samples, int64(r.QueueMax),
		}
	},
	scan: func(rows *sql.Rows, r *record.PortSample, at *recordPosition) error {
		err := rows.Scan(&at.time, &at.seq, &r.Node, &r.Port, &r.Queue, &r.Latency, &r.Load, &r.Paused, &r.Samples, &r.QueueMax)
		r.Time = at.time
		return err
	},
	size: func(r *record.PortSample) int { return 100 + len(r.Node) },
}

var counterTable = table[record.Counter]{
	kind:    store.Counters,
	columns: `period_ns, name, packets, bytes, flows`,
	row: func(r *record.Counter, seq int64) []driver.Value {
		return []driver.Value{r.Time.UTC(), seq, int64(r.Period), r.Name, r.Packets, r.Bytes, r.Flows}
	},
	scan: func(rows *sql.Rows, r *record.Counter, at *recordPosition) error {
		err := rows.Scan(&at.time, &at.seq, &r.Period, &r.Name, &r.Packets, &r.Bytes, &r.Flows)
		r.Time = at.time
		return err
	},
	size: func(r *record.Counter) int { return 100 + len(r.Name) },
}

var diagnosisTable = table[record.Diagnosis]{
	kind:    store.Diagnoses,
	columns: `id, anomaly, root_cause, node, port, peer, flow, confidence, body`,
	row: func(r *record.Diagnosis, seq int64) []driver.Value {
		row := append(make([]driver.Value, 0, 16), r.Time.UTC(), seq, r.ID, r.Anomaly, r.RootCause,
			r.Initial.Node, uint16(r.Initial.Port), r.Initial.Peer)
		return append(keyRow(row, r.Victim), r.Confidence, string(r.Body))
	},
	scan: func(rows *sql.Rows, r *record.Diagnosis, at *recordPosition) error {
		err := rows.Scan(&at.time, &at.seq, &r.ID, &r.Anomaly, &r.RootCause, &r.Initial.Node, &r.Initial.Port,
			&r.Initial.Peer, flowText{&r.Victim}, &r.Confidence, bodyText{&r.Body})
		r.Time = at.time
		return err
	},
	size: func(r *record.Diagnosis) int { return 300 + len(r.Body) },
}

var incidentTable = table[record.Incident]{
	kind:    store.Incidents,
	columns: `id, updated, ended, cause, severity, location, summary, body`,
	row: func(r *record.Incident, seq int64) []driver.Value {
		var end driver.Value
		if !r.End.IsZero() {
			end = r.End.UTC()
		}
		return []driver.Value{r.Begin.UTC(), seq, r.ID, r.Updated.UTC(), end, r.Cause, r.Severity, r.Location, r.Summary, string(r.Body)}
	},
	scan: func(rows *sql.Rows, r *record.Incident, at *recordPosition) error {
		var end sql.NullTime
		err := rows.Scan(&at.time, &at.seq, &r.ID, &r.Updated, &end, &r.Cause, &r.Severity, &r.Location, &r.Summary, bodyText{&r.Body})
		r.Begin, r.End = at.time, end.Time
		return err
	},
	size: func(r *record.Incident) int { return 300 + len(r.Summary) + len(r.Body) },
}
