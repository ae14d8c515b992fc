package traffic

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
)

// meanSquare is the expected square of a size.
func (c *CDF) meanSquare() float64 {
	sum := 0.0
	for i := 1; i < len(c.size); i++ {
		a, b := c.size[i-1], c.size[i]
		sum += (c.share[i] - c.share[i-1]) * (a*a + a*b + b*b) / 3
	}
	return sum
}

// TestPoissonLoad: count and bytes of a Poisson process of n expected arrivals
// have deviations of √n and √(n·E[size²]). Five of them are never seen by
// chance.
func TestPoissonLoad(t *testing.T) {
	hosts := hostsOf(16)
	hosts[3].Rate = 25 * model.Gbps // sends a quarter of what the others do
	for _, name := range SizesNames() {
		for _, load := range []float64{0.1, 0.8} {
			g := DefaultPoisson()
			g.Sizes, g.Load, g.Start = mustSizes(name), load, 1000
			g.Duration = time.Duration(100 * g.Sizes.Mean() * 8 / load / 100e9 * 16 * 1e9) // 1,600 flows of most hosts
			flows, err := Generate(7, hosts, g)
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range Summarize(flows, hosts, g.Duration).Hosts {
				expected := float64(h.Rate) * load / 8 / g.Sizes.Mean() * g.Duration.Seconds()
				if d := math.Abs(float64(h.Sent.Flows) - expected); d > 5*math.Sqrt(expected) {
					t.Errorf("%s at %v: host %d sends %d flows; want %.0f ± %.0f", name, load, h.ID, h.Sent.Flows, expected, 5*math.Sqrt(expected))
				}
				bound := 5 * math.Sqrt(expected*g.Sizes.meanSquare()) / (expected * g.Sizes.Mean())
				if d := math.Abs(h.Sent.Share/load - 1); d > bound {
					t.Errorf("%s: host %d sends %.3f of its link; want %.3f ± %.3f", name, h.ID, h.Sent.Share, load, load*bound)
				}
			}
			for i, f := range flows {
				if f.Start < g.Start || f.Start >= g.Start.Add(g.Duration) || i > 0 && f.Start < flows[i-1].Start {
					t.Fatalf("flow %d starts at %v after %v; want them to ascend from %v, for %v", i, f.Start, flows[max(i-1, 0)].Start, g.Start, g.Duration)
				}
			}
		}
	}
}

// TestPoissonGaps holds the gaps of one host against the exponential
// distribution, with the bound of TestSampleFollowsTheCDF.
func TestPoissonGaps(t *testing.T) {
	g := DefaultPoisson()
	g.Sizes, g.Load, g.Duration = mustSizes("storage"), 0.5, 100*time.Millisecond
	flows, err := Generate(3, hostsOf(2), g)
	if err != nil {
		t.Fatal(err)
	}
	var gaps []float64
	last := model.Time(0)
	for _, f := range flows {
		if f.Src == 1 {
			gaps = append(gaps, float64(f.Start-last))
			last = f.Start
		}
	}
	slices.Sort(gaps)
	mean := 8 * 40_869.8 / (100e9 * 0.5) * 1e9
	n := float64(len(gaps))
	for i, gap := range gaps {
		if d := math.Abs(1 - math.Exp(-gap/mean) - float64(i)/n); d > 1.95/math.Sqrt(n) {
			t.Fatalf("%.5f of %d gaps are below %.0f ns; want %.5f", float64(i)/n, len(gaps), gap, 1-math.Exp(-gap/mean))
		}
	}
}

func TestPoissonDestinationsAreUniform(t *testing.T) {
	const n = 8
	g := DefaultPoisson()
	g.Sizes, g.Duration = mustSizes("rpc"), 10*time.Millisecond
	flows, err := Generate(5, hostsOf(n), g)
	if err != nil {
		t.Fatal(err)
	}
	var count [n][n]int
	for _, f := range flows {
		count[f.Src][f.Dst]++
	}
	expected := float64(len(flows)) / (n * (n - 1))
	for s := range n {
		for d := range n {
			got := count[s][d]
			if s == d && got != 0 || s != d && math.Abs(float64(got)-expected) > 5*math.Sqrt(expected) {
				t.Errorf("%d of %d flows go from %d to %d; want %.0f ± %.0f, and none to the host itself", got, len(flows), s, d, expected, 5*math.Sqrt(expected))
			}
		}
	}
}

func TestPoissonBetweenSomeHosts(t *testing.T) {
	g := DefaultPoisson()
	g.Class = Class{Priority: 5, Transport: TCP, DstPort: 80, V6: true, Rate: model.Gbps}
	g.Hosts = []model.NodeID{6, 2, 4}
	flows, err := Generate(5, hostsOf(8), g)
	if err != nil || len(flows) == 0 {
		t.Fatalf("Generate = %d flows, %v; want some", len(flows), err)
	}
	for _, f := range flows {
		if !slices.Contains(g.Hosts, f.Src) || !slices.Contains(g.Hosts, f.Dst) || f.class() != g.Class || f.SrcPort != 0 || f.Group != 0 {
			t.Fatalf("flow %+v; want hosts of %v and class %+v", f, g.Hosts, g.Class)
		}
	}
}

func BenchmarkPoisson(b *testing.B) {
	g := DefaultPoisson()
	g.Sizes = mustSizes("rpc")
	hosts := hostsOf(1024)
	g.Duration = 100 * time.Microsecond
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
