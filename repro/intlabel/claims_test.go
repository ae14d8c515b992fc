package intlabel

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/internal/race"
	"github.com/weft-telemetry/weft/repro/claim"
	"github.com/weft-telemetry/weft/repro/claim/claimtest"
)

// Every claim fails without what it is about.
func TestMutations(t *testing.T) {
	race.LeaveToPlainRun(t)
	claimtest.MutationsFail(t, Claims())
}

// Claims that take little time give the same result twice, and have a table and a
// plot; those that do not hold say so.
func TestClaims(t *testing.T) {
	race.LeaveToPlainRun(t)
	for _, tc := range []struct {
		claim.Claim
		pass bool
	}{{exports, true}, {histogram, false}, {tracePackets, true}, {traceBits, false}} {
		var last claim.Result
		for i := range 2 {
			r, err := tc.Run(t.Context(), claim.Options{Seed: 1, Quick: true})
			if err != nil {
				t.Fatal(err)
			}
			if r.Pass != tc.pass || len(r.Plots) == 0 || len(r.Tables) == 0 {
				t.Errorf("%s: measured %s, published %s, pass %v; want pass %v, with a table and a plot", tc.ID, r.Measured, tc.Published, r.Pass, tc.pass)
			}
			if diff := cmp.Diff(last, r); i > 0 && diff != "" {
				t.Errorf("%s: the same seed gave another result (-first +second):\n%s", tc.ID, diff)
			}
			last = r
		}
	}
}

// The lab loses nothing by itself, counts every export once, and drops packets
// where links are too slow.
func TestLabAccounts(t *testing.T) {
	l := newLab(baseB, 1)
	l.packets, l.toLastPacket = 2000, true
	out, err := l.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sum := 0
	for n, packets := range out.times {
		sum += n * packets
	}
	if out.sent != 2000 || out.arrived != out.sent || sum != out.labels || out.times[0] != 0 {
		t.Errorf("%d sent, %d arrived, %d labels in exports, %d written; want all of them", out.sent, out.arrived, sum, out.labels)
	}
	l.link, l.queue, l.senders, l.rate = testbed/500, 2200, []int{}, 500
	if out, err = l.run(t.Context()); err != nil || out.lost() < 0.1 {
		t.Errorf("%v lost on slow links, %v; want many", out.lost(), err)
	}
}

// Odd ToRs determine how many trails INT-path needs, and every model grows with k.
func TestPeers(t *testing.T) {
	if a, b := newTree(4).pathGenerators(), newTree(6).pathGenerators(); a != 1 || b != 18 {
		t.Errorf("INT-path needs %v and %v generators at k = 4 and 6; want 1 and 18", a, b)
	}
	for name, model := range bandwidthModels {
		for k := 4; k < 20; k += 2 {
			if model(newTree(k)) >= model(newTree(k+2)) {
				t.Errorf("%s takes no more at k = %d than at %d", name, k+2, k)
			}
		}
	}
	// One ToR's probe in a fat-tree of k = 4, hop by hop: 2 up; 2 across and 4
	// to spines; 12 down; 24 to ToRs.
	want := 8 * (2*78 + (2+4)*110 + 12*142 + 24*174.0)
	if got := newTree(4).hulaBytes(); got != want {
		t.Errorf("HULA takes %v bytes at k = 4; want %v", got, want)
	}
}
