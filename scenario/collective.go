package scenario

import (
	"slices"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/collective"
	"github.com/weft-telemetry/weft/sim/traffic"
)

// collectiveSpec is a collective as NCCL runs it.
type collectiveSpec struct {
	job
	Op        collective.Op        `yaml:"op"`
	Algorithm collective.Algorithm `yaml:"algorithm"`
	Channels  int                  `yaml:"channels"`         // 0: NCCL's
	PerServer int                  `yaml:"ranks-per-server"` // which follow each other in hosts
	Root      ref                  `yaml:"root"`             // of a broadcast; default: the first host
	Chunk     model.Bytes          `yaml:"chunk"`            // that trees and broadcasts forward at once
	Window    int                  `yaml:"window"`           // of all-to-all
}

func defaultCollective() *collectiveSpec {
	return &collectiveSpec{job: defaultJob(), PerServer: 1, Chunk: collective.DefaultChunk}
}

func (s *collectiveSpec) generator(e *env) (traffic.Generator, error) {
	j, err := s.job.job(e)
	if err != nil {
		return nil, err
	}
	g := traffic.Collective{
		Job: j, Op: s.Op, Algorithm: s.Algorithm, Channels: s.Channels, PerServer: s.PerServer, Chunk: s.Chunk, Window: s.Window,
	}
	if !s.Root.given() {
		return g, nil
	}
	root, err := e.host(s.Root)
	if err != nil {
		return nil, err
	}
	ranks := j.Hosts
	if len(ranks) == 0 {
		ranks = hostIDs(e.fabric)
	}
	if g.Root = slices.Index(ranks, root); g.Root < 0 {
		return nil, s.Root.Errorf("root %s, want one of the hosts of the collective", s.Root.text)
	}
	return g, nil
}

// pipelineSpec is training with pipeline parallelism.
type pipelineSpec struct {
	trafficHeader
	class
	Hosts        []ref         `yaml:"hosts"` // stages in order
	Bytes        model.Bytes   `yaml:"bytes"` // of a microbatch between two stages
	Microbatches int           `yaml:"microbatches"`
	Forward      time.Duration `yaml:"forward"`
	Backward     time.Duration `yaml:"backward"`
	Start        model.Time    `yaml:"start"`
	Iterations   int           `yaml:"iterations"`
}

func defaultPipeline() *pipelineSpec {
	d := traffic.DefaultPipeline()
	return &pipelineSpec{
		class: classOf(d.Class), Bytes: d.Bytes, Microbatches: d.Microbatches, Forward: d.Forward, Backward: d.Backward,
		Iterations: d.Iterations,
	}
}

func (s *pipelineSpec) generator(e *env) (traffic.Generator, error) {
	hosts, err := e.hosts(s.Hosts)
	g := traffic.Pipeline{
		Class: s.class.class(), Hosts: hosts, Bytes: s.Bytes, Microbatches: s.Microbatches, Forward: s.Forward,
		Backward: s.Backward, Start: s.Start, Iterations: s.Iterations,
	}
	if !s.has("backward") && s.has("forward") {
		g.Backward = 2 * s.Forward
	}
	return g, err
}
