package embedded

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

var traceTable = table[record.Trace]{
	kind:    store.Traces,
	columns: `id, flow, "end", why, latency_ns, lost_mirrors, hops, frame`,
	row: func(r *record.Trace, seq int64) []driver.Value {
		hops := make([]any, len(r.Hops))
		for i, h := range r.Hops {
			hops[i] = map[string]any{
				"time": h.Time.UTC(), "switch": h.Switch, "in_port": uint16(h.In), "out_port": uint16(h.Out),
				"ttl": h.TTL, "dscp": h.DSCP, "ecn": h.ECN, "depth": h.Depth,
			}
		}
		row := append(make([]driver.Value, 0, 15), r.Time.UTC(), seq, r.ID)
		row = append(keyRow(row, r.Flow), r.End, r.Why, int64(r.Latency), int64(r.LostMirrors), hops)
		if r.Frame == nil {
			return append(row, []byte{})
		}
		return append(row, r.Frame)
	},
	scan: func(rows *sql.Rows, r *record.Trace, at *recordPosition) error {
		var hops []any
		err := rows.Scan(&at.time, &at.seq, &r.ID, flowText{&r.Flow}, &r.End, &r.Why, &r.Latency, &r.LostMirrors, &duckList{&hops}, &r.Frame)
		if err != nil {
			return err
		}
		r.Time = at.time
		if len(r.Frame) == 0 {
			r.Frame = nil
		}
		for _, h := range hops {
			hop, err := traceHop(h)
			if err != nil {
				return err
			}
			r.Hops = append(r.Hops, hop)
		}
		return nil
	},
	size: func(r *record.Trace) int { return 250 + 80*len(r.Hops) + len(r.Frame) },
}

// traceHop reads a STRUCT; a field that is missing or has another type means that
// the file has another schema.
func traceHop(v any) (h record.TraceHop, err error) {
	m, _ := v.(map[string]any)
	at, ok1 := m["time"].(time.Time)
	name, ok2 := m["switch"].(string)
	in, ok3 := m["in_port"].(uint16)
	out, ok4 := m["out_port"].(uint16)
	var octets [4]uint8
	ok := ok1 && ok2 && ok3 && ok4
	for i, field := range []string{"ttl", "dscp", "ecn", "depth"} {
		o, is := m[field].(uint8)
		octets[i], ok = o, ok && is
	}
	if !ok {
		return h, fmt.Errorf("hop is %v", v)
	}
	return record.TraceHop{
		Time: at, Switch: name, In: model.PortID(in), Out: model.PortID(out),
		TTL: octets[0], DSCP: octets[1], ECN: octets[2], Depth: octets[3],
	}, nil
}
