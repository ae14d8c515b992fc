package serve

import (
	"io"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model/record"
)

// TestReplayIsTheService: what a service received over real sockets is in its
// recording, in the same order, and leaves the same in a store when it is played
// again. Which evidence comes soon enough after other to be one incident with it
// is decided by the instants of the controller's ticks, which are the machine's:
// of incidents it holds that both name what is broken, and nothing else.
//
// A machine that is too slow for the service has it skip time, and some traces without a
// verdict. There is nothing to compare then: it is tried again. Under the race detector
// a service cannot keep up with these reports beside other tests.
func TestReplayIsTheService(t *testing.T) {
	race.LeaveToPlainRun(t)
	for range 5 {
		if replayIsTheService(t) {
			return
		}
	}
	t.Error("the service has skipped time in five tries: this machine is too slow for it")
}

// replayIsTheService is one try. It reports false if the service skipped time.
func replayIsTheService(t *testing.T) bool {
	cfg := testConfig(t)
	cfg.Controller.ReportTimeout = 1500 * time.Millisecond
	cfg.Record.Path = filepath.Join(t.TempDir(), "served.pcapng")
	b := start(t, cfg)
	traces := 0
	lab, base := recordFutureLab(t, broken, 2500*time.Millisecond, func(path string) { // longer than the timeout
		store, _ := replayed(t, cfg, capture.Input{Path: path})
		traces = len(readStore(t, store).traces)
	})
	in, err := capture.Open(cfg.Ports(), capture.Input{Path: lab})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	to := capture.SendConfig{Speed: 1}
	to.To = map[source.Kind]netip.AddrPort{"dta": b.Reports()}
	time.Sleep(time.Until(base)) // a report is neither of the future nor late
	sent, err := capture.Send(t.Context(), in, to)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the health tells that all is recorded", func() bool {
		return slices.ContainsFunc(b.Health().Stages, func(st api.Stage) bool {
			return st.Name == "recording" && st.Out == sent.Datagrams["dta"]
		})
	})
	skipped := false
	eventually(t, "all traces are judged", func() bool {
		_, lost := stage(b.Health(), "analyzers")
		skipped = lost["unproven trace"] > 0
		p, err := b.store.Traces(t.Context(), record.Query{})
		return skipped || err == nil && len(p.Items) >= traces
	})
	if err := b.end(); err != nil {
		t.Fatal(err)
	}
	same(t, "datagrams", payloads(t, cfg.Record.Path), payloads(t, lab))
	if skipped {
		return false
	}
	path, found := replayed(t, cfg, capture.Input{Path: cfg.Record.Path})
	if !found.Faulty() || found.Flows != 8 || len(found.Broken) > 0 {
		t.Errorf("found %+v; want 8 flows, and a fault", found)
	}
	served, played := readStore(t, cfg.Store.Path), readStore(t, path)
	same(t, "flows", played.flows, served.flows)
	same(t, "traces", played.traces, served.traces)
	same(t, "losses", played.losses, served.losses)
	namesBroken(t, "served", served.incidents)
	namesBroken(t, "played", played.incidents)
	return true
}

// recordFutureLab is recordLab with clocks that begin soon after it returns, and
// that beginning: a slower machine gets more time for the simulation, and for what a test
// does with the recording before it begins.
func recordFutureLab(t *testing.T, text string, long time.Duration, first func(path string)) (path string, base time.Time) {
	t.Helper()
	for ahead := 6 * time.Second; ; ahead *= 2 {
		base = time.Now().Add(ahead).Truncate(10 * time.Millisecond)
		path = recordLab(t, text, base, long)
		if first(path); time.Until(base) > time.Second {
			return path, base
		}
	}
}

// namesBroken holds incidents against the faults of broken: a route that spine0
// has not, and a port of tor0 that loses.
func namesBroken(t *testing.T, when string, incidents []string) {
	t.Helper()
	var hole, loss bool
	for _, in := range incidents {
		cause, place, _ := strings.Cut(in, " at ")
		node, _, _ := strings.Cut(place, ":")
		hole = hole || cause == "critical blackhole" && place == "spine0"
		loss = loss || cause == "critical loss" && node == "tor0"
		if node != "spine0" && node != "tor0" {
			t.Errorf("%s: %s; nothing is broken there", when, in)
		}
	}
	if !hole || !loss {
		t.Errorf("%s: incidents %q; want a black hole at spine0 and a loss at tor0", when, incidents)
	}
}

// payloads are the reports of a recording, in its order.
func payloads(t *testing.T, path string) (list []string) {
	t.Helper()
	in, err := capture.Open(capture.Ports{}, capture.Input{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for {
		var d capture.Datagram
		if err := in.Next(&d); err == io.EOF {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, string(d.Payload))
	}
}
