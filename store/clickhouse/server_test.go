package clickhouse

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"github.com/weft-telemetry/weft/store"
	"github.com/weft-telemetry/weft/store/clickhouse/chtest"
	"github.com/weft-telemetry/weft/store/conformance"
)

// shared is the server of all tests.
var shared *chtest.Server

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	conformance.Checks = 6 // each makes a database of 17 tables
	dir, err := os.MkdirTemp("", "weft-clickhouse")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if shared, err = chtest.New(dir); err == nil {
		err = shared.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer shared.Kill()
	return m.Run()
}

var databases atomic.Int64

// testConfig is of a new database.
func testConfig(t testing.TB) Config {
	cfg := DefaultConfig()
	cfg.Addresses, cfg.Database = []string{shared.Address()}, fmt.Sprint("test", databases.Add(1))
	cfg.Retention, cfg.MaxPage = nil, conformance.MaxPage
	t.Cleanup(func() {
		conn, err := connect(cfg, "")
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		if err := conn.Exec(context.Background(), `DROP DATABASE IF EXISTS `+cfg.Database); err != nil {
			t.Error(err)
		}
	})
	return cfg
}

func TestConforms(t *testing.T) {
	conformance.Run(t, func(t testing.TB, keep store.Retention) conformance.Store {
		cfg := testConfig(t)
		cfg.Retention = keep
		s, err := Open(context.Background(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}
