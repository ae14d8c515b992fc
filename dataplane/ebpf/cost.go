package ebpf

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/weft-telemetry/weft/inswitch/flowset"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/packet"
)

// Cost is what programs cost for one packet of a known flow, in nanoseconds by the kernel's
// own accounting.
type Cost struct {
	Nothing float64 // a program that does nothing: the accounting itself
	Flowset float64
	HashMap float64 // a hash map with an entry for every flow, as flow agents have
}

// MeasureCost runs the flowset, a hash map and a program that does nothing on the same
// packets of flows in random order, in alternating rounds. It needs root.
func MeasureCost(ctx context.Context, flows, rounds, packets int) (c Cost, err error) {
	accounting, err := ebpf.EnableStats(uint32(unix.BPF_STATS_RUN_TIME))
	if err != nil {
		return c, loadError(err)
	}
	defer accounting.Close()
	f, err := loadForCost(flows)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var peer peerObjectObjects
	if err := loadPeerObjectObjects(&peer, nil); err != nil {
		return c, loadError(err)
	}
	defer peer.Close()
	programs := []*ebpf.Program{peer.Nothing, f.objects.FlowsetTcx, peer.HashMap}
	frame, r := costFrame(), rand.New(rand.NewPCG(1, 2))
	for _, p := range programs[1:] { // all flows are known from here on
		for i := range flows {
			if err := runFlow(p, frame, i); err != nil {
				return c, err
			}
		}
	}
	sum := make([]float64, len(programs))
	for range rounds {
		for i, p := range programs {
			if err := ctx.Err(); err != nil {
				return c, err
			}
			before, err := p.Stats()
			if err != nil {
				return c, err
			}
			for range packets {
				if err := runFlow(p, frame, r.IntN(flows)); err != nil {
					return c, err
				}
			}
			after, err := p.Stats()
			if err != nil {
				return c, err
			}
			sum[i] += float64(after.Runtime-before.Runtime) / float64(after.RunCount-before.RunCount) / float64(rounds)
		}
	}
	return Cost{sum[0], sum[1], sum[2]}, nil
}

// loadForCost loads a flowset with a table for all flows, and a slot that does not end
// while it is measured.
func loadForCost(flows int) (*Flowset, error) {
	plan, err := Plan(flows)
	if err != nil {
		return nil, err
	}
	cfg := flowset.DefaultConfig()
	cfg.IPv4, cfg.IPv6, cfg.Slot = flowset.Table{Geometry: plan.Geometry, Layout: flowset.Layout4}, flowset.Table{}, 24*time.Hour
	f, err := loadWith(1, cfg, nil)
	if err != nil {
		return nil, err
	}
	if _, err := f.Advance(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func costFrame() []byte {
	b := packet.Ethernet{Type: packet.TypeIPv4}.AppendTo(nil)
	b = packet.IPv4{Length: 40, TTL: 64, Proto: model.TCP}.AppendTo(b)
	return packet.TCP{DstPort: 80}.AppendTo(b)
}

// runFlow runs a program on a packet of a flow.
func runFlow(p *ebpf.Program, frame []byte, flow int) error {
	const sourceAddress, sourcePort = 14 + 12, 14 + 20
	binary.BigEndian.PutUint32(frame[sourceAddress:], uint32(flow)*2654435761)
	binary.BigEndian.PutUint16(frame[sourcePort:], uint16(flow))
	if _, err := p.Run(&ebpf.RunOptions{Data: frame}); err != nil {
		return fmt.Errorf("ebpf: run %v: %w", p, err)
	}
	return nil
}
