package traffic

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"pgregory.net/rapid"
)

// levels returns every flow's level in the order of dependencies: 0 without
// any, else one more than the highest it is after. It fails on a cycle.
func levels(t *rapid.T, flows []Flow) []int {
	level := make([]int, len(flows))
	state := make([]byte, len(flows)) // 1 being visited, 2 done
	var visit func(i int) int
	visit = func(i int) int {
		if state[i] == 1 {
			t.Fatalf("flow %d waits for itself", i)
		}
		if state[i] == 0 {
			state[i] = 1
			for _, a := range flows[i].After {
				level[i] = max(level[i], visit(a)+1)
			}
			state[i] = 2
		}
		return level[i]
	}
	for i := range flows {
		visit(i)
	}
	return level
}

func drawJob(t *rapid.T) (Job, int) {
	n := rapid.IntRange(2, 9).Draw(t, "hosts")
	j := DefaultJob()
	j.Bytes = model.Bytes(rapid.IntRange(n, 1000).Draw(t, "bytes"))
	j.Iterations = rapid.IntRange(1, 3).Draw(t, "iterations")
	j.Hosts = make([]model.NodeID, n)
	for i, p := range rapid.Permutation(hostsOf(16)).Draw(t, "ranks")[:n] {
		j.Hosts[i] = p.ID
	}
	return j, n
}

func TestRingAllReduce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j, n := drawJob(t)
		flows, err := Generate(1, hostsOf(16), RingAllReduce{j})
		if err != nil {
			t.Fatal(err)
		}
		steps := 2 * (n - 1)
		next := map[model.NodeID]model.NodeID{}
		for i, h := range j.Hosts {
			next[h] = j.Hosts[(i+1)%n]
		}
		perStep := map[int]map[model.NodeID]bool{}
		var total model.Bytes
		for i, level := range levels(t, flows) {
			f := flows[i]
			if perStep[level] == nil {
				perStep[level] = map[model.NodeID]bool{}
			}
			perStep[level][f.Src] = true
			total += f.Bytes
			if chunk := j.Bytes / model.Bytes(n); f.Bytes != chunk && f.Bytes != chunk+1 {
				t.Fatalf("flow %d has %d bytes; want a chunk of %d or one more", i, f.Bytes, chunk)
			}
			if f.Dst != next[f.Src] || f.SrcPort != dynamicPort {
				t.Fatalf("flow %d goes from %d to %d by port %d; want the next of %v, by one port", i, f.Src, f.Dst, f.SrcPort, j.Hosts)
			}
			if want := level/steps + 1; f.Group != want {
				t.Fatalf("flow %d of step %d is in group %d; want %d", i, level, f.Group, want)
			}
			if compute := level > 0 && level%steps == 0; compute != (f.Delay == j.Compute) || !compute && f.Delay != 0 {
				t.Fatalf("flow %d of step %d waits %v; want %v before an iteration but the first, else 0", i, level, f.Delay, j.Compute)
			}
			received, sent := false, level == 0
			for _, a := range f.After {
				received = received || flows[a].Dst == f.Src
				sent = sent || flows[a].Src == f.Src
			}
			if level > 0 && !received || !sent {
				t.Fatalf("flow %d is after %v; want what its host received and sent before", i, f.After)
			}
		}
		if len(perStep) != steps*j.Iterations {
			t.Fatalf("%d steps; want 2(N-1) = %d in each of %d iterations", len(perStep), steps, j.Iterations)
		}
		for level, hosts := range perStep {
			if len(hosts) != n {
				t.Fatalf("step %d: %d hosts send; want %d", level, len(hosts), n)
			}
		}
		if want := j.Bytes * model.Bytes(steps*j.Iterations); total != want {
			t.Fatalf("%d bytes in all; want 2(N-1) × size × iterations = %d", total, want)
		}
	})
}

