package serve

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/analyze/anomaly"
	"github.com/weft-telemetry/weft/ingest/capture"
)

// pausedIncast is a fabric of which nothing is broken: twelve hosts send to one at once, and
// what does not fit waits for slots behind PFC pauses.
const pausedIncast = `
name: paused
topology: {generate: {kind: fat-tree, k: 4, rate: 1Gb/s}}
fabric: {mtu: 1024, buffer: 2MB}
traffic:
  - {kind: persistent, name: steady, pairs: [h0>h4, h1>h5, h2>h8, h3>h12, h4>h9, h5>h13, h6>h10, h7>h14], rate: 10Mb/s, start: 10us, stop: 600ms, transport: udp, priority: 0}
  - {kind: incast, name: burst, receivers: h0, senders: [h4..h15], bytes: %s, start: 100ms, congestion-control: off}
%stelemetry:
  - {kind: flowset, slot: 10ms, flows: 60, ipv6: false}
  - {kind: label, interval: 5ms}
  - {kind: mirror, every: 20, flags: false, protocol: %t, lists: 1}
  - {kind: epoch, length: 1ms, epochs: 2, flows: 1024, readout-time: 10ms, snapshot-reuse: 5ms}%s
management: {delay: 100us, jitter: 20us}
`

const portStates = "\n  - {kind: port-state, period: 5ms}"

// replayPaused replays the reports of a pausedIncast.
func replayPaused(t *testing.T, bytes, faults string, frames bool, counters string) *Summary {
	t.Helper()
	cfg := testConfig(t)
	cfg.Topology = filepath.Join(t.TempDir(), "fabric.yaml")
	if err := os.WriteFile(cfg.Topology, []byte("generate: {kind: fat-tree, k: 4, rate: 1Gb/s}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	base := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	lab := recordLab(t, fmt.Sprintf(pausedIncast, bytes, faults, frames, counters), base, time.Second)
	_, found := replayed(t, cfg, capture.Input{Path: lab})
	for _, in := range found.Incidents {
		t.Logf("%s %s at %s: %s", in.Severity, in.Cause, in.Location, in.Summary)
	}
	return found
}

// TestLateIsNotLost: packets that PFC holds arrive slots later, and none is lost, whether
// mirrored PFC frames or counters of ports show the pauses.
func TestLateIsNotLost(t *testing.T) {
	for _, tc := range []struct {
		bytes, counters string
		frames          bool // are mirrored
	}{
		{"200KB", "", true},
		{"300KB", "", true},
		{"600KB", "", true},
		{"300KB", portStates, false},
		{"600KB", portStates, false},
	} {
		t.Run(fmt.Sprintf("%s, frames %t", tc.bytes, tc.frames), func(t *testing.T) {
			found := replayPaused(t, tc.bytes, "", tc.frames, tc.counters)
			if found.LostPackets != 0 {
				t.Errorf("%d packets lost; want none", found.LostPackets)
			}
			for _, in := range found.Incidents {
				if in.Cause != "stall" || in.Severity == anomaly.Critical.String() {
					t.Errorf("%s at %s was invented: %s", in.Cause, in.Location, in.Summary)
				}
			}
		})
	}
}

// TestLostAmongLateIsFound: a link that PFC pauses loses packets, too.
func TestLostAmongLateIsFound(t *testing.T) {
	found := replayPaused(t, "600KB", "faults:\n  - {kind: silent-drop, port: leaf1>tor0, share: 10%, at: 100ms}\n", true, "")
	var places []string
	for _, in := range found.Incidents {
		if in.Cause == "loss" {
			places = append(places, in.Location)
		}
	}
	if found.LostPackets == 0 || !slices.Equal(places, []string{"leaf1:Ethernet0"}) {
		t.Errorf("%d packets lost, incidents of losses at %v; want one at leaf1", found.LostPackets, places)
	}
}
