package clickhouse

import (
	"context"
	"fmt"
	"slices"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/weft-telemetry/weft/store"
)

// In a cluster of servers, rows are in replicated tables NAME_local of its shards, and a
// distributed table NAME reads and writes those of all shards. Statements that change tables
// are sent to all servers by ON CLUSTER; ZooKeeper or Keeper has their order.

// shardSeconds has the rows that arrive in a second go to the same shard, so that most blocks
// are stored by one shard, as a whole or not at all.
const shardSeconds = int64(1e6) << handleBits

// clusterSettings have an insert wait for the shards that it goes to.
var clusterSettings = driver.Settings{"insert_distributed_sync": 1}

// onCluster has a statement executed by all servers.
func (s *Store) onCluster() string {
	if s.cfg.Cluster == "" {
		return ""
	}
	return " ON CLUSTER " + s.cfg.Cluster
}

// local is the table that has the rows.
func (s *Store) local(table string) string {
	if s.cfg.Cluster == "" || isShared(table) {
		return table
	}
	return table + "_local"
}

// isShared reports whether every server has all rows of a table.
func isShared(table string) bool {
	return slices.Contains([]string{migrationTable, removedTable, keyTable}, table)
}

// alter begins a statement that changes a table or its rows.
func (s *Store) alter(table string) string { return "ALTER TABLE " + s.table(table) + s.onCluster() }

// system is a table of the servers themselves: of one replica of each shard.
func (s *Store) system(table string) string {
	if s.cfg.Cluster == "" {
		return "system." + table
	}
	return fmt.Sprintf("cluster(%s, system.%s)", quote(s.cfg.Cluster), table)
}

// in is IN with a query: in a cluster one server answers it, for all.
func (s *Store) in() string {
	if s.cfg.Cluster == "" {
		return "IN"
	}
	return "GLOBAL IN"
}

// has reports whether a table of the server itself has a row.
func (s *Store) has(ctx context.Context, table, where string) (bool, error) {
	var n uint64
	err := s.conn.QueryRow(ctx, fmt.Sprintf(`SELECT count() FROM system.%s WHERE %s`, table, where)).Scan(&n)
	return n > 0, err
}

func (s *Store) createDatabase(ctx context.Context) error {
	if made, err := s.has(ctx, "databases", "name = "+quote(s.cfg.Database)); made || err != nil {
		return err
	}
	return s.conn.Exec(ctx, `CREATE DATABASE IF NOT EXISTS `+s.cfg.Database+s.onCluster())
}

// createTable creates a table that is not there.
func (s *Store) createTable(ctx context.Context, t newTable) error {
	engine := "MergeTree"
	if s.cfg.Cluster != "" {
		shard, replica := "{shard}", "{replica}"
		if isShared(t.name) {
			shard, replica = "all", "{shard}-{replica}"
		}
		engine = fmt.Sprintf("ReplicatedMergeTree('/clickhouse/tables/%s/%s/%s', '%s')", shard, s.cfg.Database, t.name, replica)
	}
	local := s.local(t.name)
	err := s.conn.Exec(ctx, fmt.Sprintf(`CREATE TABLE IF NOT EXISTS %s%s (%s) ENGINE = %s %s`, s.table(local), s.onCluster(), t.columns, engine, t.layout))
	if err != nil {
		return err
	}
	return s.createDistributed(ctx, t.name)
}

// createDistributed creates the table of all shards that is not there.
func (s *Store) createDistributed(ctx context.Context, table string) error {
	local := s.local(table)
	if local == table {
		return nil
	}
	_, seq := orderOf(store.Kind(table))
	return s.conn.Exec(ctx, fmt.Sprintf(`CREATE TABLE IF NOT EXISTS %s%s AS %s ENGINE = Distributed(%s, %s, %s, intDiv(%s, %d))`,
		s.table(table), s.onCluster(), s.table(local), s.cfg.Cluster, s.cfg.Database, local, seq, shardSeconds))
}

// recreateDistributed has the table of all shards have the columns that their tables have.
func (s *Store) recreateDistributed(ctx context.Context, table string) error {
	if s.local(table) == table {
		return nil
	}
	if err := s.conn.Exec(ctx, `DROP TABLE IF EXISTS `+s.table(table)+s.onCluster()); err != nil {
		return err
	}
	return s.createDistributed(ctx, table)
}

// createView creates a view that is not there. Each shard sums its own rows.
func (s *Store) createView(ctx context.Context, v newView) error {
	return s.conn.Exec(ctx, fmt.Sprintf(`CREATE MATERIALIZED VIEW IF NOT EXISTS %s_view%s TO %s AS SELECT %s FROM %s GROUP BY %s`,
		s.table(string(v.to)), s.onCluster(), s.table(s.local(string(v.to))), v.selected, s.table(s.local(string(v.from))), v.grouping))
}
