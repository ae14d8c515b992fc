package jobs

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/weft-telemetry/weft/control/api"
	"github.com/weft-telemetry/weft/scenario"
	"github.com/weft-telemetry/weft/scenario/live"
)

const (
	hosts = 16 // of a fat-tree with k=4
	lasts = 1800 * time.Millisecond
	// A slow host or link makes steps several times as long, and a range needs six: weft jobs
	// reads ten seconds.
	slowLasts = 2 * lasts
	slot      = 10 * time.Millisecond
)

// job is what the simulator runs.
type job struct {
	hosts   []string // in rank order
	pattern string   // all-reduce, all-to-all or tree
	bytes   int      // of each host in a step
	compute time.Duration
}

// lab is a run to be.
type lab struct {
	seed uint64
	jobs []job
	slot time.Duration
	// alone is the switch that exports flowsets; empty: all.
	alone string
	text  strings.Builder
	rng   *rand.Rand
}

// newLab draws jobs with these numbers of hosts. Links are scaled to 1 Gb/s, so that seconds can be
// simulated.
func newLab(seed uint64, patterns []string, sizes ...int) *lab {
	l := &lab{seed: seed >> 1, slot: slot, rng: rand.New(rand.NewPCG(seed, 5))}
	order := l.rng.Perm(hosts)
	for _, n := range sizes {
		j := job{
			pattern: patterns[l.rng.IntN(len(patterns))], bytes: 3_000_000 + l.rng.IntN(4_000_000),
			compute: time.Duration(40+l.rng.IntN(60)) * time.Millisecond,
		}
		if j.pattern == "tree" { // every edge waits for the one below
			j.bytes /= 3
		}
		for _, h := range order[:n] {
			j.hosts = append(j.hosts, fmt.Sprintf("h%d", h))
		}
		order = order[n:]
		l.jobs = append(l.jobs, j)
	}
	return l
}

// scenario returns the run, with faults in the words of scenario files.
func (l *lab) scenario(duration time.Duration, faults string) (*scenario.Scenario, error) {
	b := &l.text
	b.Reset()
	fmt.Fprintf(b, "name: jobs\nseed: %d\nduration: %v\ntopology: {generate: {kind: fat-tree, k: 4, rate: 1Gb/s}}\n", l.seed, duration)
	b.WriteString("fabric: {mtu: 4000, buffer: 2MB, ecn: [{kmin: 40KB, kmax: 160KB, pmax: 20%}]}\n")
	only := ""
	if l.alone != "" {
		only = ", switches: [" + l.alone + "]"
	}
	fmt.Fprintf(b, "telemetry: [{kind: flowset, slot: %v, flows: 1000, ipv6: false%s}]\ntraffic:\n", l.slot, only)
	rng := rand.New(rand.NewPCG(l.seed, 6)) // the same traffic with and without faults
	fmt.Fprintf(b, "  - {kind: poisson, name: background, sizes: websearch, load: %d%%}\n", 3+rng.IntN(8))
	b.WriteString("  - {kind: query, name: calls, fanout: 3, request: 2KB, response: 20KB, gap: 5ms}\n")
	b.WriteString("  - {kind: persistent, name: storage, pairs: [")
	for i := range 6 {
		src := rng.IntN(hosts)
		fmt.Fprintf(b, "%sh%d>h%d", strings.Repeat(", ", min(i, 1)), src, (src+1+rng.IntN(hosts-1))%hosts)
	}
	fmt.Fprintf(b, "], rate: %dMb/s}\n", 10+rng.IntN(30))
	for i := range l.jobs {
		l.jobs[i].write(b, i, time.Duration(rng.IntN(50))*time.Millisecond)
	}
	b.WriteString(faults)
	return scenario.Parse("jobs.yaml", []byte(b.String()))
}

// write appends the traffic of a job.
func (j *job) write(b *strings.Builder, i int, start time.Duration) {
	steps := int(slowLasts/j.compute) + 1
	if j.pattern != "tree" {
		fmt.Fprintf(b, "  - {kind: %s, name: job%d, hosts: [%s], bytes: %dB, iterations: %d, compute: %v, start: %v}\n",
			j.pattern, i, strings.Join(j.hosts, ", "), j.bytes, steps, j.compute, start)
		return
	}
	// A binary tree: every rank sends to its parent when its children have, then the root's
	// sum goes down.
	fmt.Fprintf(b, "  - kind: flows\n    name: job%d\n    list:\n", i)
	n := len(j.hosts)
	number := 0
	up, down := make([]int, n), make([]int, n) // number of the newest flow from and to each rank's parent
	flow := func(from, to, port int, after []int, delay time.Duration) int {
		number++
		fmt.Fprintf(b, "      - {from: %s, to: %s, bytes: %dB, source-port: %d", j.hosts[from], j.hosts[to], j.bytes, port)
		if len(after) > 0 {
			fmt.Fprintf(b, ", after: [%s]", strings.Trim(strings.Join(strings.Fields(fmt.Sprint(after)), ", "), "[]"))
		}
		if delay > 0 && len(after) > 0 {
			fmt.Fprintf(b, ", delay: %v", delay)
		} else {
			fmt.Fprintf(b, ", start: %v", start)
		}
		b.WriteString("}\n")
		return number
	}
	for range steps {
		for r := n - 1; r > 0; r-- {
			var after []int
			for c := 2*r + 1; c <= 2*r+2 && c < n; c++ {
				after = append(after, up[c])
			}
			delay := time.Duration(0)
			if len(after) == 0 && down[r] > 0 {
				after, delay = []int{down[r]}, j.compute
			} else if down[r] > 0 {
				after = append(after, down[r])
			}
			up[r] = flow(r, (r-1)/2, 20000+100*i+r, after, delay)
		}
		for r := 1; r < n; r++ {
			after := []int{down[(r-1)/2]}
			if r <= 2 { // the root has all when both its children have sent
				after = []int{up[1], up[min(2, n-1)]}
			}
			down[r] = flow((r-1)/2, r, 30000+100*i+r, slices.Compact(after), 0)
		}
	}
}

// watch runs a scenario and asks for its jobs at the end.
func watch(ctx context.Context, s *scenario.Scenario, ask func(run *live.Running, r api.Range) error) (err error) {
	run, err := live.Start(ctx, s, live.StartOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, run.Close()) }()
	if err := run.Wait(ctx); err != nil {
		return err
	}
	return ask(run, api.Range{From: run.Start(), To: run.Start().Add(run.Duration())})
}

// find returns the jobs that a run shows.
func find(ctx context.Context, s *scenario.Scenario) (list []api.Job, err error) {
	err = watch(ctx, s, func(run *live.Running, r api.Range) error {
		l, err := run.Client().Jobs(ctx, r)
		list = l.Items
		return err
	})
	return list, err
}

// sameHosts reports whether two lists have the same hosts.
func sameHosts(x, y []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(x)), slices.Sorted(slices.Values(y)))
}
