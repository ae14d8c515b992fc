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
	ordered = `PARTITION BY intDiv(time, toInt64(86400000000000)) ORDER BY (time, seq)`
	flowKey = `flow String, src String, dst String, sport UInt16, dport UInt16, proto UInt8`
)

// migration is one step of the schema. A released step never changes: databases of its
// version exist.
type migration struct {
	name    string
	tables  []newTable
	views   []newView
	columns []newColumn
}

// newTable is a table; layout is what follows its engine.
type newTable struct{ name, columns, layout string }

// newView fills a table with sums of what is inserted into another.
type newView struct {
	to, from           store.Kind
	selected, grouping string
}

// newColumn is a column that older databases lack.
type newColumn struct{ table, name, definition string }

var migrations = []migration{
	{name: "records and rollups", tables: []newTable{
		{"flows", `time Int64, seq Int64, slot_ns Int64, ` + flowKey + `, src_host String, dst_host String,
			packets UInt64, bytes UInt64, exact UInt8, partial UInt8, path Array(String), path_packets Array(UInt64)`, ordered},
		{"losses", `time Int64, seq Int64, ` + flowKey + `, from_node String, to_node String, packets UInt64, sent UInt64, pattern String`, ordered},
		{"ports", `time Int64, seq Int64, node String, port UInt16, queue_bytes Int64, queue_max_bytes Int64,
			latency_ns Int64, load_bps Int64, paused Float64, samples UInt64`, ordered},
		{"traces", `time Int64, seq Int64, id UInt64, ` + flowKey + `, end String, why String, latency_ns Int64,
			lost_mirrors Int64, switches Array(String), hops String, frame String`, ordered},
		{"counters", `time Int64, seq Int64, period_ns Int64, name String, packets UInt64, bytes UInt64, flows Float64`, ordered},
		{"diagnoses", `time Int64, seq Int64, id String, anomaly String, root_cause String, node String, port UInt16, peer String, ` +
			flowKey + `, confidence Float64, body String`, ordered},
		// Every state of an incident is a row; the last of an id counts.
		{"incidents", `time Int64, seq Int64, id String, updated Int64, ended Int64, open UInt8, cause String, severity String,
			location String, summary String, body String`, `ORDER BY (id, seq)`},
		portRollup(store.PortSeconds), portRollup(store.PortMinutes),
		counterRollup(store.CounterSeconds), counterRollup(store.CounterMinutes),
		{"incident_actions", `time Int64, seq Int64, incident String, kind String, who String, text String, until Int64, muted UInt8`, `ORDER BY (incident, seq)`},
		// What retention has removed: rows of a kind before time, up to seq.
		{removedTable, `kind String, time Int64, seq Int64`, `ORDER BY kind`},
		{keyTable, `key String`, `ORDER BY key`},
	}, views: []newView{
		portView(store.PortSeconds, "1000000000"), portView(store.PortMinutes, "60000000000"),
		counterView(store.CounterSeconds, "1000000000"), counterView(store.CounterMinutes, "60000000000"),
	}},
	{name: "samples of flows", columns: []newColumn{{"flows", "samples", "UInt64 DEFAULT 0"}}},
}

// Tables of the database itself. In a cluster each server has all of their rows.
const (
	migrationTable = "weft_migrations"
	removedTable   = "weft_removed"
	keyTable       = "weft_key"
)

// A rollup has other names of columns than what it sums: ClickHouse would confuse them.
const rolled = `PARTITION BY intDiv(step, toInt64(86400000000000)) ORDER BY (step, last_seq)`

func portRollup(kind store.Kind) newTable {
	return newTable{string(kind), `step Int64, last_seq Int64, node String, port UInt16, weight Float64, queue_sum Float64,
		deepest Int64, latency_sum Float64, load_sum Float64, paused_sum Float64`, rolled}
}

func counterRollup(kind store.Kind) newTable {
	return newTable{string(kind), `step Int64, last_seq Int64, name String, packet_sum UInt64, byte_sum UInt64, flows_max Float64`, rolled}
}

