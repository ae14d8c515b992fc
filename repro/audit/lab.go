package audit

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/scenario/live"
	"github.com/weft-telemetry/weft/topo"
)

// kind is what is injected.
type kind int

const (
	healthy kind = iota
	// Faults of the fabric, which are no fault of a source.
	lossyLink
	lossySwitch
	corruption
	blackhole
	loop
	storm
	incast
	linkFlap
	// Sources that are wrong.
	sentPackets
	sentBytes
	flowset
	numKinds
)

func (k kind) String() string {
	return [...]string{
		"healthy", "lossy link", "lossy switch", "corruption", "black hole", "loop", "PFC storm", "incast", "link flap",
		"packets sent", "bytes sent", "flowset",
	}[k]
}

// lies reports whether a source is wrong.
func (k kind) lies() bool { return k >= sentPackets }

const (
	faultAt = 300 * time.Millisecond
	runs    = 1300 * time.Millisecond // a second after the fault
	step    = 50 * time.Millisecond
)

// injected is what was done to a fabric, and what is true of it.
type injected struct {
	scenario *scenario.Scenario
	// The source that is wrong.
	node, iface string
	more        bool // it counts too much
}

// inject draws a scenario. Links are scaled to 1 Gb/s, so that seconds can be simulated. Without
// witnesses, one switch alone exports flowsets.
func inject(k kind, seed uint64, noWitnesses bool) (*injected, error) {
	rng := rand.New(rand.NewPCG(seed, uint64(k)))
	f, err := topo.FatTree(4, topo.DefaultLinks())
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "name: audit\nseed: %d\nduration: %v\ntopology: {generate: {kind: fat-tree, k: 4, rate: 1Gb/s}}\n", seed, runs)
	b.WriteString("fabric: {mtu: 2000, buffer: 1MB, ecn: [{kmin: 40KB, kmax: 160KB, pmax: 20%}]}\n")
	switches := ""
	if noWitnesses {
		switches = fmt.Sprintf(", switches: [%s]", f.Node(f.Switches()[0]).Name)
	}
	fmt.Fprintf(&b, "telemetry: [{kind: flowset, slot: 10ms, flows: 1000, ipv6: false%s}]\n", switches)
	fmt.Fprintf(&b, "traffic:\n  - {kind: poisson, name: background, sizes: websearch, load: %d%%}\n", 5+rng.IntN(10))
	// Every link between switches carries something, by ECMP.
	hosts := len(f.Hosts())
	b.WriteString("  - {kind: persistent, name: jobs, pairs: [")
	for i, n := 0, 0; i < hosts; i++ {
		for range 4 {
			if n++; n > 1 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "h%d>h%d", i, (i+4+rng.IntN(hosts-8))%hosts)
		}
	}
	fmt.Fprintf(&b, "], rate: %dMb/s}\n", 40+rng.IntN(40))
	in := &injected{}
	fabricPort := func() (sw, peer string) {
		for {
			n := f.Node(f.Switches()[rng.IntN(len(f.Switches()))])
			p := &n.Ports[rng.IntN(len(n.Ports))]
			if peer := f.Node(p.Peer.Node); peer.Role.IsSwitch() {
				in.node, in.iface = n.Name, p.Name
				return n.Name, peer.Name
			}
		}
	}
	host := func() string { return f.Node(f.Hosts()[rng.IntN(hosts)]).Name }
	when := fmt.Sprintf("at: %v", faultAt)
	switch k {
	case lossyLink, corruption:
		sw, peer := fabricPort()
		name := map[kind]string{lossyLink: "silent-drop", corruption: "corruption"}[k]
		fmt.Fprintf(&b, "faults: [{kind: %s, port: %s>%s, share: %d%%, %s}]\n", name, sw, peer, 1+rng.IntN(4), when)
	case lossySwitch:
		sw, _ := fabricPort()
		fmt.Fprintf(&b, "faults: [{kind: silent-drop, switch: %s, share: %d%%, %s}]\n", sw, 1+rng.IntN(3), when)
	case blackhole:
		sw, _ := fabricPort()
		fmt.Fprintf(&b, "faults: [{kind: blackhole, switch: %s, to: %s, %s}]\n", sw, host(), when)
	case loop:
		n := f.Node(f.Switches()[rng.IntN(len(f.Switches()))])
		for !f.Node(n.Ports[0].Peer.Node).Role.IsSwitch() {
			n = f.Node(f.Switches()[rng.IntN(len(f.Switches()))])
		}
		fmt.Fprintf(&b, "faults: [{kind: loop, to: %s, switches: [%s, %s], %s, for: 200ms}]\n", host(), n.Name, f.Node(n.Ports[0].Peer.Node).Name, when)
	case storm:
		fmt.Fprintf(&b, "faults: [{kind: storm, host: %s, %s, for: 300ms}]\n", host(), when)
	case linkFlap:
		sw, peer := fabricPort()
		fmt.Fprintf(&b, "faults: [{kind: link-flap, port: %s>%s, down: 20ms, up: 60ms, %s}]\n", sw, peer, when)
	case incast:
		to := rng.IntN(hosts)
		fmt.Fprintf(&b, "  - {kind: incast, name: burst, receivers: h%d, fanin: 8, bytes: 200KB, start: %v, period: 30ms, rounds: 30}\n", to, faultAt)
	}
	if k.lies() {
		sw, peer := fabricPort()
		in.more = rng.IntN(2) == 1
		factor := 0.99
		if in.more {
			factor = 1.01
		}
		place := fmt.Sprintf("port: %s>%s", sw, peer)
		name := map[kind]string{sentPackets: "tx-packets", sentBytes: "tx-bytes", flowset: "flowset"}[k]
		if k == flowset {
			place = "switch: " + sw
		}
		fmt.Fprintf(&b, "faults: [{kind: wrong-counter, %s, counter: %s, factor: %v, %s}]\n", place, name, factor, when)
	}
	in.scenario, err = scenario.Parse("audit.yaml", []byte(b.String()))
	return in, err
}

// outcome is which sources a run named.
type outcome struct {
	right bool          // the one that is wrong
	after time.Duration // since it was
	wrong []api.WrongSource
}

// observe runs a scenario under a controller, and asks for wrong sources as time passes.
func observe(ctx context.Context, in *injected, k kind) (out outcome, err error) {
	run, err := live.Start(ctx, in.scenario, live.StartOptions{})
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, run.Close()) }()
	for at := step; at <= runs; at += step {
		if err := run.RunUntil(ctx, at); err != nil {
			return out, err
		}
		list, err := run.Client().Sources(ctx)
		if err != nil {
			return out, err
		}
		for _, w := range list.Wrong {
			switch {
			case !in.isAbout(&w, k):
				out.wrong = append(out.wrong, w)
			case !out.right:
				out.right, out.after = true, at-faultAt
			}
		}
		if len(out.wrong) > 0 || out.right {
			break
		}
	}
	return out, nil
}

// isAbout reports whether a finding is what was injected.
func (in *injected) isAbout(w *api.WrongSource, k kind) bool {
	if !k.lies() || w.Switch != in.node || w.State != "lying" || w.Source != k.String() || (w.Share > 0) != in.more {
		return false
	}
	return k == flowset || w.Port != nil && w.Port.Interface == in.iface
}
