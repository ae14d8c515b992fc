package main

import (
	"context"
	"os"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/store/clickhouse"
	"github.com/weft-telemetry/weft/store/clickhouse/chtest"
	"github.com/weft-telemetry/weft/store/embedded"
)

// storeFile makes a store with three samples of a port: "storefile weft.duckdb".
func storeFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: storefile FILE")
	}
	s, err := embedded.Open(ts.MkAbs(args[0]), embedded.DefaultConfig())
	ts.Check(err)
	var b record.Batch
	for i := range 3 {
		at := time.Date(2026, 3, 1, 12, 0, i, 0, time.UTC)
		b.Ports = append(b.Ports, record.PortSample{Time: at, Node: "e1", Port: 1, Queue: 1000})
	}
	ts.Check(s.Append(context.Background(), &b))
	ts.Check(s.Close())
}

// sameStore compares all records of two stores: "samestore a.duckdb b.duckdb".
func sameStore(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: samestore FILE FILE")
	}
	var two [2]*embedded.Store
	for i, name := range args {
		s, err := embedded.Open(ts.MkAbs(name), embedded.DefaultConfig())
		ts.Check(err)
		defer s.Close() //nolint:errcheck // it was read
		two[i] = s
	}
	a, b := two[0], two[1]
	for _, step := range []time.Duration{0, time.Second, time.Minute} {
		sameRecords(ts, "ports", a.Ports, b.Ports, record.Query{Step: step})
		sameRecords(ts, "counters", a.Counters, b.Counters, record.Query{Step: step})
	}
	sameRecords(ts, "flows", a.Flows, b.Flows, record.Query{})
	sameRecords(ts, "losses", a.Losses, b.Losses, record.Query{})
	sameRecords(ts, "traces", a.Traces, b.Traces, record.Query{})
	sameRecords(ts, "diagnoses", a.Diagnoses, b.Diagnoses, record.Query{})
	if sameRecords(ts, "incidents", a.Incidents, b.Incidents, record.Query{}) == 0 {
		ts.Fatalf("no incidents to compare")
	}
}

// sameRecords compares what two stores answer, and returns how many records.
func sameRecords[T any](ts *testscript.TestScript, kind string, a, b func(context.Context, record.Query) (record.Page[T], error), q record.Query) int {
	var lists [2][]T
	for i, query := range []func(context.Context, record.Query) (record.Page[T], error){a, b} {
		for next := q; ; {
			page, err := query(context.Background(), next)
			ts.Check(err)
			lists[i] = append(lists[i], page.Items...)
			if next.After = page.Next; next.After == "" {
				break
			}
		}
	}
	if d := cmp.Diff(lists[0], lists[1], cmpopts.EquateEmpty()); d != "" {
		ts.Fatalf("%s in steps of %v differ (- first, + second):\n%s", kind, q.Step, d)
	}
	ts.Logf("%d %s in steps of %v", len(lists[0]), kind, q.Step)
	return len(lists[0])
}

// startClickHouse runs a clickhouse-server until the script ends; $CLICKHOUSE is its
// address.
func startClickHouse(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: clickhouse")
	}
	dir := ts.MkAbs("clickhouse")
	ts.Check(os.Mkdir(dir, 0o700))
	s, err := chtest.New(dir)
	ts.Check(err)
	ts.Check(s.Start())
	ts.Defer(s.Kill)
	ts.Setenv("CLICKHOUSE", clickhouse.Scheme+s.Address())
}

// damageFile overwrites the start of a file, and so a database's header.
func damageFile(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: damagefile FILE")
	}
	f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_WRONLY, 0)
	ts.Check(err)
	_, err = f.WriteAt(make([]byte, 64), 0)
	ts.Check(err)
	ts.Check(f.Close())
}
