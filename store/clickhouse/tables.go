package clickhouse

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
)

// table describes how records of one type are stored: as columns, and read row by row.
type table[T any] struct {
	kind    store.Kind
	columns []column[T]
	// selected are the columns that scan reads, after time and seq.
	selected string
	scan     func(rows driver.Rows, r *T, at *position) error
}

// position is a record's order.
type position struct{ time, seq int64 }

func (p *position) at() time.Time { return instant(p.time) }

func instant(ns int64) time.Time { return time.Unix(0, ns).UTC() }

// column appends the values of all records at once: by value takes several times as
// long.
type column[T any] struct {
	name   string
	append func(to driver.BatchColumn, records []T) error
}

func columnOf[T, V any](name string, value func(r *T) V) column[T] {
	return column[T]{name, func(to driver.BatchColumn, records []T) error {
		values := make([]V, len(records))
		for i := range records {
			values[i] = value(&records[i])
		}
		return to.Append(values)
	}}
}

// flowColumns are those of a flow: as text, and its parts.
func flowColumns[T any](key func(r *T) model.FlowKey) []column[T] {
	return []column[T]{
		columnOf("flow", func(r *T) string { return key(r).String() }),
		columnOf("src", func(r *T) string { return key(r).Src.String() }),
		columnOf("dst", func(r *T) string { return key(r).Dst.String() }),
		columnOf("sport", func(r *T) uint16 { return key(r).SrcPort }),
		columnOf("dport", func(r *T) uint16 { return key(r).DstPort }),
		columnOf("proto", func(r *T) uint8 { return uint8(key(r).Proto) }),
	}
}

func timeColumn[T any](at func(r *T) time.Time) column[T] {
	return columnOf("time", func(r *T) int64 { return at(r).UnixNano() })
}

func joined[T any](lists ...[]column[T]) (all []column[T]) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

