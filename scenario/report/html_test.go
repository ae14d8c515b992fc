package report

import (
	"bytes"
	"encoding/xml"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/internal/plot"
	"github.com/weft-telemetry/weft/model"
)

var pages = flag.String("pages", "", "keep the pages of the tests in this folder, to inspect")

func writePage(t testing.TB, r *Run) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	if *pages != "" {
		name := strings.NewReplacer("/", "-", " ", "-").Replace(t.Name()) + ".html"
		if err := os.WriteFile(filepath.Join(*pages, name), b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// elements parses a page as strict XML, which the page is written to be, and
// so fails on every tag left open and every character not escaped.
func elements(t testing.TB, page []byte) (out []xml.StartElement, text string) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(page))
	var b strings.Builder
	for {
		token, err := d.Token()
		if err == io.EOF {
			return out, b.String()
		}
		if err != nil {
			t.Fatalf("page is not well-formed: %v", err)
		}
		switch v := token.(type) {
		case xml.StartElement:
			out = append(out, v.Copy())
		case xml.CharData:
			b.Write(v)
		}
	}
}

var numbers = regexp.MustCompile(`[-+]?[0-9.]+`)

// drawing lists the attributes that hold coordinates.
const drawing = " x y cx cy r width height d viewBox transform "

// checkDrawing wants every coordinate finite and, except in paths whose
// commands may be relative, inside the drawing.
func checkDrawing(t testing.TB, elements []xml.StartElement) {
	t.Helper()
	var w, h float64
	for _, e := range elements {
		for _, a := range e.Attr {
			if !strings.Contains(drawing, " "+a.Name.Local+" ") {
				continue
			}
			if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
				t.Errorf("<%s %s=%q> is not finite", e.Name.Local, a.Name.Local, a.Value)
			}
			for _, n := range numbers.FindAllString(a.Value, -1) {
				v, err := strconv.ParseFloat(n, 64)
				if err != nil {
					t.Errorf("<%s %s=%q>: %v", e.Name.Local, a.Name.Local, a.Value, err)
				}
				if absolute := strings.Contains(" x y cx cy r width height ", " "+a.Name.Local+" "); absolute && (v < 0 || v > max(w, h)) {
					t.Errorf("<%s %s=%q> lies outside a drawing of %v × %v", e.Name.Local, a.Name.Local, a.Value, w, h)
				}
			}
			if a.Name.Local == "viewBox" {
				f := strings.Fields(a.Value)
				w, _ = strconv.ParseFloat(f[2], 64)
				h, _ = strconv.ParseFloat(f[3], 64)
			}
		}
	}
}

func TestPageIsWhole(t *testing.T) {
	flow := FlowResult{Src: "h0", Dst: "h1", Bytes: 1000, Start: 0, Finish: 4000, Finished: true, Ideal: 2000}
	same := make([]FlowResult, 200)
	for i := range same {
		same[i] = flow
	}
	odd := []FlowResult{
		{Finished: true},                       // no bytes, no time, no ideal
		{Finished: true, Ideal: 1},             // no time
		{Start: 9, Finish: 3, Finished: true},  // finishes before it starts
		{Bytes: 1 << 62, Ideal: 1, Start: 100}, // never ends
		{Bytes: 1 << 62, Ideal: 1, Finish: 1 << 62, Finished: true},
	}
	samples := func(n int, depth model.Bytes) []PortSeries {
		p := PortSeries{Node: "s1", Port: 1}
		for i := range n {
			p.Samples = append(p.Samples, Sample{At: model.Time(i), Queue: depth})
		}
		return []PortSeries{p}
	}
	paused := []PauseEvent{{At: 1, Pause: true, Node: "s1"}}
	for name, r := range map[string]*Run{
		"nothing":         {},
		"one flow":        {End: 5000, Flows: []FlowResult{flow}},
		"all equal":       {End: 5000, Flows: same, Ports: samples(5000, 7), Pauses: paused},
		"zero duration":   {Flows: same, Ports: samples(3, 7), Pauses: paused},
		"one sample":      {End: 1, Ports: samples(1, 1<<60)},
		"empty queue":     {End: 100, Ports: samples(100, 0)},
		"odd flows":       {End: 100, Flows: odd},
		"late start":      {End: 2_010_000_000, Flows: []FlowResult{{Start: 2_000_000_000, Finish: 2_001_000_000, Finished: true, Ideal: 9, Bytes: 1}}, Ports: samples(4000, 3)},
		"longest run":     {End: 1 << 62, Flows: odd, Ports: samples(10, 1), Pauses: paused},
		"small":           smallRun(),
		"single pauses":   invent(shape{flows: 1200, ports: 48, samples: 1000, bursts: 6, stuck: 2}),
		"merged pauses":   invent(shape{flows: 5000, ports: 12, samples: 2000, bursts: 150}),
		"pauses no ports": {End: 100, Pauses: paused},
	} {
		t.Run(name, func(t *testing.T) {
			el, _ := elements(t, writePage(t, r))
			checkDrawing(t, el)
			svgs := 0
			for _, e := range el {
				if e.Name.Local == "svg" {
					svgs++
				}
			}
			if svgs != 4 {
				t.Errorf("page has %d plots; want 4", svgs)
			}
		})
	}
}

