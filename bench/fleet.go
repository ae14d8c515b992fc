package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// fleet is the recorded reports of a Clos fabric.
type fleet struct {
	switches            int
	dir                 string
	recording, topology string // files
}

const (
	fleetRacks = 4  // of a pod, which has as many leaves
	fleetHosts = 2  // of a rack
	fleetFlows = 36 // of a host, all to other pods
	fleetSlots = 40
)

// fleetScenario describes a fabric of a number of pods, and half as many spines for each
// leaf: every switch counts about the same number of flows, whatever the size.
func fleetScenario(pods int) (text string, switches int) {
	hosts := pods * fleetRacks * fleetHosts
	ofPod := fleetRacks * fleetHosts
	var pairs []string
	for src := range hosts {
		for i := range fleetFlows {
			// Some pods further, and a host of them that differs by flow.
			dst := (src + ofPod*(1+i%(pods-1)) + i/(pods-1)) % hosts
			if dst/ofPod == src/ofPod {
				dst = (dst + ofPod) % hosts
			}
			pairs = append(pairs, fmt.Sprintf("h%d>h%d", src, dst))
		}
	}
	text = fmt.Sprintf(`name: fleet
about: A Clos fabric with steady traffic and all telemetry on, and a link that loses packets.
seed: 1
duration: %dms
topology: {generate: {kind: clos, pods: %d, tors: %d, leaves: %d, spines: %d, hosts: %d, rate: 1Gb/s}}
fabric: {mtu: 1024, buffer: 2MB}
traffic:
  - {kind: persistent, name: steady, pairs: [%s], rate: 2Mb/s, start: 25ms, transport: udp, priority: 0}
faults:
  - {kind: silent-drop, port: leaf0>spine0, share: 30%%, at: 100ms, for: 100ms}
telemetry:
  - {kind: flowset, slot: 10ms, flows: %d, ipv6: false}
  - {kind: label, interval: 5ms}
  - {kind: mirror, every: 64, flags: false}
  - {kind: port-state, period: 20ms}
agents: {}
management: {delay: 100us, jitter: 20us}
`, fleetSlots*10, pods, fleetRacks, fleetRacks, pods/2, fleetHosts, strings.Join(pairs, ", "), 2*2*fleetHosts*fleetFlows)
	return text, 2*fleetRacks*pods + fleetRacks*pods/2
}

// recordFleet simulates a fabric and records its reports.
func recordFleet(ctx context.Context, dir string, pods int) (f fleet, err error) {
	text, switches := fleetScenario(pods)
	f = fleet{switches: switches, dir: filepath.Join(dir, fmt.Sprint(switches))}
	if err := os.Mkdir(f.dir, 0o700); err != nil {
		return f, err
	}
	scenario := filepath.Join(f.dir, "scenario.yaml")
	if err := os.WriteFile(scenario, []byte(text), 0o600); err != nil {
		return f, err
	}
	f.recording, f.topology = filepath.Join(f.dir, "reports.pcapng"), filepath.Join(f.dir, "reports.topology.yaml")
	_, err = runWeft(ctx, "demo", "--scenario", scenario, "--record", f.recording, "--clock", "2026-01-02T03:04:05Z")
	return f, err
}