// portView computes the rollup of every block of ports that is inserted: one row for
// each port and step. A sample that says nothing else has the weight 1.
func portView(kind store.Kind, step string) newView {
	const w = `toFloat64(greatest(samples, 1))`
	return newView{kind, store.Ports, fmt.Sprintf(`%[1]s AS step, max(seq) AS last_seq, node, port,
		sum(%[2]s) AS weight, sum(%[2]s * queue_bytes) AS queue_sum, max(greatest(queue_bytes, queue_max_bytes)) AS deepest,
		sum(%[2]s * latency_ns) AS latency_sum, sum(%[2]s * load_bps) AS load_sum, sum(%[2]s * paused) AS paused_sum`,
		floorStep("time", step), w), `step, node, port`}
}

func counterView(kind store.Kind, step string) newView {
	return newView{kind, store.Counters, fmt.Sprintf(`%s AS step, max(seq) AS last_seq, name, %s AS packet_sum, %s AS byte_sum, max(flows) AS flows_max`,
		floorStep("time", step), saturated("packets"), saturated("bytes")), `step, name`}
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
	// Statements for all servers of a cluster wait for those that are away.
	made, err := s.has(ctx, "tables", fmt.Sprintf("database = %s AND name = %s", quote(s.cfg.Database), quote(migrationTable)))
	if err == nil && !made {
		err = s.createTable(ctx, newTable{migrationTable, `version UInt32, name String, applied DateTime`, `ORDER BY version`})
	}
	if err != nil {
		return err
	}
	var version uint32
	if err := s.conn.QueryRow(ctx, `SELECT max(version) FROM `+s.table(migrationTable)).Scan(&version); err != nil {
		return err
	}
	if int(version) > len(steps) {
		return fmt.Errorf("%w: schema %d, this version supports up to %d", ErrNewer, version, len(steps))
	}
	for i := int(version); i < len(steps); i++ {
		if err := s.apply(ctx, &steps[i]); err != nil {
			return fmt.Errorf("migrate to schema %d (%s): %w", i+1, steps[i].name, err)
		}
		done := fmt.Sprintf(`INSERT INTO %s (version, name, applied) SELECT %d, %s, now()`, s.table(migrationTable), i+1, quote(steps[i].name))
		if err := s.conn.Exec(ctx, done); err != nil {
			return err
		}
	}
	return nil
}

// apply makes what is new in a step.
func (s *Store) apply(ctx context.Context, m *migration) error {
	for _, t := range m.tables {
		if err := s.createTable(ctx, t); err != nil {
			return err
		}
	}
	for _, v := range m.views {
		if err := s.createView(ctx, v); err != nil {
			return err
		}
	}
	for _, c := range m.columns {
		if err := s.addColumn(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// addColumn adds a column that is not there. Servers of Debian know no IF NOT EXISTS here, and
// another process may do it at the same time: the column is looked for again after an error.
func (s *Store) addColumn(ctx context.Context, c newColumn) error {
	table := s.local(c.table)
	there := func() (bool, error) {
		return s.has(ctx, "columns", fmt.Sprintf("database = %s AND table = %s AND name = %s", quote(s.cfg.Database), quote(table), quote(c.name)))
	}
	if made, err := there(); made || err != nil {
		return err
	}
	err := s.conn.Exec(ctx, s.alter(table)+fmt.Sprintf(` ADD COLUMN %s %s`, c.name, c.definition))
	if err == nil {
		return s.recreateDistributed(ctx, c.table)
	}
	if made, again := there(); made && again == nil {
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
		err = s.conn.QueryRow(ctx, `SELECT min(key), count() FROM `+s.table(keyTable)).Scan(&key, &n)
		return key, n, err
	}
	key, n, err := read()
	if err != nil {
		return err
	}
	if n == 0 {
		fresh := make([]byte, 32)
		rand.Read(fresh)
		if err := s.conn.Exec(ctx, `INSERT INTO `+s.table(keyTable)+` (key) SELECT `+quote(fmt.Sprintf("%x", fresh))); err != nil {
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
