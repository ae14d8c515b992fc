package traffic

import (
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/collective"
	"pgregory.net/rapid"
)

// TestCollectiveIterations: each iteration has all the transfers of the plan, begins
// at a host when that has computed, which it does when it is done with the last, and
// messages of a 5-tuple never overlap.
func TestCollectiveIterations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j, n := drawJob(t)
		g := Collective{Job: j, Op: collective.Op(rapid.IntRange(0, 4).Draw(t, "op")), PerServer: 1, Channels: rapid.IntRange(0, 3).Draw(t, "channels")}
		g.Chunk = model.Bytes(rapid.IntRange(20, 300).Draw(t, "chunk"))
		if n%2 == 0 {
			g.PerServer = 2
		}
		if g.Op == collective.AllReduce && rapid.Bool().Draw(t, "tree") {
			g.Algorithm = collective.Tree
		}
		flows, err := Generate(1, hostsOf(16), g)
		if err != nil {
			t.Fatal(err)
		}
		level := levels(t, flows)
		var total model.Bytes
		type tuple struct {
			src, dst model.NodeID
			port     uint16
		}
		perIteration := map[int]int{}
		lastOf := map[tuple]int{}
		begin := map[model.NodeID]int{} // level of the newest computation
		for i, f := range flows {
			if f.IsComputation() {
				if f.Compute != j.Compute || len(f.After) == 0 {
					t.Fatalf("computation %+v; want %v after the iteration before", f, j.Compute)
				}
				begin[f.Src] = level[i]
				continue
			}
			total += f.Bytes
			perIteration[f.Group]++
			if f.Group > 1 && level[i] <= begin[f.Src] {
				t.Fatalf("flow %d of iteration %d may start before host %d has computed", i, f.Group, f.Src)
			}
			at := tuple{f.Src, f.Dst, f.SrcPort}
			if before, again := lastOf[at]; again && !reaches(flows, i, before) {
				t.Fatalf("flows %d and %d of 5-tuple %+v may overlap", before, i, at)
			}
			lastOf[at] = i
		}
		share := map[collective.Op]int{collective.AllReduce: 2}[g.Op]
		if want := j.Bytes * model.Bytes(max(share, 1)*(n-1)*j.Iterations); total != want {
			t.Fatalf("%+v: %d bytes in all; want %d", g, total, want)
		}
		if len(perIteration) != j.Iterations {
			t.Fatalf("%d groups; want %d", len(perIteration), j.Iterations)
		}
		for _, count := range perIteration {
			if count != perIteration[1] {
				t.Fatalf("%v transfers of iterations; want as many in each", perIteration)
			}
		}
	})
}

// reaches reports whether a flow waits for another, directly or not.
func reaches(flows []Flow, from, to int) bool {
	seen := map[int]bool{from: true}
	for next := []int{from}; len(next) > 0; {
		i := next[0]
		next = next[1:]
		for _, a := range flows[i].After {
			if a == to {
				return true
			}
			if !seen[a] {
				seen[a] = true
				next = append(next, a)
			}
		}
	}
	return false
}

// TestChannelPortsDiffer: those of many generators, and of each other.
func TestChannelPortsDiffer(t *testing.T) {
	seen := map[uint16]bool{}
	for generator := range uint16(256) {
		e := env{port: dynamicPort + generator}
		for channel := range collective.MaxChannels {
			port := e.channelPort(channel)
			if port < dynamicPort || seen[port] {
				t.Fatalf("channel %d of generator %d has port %d, which is taken or below %d", channel, generator, port, dynamicPort)
			}
			seen[port] = true
		}
	}
}

func TestCollectiveErrors(t *testing.T) {
	for want, g := range map[string]Generator{
		"generator 0 (all-reduce): 3 ranks per server, want a divisor of 4, the number of ranks":              Collective{Job: DefaultJob(), PerServer: 3},
		"generator 0 (all-gather): algorithm tree of all-gather, want ring or auto: trees are for all-reduce": Collective{Job: DefaultJob(), Op: collective.AllGather, Algorithm: collective.Tree},
		"generator 0 (pipeline): microbatches 0, want from 1 to 16777216":                                     Pipeline{Bytes: 1, Iterations: 1},
		"generator 0 (pipeline): pass -1ns, want from 0s to 1970-01-12T13:46:40Z":                             Pipeline{Bytes: 100, Microbatches: 1, Forward: -time.Nanosecond, Iterations: 1},
		"generator 0 (pipeline): [16777216 16777216 4 4] flows (the product), want at most 16777216":          Pipeline{Bytes: 100, Microbatches: MaxFlows, Iterations: MaxFlows},
		"generator 0 (all-reduce): [16777216 16] flows (the product), want at most 16777216":                  Collective{Job: Job{Bytes: 16, Iterations: MaxFlows}},
	} {
		if _, err := Generate(1, hostsOf(4), g); err == nil || err.Error() != want {
			t.Errorf("Generate(%+v) = %v; want %s", g, err, want)
		}
	}
}
