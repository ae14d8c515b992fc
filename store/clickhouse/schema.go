package clickhouse

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/weft-telemetry/weft/store"
)

// Every table has time, in nanoseconds since 1970, and seq, by which it is sorted and
// which orders records of equal times by their arrival. A day is a partition: old ones
// are dropped as a whole.
const (
	ordered = ` ENGINE = MergeTree PARTITION BY intDiv(time, toInt64(86400000000000)) ORDER BY (time, seq)`
	flowKey = `flow String, src String, dst String, sport UInt16, dport UInt16, proto UInt8`
)

// migration is one step of the schema. A released step never changes: databases of its
// version exist.
type migration struct {
	name       string
	statements []string
	columns    []newColumn // added after the statements
}

// newColumn is a column that older databases lack.
type newColumn struct{ table, name, definition string }

var migrations = []migration{
	{name: "records and rollups", statements: []string{
		`CREATE TABLE IF NOT EXISTS flows (time Int64, seq Int64, slot_ns Int64, ` + flowKey + `, src_host String, dst_host String,
			packets UInt64, bytes UInt64, exact UInt8, partial UInt8, path Array(String), path_packets Array(UInt64))` + ordered,
		`CREATE TABLE IF NOT EXISTS losses (time Int64, seq Int64, ` + flowKey + `, from_node String, to_node String,
			packets UInt64, sent UInt64, pattern String)` + ordered,
		`CREATE TABLE IF NOT EXISTS ports (time Int64, seq Int64, node String, port UInt16, queue_bytes Int64, queue_max_bytes Int64,
			latency_ns Int64, load_bps Int64, paused Float64, samples UInt64)` + ordered,
		`CREATE TABLE IF NOT EXISTS traces (time Int64, seq Int64, id UInt64, ` + flowKey + `, end String, why String, latency_ns Int64,
			lost_mirrors Int64, switches Array(String), hops String, frame String)` + ordered,
		`CREATE TABLE IF NOT EXISTS counters (time Int64, seq Int64, period_ns Int64, name String, packets UInt64, bytes UInt64, flows Float64)` + ordered,
		`CREATE TABLE IF NOT EXISTS diagnoses (time Int64, seq Int64, id String, anomaly String, root_cause String, node String, port UInt16, peer String, ` +
			flowKey + `, confidence Float64, body String)` + ordered,
		// Every state of an incident is a row; the last of an id counts.
		`CREATE TABLE IF NOT EXISTS incidents (time Int64, seq Int64, id String, updated Int64, ended Int64, open UInt8, cause String, severity String,
			location String, summary String, body String) ENGINE = MergeTree ORDER BY (id, seq)`,
		portRollup(store.PortSeconds), portRollup(store.PortMinutes),
		counterRollup(store.CounterSeconds), counterRollup(store.CounterMinutes),
		portView(store.PortSeconds, "1000000000"), portView(store.PortMinutes, "60000000000"),
		counterView(store.CounterSeconds, "1000000000"), counterView(store.CounterMinutes, "60000000000"),
		`CREATE TABLE IF NOT EXISTS incident_actions (time Int64, seq Int64, incident String, kind String, who String, text String, until Int64, muted UInt8)
			ENGINE = MergeTree ORDER BY (incident, seq)`,
		// What retention has removed: rows of a kind before time, up to seq.
		`CREATE TABLE IF NOT EXISTS weft_removed (kind String, time Int64, seq Int64) ENGINE = MergeTree ORDER BY kind`,
		`CREATE TABLE IF NOT EXISTS weft_key (key String) ENGINE = MergeTree ORDER BY key`,
	}},
	{name: "samples of flows", columns: []newColumn{{"flows", "samples", "UInt64 DEFAULT 0"}}},
}

// A rollup has other names of columns than what it sums: ClickHouse would confuse them.
const rolled = ` ENGINE = MergeTree PARTITION BY intDiv(step, toInt64(86400000000000)) ORDER BY (step, last_seq)`

func portRollup(kind store.Kind) string {
	return fmt.Sprintf(`CREATE TABLE IF NOT EXISTS %s (step Int64, last_seq Int64, node String, port UInt16, weight Float64, queue_sum Float64,
		deepest Int64, latency_sum Float64, load_sum Float64, paused_sum Float64)`, kind) + rolled
}

func counterRollup(kind store.Kind) string {
	return fmt.Sprintf(`CREATE TABLE IF NOT EXISTS %s (step Int64, last_seq Int64, name String, packet_sum UInt64, byte_sum UInt64, flows_max Float64)`, kind) + rolled
}

// portView computes the rollup of every block of ports that is inserted: one row for
// each port and step. A sample that says nothing else has the weight 1.
func portView(kind store.Kind, step string) string {
	const w = `toFloat64(greatest(samples, 1))`
	return fmt.Sprintf(`CREATE MATERIALIZED VIEW IF NOT EXISTS %[1]s_view TO %[1]s AS SELECT %[2]s AS step, max(seq) AS last_seq, node, port,
		sum(%[3]s) AS weight, sum(%[3]s * queue_bytes) AS queue_sum, max(greatest(queue_bytes, queue_max_bytes)) AS deepest,
		sum(%[3]s * latency_ns) AS latency_sum, sum(%[3]s * load_bps) AS load_sum, sum(%[3]s * paused) AS paused_sum
		FROM ports GROUP BY step, node, port`, kind, floorStep("time", step), w)
}