// TestRingChunksAddUp really adds: every host holds a distinct bit in every
// chunk, and must end with all bits in all chunks.
func TestRingChunksAddUp(t *testing.T) {
	for n := 2; n <= 9; n++ {
		held := make([][]uint, n) // by host and chunk: whose numbers are in
		for i := range held {
			held[i] = make([]uint, n)
			for c := range held[i] {
				held[i][c] = 1 << i
			}
		}
		for step := range 2 * (n - 1) {
			sent := make([]uint, n)
			for i := range n {
				sent[i] = held[i][ringChunk(i, step, n)]
			}
			for i := range n {
				to, c := (i+1)%n, ringChunk(i, step, n)
				if step < n-1 {
					if held[to][c]&sent[i] != 0 {
						t.Fatalf("%d hosts: in step %d host %d adds chunk %d of %b to %b; want nothing twice", n, step, to, c, sent[i], held[to][c])
					}
					held[to][c] |= sent[i]
				} else {
					held[to][c] = sent[i]
				}
			}
		}
		for i := range held {
			for c, whose := range held[i] {
				if whose != 1<<n-1 {
					t.Errorf("%d hosts: host %d ends with %b in chunk %d; want all", n, i, whose, c)
				}
			}
		}
	}
}

func TestAllToAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j, n := drawJob(t)
		g := AllToAll{Job: j, Window: rapid.IntRange(0, n-1).Draw(t, "window")}
		flows, err := Generate(1, hostsOf(16), g)
		if err != nil || len(flows) != j.Iterations*n*(n-1) {
			t.Fatalf("Generate = %d flows, %v; want N(N-1) = %d in each of %d iterations", len(flows), err, n*(n-1), j.Iterations)
		}
		levels(t, flows) // no cycle
		type pair struct {
			src, dst model.NodeID
			group    int
		}
		count := map[pair]int{}
		var total model.Bytes
		for _, f := range flows {
			count[pair{f.Src, f.Dst, f.Group}]++
			total += f.Bytes
		}
		for p, times := range count {
			if times != 1 || p.src == p.dst || p.group < 1 || p.group > j.Iterations {
				t.Fatalf("%d flows of %+v; want one of each two hosts and iteration", times, p)
			}
		}
		if want := j.Bytes * model.Bytes(n-1) * model.Bytes(j.Iterations); total != want {
			t.Fatalf("%d bytes in all; want (N-1) × size × iterations = %d", total, want)
		}
		window := g.Window
		if window == 0 {
			window = n - 1
		}
		checkAllToAll(t, g.Job, flows, window)
	})
}

// checkAllToAll finishes the flows in an order that rapid draws: at no time may
// a host have more than a window of flows in flight, nor start an iteration
// before it has received all of the last.
func checkAllToAll(t *rapid.T, j Job, flows []Flow, window int) {
	finished := make([]bool, len(flows))
	started := make([]bool, len(flows))
	open := map[model.NodeID]int{}
	received := map[model.NodeID]int{}
	left := len(flows)
	for left > 0 {
		var running []int
		for i, f := range flows {
			ready := !started[i]
			for _, a := range f.After {
				ready = ready && finished[a]
			}
			if ready {
				started[i] = true
				open[f.Src]++
				if open[f.Src] > window {
					t.Fatalf("host %d has %d flows in flight; want at most %d", f.Src, open[f.Src], window)
				}
				if before := received[f.Src]; before < (f.Group-1)*(len(j.Hosts)-1) {
					t.Fatalf("host %d begins iteration %d with %d flows received; want all of the ones before", f.Src, f.Group, before)
				}
			}
			if started[i] && !finished[i] {
				running = append(running, i)
			}
		}
		if len(running) == 0 {
			t.Fatalf("%d flows never start", left)
		}
		i := rapid.SampledFrom(running).Draw(t, "finishes")
		finished[i] = true
		open[flows[i].Src]--
		received[flows[i].Dst]++
		left--
	}
}

func BenchmarkRingAllReduce(b *testing.B) {
	hosts := hostsOf(256)
	g := RingAllReduce{DefaultJob()}
	g.Compute = time.Millisecond
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		flows, err := Generate(1, hosts, g)
		if err != nil {
			b.Fatal(err)
		}
		n += len(flows)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds()/1e6, "Mflows/s")
}
