package clickhouse

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store"
	"github.com/weft-telemetry/weft/store/clickhouse/chtest"
	"github.com/weft-telemetry/weft/store/conformance"
)

var wholeSuite = flag.Bool("cluster", false, "run the whole conformance suite on a cluster of servers: 2 minutes")

// startServers starts two shards of two replicas.
func startServers(t *testing.T) *chtest.Cluster {
	if shared.IsChDB() {
		t.Skip("chDB is one server, without ZooKeeper")
	}
	c, err := chtest.StartCluster(t.TempDir(), 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Kill)
	return c
}

// ofCluster is the configuration of a store on a cluster, which asks some of its servers.
func ofCluster(database string, servers ...*chtest.Server) Config {
	cfg := DefaultConfig()
	cfg.Addresses, cfg.Database, cfg.Cluster = nil, database, chtest.ClusterName
	cfg.Retention, cfg.MaxPage = nil, conformance.MaxPage
	cfg.Timeout = 5 * time.Minute // machines that test may be busy, and all servers must answer
	for _, s := range servers {
		cfg.Addresses = append(cfg.Addresses, s.Address())
	}
	return cfg
}

func TestClusterConforms(t *testing.T) {
	if !*wholeSuite {
		t.Skip("make clickhouse-cluster does it")
	}
	c := startServers(t)
	defer func(n int) { conformance.Checks = n }(conformance.Checks)
	conformance.Checks = 3 // each makes a database on all servers
	conformance.Run(t, func(t testing.TB, keep store.Retention) conformance.Store {
		cfg := ofCluster(fmt.Sprint("test", databases.Add(1)), c.Servers[0])
		cfg.Retention = keep
		s, err := Open(context.Background(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}

// TestClusterSharesRows stores rows in two shards of two replicas: all servers answer as one
// alone does, also while one replica of each shard is away.
func TestClusterSharesRows(t *testing.T) {
	c := startServers(t)
	s := open(t, ofCluster("fabric", c.Servers[0]))
	defer s.Close() //nolint:errcheck // the server may be away
	alone := open(t, testConfig(t))
	defer alone.Close() //nolint:errcheck // nothing is left
	const second = int64(1e6)
	began := (now()/second - 60) * second
	both := func(s *Store, first int) {
		t.Helper()
		for i := first; i < first+10; i += 5 { // in two seconds, which are those of different shards
			for _, to := range []*Store{s, alone} {
				insertAt(t, to, began+int64(i/5)*second, slotsAndLosses(i))
			}
		}
	}
	both(s, 0)
	same(t, alone, s)
	counts := rowsOf(t, c, "ports_local")
	if !slices.Equal(counts, []uint64{5, 5, 5, 5}) {
		t.Errorf("the servers have %v rows; want half of 10 in each shard, all in both replicas", counts)
	}

	c.Servers[0].Kill()
	c.Servers[2].Kill()
	other := open(t, ofCluster("fabric", c.Servers[0], c.Servers[1]))
	defer other.Close() //nolint:errcheck // nothing is left
	same(t, alone, other)
	both(other, 10)
	same(t, alone, other)

	for _, i := range []int{0, 2} {
		if err := c.Servers[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	if counts := rowsOf(t, c, "ports_local"); !slices.Equal(counts, []uint64{10, 10, 10, 10}) {
		t.Errorf("the servers have %v rows; want those of before in all replicas", counts)
	}
	last := open(t, ofCluster("fabric", c.Servers[3]))
	defer last.Close() //nolint:errcheck // nothing is left
	same(t, alone, last)
}

// insertAt stores a batch as if it had arrived at a tick.
func insertAt(t *testing.T, s *Store, tick int64, b *record.Batch) {
	t.Helper()
	w := &batchWrite{Store: s, next: tick}
	insert(t.Context(), w, &flowTable, b.Flows)
	insert(t.Context(), w, &lossTable, b.Losses)
	insert(t.Context(), w, &portTable, b.Ports)
	insert(t.Context(), w, &counterTable, b.Counters)
	insert(t.Context(), w, &incidentTable, b.Incidents)
	if w.err != nil {
		t.Fatal(w.err)
	}
}

// slotsAndLosses is a batch of 5 slots of flows, of which some lose packets.
func slotsAndLosses(first int) *record.Batch {
	b := &record.Batch{}
	for i := range 5 {
		f := record.FlowSlot{
			Time: base.Add(time.Duration(first+i) * 300 * time.Millisecond), Slot: 1e8, Src: "h1", Dst: "h2", Packets: uint64(10 + i), Bytes: uint64(1000 * (first + i)),
			Flow: model.FlowKey{SrcPort: uint16(1 + (first+i)%4), DstPort: 80, Proto: model.TCP, Src: model.Addr4(0x0a000001), Dst: model.Addr4(0x0a000002)},
			Path: []record.FlowHop{{Switch: "e1", Packets: 7}, {Switch: fmt.Sprint("s", i%2), Packets: 7}},
		}
		b.Flows = append(b.Flows, f)
		if (first+i)%3 == 0 {
			b.Losses = append(b.Losses, record.Loss{Time: f.Time, Flow: f.Flow, From: "e1", To: "e2", Packets: 2, Sent: 9})
		}
		b.Ports = append(b.Ports, record.PortSample{Time: f.Time, Node: "e1", Port: 1, Queue: 100})
		b.Counters = append(b.Counters, record.Counter{Time: f.Time, Name: "c", Packets: 3, Period: 1})
		b.Incidents = append(b.Incidents, record.Incident{ID: "i", Begin: base, Updated: f.Time, Body: []byte(`{}`)})
	}
	return b
}

// same compares what two stores answer.
func same(t *testing.T, want, got *Store) {
	t.Helper()
	answers := func(s *Store) (all []any) {
		t.Helper()
		add := func(answer any, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, answer)
		}
		flows, err := s.Flows(t.Context(), record.Query{})
		add(flows.Items, err)
		losses, err := s.Losses(t.Context(), record.Query{})
		add(losses.Items, err)
		steps, err := s.Ports(t.Context(), record.Query{Step: 1e9})
		add(steps.Items, err)
		counters, err := s.Counters(t.Context(), record.Query{Step: 1e9})
		add(counters.Items, err)
		incidents, err := s.Incidents(t.Context(), record.Query{})
		add(incidents.Items, err)
		for _, order := range []record.FlowSort{record.ByBytes, record.ByLost} {
			sums, err := s.FlowSums(t.Context(), record.FlowSumQuery{Sort: order, Limit: 4})
			sums.Next = "" // is sealed by another key
			add(sums, err)
		}
		groups, err := s.FlowGroups(t.Context(), record.FlowGroupQuery{GroupBy: record.GroupByPath, Sort: record.ByLost})
		add(groups, err)
		return all
	}
	w, g := answers(want), answers(got)
	for i := range w {
		if d := cmp.Diff(w[i], g[i], cmpopts.EquateEmpty()); d != "" {
			t.Errorf("answer %d (- one server, + cluster):\n%s", i, d)
		}
	}
}

// rowsOf counts the rows that each server has, when it has all of its shard.
func rowsOf(t *testing.T, c *chtest.Cluster, table string) (counts []uint64) {
	t.Helper()
	for _, server := range c.Servers {
		conn, err := connect(ofCluster("fabric", server), "fabric")
		if err != nil {
			t.Fatal(err)
		}
		var n uint64
		if err := conn.Exec(t.Context(), `SYSTEM SYNC REPLICA fabric.`+table); err != nil {
			t.Fatal(err)
		}
		if err := conn.QueryRow(t.Context(), `SELECT count() FROM `+table).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(); err != nil {
			t.Fatal(err)
		}
		counts = append(counts, n)
	}
	return counts
}
