package serve

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/ingest/capture"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/sim/engine"
	"github.com/weft-telemetry/weft/store/embedded"
)

// broken is a fabric of testConfig's shape in which a route is missing and a link
// loses packets.
const broken = `
name: recorded
topology: {generate: {kind: fat-tree, k: 4, rate: 1Gb/s}}
fabric: {mtu: 1024, buffer: 2MB}
traffic:
  - {kind: persistent, name: steady, pairs: [h0>h4, h1>h5, h2>h8, h3>h12, h4>h9, h5>h13, h6>h10, h7>h14], rate: 10Mb/s, start: 10us, stop: 300ms, transport: udp, priority: 0}
faults:
  - {kind: blackhole, switch: spine0, to: h8, at: 100ms}
  - {kind: silent-drop, port: tor0>leaf0, share: 30%, at: 100ms}
telemetry:
  - {kind: flowset, slot: 10ms, flows: 10, ipv6: false}
  - {kind: label, interval: 20ms}
  - {kind: mirror, every: 10, flags: false, protocol: true, lists: 1}
  - {kind: epoch, length: 1ms, epochs: 2, flows: 64, readout-time: 10ms, snapshot-reuse: 5ms}
management: {delay: 100us, jitter: 20us}
`

// recordLab plays a scenario for some time, with clocks that begin at base, and
// records what its switches report.
func recordLab(t *testing.T, text string, base time.Time, long time.Duration) string {
	t.Helper()
	s, err := scenario.Parse("recorded.yaml", fmt.Appendf(nil, "duration: %v%s", long, text))
	if err != nil {
		t.Fatal(err)
	}
	s.Base = model.TimeOf(base)
	cfg := capture.DefaultConfig()
	cfg.Path, cfg.Queue = filepath.Join(t.TempDir(), "lab.pcapng"), 256*model.MiB
	r, err := capture.NewRecorder(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	session, err := scenario.Open(s, func(at model.Time, from model.NodeID, datagram []byte) {
		src := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 255, byte(from >> 8), byte(from)}), 40041)
		r.RecordDatagram("dta", true, model.TimeOf(base).Add(time.Duration(at)), src, netip.MustParseAddrPort("10.255.255.1:40040"), datagram)
	})
	if err != nil {
		t.Fatal(err)
	}
	session.Network.Run(engine.Of(long))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if st := r.Stats(); st.Written == 0 || st.Written != st.Datagrams {
		t.Fatalf("recorded %+v", st)
	}
	return cfg.Path
}

