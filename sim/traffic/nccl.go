package traffic

import (
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/collective"
)

// Collective is a collective as NCCL runs it, by sim/collective's plan. Each
// channel has a connection between two hosts for the whole job. Between two
// iterations every host computes.
type Collective struct {
	Job
	Op        collective.Op
	Algorithm collective.Algorithm
	Channels  int // 0: NCCL's
	PerServer int // hosts of a server, which follow each other; 0: one
	Root      int // rank that a broadcast begins at
	Chunk     model.Bytes
	Window    int
}

func (g Collective) kind() string { return g.Op.String() }

func (g Collective) flows(e *env) ([]Flow, error) {
	hosts, err := g.check(e)
	if err != nil {
		return nil, err
	}
	slowest := hosts[0].Rate
	for _, h := range hosts {
		slowest = min(slowest, h.Rate)
	}
	plan, err := collective.New(collective.Config{
		Op: g.Op, Algorithm: g.Algorithm, Ranks: len(hosts), PerServer: max(g.PerServer, 1), Channels: g.Channels,
		Bytes: int64(g.Bytes), Root: g.Root, Chunk: int64(g.Chunk), Window: g.Window, BytesPerSecond: float64(slowest) / 8,
	})
	if err != nil {
		return nil, err
	}
	if err := checkCount(g.Iterations, len(plan.Sends)+len(hosts)); err != nil {
		return nil, err
	}
	out := make([]Flow, 0, g.Iterations*(len(plan.Sends)+len(hosts)))
	begin := make([]int, len(hosts)) // the computation of each host
	for iteration := range g.Iterations {
		if iteration > 0 {
			last := len(out) - len(plan.Sends)
			for rank, h := range hosts {
				begin[rank] = len(out)
				out = append(out, Flow{
					Src: h.ID, Dst: h.ID, Start: g.Start, Compute: g.Compute, After: shifted(plan.Done[rank], last),
				})
			}
		}
		base := len(out)
		for i := range plan.Sends {
			s := &plan.Sends[i]
			f := g.flow(hosts[s.From].ID, hosts[s.To].ID, g.Start, model.Bytes(s.Bytes))
			f.SrcPort, f.Group, f.After = e.channelPort(s.Channel), iteration+1, shifted(s.After, base)
			if iteration > 0 && s.Start {
				f.After = append(f.After, begin[s.From])
			}
			out = append(out, f)
		}
	}
	return out, nil
}

// shifted returns indexes of a plan as indexes of a list in which it begins at
// base, with room for one more.
func shifted(indexes []int, base int) []int {
	if len(indexes) == 0 {
		return nil
	}
	out := make([]int, len(indexes), len(indexes)+1)
	for i, x := range indexes {
		out[i] = base + x
	}
	return out
}

// channelPort is the source port of a channel's connections. Those of 256
// generators with MaxChannels each differ.
func (e *env) channelPort(channel int) uint16 {
	return dynamicPort + (e.port-dynamicPort+uint16(channel)<<8)%(1<<16-dynamicPort)
}
