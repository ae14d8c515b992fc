package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/weft-telemetry/weft/inswitch"
	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim"
)

// everything is a scenario with every telemetry program, agents, captures,
// dependent flows and faults. The last value is how
// reports travel.
const everything = `
name: everything
seed: 1
duration: 160us
topology:
  generate: {kind: fat-tree, k: 4}
fabric: {buffer: 2MB}
traffic:
  - {kind: poisson, load: 80%%, start: 5us}
  - {kind: incast, fanin: 8, bytes: 100KB, rounds: 2, period: 100us, start: 20us}
  - {kind: all-reduce, bytes: 320KB, iterations: 2, compute: 10us}
  - {kind: persistent, pairs: [h8>h3, h9>h2], rate: 2Gb/s, start: 10us, stop: 300us, transport: tcp}
faults:
  - {kind: storm, host: h15, at: 50us, for: 60us}
  - {kind: silent-drop, port: leaf0>spine0, share: 5%%, at: 60us, for: 60us}
  - {kind: loop, to: h13, switches: [leaf2, tor2], at: 100us, for: 30us}
telemetry:
  - {kind: flowset, slot: 100us, flows: 500}
  - {kind: epoch, length: 64us, epochs: 2, flows: 256, readout-time: 100us, snapshot-reuse: 50us}
  - {kind: label, interval: 20us}
  - {kind: mirror, every: 16, lists: 4}
  - {kind: port-state, period: 50us}
  - {kind: host-counters, period: 50us}
  - {kind: postcard, packets: 64, flows: 4}
management: {%s}
agents: {}
output: {sample: 10us, pcap: [tor0>h0, leaf1>spine2]}
`

// outputsOf runs a scenario and returns a hash of every output by name.
func outputsOf(t *testing.T, text string, seed uint64, cores int) (out map[string]uint64, parallel int64) {
	t.Helper()
	s := mustParse(t, text)
	s.Seed = seed
	out = map[string]uint64{}
	reports := fnv.New64a()
	captures := map[string]*memory{}
	var net *sim.Network
	r, err := Run(context.Background(), s, Options{
		Cores: cores,
		Begin: func(n *sim.Network, _ map[model.NodeID][]inswitch.Program) error { net = n; return nil },
		Sink: func(at model.Time, from model.NodeID, datagram []byte) {
			fmt.Fprintf(reports, "%d %d %x\n", at, from, datagram)
		},
		Capture: func(_ model.Port, name string) (io.WriteCloser, error) {
			captures[name] = &memory{}
			return captures[name], nil
		},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	add := func(name string, b []byte) {
		h := fnv.New64a()
		h.Write(b)
		out[name] = h.Sum64()
	}
	out["reports"] = reports.Sum64()
	for name, file := range captures {
		add(name, file.Bytes())
	}
	result, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	add("result.json", result)
	add("figures", fmt.Append(nil, r.Figures))
	add("truth", fmt.Append(nil, r.Truth.Drops(), r.Truth.Pauses(), r.Truth.Deadlocks(), r.Truth.DropTotals(), r.Truth.Flow(-1, false)))
	dir := t.TempDir()
	if err := r.Run.WriteDir(dir); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		add(f.Name(), b)
	}
	if r.Telemetry.Delivered < 20 || r.Telemetry.Reports < 100 || len(files) < 5 || len(captures) != 2 {
		t.Fatalf("%v, %d files, %d captures; want many of all", r.Telemetry, len(files), len(captures))
	}
	return out, net.ParallelWindows()
}

// TestCoresChangeNoOutput: with telemetry, faults, agents and captures, every
// output is the same on two cores.
func TestCoresChangeNoOutput(t *testing.T) {
	for name, tc := range map[string]struct {
		reports string
		seeds   uint64
	}{
		"management": {"delay: 20us, jitter: 5us, loss: 1%", race.Less[uint64](20, 1)},
		"in-band":    {"in-band: on, collector: h7", race.Less[uint64](2, 1)}, // runs on one core
	} {
		t.Run(name, func(t *testing.T) {
			text := fmt.Sprintf(everything, tc.reports)
			for seed := range tc.seeds {
				want, _ := outputsOf(t, text, seed+1, 1)
				got, parallel := outputsOf(t, text, seed+1, 2)
				if !maps.Equal(got, want) {
					differ := slices.DeleteFunc(slices.Sorted(maps.Keys(want)), func(f string) bool { return got[f] == want[f] })
					t.Errorf("seed %d: %q differ on two cores", seed+1, differ)
				}
				if (parallel > 20) != (name == "management") {
					t.Errorf("seed %d: %d windows ran on two cores", seed+1, parallel)
				}
			}
		})
	}
}
