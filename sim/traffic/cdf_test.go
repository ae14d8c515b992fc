package traffic

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weft-telemetry/weft/model"
	"pgregory.net/rapid"
)

func TestSizesOfThePackage(t *testing.T) {
	for name, tc := range map[string]struct {
		points  int
		mean    float64
		largest model.Bytes
		hpcc    string
	}{
		"websearch": {12, 1_711_250, 30_000_000, "WebSearch_distribution.txt"},
		"hadoop":    {20, 120_420.75, 10_000_000, "FbHdp_distribution"},
		"storage":   {9, 40_869.8, 2_000_000, "AliStorage2019.txt"},
		"rpc":       {843, 2_891.6, 15_158_197, "GoogleRPC2008"},
		"longtail":  {7, 26_722_100, 300_000_000, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Sizes(name)
			if err != nil {
				t.Fatal(err)
			}
			if len(c.size) != tc.points || c.Quantile(1) != tc.largest {
				t.Errorf("Sizes(%q) has %d points up to %d; want %d up to %d", name, len(c.size), c.Quantile(1), tc.points, tc.largest)
			}
			if got := c.Mean(); math.Abs(got-tc.mean) > 0.05 {
				t.Errorf("Sizes(%q).Mean() = %.3f; want %.3f", name, got, tc.mean)
			}
			if tc.hpcc == "" {
				return
			}
			if again, err := Sizes(tc.hpcc); err != nil || again.Mean() != c.Mean() {
				t.Errorf("Sizes(%q) = %v, %v; want the same as %q", tc.hpcc, again, err, name)
			}
		})
	}
	for _, bad := range []string{"", ".txt", "web"} {
		if _, err := Sizes(bad); err == nil || !strings.Contains(err.Error(), "want one of websearch, hadoop") {
			t.Errorf("Sizes(%q) = %v; want an error that lists the names", bad, err)
		}
	}
	if got, want := len(SizesNames()), 5; got != want {
		t.Errorf("len(SizesNames()) = %d; want %d", got, want)
	}
}

// TestLongTailKeepsToThePaper: under 80 % of the flows below 10 MB, under 90 %
// below 100 MB, about 10 % from 100 MB to 300 MB.
func TestLongTailKeepsToThePaper(t *testing.T) {
	c := mustSizes("longtail")
	for p, want := range map[float64]model.Bytes{0.8: 10 * model.MB, 0.9: 100 * model.MB, 1: 300 * model.MB} {
		if got := c.Quantile(p); got != want {
			t.Errorf("Quantile(%v) = %v; want %v", p, got, want)
		}
	}
}

func TestQuantile(t *testing.T) {
	c, err := ParseCDF("in", []byte("# two steps and a gap\n0 0\n100 50\n100 60\n\n300 60 # none between\n400 100\n"))
	if err != nil {
		t.Fatal(err)
	}
	for p, want := range map[float64]model.Bytes{
		-1: 1, 0: 1, 0.001: 1, 0.25: 50, 0.5: 100, 0.55: 100, 0.6: 100, 0.61: 303, 0.8: 350, 1: 400, 2: 400,
	} {
		if got := c.Quantile(p); got != want {
			t.Errorf("Quantile(%v) = %d; want %d", p, got, want)
		}
	}
	if got, want := c.Mean(), 0.5*50+0.1*100+0.4*350; math.Abs(got-want) > 1e-9 {
		t.Errorf("Mean() = %v; want %v", got, want)
	}
}

// TestSampleFollowsTheCDF bounds the greatest distance between the share of
// samples up to a size and the distribution, as Kolmogorov and Smirnov do:
// beyond 1.95/√n it would be by chance once in a thousand seeds.
func TestSampleFollowsTheCDF(t *testing.T) {
	const n = 50_000
	for i, name := range SizesNames() {
		c := mustSizes(name)
		rng := rand.New(rand.NewPCG(1, uint64(i)))
		samples := make([]float64, n)
		for k := range samples {
			samples[k] = float64(c.Sample(rng))
		}
		slices.Sort(samples)
		worst, at := 0.0, 0.0
		for k := 0; k < n; {
			size, from := samples[k], k
			for k < n && samples[k] == size {
				k++
			}
			// A size of whole bytes represents half a byte on each side, and 1
			// all below.
			low, high := shareAt(c, size-0.5), shareAt(c, size+0.5)
			if size == 1 {
				low = 0
			}
			if d := max(math.Abs(float64(from)/n-low), math.Abs(float64(k)/n-high)); d > worst {
				worst, at = d, size
			}
		}
		if bound := 1.95 / math.Sqrt(n); worst > bound {
			t.Errorf("%s: samples are off by %.5f at %.0f bytes; want at most %.5f", name, worst, at, bound)
		}
	}
}

// shareAt is the CDF itself, point by point: the slow reference of Quantile.
func shareAt(c *CDF, size float64) float64 {
	if size < c.size[0] {
		return 0
	}
	for i := 1; i < len(c.size); i++ {
		if size < c.size[i] {
			return c.share[i-1] + (c.share[i]-c.share[i-1])*(size-c.size[i-1])/(c.size[i]-c.size[i-1])
		}
	}
	return 1
}

