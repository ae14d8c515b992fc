package traffic

import (
	"fmt"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// Job is what the collectives have in common: hosts that compute, exchange, and
// compute again. The exchange of an iteration is a Group, complete when every
// host has everything.
type Job struct {
	Class
	Hosts      []model.NodeID // in rank order; empty: all, by id
	Bytes      model.Bytes    // of each host; at least one byte per host
	Start      model.Time     // of the first exchange
	Iterations int
	Compute    time.Duration // of a host, from the end of its exchange to its next
}

// DefaultJob returns one exchange of 16 MB.
func DefaultJob() Job {
	return Job{Class: DefaultClass(), Bytes: 16 * model.MB, Iterations: 1, Compute: time.Millisecond}
}

func (j Job) check(e *env) ([]Host, error) {
	if err := j.Class.check(); err != nil {
		return nil, err
	}
	hosts, err := e.choose("hosts", j.Hosts, 2)
	if err != nil {
		return nil, err
	}
	if j.Bytes < model.Bytes(len(hosts)) || j.Bytes > MaxBytes {
		return nil, fmt.Errorf("bytes %v for %d hosts, want from 1 per host to %v", j.Bytes, len(hosts), MaxBytes)
	}
	if j.Iterations < 1 || j.Iterations > MaxFlows {
		return nil, fmt.Errorf("iterations %d, want from 1 to %d", j.Iterations, MaxFlows)
	}
	if err := checkStart(j.Start); err != nil {
		return nil, err
	}
	return hosts, checkSpan("compute", j.Compute, 0, j.Start)
}

// share returns the size of the i-th of n parts of a host's bytes; the parts
// differ by at most a byte and add up.
func (j Job) share(i, n int) model.Bytes {
	size := j.Bytes / model.Bytes(n)
	if model.Bytes(i) < j.Bytes%model.Bytes(n) {
		size++
	}
	return size
}

// RingAllReduce leaves the sum of all hosts' data with every host, as training
// does with gradients. The hosts form a ring and the data of each is cut into
// as many chunks as there are hosts. In 2(N-1) steps every host sends one chunk
// to the next: N-1 steps add the chunks up, N-1 distribute the sums. A host
// takes a step when it has received the last step's chunk and its own has been
// acknowledged, over one connection for the whole job.
type RingAllReduce struct{ Job }

func (g RingAllReduce) kind() string { return "ring all-reduce" }

func (g RingAllReduce) flows(e *env) ([]Flow, error) {
	hosts, err := g.check(e)
	if err != nil {
		return nil, err
	}
	n := len(hosts)
	steps := 2 * (n - 1)
	if err := checkCount(g.Iterations, steps, n); err != nil {
		return nil, err
	}
	out := make([]Flow, 0, g.Iterations*steps*n)
	mem := make([]int, 0, 2*cap(out))
	for taken := range g.Iterations * steps {
		step := taken % steps
		for i, h := range hosts {
			f := g.flow(h.ID, hosts[(i+1)%n].ID, g.Start, g.share(ringChunk(i, step, n), n))
			f.SrcPort, f.Group = e.port, taken/steps+1
			if taken > 0 {
				last := len(out) - i - n // index of the first flow of the last step
				mem = append(mem, last+(i+n-1)%n, last+i)
				f.After = mem[len(mem)-2 : len(mem) : len(mem)]
			}
			if taken > 0 && step == 0 {
				f.Delay = g.Compute
			}
			out = append(out, f)
		}
	}
	return out, nil
}

// ringChunk returns the chunk that host i of n sends in a step. At first its
// own; then the one that it received in the step before, to which it has added
// its data or which, in the second half, it only forwards.
func ringChunk(i, step, n int) int { return ((i-step)%n + n) % n }

// AllToAll makes every host send a part of its data to every other, as sharded
// models and mixtures of experts do: of N equal parts it keeps one and sends
// N-1, first to the next host, then to the one after that. A host starts an
// iteration when it has received and sent all of the one before. Each pair has
// one connection for the whole job.
type AllToAll struct {
	Job
	Window int // flows of a host in flight at once; 0: all
}

func (g AllToAll) kind() string { return "all-to-all" }

func (g AllToAll) flows(e *env) ([]Flow, error) {
	hosts, err := g.check(e)
	if err != nil {
		return nil, err
	}
	n := len(hosts)
	if g.Window < 0 || g.Window > n-1 {
		return nil, fmt.Errorf("window %d, want from 0 to %d", g.Window, n-1)
	}
	if err := checkCount(g.Iterations, n-1, n); err != nil {
		return nil, err
	}
	window := g.Window
	if window == 0 {
		window = n - 1
	}
	barrier := (n - 1 + window) * window * n
	if after := g.Iterations*n*(n-1-window) + (g.Iterations-1)*barrier; after > MaxAfter {
		return nil, fmt.Errorf("%d dependencies, want at most %d: a smaller window, fewer hosts or iterations", after,
			MaxAfter)
	}
	out := make([]Flow, 0, g.Iterations*(n-1)*n)
	for iter := range g.Iterations {
		begin := len(out)
		done := g.ends(iter, begin, n, window)
		for round := range n - 1 {
			for i, h := range hosts {
				to := (i + round + 1) % n
				f := g.flow(h.ID, hosts[to].ID, g.Start, g.share(to, n))
				f.SrcPort, f.Group = e.port, iter+1
				switch {
				case round >= window:
					f.After = []int{begin + (round-window)*n + i}
				case iter > 0:
					f.After, f.Delay = done[i], g.Compute
				}
				out = append(out, f)
			}
		}
	}
	return out, nil
}

// ends lists, for every host, the flows that complete the iteration that ends
// before index begin: all it received, and the last of those it sent.
func (g AllToAll) ends(iter, begin, n, window int) [][]int {
	if iter == 0 {
		return nil
	}
	last := begin - n*(n-1)
	done := make([][]int, n)
	for i := range done {
		for round := range n - 1 {
			from := (i - round - 1 + n) % n
			done[i] = append(done[i], last+round*n+from)
		}
		for round := n - 1 - window; round < n-1; round++ {
			done[i] = append(done[i], last+round*n+i)
		}
	}
	return done
}
