// Package bench compares Weft with its peers: both sides in one process, in
// alternating rounds on the same input, so that disturbances affect both. It
// judges ratios, never absolute times of one machine.
package bench

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-telemetry/weft/internal/plot"
)

// Result is one comparison: Weft's figure, the peer's, and their ratio.
type Result struct {
	Name      string  `json:"name"`
	Value     float64 `json:"value"`
	Unit      string  `json:"unit"`
	Peer      string  `json:"peer"`
	PeerValue float64 `json:"peer_value"`
	Ratio     float64 `json:"ratio"` // how many times better Weft is
	Goal      float64 `json:"goal"`  // the least Ratio that passes
	Pass      bool    `json:"pass"`
	RatioLow  float64 `json:"ratio_low,omitempty"`  // half of the rounds' ratios are between this
	RatioHigh float64 `json:"ratio_high,omitempty"` // and this; 0 where rounds are not compared one by one
	Note      string  `json:"note,omitempty"`       // further observations
	Skipped   string  `json:"skipped,omitempty"`    // why the peer was not measured; then nothing passes or fails
}

// Suite is a set of results about one part of Weft.
type Suite struct {
	Name  string
	About string
	Input string // the workload, in one sentence
	run   func(ctx context.Context) ([]Result, error)
	plots func(ctx context.Context) ([]Plot, error) // nil: there are none
}

// Plot is a chart of how figures grow, and the name of its file.
type Plot struct {
	Name  string
	Chart plot.Chart
}

// Run measures the suite. It takes seconds, and ends early with ctx.
func (s Suite) Run(ctx context.Context) ([]Result, error) { return s.run(ctx) }

// Plots measures how the suite's figures grow. Few suites have any.
func (s Suite) Plots(ctx context.Context) ([]Plot, error) {
	if s.plots == nil {
		return nil, nil
	}
	return s.plots(ctx)
}

// Suites returns all suites by name.
func Suites() []Suite {
	return []Suite{
		packetSuite, topoSuite, simSuite, labelSuite, flowsetSuite, dtaSuite, traceSuite, storeSuite, TopFlows(DefaultFlowRows),
		serveSuite, diagnoseSuite, agentSuite, sourcesSuite, clusterSuite,
	}
}

// Find returns the suite of that name.
func Find(name string) (Suite, error) {
	var names []string
	for _, s := range Suites() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Suite{}, fmt.Errorf("suite %q, want one of: %s", name, strings.Join(names, ", "))
}

// Machine describes where the figures were taken.
func Machine() string {
	cpu := runtime.GOARCH
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if name, ok := strings.CutPrefix(line, "model name"); ok {
				cpu = strings.TrimLeft(strings.TrimSpace(name), ": \t")
				break
			}
		}
	}
	return fmt.Sprintf("%s, %d cores, %s, %s", cpu, runtime.NumCPU(), runtime.GOOS, runtime.Version())
}

// lowerIsBetter compares two sides of which the smaller is better, such as times.
func lowerIsBetter(name string, value float64, unit, peer string, peerValue, goal float64) Result {
	r := Result{Name: name, Value: value, Unit: unit, Peer: peer, PeerValue: peerValue, Goal: goal}
	if value > 0 {
		r.Ratio = peerValue / value
	}
	r.Pass = r.Ratio >= goal
	return r
}

// skipped is a comparison with a peer that is not installed.
func skipped(name, unit, peer string, goal float64, why string) Result {
	return Result{Name: name, Unit: unit, Peer: peer, Goal: goal, Skipped: why}
}

// higherIsBetter compares two sides of which the larger is better, such as rates.
func higherIsBetter(name string, value float64, unit, peer string, peerValue, goal float64) Result {
	r := Result{Name: name, Value: value, Unit: unit, Peer: peer, PeerValue: peerValue, Goal: goal}
	if peerValue > 0 {
		r.Ratio = value / peerValue
	}
	r.Pass = r.Ratio >= goal
	return r
}

// side is one side of a comparison: op does n operations.
type side func(n int)

const (
	rounds    = 11
	roundTime = 40 * time.Millisecond
)

// alternateRounds times the sides in alternating rounds and returns each one's
// median nanoseconds of CPU per operation. Other programs on the machine then
// cost a side its cache, but not their own time.
func alternateRounds(ctx context.Context, sides ...side) ([]float64, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	counts := make([]int, len(sides))
	times := make([][]float64, len(sides))
	for i, s := range sides {
		counts[i] = calibrate(s)
	}
	for range rounds {
		for i, s := range sides {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			start := threadTime()
			s(counts[i])
			times[i] = append(times[i], float64(threadTime()-start)/float64(counts[i]))
		}
	}
	medians := make([]float64, len(sides))
	for i := range sides {
		slices.Sort(times[i])
		medians[i] = times[i][rounds/2]
	}
	return medians, nil
}

// calibrate finds how many operations fill a round.
func calibrate(s side) int {
	for n := 1; ; n *= 4 {
		start := threadTime()
		s(n)
		if took := threadTime() - start; took > roundTime/8 || n > 1<<28 {
			return max(1, int(float64(n)*float64(roundTime)/float64(max(took, 1))))
		}
	}
}

// threadTime returns the CPU time of the calling thread. (getrusage reports it
// too, but in ticks of the kernel, of which a round has no more than ten.)
func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic("bench: clock_gettime: " + err.Error())
	}
	return time.Duration(t.Nano())
}
