package embedded

import "github.com/weft-telemetry/weft/store"

// Flows are stored as numbers in flow_rows. What they share is in two other tables:
// the flow and its hosts in flow_keys, the path in flow_paths, with what all
// flows of a slot have in common or what has two values. A row of text and lists costs DuckDB six
// times as much (weft bench store).
//
// The packets at each hop are mostly those of the flow, or a few less, as packets
// are in flight when a slot ends. hop_less has the difference in one byte for each
// of at most 8 hops, the first in the lowest byte; hop_packets has the counts
// themselves where that does not hold, and is NULL otherwise.
//
// The view gives the columns that the table flows had before.
const flowColumns = `
CREATE TABLE flow_keys (
	id BIGINT NOT NULL, flow VARCHAR NOT NULL, src VARCHAR NOT NULL, dst VARCHAR NOT NULL,
	sport USMALLINT NOT NULL, dport USMALLINT NOT NULL, proto UTINYINT NOT NULL,
	src_host VARCHAR NOT NULL, dst_host VARCHAR NOT NULL);
CREATE TABLE flow_paths (
	id BIGINT NOT NULL, slot_ns BIGINT NOT NULL, exact BOOLEAN NOT NULL, partial BOOLEAN NOT NULL, path VARCHAR[] NOT NULL);
CREATE TABLE flow_rows (
	time TIMESTAMP_NS NOT NULL, seq BIGINT NOT NULL, flow_id BIGINT NOT NULL, path_id BIGINT NOT NULL,
	packets UBIGINT NOT NULL, bytes UBIGINT NOT NULL, hop_less UBIGINT NOT NULL, hop_packets UBIGINT[]);
INSERT INTO flow_keys SELECT row_number() OVER (ORDER BY seq), * EXCLUDE (seq) FROM (
	SELECT min(seq) AS seq, flow, src, dst, sport, dport, proto, src_host, dst_host FROM flows
	GROUP BY flow, src, dst, sport, dport, proto, src_host, dst_host);
INSERT INTO flow_paths SELECT row_number() OVER (ORDER BY seq), * EXCLUDE (seq) FROM (
	SELECT min(seq) AS seq, slot_ns, exact, false AS partial, path FROM flows GROUP BY slot_ns, exact, path);
INSERT INTO flow_rows SELECT f.time, f.seq, k.id, p.id, f.packets, f.bytes, 0,
	CASE WHEN len(list_filter(f.path_packets, lambda n: n <> f.packets)) > 0 THEN f.path_packets END
	FROM flows f JOIN flow_keys k ON k.flow = f.flow AND k.src_host = f.src_host AND k.dst_host = f.dst_host
	JOIN flow_paths p ON p.slot_ns = f.slot_ns AND p.exact = f.exact AND p.path = f.path;
DROP TABLE flows;
CREATE VIEW flows AS SELECT r.time, r.seq, p.slot_ns, k.flow, k.src, k.dst, k.sport, k.dport, k.proto,
	k.src_host, k.dst_host, r.packets, r.bytes, p.exact, p.path,
	coalesce(r.hop_packets, list_transform(p.path, lambda s, i: r.packets - ((r.hop_less >> (8 * (i - 1))::UBIGINT) & 255)))::UBIGINT[] AS path_packets
	FROM flow_rows r JOIN flow_keys k ON k.id = r.flow_id JOIN flow_paths p ON p.id = r.path_id;`

// flowSamples adds how many packet samples a flow was estimated from. Only rows with
// their own list of hops have any: hops of samples rarely fit into hop_less.
const flowSamples = `
ALTER TABLE flow_rows ADD COLUMN samples UBIGINT DEFAULT 0;
DROP VIEW flows;
CREATE VIEW flows AS SELECT r.time, r.seq, p.slot_ns, k.flow, k.src, k.dst, k.sport, k.dport, k.proto,
	k.src_host, k.dst_host, r.packets, r.bytes, p.exact, p.path,
	coalesce(r.hop_packets, list_transform(p.path, lambda s, i: r.packets - ((r.hop_less >> (8 * (i - 1))::UBIGINT) & 255)))::UBIGINT[] AS path_packets,
	r.samples
	FROM flow_rows r JOIN flow_keys k ON k.id = r.flow_id JOIN flow_paths p ON p.id = r.path_id;`

// Tables of flows.
const (
	flowRows  = "flow_rows"
	flowKeys  = "flow_keys"
	flowPaths = "flow_paths"
)

// tableOf is the table with the rows of a kind.
func tableOf(kind store.Kind) string {
	if kind == store.Flows {
		return flowRows
	}
	return string(kind)
}
