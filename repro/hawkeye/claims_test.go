package hawkeye

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/repro/claim/claimtest"
)

var update = flag.Bool("update", false, "write golden files")

// TestClaimCaseStudies holds the graphs of the paper's figure 12, as printed.
func TestClaimCaseStudies(t *testing.T) {
	for _, k := range race.Less(caseStudies, caseStudies[:2]) {
		r, err := best(claim.Options{}).simulate(t.Context(), 1, 0.1, k)
		if err != nil {
			t.Fatal(err)
		}
		e, err := r.firstExhibit()
		if err != nil || e == nil {
			t.Fatalf("%v: no verdict names what was injected (%v)", k, err)
		}
		got := e.transcript(k)
		file := filepath.Join("testdata", strings.NewReplacer(" ", "-", ",", "").Replace(k.String())+".txt")
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%v: transcript differs (-want +got):\n%s", k, diff)
		}
	}
}

// transcript returns an exhibit so that a person can check it.
func (e *exhibit) transcript(k kind) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v\n%s\n", k, e.named.Sentence())
	for _, x := range e.named.Evidence {
		fmt.Fprintf(&b, "- %s\n", x)
	}
	b.WriteString(e.drawing.Text())
	return b.String()
}

// A seed replays: the same trace gives the same detections and verdicts.
func TestSeedReplays(t *testing.T) {
	race.LeaveToPlainRun(t)
	var last []string
	for range 2 {
		r, err := best(claim.Options{}).simulate(t.Context(), 5, 0.2, storm)
		if err != nil {
			t.Fatal(err)
		}
		list, err := r.diagnose(hawkeyeMethod, 0)
		if err != nil || len(list) == 0 {
			t.Fatalf("%d detections, %v; want some", len(list), err)
		}
		var said []string
		for i := range list {
			for _, v := range list[i].verdicts {
				n := v.View(r.net.Fabric())
				said = append(said, n.Sentence())
			}
		}
		if diff := cmp.Diff(last, said); last != nil && diff != "" {
			t.Errorf("the same seed gave other verdicts (-first +second):\n%s", diff)
		}
		last = said
	}
}

func TestMemoryClaim(t *testing.T) {
	r, err := memory.Run(t.Context(), claim.Options{Seed: 1, Quick: true})
	if err != nil || !r.Pass || len(r.Tables) == 0 || len(r.Plots) == 0 {
		t.Errorf("memory: %+v, %v; want it to pass with a table and a plot", r, err)
	}
}

// TestMutationsFail: the main claims fail without each mechanism that they name;
// the others, which are as long, are left to weft repro --break.
func TestMutationsFail(t *testing.T) {
	race.LeaveToPlainRun(t)
	for _, c := range Claims() {
		known := map[string]bool{}
		for _, m := range c.Mutations {
			if known[m.Name] || m.Removes == "" {
				t.Errorf("%s: mutation %q removes %q; want distinct names that say what", c.ID, m.Name, m.Removes)
			}
			known[m.Name] = true
		}
	}
	claimtest.MutationsFail(t, []claim.Claim{parameters, anyTwo})
}