// replayed plays recordings into a new store and returns its path.
func replayed(t *testing.T, cfg Config, inputs ...capture.Input) (string, *Summary) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "replay.duckdb")
	s, err := embedded.Open(path, embedded.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	look, err := capture.Summarize(cfg.Ports(), inputs...)
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewReplay(t.Context(), cfg, look.Kinds, s)
	if err != nil {
		t.Fatal(err)
	}
	in, err := capture.Open(cfg.Ports(), inputs...)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	found, err := r.Run(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path, found
}

// kept is what a store has: a line for each flow's slot, trace and incident.
// Of an incident the times of the controller's own are left out: they are those
// of its looks.
type kept struct{ flows, traces, losses, incidents []string }

func readStore(t *testing.T, path string) (k kept) {
	t.Helper()
	s, err := embedded.Open(path, embedded.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	k.flows = lines(t, s.Flows, func(r *record.FlowSlot) string {
		return fmt.Sprint(r.Time.UnixNano(), r.Slot, r.Flow, r.Packets, r.Bytes, r.Exact, r.Path)
	})
	k.traces = lines(t, s.Traces, func(r *record.Trace) string {
		text := fmt.Sprint(r.Time.UnixNano(), r.ID, r.Flow, r.End, r.Why)
		for _, h := range r.Hops {
			text += fmt.Sprint(" ", h.Switch, h.In, h.Out, h.Time.UnixNano())
		}
		return text
	})
	k.losses = lines(t, s.Losses, func(r *record.Loss) string {
		return fmt.Sprint(r.Time.UnixNano(), r.Flow, r.From, r.To, r.Packets, r.Sent)
	})
	k.incidents = lines(t, s.Incidents, func(r *record.Incident) string {
		return fmt.Sprintf("%s %s at %s", r.Severity, r.Cause, r.Location)
	})
	return k
}

func lines[R any](t *testing.T, ask func(context.Context, record.Query) (record.Page[R], error), line func(*R) string) (list []string) {
	t.Helper()
	for q := (record.Query{}); ; {
		p, err := ask(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for i := range p.Items {
			list = append(list, line(&p.Items[i]))
		}
		if q.After = p.Next; q.After == "" {
			slices.Sort(list)
			return list
		}
	}
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if len(want) == 0 {
		t.Errorf("no %s to compare", what)
	}
	if slices.Equal(got, want) {
		return
	}
	missing := slices.DeleteFunc(slices.Clone(want), func(l string) bool { _, ok := slices.BinarySearch(got, l); return ok })
	more := slices.DeleteFunc(slices.Clone(got), func(l string) bool { _, ok := slices.BinarySearch(want, l); return ok })
	t.Errorf("%s: %d; want %d\nmissing %d: %q\ntoo many %d: %q", what, len(got), len(want), len(missing), missing[:min(3, len(missing))], len(more), more[:min(3, len(more))])
}

// TestReplayFindsFaults: what reports of a simulated fabric say is found in their
// recording, dated by their clocks, and the same again from two files in place
// of one.
func TestReplayFindsFaults(t *testing.T) {
	cfg := testConfig(t)
	base := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	lab := capture.Input{Path: recordLab(t, broken, base, time.Second)}
	path, found := replayed(t, cfg, lab)
	got := readStore(t, path)
	for _, want := range []string{"blackhole", "loss"} {
		if !slices.ContainsFunc(found.Incidents, func(i api.Incident) bool { return i.Cause == want && i.Begin.Sub(base) < 500*time.Millisecond }) {
			t.Errorf("incidents %+v; want %s among them", found.Incidents, want)
		}
	}
	if !found.Faulty() || found.Flows != 8 || found.LostPackets == 0 || found.Traces["lost"] == 0 || found.Ports == 0 || found.Kept == 0 {
		t.Errorf("found %+v; want 8 flows with losses, traces that end short, and ports", found)
	}
	for _, st := range found.Stages {
		for _, l := range st.Losses {
			if l.Count > 0 {
				t.Errorf("%s: %d lost: %s", st.Name, l.Count, l.Reason)
			}
		}
	}
	again, _ := replayed(t, cfg, split(t, lab.Path)...)
	twice := readStore(t, again)
	same(t, "flows, again", twice.flows, got.flows)
	same(t, "traces, again", twice.traces, got.traces)
	same(t, "losses, again", twice.losses, got.losses)
	same(t, "incidents, again", twice.incidents, got.incidents)
}

// split deals the reports of a recording out to two.
func split(t *testing.T, path string) (parts []capture.Input) {
	t.Helper()
	in, err := capture.Open(capture.Ports{}, capture.Input{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var to [2]*capture.Recorder
	for i := range to {
		cfg := capture.DefaultConfig()
		cfg.Path, cfg.Queue = filepath.Join(t.TempDir(), "part.pcapng"), 256*model.MiB
		if to[i], err = capture.NewRecorder(cfg, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
		parts = append(parts, capture.Input{Path: cfg.Path})
	}
	for d := (capture.Datagram{}); in.Next(&d) == nil; {
		// By reporter, so that those of one instant keep their order.
		to[d.From.Addr().As4()[3]%2].RecordDatagram(d.Kind, true, d.Time, d.From, d.To, d.Payload)
	}
	for _, r := range to {
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return parts
}
