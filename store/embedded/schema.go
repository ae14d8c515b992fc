package embedded

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
)

// migration is one step of the schema. A released step never changes: files of its
// version exist.
type migration struct {
	name string
	sql  string
}

// migrations are the steps from an empty file to this version, in order; the
// version of a file is the number of steps applied to it.
//
// Every table of records begins with time and seq, its sort key. Names are text,
// which DuckDB compresses with a dictionary; those of flows, which are by far the
// most records, are in tables of their own.
var migrations = []migration{
	{"records and rollups", `
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
	paused DOUBLE NOT NULL, samples UBIGINT NOT NULL);
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
	cause VARCHAR NOT NULL, severity VARCHAR NOT NULL, place VARCHAR NOT NULL,
	summary VARCHAR NOT NULL, body VARCHAR NOT NULL);
CREATE TABLE ports_1s (
	time TIMESTAMP_NS NOT NULL, node VARCHAR NOT NULL, port USMALLINT NOT NULL, samples UBIGINT NOT NULL,
	queue_sum DOUBLE NOT NULL, latency_sum DOUBLE NOT NULL, load_sum DOUBLE NOT NULL, paused_sum DOUBLE NOT NULL);
CREATE TABLE ports_1m AS FROM ports_1s;
CREATE TABLE counters_1s (
	time TIMESTAMP_NS NOT NULL, name VARCHAR NOT NULL,
	packets UBIGINT NOT NULL, bytes UBIGINT NOT NULL, flows DOUBLE NOT NULL);
CREATE TABLE counters_1m AS FROM counters_1s;
CREATE TABLE weft_key (key BLOB NOT NULL);`},
	// An average hides a short burst. For old steps the average is all that is
	// known of their deepest queue. The views are for people: a reader of a rollup
	// table has to add up its rows.
	{"deepest queues, and views of rollups", `
ALTER TABLE ports ADD COLUMN queue_max_bytes BIGINT DEFAULT 0;
ALTER TABLE ports_1s ADD COLUMN queue_max_bytes BIGINT;
ALTER TABLE ports_1m ADD COLUMN queue_max_bytes BIGINT;
UPDATE ports_1s SET queue_max_bytes = queue_sum / samples;
UPDATE ports_1m SET queue_max_bytes = queue_sum / samples;
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
	max(flows) AS flows FROM counters_1m GROUP BY time, name;`},
	{"location of incidents", `ALTER TABLE incidents RENAME COLUMN place TO location;`},
	// The damaged files whose rows are brought over into this one, and how far that
	// is: a row for each kind.
	{"salvage of damaged files", `
CREATE TABLE weft_salvage (
	found TIMESTAMP NOT NULL, file VARCHAR NOT NULL, cause VARCHAR NOT NULL, kind VARCHAR NOT NULL,
	next BIGINT NOT NULL, salvaged UBIGINT NOT NULL, lost UBIGINT NOT NULL, done BOOLEAN NOT NULL);`},
	{"flows as numbers", flowColumns},
	{"actions of operators", incidentActions},
	{"samples of flows", flowSamples},
}

// migrationsTable distinguishes our files from others.
const migrationsTable = "weft_migrations"

// errNoDatabase is returned for a file without a database's header.
var errNoDatabase = fmt.Errorf("%w", ErrForeign)

// Errors of opening.
var (
	// ErrNewer is wrapped if a newer version of Weft wrote the file.
	ErrNewer = errors.New("written by a newer version")
	// ErrForeign is wrapped if the file has other content.
	ErrForeign = errors.New("not a Weft store")
	// ErrLocked is wrapped if the file is already open.
	ErrLocked = errors.New("the file is in use")
)

// migrate applies the missing steps to a file, each in a separate transaction: a
// crash between two leaves a file of an older version.
func migrate(ctx context.Context, conn *sql.Conn, steps []migration) error {
	version, err := version(ctx, conn)
	if err != nil {
		return err
	}
	if version > len(steps) {
		return fmt.Errorf("%w: schema %d, this version supports up to %d; use the newer version, or export and start with a new file",
			ErrNewer, version, len(steps))
	}
	for i, step := range steps[version:] {
		err := inTransaction(ctx, conn, func() error {
			if _, err := conn.ExecContext(ctx, step.sql); err != nil {
				return err
			}
			_, err := conn.ExecContext(ctx, `INSERT INTO weft_migrations VALUES (?, ?, now()::TIMESTAMP)`, version+i+1, step.name)
			return err
		})
		if err != nil {
			return fmt.Errorf("migrate to schema %d (%s): %w", version+i+1, step.name, err)
		}
	}
	return nil
}

// version is the number of migrations applied to a file. It makes an empty file a
// store of version 0.
func version(ctx context.Context, conn *sql.Conn) (v int, err error) {
	var ours, tables int
	const count = `SELECT count(*) FILTER (table_name = 'weft_migrations'), count(*) FROM duckdb_tables() WHERE NOT internal`
	if err := conn.QueryRowContext(ctx, count).Scan(&ours, &tables); err != nil {
		return 0, err
	}
	if ours == 0 && tables > 0 {
		return 0, fmt.Errorf("%w: DuckDB file with %d other tables", ErrForeign, tables)
	}
	if ours == 0 {
		const create = `CREATE TABLE weft_migrations (version INTEGER NOT NULL, name VARCHAR NOT NULL, applied TIMESTAMP NOT NULL)`
		_, err := conn.ExecContext(ctx, create)
		return 0, err
	}
	err = conn.QueryRowContext(ctx, `SELECT coalesce(max(version), 0) FROM weft_migrations`).Scan(&v)
	return v, err
}

// cursorKey reads the key that seals cursors, or makes it, or stores that of the
// file before. It is stored in the file, so that cursors stay valid after a restart.
func cursorKey(ctx context.Context, conn *sql.Conn, before []byte) (key []byte, err error) {
	err = conn.QueryRowContext(ctx, `SELECT key FROM weft_key`).Scan(&key)
	if !errors.Is(err, sql.ErrNoRows) {
		return key, err
	}
	if key = before; key == nil {
		key = make([]byte, 32)
		rand.Read(key)
	}
	_, err = conn.ExecContext(ctx, `INSERT INTO weft_key VALUES (?)`, key)
	return key, err
}

// inTransaction runs do between BEGIN and COMMIT. It does not use database/sql's
// transaction, which rolls back on another goroutine when ctx ends: an appender
// may be using the connection then.
func inTransaction(ctx context.Context, conn *sql.Conn, do func() error) error {
	ctx = context.WithoutCancel(ctx)
	if _, err := conn.ExecContext(ctx, `BEGIN TRANSACTION`); err != nil {
		return err
	}
	err := do()
	if err == nil {
		if _, err = conn.ExecContext(ctx, `COMMIT`); err == nil {
			return nil
		}
	}
	_, rollback := conn.ExecContext(ctx, `ROLLBACK`)
	if rollback != nil && !noTransaction(rollback) {
		return errors.Join(err, rollback)
	}
	return err
}
