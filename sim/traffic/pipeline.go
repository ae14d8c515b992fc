package traffic

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Pipeline trains a model whose layers are spread over hosts, in order: each sends
// the activations of a microbatch to the next, and gradients back. The schedule is
// 1F1B: a stage begins with as many forward passes as there are stages behind it,
// then alternates. An iteration is a Group, complete when all stages have computed
// all gradients. Sends are as NCCL's: over one connection for each direction.
type Pipeline struct {
	Class
	Hosts        []model.NodeID // stages, in order; empty: all, by id
	Bytes        model.Bytes    // of a microbatch, from one stage to the next
	Microbatches int            // of an iteration
	Forward      time.Duration  // pass of a microbatch through a stage
	Backward     time.Duration
	Start        model.Time
	Iterations   int
}

// DefaultPipeline returns an iteration of eight microbatches.
func DefaultPipeline() Pipeline {
	return Pipeline{
		Class: DefaultClass(), Bytes: model.MB, Microbatches: 8,
		Forward: time.Millisecond, Backward: 2 * time.Millisecond, Iterations: 1,
	}
}

func (g Pipeline) kind() string { return "pipeline" }

func (g Pipeline) check(e *env) ([]Host, error) {
	if g.Microbatches < 1 || g.Microbatches > MaxFlows {
		return nil, fmt.Errorf("microbatches %d, want from 1 to %d", g.Microbatches, MaxFlows)
	}
	for _, pass := range []time.Duration{g.Forward, g.Backward} {
		if err := checkSpan("pass", pass, 0, g.Start); err != nil {
			return nil, err
		}
	}
	j := Job{Class: g.Class, Hosts: g.Hosts, Bytes: g.Bytes, Start: g.Start, Iterations: g.Iterations}
	return j.check(e)
}

// pass is a computation of a stage.
type pass struct {
	microbatch int
	backward   bool
}

// oneForwardOneBackward returns the passes of a stage in order.
func oneForwardOneBackward(stage, stages, microbatches int) []pass {
	out := make([]pass, 0, 2*microbatches)
	ahead := min(stages-1-stage, microbatches)
	for m := range ahead {
		out = append(out, pass{m, false})
	}
	for m := range microbatches {
		if next := ahead + m; next < microbatches {
			out = append(out, pass{next, false})
		}
		out = append(out, pass{m, true})
	}
	return out
}

func (g Pipeline) flows(e *env) ([]Flow, error) {
	hosts, err := g.check(e)
	if err != nil {
		return nil, err
	}
	if err := checkCount(g.Iterations, g.Microbatches, 4, len(hosts)); err != nil {
		return nil, err
	}
	b := pipeline{Pipeline: g, hosts: hosts, port: e.port, last: make([]int, len(hosts))}
	for i := range b.last {
		b.last[i] = -1
	}
	for iteration := range g.Iterations {
		b.iterate(iteration + 1)
	}
	return b.out, nil
}

// pipeline makes the flows of a Pipeline.
type pipeline struct {
	Pipeline
	hosts []Host
	port  uint16
	out   []Flow
	last  []int // computation of each stage
}

// iterate adds an iteration: all computations, then the transfers that they wait
// for.
func (b *pipeline) iterate(group int) {
	stages := len(b.hosts)
	at := make([][2][]int, stages) // by stage, forward or backward, and microbatch: the computation
	for s, h := range b.hosts {
		at[s] = [2][]int{make([]int, b.Microbatches), make([]int, b.Microbatches)}
		for _, p := range oneForwardOneBackward(s, stages, b.Microbatches) {
			f := Flow{Src: h.ID, Dst: h.ID, Start: b.Start, Compute: b.Forward, Group: group}
			way := 0
			if p.backward {
				f.Compute, way = b.Backward, 1
			}
			if b.last[s] >= 0 {
				f.After = append(make([]int, 0, 2), b.last[s])
			}
			b.last[s] = len(b.out)
			at[s][way][p.microbatch] = len(b.out)
			b.out = append(b.out, f)
		}
	}
	for s := range stages - 1 {
		b.link(s, s+1, at[s][0], at[s+1][0], group)
		b.link(s+1, s, at[s+1][1], at[s][1], group)
	}
}

// link adds the transfers of all microbatches from one stage to another, each after
// the computation that makes it and before the one that needs it.
func (b *pipeline) link(from, to int, makes, needs []int, group int) {
	before := -1
	for m := range makes {
		f := b.flow(b.hosts[from].ID, b.hosts[to].ID, b.Start, b.Bytes)
		f.SrcPort, f.Group, f.After = b.port, group, append(make([]int, 0, 2), makes[m])
		if before >= 0 {
			f.After = append(f.After, before)
		}
		before = len(b.out)
		need := &b.out[needs[m]]
		need.After = append(need.After, before)
		b.out = append(b.out, f)
	}
}
