-- A store as schema version 4 left it: its tables, and a few flows.
CREATE TABLE weft_migrations (version INTEGER NOT NULL, name VARCHAR NOT NULL, applied TIMESTAMP NOT NULL);
INSERT INTO weft_migrations VALUES (1, 'records and rollups', '2026-03-01 12:00:00'), (2, 'deepest queues, and views of rollups', '2026-03-01 12:00:00'),
	(3, 'location of incidents', '2026-03-01 12:00:00'), (4, 'salvage of damaged files', '2026-03-01 12:00:00');
CREATE TABLE flows (
	time TIMESTAMP_NS NOT NULL, seq BIGINT NOT NULL, slot_ns BIGINT NOT NULL,
	flow VARCHAR NOT NULL, src VARCHAR NOT NULL, dst VARCHAR NOT NULL,
	sport USMALLINT NOT NULL, dport USMALLINT NOT NULL, proto UTINYINT NOT NULL,
	src_host VARCHAR NOT NULL, dst_host VARCHAR NOT NULL,
	packets UBIGINT NOT NULL, bytes UBIGINT NOT NULL, exact BOOLEAN NOT NULL,
	path VARCHAR[] NOT NULL, path_packets UBIGINT[] NOT NULL);
CREATE TABLE losses (
	time TIMESTAMP_NS NOT NULL, seq BIGINT NOT NULL,
	flow VARCHAR NOT NULL, src VARCHAR NOT NULL, dst VARCHAR NOT NULL,
	sport USMALLINT NOT NULL, dport USMALLINT NOT NULL, proto UTINYINT NOT NULL,
	from_node VARCHAR NOT NULL, to_node VARCHAR NOT NULL,
	packets UBIGINT NOT NULL, sent UBIGINT NOT NULL, pattern VARCHAR NOT NULL);
CREATE TABLE ports (
	time TIMESTAMP_NS NOT NULL, seq BIGINT NOT NULL,
	node VARCHAR NOT NULL, port USMALLINT NOT NULL,
	queue_bytes BIGINT NOT NULL, latency_ns BIGINT NOT NULL, load_bps BIGINT NOT NULL,
	paused DOUBLE NOT NULL, samples UBIGINT NOT NULL, queue_max_bytes BIGINT DEFAULT 0);
CREATE TABLE traces (
	time TIMESTAMP_NS NOT NULL, seq BIGINT NOT NULL, id UBIGINT NOT NULL,
	flow VARCHAR NOT NULL, src VARCHAR NOT NULL, dst VARCHAR NOT NULL,
	sport USMALLINT NOT NULL, dport USMALLINT NOT NULL, proto UTINYINT NOT NULL,
	"end" VARCHAR NOT NULL, why VARCHAR NOT NULL, latency_ns BIGINT NOT NULL, lost_mirrors BIGINT NOT NULL,
	hops STRUCT(time TIMESTAMP_NS, switch VARCHAR, in_port USMALLINT, out_port USMALLINT,
		ttl UTINYINT, dscp UTINYINT, ecn UTINYINT, depth UTINYINT)[] NOT NULL,
	frame BLOB NOT NULL);
CREATE TABLE counters (
	time TIMESTAMP_NS NOT NULL, seq BIGINT NOT NULL, period_ns BIGINT NOT NULL,
	name VARCHAR NOT NULL, packets UBIGINT NOT NULL, bytes UBIGINT NOT NULL, flows DOUBLE NOT NULL);
CREATE TABLE diagnoses (
	time TIMESTAMP_NS NOT NULL, seq BIGINT NOT NULL, id VARCHAR NOT NULL,
	anomaly VARCHAR NOT NULL, root_cause VARCHAR NOT NULL,
	node VARCHAR NOT NULL, port USMALLINT NOT NULL, peer VARCHAR NOT NULL,
	flow VARCHAR NOT NULL, src VARCHAR NOT NULL, dst VARCHAR NOT NULL,
	sport USMALLINT NOT NULL, dport USMALLINT NOT NULL, proto UTINYINT NOT NULL,
	confidence DOUBLE NOT NULL, body VARCHAR NOT NULL);