func truth(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

func parseFlow(k *model.FlowKey, text string) error { return k.UnmarshalText([]byte(text)) }

func body(s string) json.RawMessage {
	if s == "" {
		return nil
	}
	return json.RawMessage(s)
}

var flowTable = table[record.FlowSlot]{
	kind: store.Flows,
	columns: joined([]column[record.FlowSlot]{
		timeColumn(func(r *record.FlowSlot) time.Time { return r.Time }),
		columnOf("slot_ns", func(r *record.FlowSlot) int64 { return int64(r.Slot) }),
	}, flowColumns(func(r *record.FlowSlot) model.FlowKey { return r.Flow }), []column[record.FlowSlot]{
		columnOf("src_host", func(r *record.FlowSlot) string { return r.Src }),
		columnOf("dst_host", func(r *record.FlowSlot) string { return r.Dst }),
		columnOf("packets", func(r *record.FlowSlot) uint64 { return r.Packets }),
		columnOf("bytes", func(r *record.FlowSlot) uint64 { return r.Bytes }),
		columnOf("exact", func(r *record.FlowSlot) uint8 { return truth(r.Exact) }),
		columnOf("samples", func(r *record.FlowSlot) uint64 { return r.Samples }),
		columnOf("partial", func(r *record.FlowSlot) uint8 { return truth(r.Partial) }),
		columnOf("path", func(r *record.FlowSlot) []string {
			names := make([]string, len(r.Path))
			for i := range r.Path {
				names[i] = r.Path[i].Switch
			}
			return names
		}),
		columnOf("path_packets", func(r *record.FlowSlot) []uint64 {
			packets := make([]uint64, len(r.Path))
			for i := range r.Path {
				packets[i] = r.Path[i].Packets
			}
			return packets
		}),
	}),
	selected: `slot_ns, flow, src_host, dst_host, packets, bytes, exact, samples, partial, path, path_packets`,
	scan: func(rows driver.Rows, r *record.FlowSlot, at *position) error {
		var slot int64
		var flow string
		var exact, partial uint8
		var path []string
		var packets []uint64
		if err := rows.Scan(&at.time, &at.seq, &slot, &flow, &r.Src, &r.Dst, &r.Packets, &r.Bytes, &exact, &r.Samples, &partial, &path, &packets); err != nil {
			return err
		}
		if len(path) != len(packets) {
			return fmt.Errorf("%d switches and %d counts", len(path), len(packets))
		}
		r.Time, r.Slot, r.Exact, r.Partial, r.Path = at.at(), time.Duration(slot), exact != 0, partial != 0, make([]record.FlowHop, len(path))
		for i := range path {
			r.Path[i] = record.FlowHop{Switch: path[i], Packets: packets[i]}
		}
		return parseFlow(&r.Flow, flow)
	},
}

var lossTable = table[record.Loss]{
	kind: store.Losses,
	columns: joined([]column[record.Loss]{
		timeColumn(func(r *record.Loss) time.Time { return r.Time }),
	}, flowColumns(func(r *record.Loss) model.FlowKey { return r.Flow }), []column[record.Loss]{
		columnOf("from_node", func(r *record.Loss) string { return r.From }),
		columnOf("to_node", func(r *record.Loss) string { return r.To }),
		columnOf("packets", func(r *record.Loss) uint64 { return r.Packets }),
		columnOf("sent", func(r *record.Loss) uint64 { return r.Sent }),
		columnOf("pattern", func(r *record.Loss) string { return r.Pattern }),
	}),
	selected: `flow, from_node, to_node, packets, sent, pattern`,
	scan: func(rows driver.Rows, r *record.Loss, at *position) error {
		var flow string
		if err := rows.Scan(&at.time, &at.seq, &flow, &r.From, &r.To, &r.Packets, &r.Sent, &r.Pattern); err != nil {
			return err
		}
		r.Time = at.at()
		return parseFlow(&r.Flow, flow)
	},
}

var portTable = table[record.PortSample]{
	kind: store.Ports,
	columns: []column[record.PortSample]{
		timeColumn(func(r *record.PortSample) time.Time { return r.Time }),
		columnOf("node", func(r *record.PortSample) string { return r.Node }),
		columnOf("port", func(r *record.PortSample) uint16 { return uint16(r.Port) }),
		columnOf("queue_bytes", func(r *record.PortSample) int64 { return int64(r.Queue) }),
		columnOf("queue_max_bytes", func(r *record.PortSample) int64 { return int64(r.QueueMax) }),
		columnOf("latency_ns", func(r *record.PortSample) int64 { return int64(r.Latency) }),
		columnOf("load_bps", func(r *record.PortSample) int64 { return int64(r.Load) }),
		columnOf("paused", func(r *record.PortSample) float64 { return r.Paused }),
		columnOf("samples", func(r *record.PortSample) uint64 { return r.Samples }),
	},
	selected: `node, port, queue_bytes, queue_max_bytes, latency_ns, load_bps, paused, samples`,
	scan: func(rows driver.Rows, r *record.PortSample, at *position) error {
		var port uint16
		var queue, deepest, latency, load int64
		err := rows.Scan(&at.time, &at.seq, &r.Node, &port, &queue, &deepest, &latency, &load, &r.Paused, &r.Samples)
		r.Time, r.Port, r.Queue, r.QueueMax = at.at(), model.PortID(port), model.Bytes(queue), model.Bytes(deepest)
		r.Latency, r.Load = time.Duration(latency), model.Rate(load)
		return err
	},
}

var counterTable = table[record.Counter]{
	kind: store.Counters,
	columns: []column[record.Counter]{
		timeColumn(func(r *record.Counter) time.Time { return r.Time }),
		columnOf("period_ns", func(r *record.Counter) int64 { return int64(r.Period) }),
		columnOf("name", func(r *record.Counter) string { return r.Name }),
		columnOf("packets", func(r *record.Counter) uint64 { return r.Packets }),
		columnOf("bytes", func(r *record.Counter) uint64 { return r.Bytes }),
		columnOf("flows", func(r *record.Counter) float64 { return r.Flows }),
	},
	selected: `period_ns, name, packets, bytes, flows`,
	scan: func(rows driver.Rows, r *record.Counter, at *position) error {
		var period int64
		err := rows.Scan(&at.time, &at.seq, &period, &r.Name, &r.Packets, &r.Bytes, &r.Flows)
		r.Time, r.Period = at.at(), time.Duration(period)
		return err
	},
}
