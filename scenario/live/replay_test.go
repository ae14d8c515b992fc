package live

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control/serve"
	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/ingest/sources"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/topo/file"
	"github.com/weft-telemetry/weft/wire/dta"
)

// TestReplayFindsTheProgramme records the reports of a fabric that meets every fault, and
// replays them: every fault is found with its cause and place as in a demo, by the reports
// alone, and nothing else is. Without the counters of ports, packets that are stuck in
// queues which a storm pauses would be taken for lost.
func TestReplayFindsTheProgramme(t *testing.T) {
	race.LeaveToPlainRun(t)
	for _, cfg := range []Config{small(1), slow(3)} {
		t.Run(fmt.Sprintf("%v seed %d", cfg.Rate, cfg.Seed), func(t *testing.T) { replayProgramme(t, cfg) })
	}
}

// replayProgramme records and replays the programme of a fabric.
func replayProgramme(t *testing.T, cfg Config) {
	t.Helper()
	dir := t.TempDir()
	recording, topology := filepath.Join(dir, "reports.pcapng"), filepath.Join(dir, "fabric.yaml")
	w, err := capture.NewWriter(recording)
	if err != nil {
		t.Fatal(err)
	}
	to := netip.MustParseAddrPort("192.0.2.1:40040")
	var r *Reporters
	r, err = NewReporters(cfg, time.Unix(0, 0), func(at model.Time, from model.NodeID, datagram []byte) error {
		return w.WriteDatagram(sources.DTA.Kind, at, netip.AddrPortFrom(r.Topology().Fabric.Node(from).IPv4.Netip(), dta.Port), to, datagram)
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Record(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(topology)
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Write(f, file.YAML, r.Topology()); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}

	c := serve.DefaultConfig()
	c.Topology = topology
	in, err := capture.Open(c.Ports(), capture.Input{Path: recording})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	replay, err := serve.NewReplay(t.Context(), c, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer replay.Close()
	replay.Incident = r.director.ObserveIncident
	if _, err := replay.Run(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	s := r.director.Score()
	for _, f := range s.Faults {
		if !f.Found {
			t.Errorf("%s was missed: %s", f.Kind, f.What)
		}
	}
	for _, in := range s.FalseAlarms {
		t.Errorf("incident %d is a false alarm: %v at %s: %s", in.ID, in.Cause, r.sim.fabric.PortRef(in.Place), in.Text)
	}
}
