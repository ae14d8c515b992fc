package traffic

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"pgregory.net/rapid"
)

// ends returns when each flow of a list ends on hosts that compute one thing at a
// time, where transfers take a fixed time: the longest way through what waits for
// each other.
func ends(t *rapid.T, flows []Flow, transfer time.Duration) []time.Duration {
	end, known := make([]time.Duration, len(flows)), make([]bool, len(flows))
	var visit func(i int) time.Duration
	visit = func(i int) time.Duration {
		if known[i] {
			return end[i]
		}
		known[i] = true
		begin := time.Duration(flows[i].Start)
		for _, a := range flows[i].After {
			begin = max(begin, visit(a))
		}
		took := transfer
		if flows[i].IsComputation() {
			took = flows[i].Compute
		}
		end[i] = begin + flows[i].Delay + took
		return end[i]
	}
	for i := range flows {
		visit(i)
	}
	levels(t, flows) // no cycle
	return end
}

// TestPipelineTakesTheTextbookTime: without transfer times an iteration of M
// microbatches on S stages takes (M+S-1)(f+b), of which (S-1)(f+b) is the bubble,
// and each stage holds no more than S-stage activations.
func TestPipelineTakesTheTextbookTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := DefaultPipeline()
		stages := rapid.IntRange(2, 6).Draw(t, "stages")
		g.Microbatches = rapid.IntRange(1, 12).Draw(t, "microbatches")
		g.Iterations = rapid.IntRange(1, 3).Draw(t, "iterations")
		g.Forward = time.Duration(rapid.IntRange(0, 50).Draw(t, "forward"))
		g.Backward = time.Duration(rapid.IntRange(0, 50).Draw(t, "backward"))
		flows, err := Generate(1, hostsOf(stages), g)
		if err != nil {
			t.Fatal(err)
		}
		end := ends(t, flows, 0)
		var last time.Duration
		var bytes model.Bytes
		computed := map[model.NodeID]time.Duration{}
		for i, f := range flows {
			if last = max(last, end[i]); f.IsComputation() {
				computed[f.Src] += f.Compute
			}
			bytes += f.Bytes
		}
		round := g.Forward + g.Backward
		if most := time.Duration(g.Iterations) * time.Duration(g.Microbatches+stages-1) * round; last > most || g.Iterations == 1 && last != most {
			t.Fatalf("%+v on %d stages takes %v; want (M+S-1)(f+b) in each iteration, %v", g, stages, last, most)
		}
		for stage, took := range computed {
			if want := time.Duration(g.Iterations*g.Microbatches) * round; took != want {
				t.Fatalf("stage %d computes for %v; want %v", stage, took, want)
			}
		}
		if want := g.Bytes * model.Bytes(2*(stages-1)*g.Microbatches*g.Iterations); bytes != want {
			t.Fatalf("%d bytes in all; want both ways for each microbatch between stages, %d", bytes, want)
		}
		for s := range stages {
			held := 0
			for _, p := range oneForwardOneBackward(s, stages, g.Microbatches) {
				if held++; p.backward {
					held -= 2
				}
				if held < 0 || held > stages-s {
					t.Fatalf("stage %d of %d holds %d activations; want at most %d", s, stages, held, stages-s)
				}
			}
		}
	})
}
