package serve

import (
	"io"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/ingest/capture"
)

// TestReplayIsTheService: what a service received over real sockets is in its
// recording, in the same order, and leaves the same in a store when it is played
// again. A machine that stands still for longer than reports are waited for makes
// them late for the one and not for the other, so it has some tries.
func TestReplayIsTheService(t *testing.T) {
	const tries = 8
	for try := 1; ; try++ {
		served, played := serveAndReplay(t)
		if try < tries && !served.equal(played) {
			t.Logf("try %d: %d flows, %d traces, %d losses, %d incidents when served, %d, %d, %d, %d when played", try,
				len(served.flows), len(served.traces), len(served.losses), len(served.incidents),
				len(played.flows), len(played.traces), len(played.losses), len(played.incidents))
			continue
		}
		same(t, "flows", played.flows, served.flows)
		same(t, "traces", played.traces, served.traces)
		same(t, "losses", played.losses, served.losses)
		same(t, "incidents", played.incidents, served.incidents)
		return
	}
}

func (k *kept) equal(o kept) bool {
	return slices.Equal(k.flows, o.flows) && slices.Equal(k.traces, o.traces) && slices.Equal(k.losses, o.losses) && slices.Equal(k.incidents, o.incidents)
}

func serveAndReplay(t *testing.T) (served, played kept) {
	t.Helper()
	cfg := testConfig(t)
	base := time.Now().Add(2 * time.Second).Truncate(10 * time.Millisecond)
	lab := recordLab(t, broken, base)
	cfg.Record.Path = filepath.Join(t.TempDir(), "served.pcapng")
	b := start(t, cfg)
	in, err := capture.Open(cfg.Ports(), capture.Input{Path: lab})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	to := capture.SendConfig{Speed: 0.5}
	to.To[capture.DTA] = b.Reports()
	time.Sleep(time.Until(base)) // reports must not be of the future
	if _, err := capture.Send(t.Context(), in, to); err != nil {
		t.Fatal(err)
	}
	if err := b.end(); err != nil {
		t.Fatal(err)
	}
	same(t, "datagrams", payloads(t, cfg.Record.Path), payloads(t, lab))
	path, found := replayed(t, cfg, capture.Input{Path: cfg.Record.Path})
	if !found.Faulty() || found.Flows != 8 || len(found.Broken) > 0 {
		t.Errorf("found %+v; want 8 flows, and a fault", found)
	}
	return readStore(t, cfg.Store.Path), readStore(t, path)
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
