package embedded_test

import (
	"path/filepath"
	"testing"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/store"
	"github.com/weft-telemetry/weft/store/conformance"
	"github.com/weft-telemetry/weft/store/embedded"
)

// testConfig is small, so that many stores fit into memory at once.
func testConfig() embedded.Config {
	cfg := embedded.DefaultConfig()
	cfg.Threads, cfg.MaxPage = 2, conformance.MaxPage
	return cfg
}

// TestConformance runs with all records in memory, and with a cache so small that
// most queries also read the table.
func TestConformance(t *testing.T) {
	for name, size := range map[string]model.Bytes{"large cache": embedded.DefaultConfig().CacheSize, "small cache": 20 * model.KB} {
		t.Run(name, func(t *testing.T) {
			conformance.Run(t, func(t testing.TB, keep store.Retention) conformance.Store {
				cfg := testConfig()
				cfg.Retention, cfg.CacheSize = keep, size
				return open(t, filepath.Join(t.TempDir(), "weft.duckdb"), cfg)
			})
		})
	}
}

// fresh is a new store, which the end of the test closes.
func fresh(t testing.TB, cfg embedded.Config) *embedded.Store {
	t.Helper()
	s := open(t, filepath.Join(t.TempDir(), "weft.duckdb"), cfg)
	t.Cleanup(func() { mustClose(t, s) })
	return s
}

func open(t testing.TB, path string, cfg embedded.Config) *embedded.Store {
	t.Helper()
	s, err := embedded.Open(path, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
