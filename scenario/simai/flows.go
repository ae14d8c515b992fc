package simai

import (
	"time"

	"github.com/weft-telemetry/weft/internal/fileerror"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/collective"
	"github.com/weft-telemetry/weft/sim/traffic"
)

// RankCount returns the number of ranks.
func (w *Workload) RankCount() int { return w.GPUs }

// SetServers says how many ranks, which follow each other, are GPUs of one server.
func (w *Workload) SetServers(perServer int) { w.perServer = max(perServer, 1) }

// Cores of computations: those of layers, and those that only wait for others.
const (
	computeCore = 0
	joinCore    = 255
)

// builder makes flows. Every rank runs one thing after the other, but for the
// collectives of weight gradients, which only the end waits for.
type builder struct {
	w      *Workload
	hosts  []model.NodeID
	flows  []traffic.Flow
	at     []int              // by rank: the flow that its next step waits for; -1: none
	newest [numGroups][]int   // by rank: the end of the last collective of its communicator; -1: none
	groups [numGroups][][]int // ranks of each communicator
	layer  int                // of the flows that are made, from 1
}

// Flows returns the workload as flows and computations of hosts: the forward pass
// through all layers, then the backward pass. A collective begins at a rank when it
// has computed and its last collective in the same communicator is over.
func (w *Workload) Flows(hosts []model.NodeID) ([]traffic.Flow, error) {
	if w.GPUs > len(hosts) {
		return nil, fileerror.Errorf(w.File, 1, "all_gpus %d for a topology of %d hosts, want at most that", w.GPUs, len(hosts))
	}
	b := builder{w: w, hosts: hosts, at: none(w.GPUs)}
	for g := range numGroups {
		b.newest[g], b.groups[g] = none(w.GPUs), w.groups(g)
	}
	for i := range w.Layers {
		b.layer = i + 1
		if err := b.phase(&w.Layers[i], &w.Layers[i].Forward, true); err != nil {
			return nil, err
		}
	}
	for i := len(w.Layers) - 1; i >= 0; i-- {
		l := &w.Layers[i]
		b.layer = 2*len(w.Layers) - i
		if err := b.phase(l, &l.InputGradient, true); err != nil {
			return nil, err
		}
		if err := b.phase(l, &l.WeightGradient, false); err != nil {
			return nil, err
		}
	}
	return b.flows, nil
}

func none(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = -1
	}
	return out
}

// groups returns the ranks of each communicator of a kind, as SimAI forms them: ranks
// of a tensor parallel group follow each other; those of an expert parallel group
// have the same place in groups that follow each other.
func (w *Workload) groups(g Group) (all [][]int) {
	dp := w.GPUs / w.TP / w.PP
	var size, stride int
	switch g {
	case TP:
		size, stride = w.TP, 1
	case DP:
		size, stride = dp, w.GPUs/dp
	case EP:
		size, stride = w.EP, w.TP
	case DPEP:
		size, stride = dp/w.EP, w.TP*w.EP
	}
	for first := range w.GPUs {
		// The first rank of a group is the one whose place in it is 0.
		if first/stride%size != 0 {
			continue
		}
		ranks := make([]int, size)
		for i := range ranks {
			ranks[i] = first + i*stride
		}
		all = append(all, ranks)
	}
	return all
}

// phase adds a computation of every rank and the collective after it.
func (b *builder) phase(l *Layer, p *Phase, blocks bool) error {
	if p.Compute > 0 {
		for rank := range b.at {
			b.at[rank] = b.compute(rank, p.Compute, computeCore, b.at[rank])
		}
	}
	if p.Bytes == 0 || len(b.groups[p.Group][0]) == 1 {
		return nil
	}
	for _, ranks := range b.groups[p.Group] {
		if err := b.collective(l, p, ranks, blocks); err != nil {
			return err
		}
	}
	return nil
}

// compute adds a computation after others; -1 is none.
func (b *builder) compute(rank int, work time.Duration, core uint8, after ...int) int {
	f := traffic.Flow{Src: b.hosts[rank], Dst: b.hosts[rank], Compute: work, Core: core, Group: b.layer}
	for _, a := range after {
		if a >= 0 {
			f.After = append(f.After, a)
		}
	}
	b.flows = append(b.flows, f)
	return len(b.flows) - 1
}

// collective adds a collective of the ranks of a communicator.
func (b *builder) collective(l *Layer, p *Phase, ranks []int, blocks bool) error {
	perServer := b.perServer(ranks)
	plan, err := collective.New(collective.Config{
		Op: p.Op, Algorithm: collective.Ring, Ranks: len(ranks), PerServer: perServer, Channels: channels(p.Op, perServer),
		Bytes: max(p.Bytes, int64(len(ranks))),
	})
	if err != nil {
		return fileerror.Errorf(b.w.File, l.Line, "%s: %v", l.Name, err)
	}
	if n := len(b.flows) + len(plan.Sends) + len(ranks); n > traffic.MaxFlows {
		return fileerror.Errorf(b.w.File, l.Line, "%s: %d flows up to here, want at most %d", l.Name, n, traffic.MaxFlows)
	}
	before := make([]int, len(ranks))
	for i, rank := range ranks {
		before[i] = b.at[rank]
		if last := b.newest[p.Group][rank]; last >= 0 && last != b.at[rank] {
			before[i] = b.compute(rank, 0, joinCore, b.at[rank], last)
		}
	}
	base := len(b.flows)
	for i := range plan.Sends {
		s := &plan.Sends[i]
		f := traffic.Flow{
			Src: b.hosts[ranks[s.From]], Dst: b.hosts[ranks[s.To]], Bytes: model.Bytes(s.Bytes), Group: b.layer,
			Priority: traffic.DefaultClass().Priority,
		}
		for _, a := range s.After {
			f.After = append(f.After, base+a)
		}
		if s.Start && before[s.From] >= 0 {
			f.After = append(f.After, before[s.From])
		}
		b.flows = append(b.flows, f)
	}
	for i, rank := range ranks {
		done := make([]int, len(plan.Done[i]))
		for k, a := range plan.Done[i] {
			done[k] = base + a
		}
		end := b.compute(rank, l.Update, joinCore, done...)
		b.newest[p.Group][rank] = end
		if blocks {
			b.at[rank] = end
		}
	}
	return nil
}

// perServer returns how many ranks of a communicator a server has; 1 where servers
// differ.
func (b *builder) perServer(ranks []int) int {
	count := 0
	for _, r := range ranks {
		if r/b.w.perServer == ranks[0]/b.w.perServer {
			count++
		}
	}
	for i, r := range ranks {
		if len(ranks)%count != 0 || r/b.w.perServer != ranks[i/count*count]/b.w.perServer {
			return 1
		}
	}
	return count
}

// channels are as many as a server has ranks, as in SimAI: a ring for each NIC.
func channels(op collective.Op, perServer int) int {
	if op == collective.AllToAll {
		return 1
	}
	return min(perServer, collective.MaxChannels)
}
