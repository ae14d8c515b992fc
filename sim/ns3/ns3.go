// Package ns3 runs UDP flows through a fat-tree in ns-3, the peer that Weft's
// simulator is compared with: its speed by weft bench sim, its results by weft repro sim-ns3. The simulation is a C++ program of ours,
// cpp/fattree.cc, built on demand against Debian's libns3-dev.
package ns3

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Config is one run. Links, hosts and their numbers are those of
// topo.FatTree: store-and-forward switches, ECMP by a hash of addresses and
// ports, and queues that never overflow.
type Config struct {
	K     int           // ports of a switch: even, 2 to 64
	Rate  model.Rate    // of every link
	Delay time.Duration // of every link

	// Payload is the UDP payload of a packet. On the wire it is 30 bytes
	// longer: UDP 8, IPv4 20, PPP 2.
	Payload model.Bytes

	Flows []Flow
	Stop  time.Duration // end of the run, in simulated time

	Arrivals bool // Result.Arrived is wanted; a host then sends at most 50,000 flows
	Routed   bool // flows take the ports of Flow.Up, not those that a hash chooses; 50,000 of a host as well
}

// Flow sends packets of Config.Payload at even intervals; the last may be
// shorter.
type Flow struct {
	Src, Dst int         // hosts, counted from 0
	Bytes    model.Bytes // of payload
	Start    time.Duration
	Rate     model.Rate // of payload
	Up       [2]int     // if Config.Routed: which port up, from 0, at the ToR and at the leaf
}

// Result is what a run did and cost. Packets in flight at the end are sent and
// not received.
type Result struct {
	PacketHops uint64 `json:"packet_hops"` // packets whose transmission began, over all ports
	Sent       uint64 `json:"sent"`        // packets by applications
	Received   uint64 `json:"received"`    // packets by applications
	Dropped    uint64 `json:"dropped"`     // packets by full queues
	UsedPorts  uint64 `json:"used_ports"`  // ports that sent at least one packet
	Events     uint64 `json:"events"`      // executed by the simulator

	Simulated time.Duration `json:"simulated_ns"`
	Wall      time.Duration `json:"wall_ns"` // of the simulation alone, after everything is built
	// CPU is the CPU time of ns-3's one thread during Wall: what to compare on
	// a busy machine.
	CPU        time.Duration `json:"cpu_ns"`
	PeakMemory model.Bytes   `json:"peak_memory"` // of the process

	// Arrived is when the last packet of each flow arrived, in picoseconds; -1 where one
	// has not.
	Arrived []int64 `json:"arrived_ps,omitempty"`
}

// Run builds the program if this machine has not yet, and runs it.
func Run(ctx context.Context, c Config) (Result, error) {
	if err := c.check(); err != nil {
		return Result{}, err
	}
	program, err := build(ctx)
	if err != nil {
		return Result{}, err
	}
	var out, complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, program, c.args()...)
	// ns-3 takes logging and defaults from variables that begin with NS_.
	cmd.Env = []string{"LC_ALL=C"}
	cmd.Stdin = bytes.NewReader(c.appendFlows(nil))
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return Result{}, errors.Join(ctx.Err(), fmt.Errorf("ns3: run: %w: %s", err, bytes.TrimSpace(complaint.Bytes())))
	}
	return parse(out.Bytes())
}

func (c Config) check() error {
	if c.K < 2 || c.K > 64 || c.K%2 != 0 {
		return fmt.Errorf("ns3: k %d, want an even number from 2 to 64", c.K)
	}
	switch {
	case c.Rate <= 0:
		return fmt.Errorf("ns3: rate %v, want more than 0", c.Rate)
	case c.Delay < 0:
		return fmt.Errorf("ns3: delay %v, want at least 0", c.Delay)
	case c.Payload < 1 || c.Payload > maxPayload:
		return fmt.Errorf("ns3: payload %v, want 1 to %d", c.Payload, maxPayload)
	case c.Stop <= 0:
		return fmt.Errorf("ns3: stop %v, want more than 0", c.Stop)
	}
	hosts := c.K * c.K * c.K / 4
	for i, f := range c.Flows {
		switch {
		case f.Src < 0 || f.Src >= hosts || f.Dst < 0 || f.Dst >= hosts || f.Src == f.Dst:
			return fmt.Errorf("ns3: flow %d from host %d to %d, want two of 0 to %d", i, f.Src, f.Dst, hosts-1)
		case f.Bytes <= 0:
			return fmt.Errorf("ns3: flow %d of %v, want at least 1 byte", i, f.Bytes)
		case f.Start < 0:
			return fmt.Errorf("ns3: flow %d starts at %v, want at least 0", i, f.Start)
		case f.Rate <= 0:
			return fmt.Errorf("ns3: flow %d at %v, want more than 0", i, f.Rate)
		case c.Routed && (min(f.Up[0], f.Up[1]) < 0 || max(f.Up[0], f.Up[1]) >= c.K/2):
			return fmt.Errorf("ns3: flow %d leaves by ports %d and %d up, want 0 to %d", i, f.Up[0], f.Up[1], c.K/2-1)
		}
	}
	return nil
}

// maxPayload fills an IPv4 packet.
const maxPayload = 65535 - 28

func (c Config) args() []string {
	return []string{
		fmt.Sprintf("--k=%d", c.K),
		fmt.Sprintf("--rate=%d", int64(c.Rate)),
		fmt.Sprintf("--delay=%d", c.Delay.Nanoseconds()),
		fmt.Sprintf("--payload=%d", int64(c.Payload)),
		fmt.Sprintf("--stop=%d", c.Stop.Nanoseconds()),
		fmt.Sprintf("--arrivals=%t", c.Arrivals),
		fmt.Sprintf("--routed=%t", c.Routed),
	}
}

// appendFlows appends the flows as the program reads them from its standard
// input.
func (c Config) appendFlows(b []byte) []byte {
	for _, f := range c.Flows {
		b = fmt.Appendf(b, "%d %d %d %d %d", f.Src, f.Dst, int64(f.Bytes), f.Start.Nanoseconds(), int64(f.Rate))
		if c.Routed {
			b = fmt.Appendf(b, " %d %d", f.Up[0], f.Up[1])
		}
		b = append(b, '\n')
	}
	return b
}

func parse(b []byte) (Result, error) {
	var r Result
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return Result{}, fmt.Errorf("ns3: result %q: %w", bytes.TrimSpace(b), err)
	}
	return r, nil
}
