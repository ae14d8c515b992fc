package hawkeye

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/repro/claim/claimtest"
	"github.com/weft-telemetry/weft/wire/epoch"
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

// TestReportsGrowWithFlows is figure 13(b) on reports as switches encode them: what ports
// take does not depend on flows, and flows take flowMemory, which figure 14 is
// compared with.
func TestReportsGrowWithFlows(t *testing.T) {
	size := func(flows int) (bytes int) {
		var b epoch.Builder
		if err := b.Reset(epoch.Header{EpochLength: time.Millisecond}, 1400, 1<<15); err != nil {
			t.Fatal(err)
		}
		for p := range evalPorts {
			b.AddPortEpoch(epoch.PortEpoch{Port: model.PortID(p + 1), Packets: 1})
		}
		for f := range flows {
			b.AddFlow(&epoch.Flow{Out: 1, Packets: 1, Bytes: 1000, Key: model.FlowKey{Src: model.Addr4(uint32(f)), Dst: model.Addr4(1), Proto: model.UDP}})
		}
		for i := range b.Finish() {
			bytes += len(b.Chunk(i))
		}
		return bytes
	}
	ports := size(0)
	for n := 1024; n <= 8192; n *= 2 {
		got, want := float64(size(n)-ports), float64(flowMemory(1, n))
		if got < want || got > 1.1*want {
			t.Errorf("%d flows take %.0f B of reports beside the ports, want %.0f and up to a tenth for headers", n, got, want)
		}
	}
	if least := evalPorts * epoch.PortEpochSize; ports < least || ports > least+evalPorts*epoch.PortEpochSize/2 {
		t.Errorf("%d ports take %d B of reports, want about %d", evalPorts, ports, least)
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
