package main

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/sim/engine"
)

// recording runs a scenario and records the reports of its switches: "recording
// SCENARIO FILE". Clocks start at a time that scripts know.
func recording(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: recording SCENARIO FILE")
	}
	base := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s, err := scenario.Read(ts.MkAbs(args[0]))
	ts.Check(err)
	s.Base = model.TimeOf(base)
	cfg := capture.DefaultConfig()
	cfg.Path, cfg.Queue = ts.MkAbs(args[1]), 256*model.MiB
	r, err := capture.NewRecorder(cfg, slog.New(slog.DiscardHandler))
	ts.Check(err)
	session, err := scenario.Open(s, func(at model.Time, from model.NodeID, datagram []byte) {
		src := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 255, byte(from >> 8), byte(from)}), 40041)
		r.RecordDatagram("dta", true, model.TimeOf(base.Add(time.Duration(at))), src,
			netip.MustParseAddrPort("10.255.255.1:40040"), datagram)
	})
	ts.Check(err)
	session.Network.Run(engine.Of(time.Duration(s.Duration)))
	ts.Check(r.Close())
}