// TestPageNeedsNothing searches for anything that would make a browser load
// more.
func TestPageNeedsNothing(t *testing.T) {
	page := writePage(t, invent(shape{flows: 200, ports: 8, samples: 50, bursts: 2}))
	el, _ := elements(t, page)
	for _, e := range el {
		switch e.Name.Local {
		case "script", "link", "img", "iframe", "object", "embed", "base", "use", "image", "form":
			t.Errorf("page has <%s>", e.Name.Local)
		}
		for _, a := range e.Attr {
			if n := a.Name.Local; n == "href" || n == "src" || n == "srcset" || strings.HasPrefix(n, "on") {
				t.Errorf("page has <%s %s=%q>", e.Name.Local, n, a.Value)
			}
		}
	}
	for _, s := range []string{"://", "@import", "url("} {
		if bytes.Contains(page, []byte(s)) {
			t.Errorf("page holds %q", s)
		}
	}
}

func TestNamesAreEscaped(t *testing.T) {
	const bad = `"><script>alert('x')</script>&amp;`
	r := smallRun()
	r.Title, r.Fabric, r.Notes = "T"+bad, "F"+bad, []string{"N" + bad}
	for i := range r.Flows {
		f := &r.Flows[i]
		f.Src, f.Dst, f.Group, f.Transport = "S"+bad, "D"+bad, "G"+bad+f.Group, "R"+bad
	}
	for i := range r.Pauses {
		r.Pauses[i].Node = "P" + bad
	}
	for i := range r.Drops {
		r.Drops[i].Node, r.Drops[i].Reason = "O"+bad, "E"+bad
	}
	for i := range r.Ports {
		r.Ports[i].Node, r.Ports[i].Peer = "Q"+bad, "U"+bad
	}
	page := writePage(t, r)
	if bytes.Contains(page, []byte("<script")) {
		t.Error("a name became a script element")
	}
	_, text := elements(t, page)
	for _, initial := range "TFNSDGRPOEQU" {
		if want := string(initial) + bad; !strings.Contains(text, want) {
			t.Errorf("page does not show %s", want)
		}
	}
}

func TestEscape(t *testing.T) {
	const in, want = "a<b>&\"'\x01\xff\nz", "a&lt;b&gt;&amp;&#34;&#39;\ufffd\ufffd&#xA;z"
	if got := plot.Escape(in); got != want {
		t.Errorf("plot.Escape(%q) = %q; want %q", in, got, want)
	}
}

// TestPageStaysSmall draws far more than a screen shows.
func TestPageStaysSmall(t *testing.T) {
	for name, s := range map[string]shape{
		"100k flows, 1M samples": {flows: 100_000, ports: 100, samples: 10_000, bursts: 2000, stuck: 100},
		"most dots and bars":     {flows: maxDots, ports: 12, samples: 2000, bursts: 25},
	} {
		t.Run(name, func(t *testing.T) {
			page := writePage(t, invent(s))
			if limit := 2_000_000; len(page) > limit {
				t.Errorf("page has %d bytes; want at most %d", len(page), limit)
			}
			t.Logf("%d bytes", len(page))
		})
	}
}

func BenchmarkWriteHTML(b *testing.B) {
	r := invent(shape{flows: 100_000, ports: 1000, samples: 1000, bursts: 100})
	r.Wall = time.Second
	for b.Loop() {
		if err := r.WriteHTML(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(writePage(b, r)))/1e3, "kB/page")
}

// TestPageShowsExpectations: what was wanted, what came of it, and what was made
// to go wrong; without any of them the page has no such section.
func TestPageShowsExpectations(t *testing.T) {
	r := invent(shape{flows: 10, ports: 2, samples: 10})
	if _, text := elements(t, writePage(t, r)); strings.Contains(text, "Expectations") {
		t.Error("a run without expectations has a section for them")
	}
	r.Verdict = "FAIL"
	r.Injected = []string{"10.9.9.9 moves to h5 from 1ms to 2ms"}
	r.Expected = []Judged{{"drops", "none", "7", false}, {"slowdown-p99 of <burst>", "below 100", "3.2", true}}
	_, text := elements(t, writePage(t, r))
	for _, want := range []string{"1 of 2 expectations not met", "slowdown-p99 of <burst>", "below 100", "FAIL", "10.9.9.9 moves to h5"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// TestFindingsFirst: the verdict and the diagnoses come before all figures, on the page
// and in the summary, also without expectations.
func TestFindingsFirst(t *testing.T) {
	r := invent(shape{flows: 10, ports: 2, samples: 10})
	r.Diagnoses = []string{"h5 drains slowly: leaf1 Ethernet4 → h5"}
	page := func() string {
		_, text := elements(t, writePage(t, r))
		return text
	}
	if text := page(); !strings.Contains(text, r.Diagnoses[0]) {
		t.Error("a page without expectations has no diagnoses")
	}
	r.Verdict, r.Expected = "FAIL", []Judged{{"drops", "none", "7", false}}
	dir := t.TempDir()
	if err := r.WriteDir(dir); err != nil {
		t.Fatal(err)
	}
	summary, err := os.ReadFile(filepath.Join(dir, "summary.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{"report.html": page(), "summary.txt": string(summary)} {
		at := -1
		for _, want := range []string{"FAIL", r.Diagnoses[0], "oodput"} {
			next := strings.Index(text, want)
			if what == "summary.txt" && want == "FAIL" && !strings.Contains(text, "drops: want none, got 7") {
				t.Errorf("summary.txt does not say what was missed:\n%s", text)
			}
			if next <= at {
				t.Errorf("%s has %q at %d, want it after %d", what, want, next, at)
			}
			at = next
		}
	}
}
