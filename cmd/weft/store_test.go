package main

import (
	"context"
	"os"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weft-telemetry/weft/model/record"
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