func TestQuantileInvertsTheCDF(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfNDistinct(rapid.Uint32Range(1, 1e9), 2, 20, rapid.ID).Draw(t, "sizes")
		percents := rapid.SliceOfN(rapid.Float64Range(0, 100), len(sizes), len(sizes)).Draw(t, "percents")
		slices.Sort(sizes)
		slices.Sort(percents)
		percents[0], percents[len(percents)-1] = 0, 100
		var text strings.Builder
		for i, s := range sizes {
			fmt.Fprintln(&text, s, percents[i])
		}
		c, err := ParseCDF("in", []byte(text.String()))
		if err != nil {
			t.Fatalf("ParseCDF(%q) = %v; want no error", text.String(), err)
		}
		p := rapid.Float64Range(0, 1).Draw(t, "p")
		q := float64(c.Quantile(p))
		if low, high := shareAt(c, q-0.51), shareAt(c, q+0.51); low > p+1e-9 || high < p-1e-9 {
			t.Fatalf("Quantile(%v) = %v, where the share is %v to %v, in\n%s", p, q, low, high, text.String())
		}
	})
}

var cdfComplaints = map[string]struct{ in, want string }{
	"empty":         {"", "in:1: file ends at 0 %, want sizes up to 100 %"},
	"only comments": {"# a\n# b\n", "in:2: file ends at 0 %, want sizes up to 100 %"},
	"three words":   {"0 0\n1 2 3\n", "in:2: 3 words, want a size in bytes and a cumulative percentage"},
	"size":          {"0 0\n1.5 100\n", `in:2: size "1.5", want a whole number of bytes from 0 to 1000000000000000`},
	"huge size":     {"0 0\n1000000000000001 100\n", `in:2: size "1000000000000001", want a whole number of bytes from 0 to 1000000000000000`},
	"percentage":    {"0 0\n1 nan\n", `in:2: cumulative percentage "nan", want a number from 0 to 100`},
	"above 100":     {"0 0\n1 100.5\n", `in:2: cumulative percentage "100.5", want a number from 0 to 100`},
	"negative":      {"0 -1\n1 100\n", `in:1: cumulative percentage "-1", want a number from 0 to 100`},
	"first":         {"10 5\n", "in:1: the first size has 5 %, want 0 %"},
	"sizes fall":    {"0 0\n9 5\n8 6\n", "in:3: size 8 after 9, want sizes that ascend"},
	"shares fall":   {"0 0\n8 6.1\n9 5\n", "in:3: 5 % after 6.1 %, want percentages that ascend"},
	"fractions":     {"0 0\n9 1\n", "in:2: file ends at 1 %, want sizes up to 100 %"},
	"size 0":        {"0 0\n0 5\n9 100\n", "in:2: 5 % of the flows have size 0, want at least 1 byte"},
}

func TestParseCDFErrors(t *testing.T) {
	for name, tc := range cdfComplaints {
		t.Run(name, func(t *testing.T) {
			if _, err := ParseCDF("in", []byte(tc.in)); err == nil || err.Error() != tc.want {
				t.Errorf("ParseCDF(%q) = %v; want %s", tc.in, err, tc.want)
			}
		})
	}
}

func TestReadFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sizes.txt")
	if err := os.WriteFile(path, []byte("500 0\r\n1500 100\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(dir, "missing")
	_, err := ReadFlows(missing, nil)
	if !errors.Is(err, os.ErrNotExist) || err.Error() != missing+": open: no such file or directory" {
		t.Errorf("ReadFlows(missing) = %v; want that it does not exist, and the path once", err)
	}
	if _, err := readFile(path, 10); err == nil || !strings.Contains(err.Error(), "more than 10B, want less") {
		t.Errorf("readFile(at most 10 bytes) = %v; want an error", err)
	}
	if _, err := ReadFlows(dir, nil); err == nil || !strings.Contains(err.Error(), dir+": read: ") {
		t.Errorf("ReadFlows(a folder) = %v; want an error", err)
	}
}

func FuzzParseCDF(f *testing.F) {
	for _, tc := range cdfComplaints {
		f.Add([]byte(tc.in))
	}
	f.Add([]byte("0 0\n10000 15\n30000000 100\n"))
	f.Add([]byte("1000 0\n1000 1e2 # all the same\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		c, err := ParseCDF("in", in)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Line < 1 || e.Line > strings.Count(string(in), "\n")+1 {
				t.Fatalf("ParseCDF(%q) = %v; want an *Error with a line of the file", in, err)
			}
			return
		}
		least, most := c.Quantile(0), c.Quantile(1)
		if mean := c.Mean(); math.IsNaN(mean) || mean <= 0 || mean > float64(most) {
			t.Fatalf("ParseCDF(%q).Mean() = %v; want above 0 and at most %d", in, mean, most)
		}
		last := least
		for p := 0.0; p <= 1; p += 1.0 / 64 {
			q := c.Quantile(p)
			if q < last || q > most || q < 1 {
				t.Fatalf("ParseCDF(%q).Quantile(%v) = %d after %d; want it to ascend from 1 to %d", in, p, q, last, most)
			}
			last = q
		}
	})
}

func BenchmarkSample(b *testing.B) {
	for _, name := range []string{"websearch", "rpc"} {
		b.Run("sizes="+name, func(b *testing.B) {
			c := mustSizes(name)
			rng := rand.New(rand.NewPCG(1, 2))
			b.ReportAllocs()
			var sum model.Bytes
			for b.Loop() {
				sum += c.Sample(rng)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Msamples/s")
			_ = sum
		})
	}
}

func TestScaled(t *testing.T) {
	c := mustSizes("hadoop")
	s := c.Scaled(0.1)
	if got, want := s.Mean(), c.Mean()/10; math.Abs(got-want) > 1e-6*want {
		t.Errorf("Scaled(0.1).Mean() = %v; want %v", got, want)
	}
	if got, want := s.Quantile(0.9), model.Bytes(12_000); got != want || c.Quantile(0.9) != 120_000 {
		t.Errorf("Scaled(0.1).Quantile(0.9) = %v, of the original %v; want %v and 120 KB", got, c.Quantile(0.9), want)
	}
}
