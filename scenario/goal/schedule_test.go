package goal

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/internal/fileerror"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/sim/traffic"
)

const small = `// comment
num_ranks 3
rank 0 { /* over
two lines */
a: calc 100 cpu 2
b: send 8b to 1 tag 7
b requires a
c: send 9 b to 1 tag 7 cpu 0 nic 1
c irequires b
}
rank 1 {
x: recv 8b from 0 tag 7
y: recv 10b from 0 tag 7
y requires x
z: calc 5
z requires y
}
rank 2 { calc 1 }
`

func TestFlows(t *testing.T) {
	s, err := Parse("x.goal", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.Flows([]model.NodeID{10, 11, 12, 13})
	if err != nil {
		t.Fatal(err)
	}
	want := []traffic.Flow{
		{Src: 10, Dst: 10, Compute: 100, Core: 2},
		{Src: 10, Dst: 11, Bytes: 8, Priority: 3, Queue: 2, After: []int{0}},
		{Src: 10, Dst: 11, Bytes: 9, Priority: 3, Queue: 2, After: []int{0}}, // started with b: after a
		{Src: 11, Dst: 11, Core: 255, After: []int{2, 1}},                    // y: its message and x
		{Src: 11, Dst: 11, Compute: 5, After: []int{3}},                      // z
		{Src: 12, Dst: 12, Compute: 1},
	}
	if x := cmp.Diff(want, got); x != "" {
		t.Errorf("Flows (-want +got):\n%s", x)
	}
	if _, err := s.Flows(make([]model.NodeID, 2)); err == nil || err.Error() != "x.goal:1: num_ranks 3 for a topology of 2 hosts, want at most that" {
		t.Errorf("Flows on 2 hosts = %v", err)
	}
}

func TestErrors(t *testing.T) {
	for _, tc := range []struct{ old, new, want string }{
		{"num_ranks 3", "num_ranks x", `x:2: num_ranks "x", want a whole number from 1`},
		{"num_ranks 3\n", "", "x:2: rank before num_ranks, want num_ranks first"},
		{"num_ranks 3", "num_ranks 3\nnum_ranks 3", "x:3: num_ranks, want it once, with one number"},
		{"rank 2", "rank 3", `x:18: rank "3", want a whole number from 0 to 2`},
		{"rank 2", "rank 1", "x:18: rank 1 again, want it once"},
		{"rank 2 {", "rank 2", "x:18: rank, want a number and {"},
		{"rank 2 {", "ranks 2 {", `x:18: "ranks", want num_ranks or rank`},
		{"rank 2 { calc 1 }", "rank 2 { calc 1", "x:18: file ends in rank 2, want }"},
		{"rank 2 { calc 1 }", "rank 2 { calc 1 } }", "x:18: } without a rank, want rank"},
		{"rank 2 { calc 1 }", "/* x", "x:18: file ends in a comment, want */"},
		{"two lines */", "two lines * /", "x:18: file ends in a comment, want */"},
		{"// comment", "/ comment", `x:1: "/ ", want // or /*`},
		{"calc 100", "calc -1", `x:5: calc "-1", want a whole number from 0`},
		{"calc 100 cpu 2", "calc", "x:5: calc without a time, want nanoseconds"},
		{"calc 100 cpu 2", "calc 100 cpu 255", `x:5: cpu "255", want a whole number from 0 to 254`},
		{"calc 100 cpu 2", "calc 100 tag 2", `x:5: "tag", want a number after one of cpu`},
		{"calc 100 cpu 2", "call 100", `x:5: "call", want calc, send, recv, or two labels`},
		{"a: calc 100 cpu 2", "a:", "x:5: label a without an operation, want calc, send or recv"},
		{"send 8b to", "send 8b from", "x:6: want a size such as 8b, to, and a rank"},
		{"send 8b to 1", "send 8b to 3", `x:6: rank "3", want a whole number from 0 to 2`},
		{"send 8b to 1", "send 80b to 1", "x:12: receive of 8 bytes for the 80 of line 6, want at least as many"},
		{"b requires a", "b requires q", "x:7: there is no label q above in rank 0, want one"},
		{"b requires a", "b requires b", "x:7: b requires itself, want another"},
		{"b requires a", "b requires a\na requires b", "x:5: calc is in or after a cycle"},
		{"c: send", "b: send", "x:8: label b again, want different ones"},
		{"recv 8b from 0", "recv 8b from -1", "x:12: receive from any source, want a rank"},
		{"recv 8b from 0 tag 7", "recv 8b from 0 tag -1", "x:12: receive of any tag, want one"},
		{"recv 8b from 0 tag 7", "recv 8b from 0 tag 8", "x:12: receive from rank 0 with tag 8 that no send matches, want one"},
		{"x: recv 8b from 0 tag 7", "x: calc 1", "x:8: send to rank 1 with tag 7 that no receive matches, want one"},
	} {
		text := strings.Replace(small, tc.old, tc.new, 1)
		if text == small {
			t.Fatalf("the schedule has no %q", tc.old)
		}
		s, err := Parse("x", []byte(text))
		if err == nil {
			_, err = s.Flows(make([]model.NodeID, 3))
		}
		if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%q as %q: %v; want %s", tc.old, tc.new, err, tc.want)
		}
	}
	for text, want := range map[string]string{
		"": "x:1: file ends without num_ranks, want it", "num_ranks 2\n": "x:1: file ends without an operation, want at least one",
	} {
		if _, err := Parse("x", []byte(text)); err == nil || err.Error() != want {
			t.Errorf("Parse(%q) = %v; want %s", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(small))
	in, err := os.ReadFile("../../examples/goal/tree.goal")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(in)
	f.Fuzz(func(t *testing.T, in []byte) {
		s, err := Parse("in", in)
		var flows []traffic.Flow
		if err == nil {
			if len(s.Ranks) > 100 {
				return
			}
			hosts := make([]model.NodeID, len(s.Ranks))
			ends := make([]traffic.Host, len(s.Ranks))
			for i := range hosts {
				hosts[i], ends[i].ID = model.NodeID(i), model.NodeID(i)
			}
			if flows, err = s.Flows(hosts); err == nil {
				if err := traffic.Check(flows, ends); err != nil {
					t.Fatalf("%q gives flows that cannot run: %v", in, err)
				}
				return
			}
		}
		var e *fileerror.Error
		if !errors.As(err, &e) || e.Line == 0 {
			t.Fatalf("Parse(%q) = %T %v; want an error with a line", in, err, err)
		}
	})
}