CREATE TABLE incidents (
	time TIMESTAMP_NS NOT NULL, seq BIGINT NOT NULL, id VARCHAR NOT NULL,
	updated TIMESTAMP_NS NOT NULL, ended TIMESTAMP_NS,
	cause VARCHAR NOT NULL, severity VARCHAR NOT NULL, location VARCHAR NOT NULL,
	summary VARCHAR NOT NULL, body VARCHAR NOT NULL);
CREATE TABLE ports_1s (
	time TIMESTAMP_NS NOT NULL, node VARCHAR NOT NULL, port USMALLINT NOT NULL, samples UBIGINT NOT NULL,
	queue_sum DOUBLE NOT NULL, latency_sum DOUBLE NOT NULL, load_sum DOUBLE NOT NULL, paused_sum DOUBLE NOT NULL, queue_max_bytes BIGINT);
CREATE TABLE ports_1m AS FROM ports_1s;
CREATE TABLE counters_1s (
	time TIMESTAMP_NS NOT NULL, name VARCHAR NOT NULL,
	packets UBIGINT NOT NULL, bytes UBIGINT NOT NULL, flows DOUBLE NOT NULL);
CREATE TABLE counters_1m AS FROM counters_1s;
CREATE TABLE weft_key (key BLOB NOT NULL);
CREATE VIEW port_seconds AS SELECT time, node, port, sum(samples) AS samples,
	sum(queue_sum) / sum(samples) AS queue_bytes, max(queue_max_bytes) AS queue_max_bytes,
	sum(latency_sum) / sum(samples) AS latency_ns, sum(load_sum) / sum(samples) AS load_bps,
	sum(paused_sum) / sum(samples) AS paused FROM ports_1s GROUP BY time, node, port;
CREATE VIEW port_minutes AS SELECT time, node, port, sum(samples) AS samples,
	sum(queue_sum) / sum(samples) AS queue_bytes, max(queue_max_bytes) AS queue_max_bytes,
	sum(latency_sum) / sum(samples) AS latency_ns, sum(load_sum) / sum(samples) AS load_bps,
	sum(paused_sum) / sum(samples) AS paused FROM ports_1m GROUP BY time, node, port;
CREATE VIEW counter_seconds AS SELECT time, name, sum(packets) AS packets, sum(bytes) AS bytes,
	max(flows) AS flows FROM counters_1s GROUP BY time, name;
CREATE VIEW counter_minutes AS SELECT time, name, sum(packets) AS packets, sum(bytes) AS bytes,
	max(flows) AS flows FROM counters_1m GROUP BY time, name;
CREATE TABLE weft_salvage (
	found TIMESTAMP NOT NULL, file VARCHAR NOT NULL, cause VARCHAR NOT NULL, kind VARCHAR NOT NULL,
	next BIGINT NOT NULL, salvaged UBIGINT NOT NULL, lost UBIGINT NOT NULL, done BOOLEAN NOT NULL);
INSERT INTO weft_key VALUES ('0123456789abcdef0123456789abcdef'::BLOB);
INSERT INTO flows VALUES
	('2026-03-01 12:00:00', 1, 10000000, 'tcp 10.0.0.2:40000 > 10.0.1.2:80', '10.0.0.2', '10.0.1.2', 40000, 80, 6, 'h1', 'h2', 9, 9000, true, ['e1', 'a1', 'e2'], [9, 9, 9]),
	('2026-03-01 12:00:00.01', 2, 10000000, 'tcp 10.0.0.2:40000 > 10.0.1.2:80', '10.0.0.2', '10.0.1.2', 40000, 80, 6, 'h1', 'h2', 9, 9000, true, ['e1', 'a1', 'e2'], [9, 8, 7]),
	('2026-03-01 12:00:00.01', 3, 10000000, 'tcp 10.0.0.2:40000 > 10.0.1.2:80', '10.0.0.2', '10.0.1.2', 40000, 80, 6, 'h1', 'renamed', 5, 18446744073709551615, false, [], []),
	('2026-03-01 12:00:00.02', 4, 20000000, 'udp [2001:db8::1]:1 > [2001:db8::2]:4791', '2001:db8::1', '2001:db8::2', 1, 4791, 17, '', '', 1, 2, true, ['e1', 'a1', 'e2'], [1, 18446744073709551615, 0]);
