package nats

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/stream"
	"github.com/weft-telemetry/weft/stream/conformance"
)

// shared is a broker for the tests that do not stop it.
var shared *Broker

func TestMain(m *testing.M) {
	if os.Getenv(childDir) != "" {
		os.Exit(runChild())
	}
	os.Exit(run(m))
}

// fewerChecks is how often rapid tests a property, unless it was set: each check makes a
// stream on the broker's disk.
const fewerChecks = "12"

func run(m *testing.M) int {
	flag.Parse()
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		_ = f.Value.Set(fewerChecks)
	}
	dir, err := os.MkdirTemp("", "weft-nats")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if shared, err = StartBroker(BrokerConfig{Listen: "127.0.0.1:0", Dir: dir}); err != nil {
		panic(err)
	}
	defer shared.Close()
	return m.Run()
}

func connect(tb testing.TB, url string) *client.Conn {
	tb.Helper()
	c, err := Connect(Access{URL: url, Name: tb.Name()})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	return c
}

var streams atomic.Int64

// testConfig is small, so that limits are reached.
func testConfig(partitions int, size model.Bytes) Config {
	cfg := DefaultConfig(fmt.Sprint("s", streams.Add(1)), partitions)
	cfg.BufferSize, cfg.Backlog, cfg.Timeout, cfg.DrainTimeout = size, 64, 20*time.Second, time.Minute
	return cfg
}

func TestConforms(t *testing.T) {
	conn := connect(t, shared.URL())
	conformance.Test(t, func(partitions int, size model.Bytes) (conformance.Stream, error) {
		return Open(context.Background(), conn, testConfig(partitions, size))
	})
}

func TestLeasesConform(t *testing.T) {
	conformance.TestLeases(t, func() stream.Leases { return leases(t, "conform", time.Minute) })
}

func leases(t *testing.T, name string, ttl time.Duration) *Leases {
	t.Helper()
	l, err := OpenLeases(t.Context(), connect(t, shared.URL()), name, ttl, 1)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