func counterView(kind store.Kind, step string) string {
	return fmt.Sprintf(`CREATE MATERIALIZED VIEW IF NOT EXISTS %[1]s_view TO %[1]s AS SELECT %[2]s AS step, max(seq) AS last_seq, name,
		%[3]s AS packet_sum, %[4]s AS byte_sum, max(flows) AS flows_max FROM counters GROUP BY step, name`,
		kind, floorStep("time", step), saturated("packets"), saturated("bytes"))
}

// orderOf are the columns that order the rows of a kind.
func orderOf(kind store.Kind) (time, seq string) {
	switch kind {
	case store.PortSeconds, store.PortMinutes, store.CounterSeconds, store.CounterMinutes:
		return "step", "last_seq"
	}
	return "time", "seq"
}

// floorStep is the start of a step, also before 1970.
func floorStep(column, step string) string {
	// The remainder of a signed and an unsigned number is wrong before 1970.
	return fmt.Sprintf(`(%[1]s - %[1]s %% toInt64(%[2]s) - if(%[1]s %% toInt64(%[2]s) < 0, toInt64(%[2]s), toInt64(0)))`, column, step)
}

// saturated is a sum of numbers of 64 bits that ends at the largest of them.
func saturated(column string) string {
	return fmt.Sprintf(`if(sum(toFloat64(%[1]s)) >= 18446744073709551615., 18446744073709551615, sum(%[1]s))`, column)
}

// migrate applies the missing steps. Two processes may do so at once: statements have no
// effect the second time.
func (s *Store) migrate(ctx context.Context, steps []migration) error {
	for _, sql := range []string{
		`CREATE DATABASE IF NOT EXISTS ` + s.cfg.Database,
		`CREATE TABLE IF NOT EXISTS ` + s.table("weft_migrations") + ` (version UInt32, name String, applied DateTime) ENGINE = MergeTree ORDER BY version`,
	} {
		if err := s.conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	var version uint32
	if err := s.conn.QueryRow(ctx, `SELECT max(version) FROM `+s.table("weft_migrations")).Scan(&version); err != nil {
		return err
	}
	if int(version) > len(steps) {
		return fmt.Errorf("%w: schema %d, this version supports up to %d", ErrNewer, version, len(steps))
	}
	for i := int(version); i < len(steps); i++ {
		for _, sql := range steps[i].statements {
			if err := s.conn.Exec(ctx, sql); err != nil {
				return fmt.Errorf("migrate to schema %d (%s): %w", i+1, steps[i].name, err)
			}
		}
		for _, c := range steps[i].columns {
			if err := s.addColumn(ctx, c); err != nil {
				return fmt.Errorf("migrate to schema %d (%s): %w", i+1, steps[i].name, err)
			}
		}
		done := fmt.Sprintf(`INSERT INTO %s (version, name, applied) SELECT %d, %s, now()`, s.table("weft_migrations"), i+1, quote(steps[i].name))
		if err := s.conn.Exec(ctx, done); err != nil {
			return err
		}
	}
	return nil
}

// addColumn adds a column that is not there. Servers of Debian know no IF NOT EXISTS here, and
// another process may do it at the same time: the column is looked for again after an error.
func (s *Store) addColumn(ctx context.Context, c newColumn) error {
	there := func() (n uint64, err error) {
		err = s.conn.QueryRow(ctx, fmt.Sprintf(`SELECT count() FROM system.columns WHERE database = %s AND table = %s AND name = %s`,
			quote(s.cfg.Database), quote(c.table), quote(c.name))).Scan(&n)
		return n, err
	}
	if n, err := there(); err != nil || n > 0 {
		return err
	}
	err := s.conn.Exec(ctx, fmt.Sprintf(`ALTER TABLE %s ADD COLUMN %s %s`, s.table(c.table), c.name, c.definition))
	if err == nil {
		return nil
	}
	if n, again := there(); again == nil && n > 0 {
		return nil
	}
	return err
}

// ErrNewer is wrapped if a newer version of Weft made the database.
var ErrNewer = errors.New("made by a newer version")

// readKey reads the key that seals cursors, or makes it. All processes have the same: if
// two make one, the lesser counts.
func (s *Store) readKey(ctx context.Context) error {
	read := func() (key string, n uint64, err error) {
		err = s.conn.QueryRow(ctx, `SELECT min(key), count() FROM `+s.table("weft_key")).Scan(&key, &n)
		return key, n, err
	}
	key, n, err := read()
	if err != nil {
		return err
	}
	if n == 0 {
		fresh := make([]byte, 32)
		rand.Read(fresh)
		if err := s.conn.Exec(ctx, `INSERT INTO `+s.table("weft_key")+` (key) SELECT `+quote(fmt.Sprintf("%x", fresh))); err != nil {
			return err
		}
		if key, _, err = read(); err != nil {
			return err
		}
	}
	s.key = []byte(key)
	return nil
}

func (s *Store) table(name string) string { return s.cfg.Database + "." + name }

// quote is a text as SQL. Bytes that could end it are numbers.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('\'')
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == ' ', c == '-', c == '.', c == ':', c == '>', c == '_':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, `\x%02X`, c)
		}
	}
	b.WriteByte('\'')
	return b.String()
}
