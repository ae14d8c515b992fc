package hpcc

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/sim"
	"github.com/weft-telemetry/weft/sim/engine"
)

// leafSpine is 4 leaves of 6 hosts and 3 spines, with flows of 1 KB to 1 MB
// that begin within a short time; a third of them go to one host.
func leafSpine(seed uint64, flows int, config string) map[string]string {
	const hosts, perLeaf, leaves, spines = 24, 6, 4, 3
	var topology, list strings.Builder
	fmt.Fprintf(&topology, "%d %d %d\n", hosts+leaves+spines, leaves+spines, hosts+leaves*spines)
	for i := range leaves + spines {
		fmt.Fprintf(&topology, "%d ", hosts+i)
	}
	fmt.Fprintln(&topology)
	for h := range hosts {
		fmt.Fprintf(&topology, "%d %d 100Gbps 1us 0\n", h, hosts+h/perLeaf)
	}
	for l := range leaves {
		for s := range spines {
			fmt.Fprintf(&topology, "%d %d 200Gbps 1us 0\n", hosts+l, hosts+leaves+s)
		}
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	fmt.Fprintln(&list, flows)
	at := 2.0
	for range flows {
		at += rng.ExpFloat64() * 600e-9
		src, dst := rng.IntN(hosts-1)+1, rng.IntN(hosts)
		if dst == src || rng.IntN(3) == 0 {
			dst = 0
		}
		fmt.Fprintf(&list, "%d %d 3 100 %d %.9f\n", src, dst, int(math.Exp(rng.Float64()*math.Log(1000))*1000), at)
	}
	return map[string]string{
		"config.txt": `TOPOLOGY_FILE topology.txt
FLOW_FILE flow.txt
SIMULATOR_STOP_TIME 2.1
ALPHA_RESUME_INTERVAL 1
RATE_DECREASE_INTERVAL 4
RP_TIMER 300
FAST_RECOVERY_TIMES 1
MI_THRESH 0
MULTI_RATE 0
` + config,
		"topology.txt": topology.String(), "flow.txt": list.String(),
	}
}

// Marks at one depth are no matter of chance.
const (
	noMarks   = "ENABLE_QCN 0\n"
	stepMarks = "KMIN_MAP 2 100000000000 60 200000000000 120\nKMAX_MAP 2 100000000000 60 200000000000 120\nPMAX_MAP 2 100000000000 0 200000000000 0\n"
	chance    = "KMIN_MAP 2 100000000000 20 200000000000 40\nKMAX_MAP 2 100000000000 200 200000000000 400\nPMAX_MAP 2 100000000000 0.2 200000000000 0.2\n"
)

// figures is what a run is judged by.
type figures struct {
	mean, median, p99 float64 // of the slowdown
	pauses            int
}

func figuresOf(slow []float64, pauses int) figures {
	slices.Sort(slow)
	sum := 0.0
	for _, x := range slow {
		sum += x
	}
	n := len(slow)
	return figures{sum / float64(n), slow[n/2], slow[n*99/100], pauses}
}

// Runs must agree with the reference implementation in original_test.go:
// without randomness most flows take the same nanoseconds, and the rest differ
// by the order of events in one nanosecond; with randomness they agree as
// distributions. The remaining difference is far less than HPCC's users would
// notice.
func TestRunsAgreeWithTheOriginal(t *testing.T) {
	const flows = 80
	for name, tc := range map[string]struct {
		config string
		same   float64 // share of flows with the same completion time, at least
		apart  float64 // most that the figures may differ
		pauses bool
	}{
		"no control":             {config: noMarks + "CC_MODE 0\n", same: 0.95, apart: 0.01},
		"no window, small":       {config: noMarks + "CC_MODE 0\nHAS_WIN 0\nEPOCH_TIME 1000\nBUFFER_SIZE 800\n", same: 0.95, apart: 0.01, pauses: true},
		"acknowledgements first": {config: noMarks + "CC_MODE 0\nHAS_WIN 0\nEPOCH_TIME 1000\nBUFFER_SIZE 800\nACK_HIGH_PRIO 1\n", same: 0.95, apart: 0.01, pauses: true},
		"DCQCN":                  {config: stepMarks + "HAS_WIN 0\n", same: 0.95, apart: 0.01},
		"DCQCN, windows":         {config: stepMarks + "VAR_WIN 1\nGLOBAL_T 0\n", same: 0.95, apart: 0.01},
		"DCQCN, chance":          {config: chance + "VAR_WIN 1\n", apart: 0.08},
		"HPCC":                   {config: noMarks + "CC_MODE 3\nVAR_WIN 1\n", same: 0.7, apart: 0.01},
		"HPCC, per hop":          {config: noMarks + "CC_MODE 3\nVAR_WIN 1\nMULTI_RATE 1\nMI_THRESH 5\n", same: 0.7, apart: 0.01},
		"TIMELY":                 {config: noMarks + "CC_MODE 7\n", same: 0.95, apart: 0.01},
		"DCTCP":                  {config: stepMarks + "CC_MODE 8\nVAR_WIN 1\n", same: 0.95, apart: 0.01},
	} {
		t.Run(name, func(t *testing.T) {
			s := setup(t, leafSpine(1, flows, tc.config))
			o := newOriginal(s)
			o.run()
			n := runSetup(t, s)
			took := make(map[int]sim.FlowRecord)
			var ours, theirs []float64
			for _, r := range n.Records() {
				took[r.ID] = r
				ours = append(ours, r.Slowdown())
			}
			same := 0
			for _, q := range o.qps {
				r, fct := took[q.flow], engine.Time(q.end-int64(s.Flows[q.flow].Start))*engine.Nanosecond
				theirs = append(theirs, max(1, float64(fct)/float64(r.Ideal)))
				if fct == r.FCT() {
					same++
				}
			}
			if n.Finished != flows || o.finished != flows || n.Counts.Drops[sim.DropBuffer] > 0 != (o.drops > 0) {
				t.Fatalf("%d and %d flows finished, %d and %d drops; want all %d, and drops in both or none", n.Finished, o.finished, n.Counts.Drops[sim.DropBuffer], o.drops, flows)
			}
			a, b := figuresOf(ours, int(n.Counts.Pauses)), figuresOf(theirs, len(o.pfc)/2)
			t.Logf("ours %+v, theirs %+v, %d of %d the same, marks %d and %d", a, b, same, flows, n.Counts.Marked, o.marks)
			for _, d := range []float64{a.mean/b.mean - 1, a.median/b.median - 1, (a.p99/b.p99 - 1) / 2} {
				if math.Abs(d) > tc.apart {
					t.Errorf("slowdowns %+v; want within %v of %+v", a, tc.apart, b)
				}
			}
			if float64(same) < tc.same*flows {
				t.Errorf("%d of %d flows took the same time; want %v of them", same, flows, tc.same)
			}
			if tc.pauses != (b.pauses > 0) || math.Abs(float64(a.pauses-b.pauses)) > 2+0.2*float64(b.pauses) {
				t.Errorf("%d pauses; want about the original's %d, some: %v", a.pauses, b.pauses, tc.pauses)
			}
		})
	}
}
