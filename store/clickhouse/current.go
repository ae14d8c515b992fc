package clickhouse

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/weft-telemetry/weft/store"
)

// Servers from version currentMajor.currentMinor on have what this file uses: codecs and
// dictionaries of columns, TTLs, and tokens of inserts. A database that an older server made is
// brought to this when it is opened on such a server, and can be read by older versions of Weft.
const (
	currentMajor = 24
	currentMinor = 8
)

// Columns of numbers that grow, and of names of which there are few.
const (
	growing = `Int64 CODEC(Delta(8), ZSTD(1))`
	names   = `LowCardinality(String) CODEC(ZSTD(1))`
	texts   = `String CODEC(ZSTD(1))`
	counts  = `UInt64 CODEC(T64, ZSTD(1))`
)

// currentColumns are the definitions of columns on current servers, by table.
var currentColumns = map[store.Kind]map[string]string{
	store.Flows: {
		"time": growing, "seq": growing, "flow": names, "src": names, "dst": names, "src_host": names, "dst_host": names,
		"packets": counts, "bytes": counts, "path": `Array(LowCardinality(String)) CODEC(ZSTD(1))`, "path_packets": `Array(UInt64) CODEC(ZSTD(1))`,
	},
	store.Losses: {
		"time": growing, "seq": growing, "flow": names, "src": names, "dst": names, "from_node": names, "to_node": names, "pattern": names,
	},
	store.Ports:          {"time": growing, "seq": growing, "node": names, "queue_bytes": `Int64 CODEC(T64, ZSTD(1))`, "load_bps": `Int64 CODEC(T64, ZSTD(1))`},
	store.Traces:         {"time": growing, "seq": growing, "flow": names, "src": names, "dst": names, "hops": texts, "frame": texts},
	store.Counters:       {"time": growing, "seq": growing, "name": names},
	store.Diagnoses:      {"time": growing, "seq": growing, "body": texts},
	store.PortSeconds:    {"step": growing, "last_seq": growing, "node": names},
	store.PortMinutes:    {"step": growing, "last_seq": growing, "node": names},
	store.CounterSeconds: {"step": growing, "last_seq": growing, "name": names},
	store.CounterMinutes: {"step": growing, "last_seq": growing, "name": names},
}

// isCurrent reports whether the server is a current one.
func (s *Store) isCurrent() (bool, error) {
	v, err := s.conn.ServerVersion()
	if err != nil {
		return false, err
	}
	return v.Version.Major > currentMajor || v.Version.Major == currentMajor && v.Version.Minor >= currentMinor, nil
}

// modernize changes the tables of a current server to the definitions above, where they differ.
// Those of a cluster stay as they are, and are used as those of an older server.
func (s *Store) modernize(ctx context.Context) (err error) {
	if s.cfg.Cluster != "" {
		return nil
	}
	if s.current, err = s.isCurrent(); err != nil || !s.current {
		return err
	}
	rows, err := s.conn.Query(ctx, `SELECT table, name, type, compression_codec FROM system.columns WHERE database = `+quote(s.cfg.Database))
	if err != nil {
		return err
	}
	defer rows.Close()
	changes := map[string][]string{}
	for rows.Next() {
		var table, name, kind, codec string
		if err := rows.Scan(&table, &name, &kind, &codec); err != nil {
			return err
		}
		want, listed := currentColumns[store.Kind(table)][name]
		if is := strings.TrimSpace(kind + " " + codec); listed && is != want {
			changes[table] = append(changes[table], fmt.Sprintf("MODIFY COLUMN %s %s", name, want))
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for table, list := range changes {
		slices.Sort(list)
		// Of a block that is inserted again the server remembers the token, also for the rollups.
		list = append(list, "MODIFY SETTING non_replicated_deduplication_window = 1000, ttl_only_drop_parts = 1")
		if err := s.conn.Exec(ctx, fmt.Sprintf(`ALTER TABLE %s %s`, s.table(table), strings.Join(list, ", "))); err != nil {
			return fmt.Errorf("columns of %s: %w", table, err)
		}
	}
	return nil
}

// ttlMargin is how long rows stay after their retention if no process removes them.
const ttlMargin = 7 * 24 * time.Hour

// setTTLs has the server drop what no process of Weft has removed for ttlMargin. The age
// counts from the arrival of a row, which its seq has: a recording may be old when it arrives.
func (s *Store) setTTLs(ctx context.Context) error {
	if !s.current {
		return nil
	}
	for kind := range currentColumns {
		var engine string
		err := s.conn.QueryRow(ctx, fmt.Sprintf(`SELECT engine_full FROM system.tables WHERE database = %s AND name = %s`,
			quote(s.cfg.Database), quote(string(kind)))).Scan(&engine)
		if err != nil {
			return err
		}
		_, seq := orderOf(kind)
		age, limited := (*s.retention.Load())[kind]
		ttl := fmt.Sprintf("toDateTime(intDiv(%s, %d)) + toIntervalSecond(%d)", seq, int64(1e6)<<handleBits, int64((age + ttlMargin).Seconds()))
		change := ""
		switch has := strings.Contains(engine, " TTL "); {
		case limited && !strings.Contains(engine, " TTL "+ttl+" "):
			change = "MODIFY TTL " + ttl
		case !limited && has:
			change = "REMOVE TTL"
		default:
			continue
		}
		if err := s.conn.Exec(ctx, fmt.Sprintf(`ALTER TABLE %s %s`, kind, change)); err != nil {
			return err
		}
	}
	return nil
}

// once has a current server accept a block once, however often it is inserted; what a first
// attempt has not reached, such as a rollup, gets it from the second.
func (s *Store) once(ctx context.Context, kind store.Kind, first int64) context.Context {
	if !s.current {
		return ctx
	}
	return driver.Context(ctx, driver.WithSettings(driver.Settings{
		"insert_deduplication_token":                         fmt.Sprintf("%s-%d", kind, s.seq(first)),
		"deduplicate_blocks_in_dependent_materialized_views": 1,
	}))
}
