package htsim

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

const small = `# comment
Nodes 4
Connections 4
Triggers 2

0->1 id 1 start 0 size 1000 send_done_trigger 7
1->2 id 2 trigger 7 size 2000 recv_done_trigger 9
2->3 id 3 start 1500000.5 size 3000 recv_done_trigger 9
3->0 id 4 trigger 9 size 4000
trigger id 7 oneshot
trigger id 9 barrier count 2
`

func TestFlows(t *testing.T) {
	m, err := Parse("x.cm", []byte(small))
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Flows([]model.NodeID{10, 11, 12, 13})
	if err != nil {
		t.Fatal(err)
	}
	want := []traffic.Flow{
		{Src: 10, Dst: 11, Bytes: 1000, Priority: 3},
		{Src: 11, Dst: 12, Bytes: 2000, Priority: 3, After: []int{0}},
		{Src: 12, Dst: 13, Bytes: 3000, Priority: 3, Start: 1500},
		{Src: 13, Dst: 10, Bytes: 4000, Priority: 3, After: []int{1, 2}},
	}
	if x := cmp.Diff(want, got); x != "" {
		t.Errorf("Flows (-want +got):\n%s", x)
	}
	if _, err := m.Flows(make([]model.NodeID, 3)); err == nil || err.Error() != "x.cm:1: Nodes 4 for a topology of 3 hosts, want at most that" {
		t.Errorf("Flows on 3 hosts = %v", err)
	}
}

// TestMultishot: each activation starts one flow.
func TestMultishot(t *testing.T) {
	m, err := Parse("x.cm", []byte("Nodes 4\nConnections 4\nTriggers 1\n"+
		"0->1 id 1 start 0 size 1 send_done_trigger 1\n0->2 id 2 start 0 size 1 send_done_trigger 1\n"+
		"0->3 id 3 trigger 1 size 1\n0->1 id 4 trigger 1 size 1\ntrigger id 1 multishot\n"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Flows([]model.NodeID{0, 1, 2, 3})
	if err != nil || len(got[2].After) != 1 || got[2].After[0] != 0 || len(got[3].After) != 1 || got[3].After[0] != 1 {
		t.Errorf("Flows = %+v, %v; want flow 2 after 0 and 3 after 1", got, err)
	}
	if len(m.Notes) != 1 {
		t.Errorf("notes %q; want one about multishot", m.Notes)
	}
}

func TestErrors(t *testing.T) {
	for _, tc := range []struct{ old, new, want string }{
		{"Nodes 4", "Nodes many", `x:2: Nodes "many", want a whole number from 0`},
		{"Nodes 4\n", "", "x:10: file ends without Nodes, want it"},
		{"Nodes 4", "Nodes 3", "x:8: connection 2->3, want nodes from 0 to 2"},
		{"Connections 4", "Connections 5", "x:3: Connections 5, want 4, as many as follow"},
		{"Triggers 2", "Triggers", "x:4: Triggers with 0 values, want one number"},
		{"0->1 id 1", "0-1 id 1", `x:6: unknown word "0-1", want a connection such as 0->1`},
		{"0->1", "0->0", "x:6: connection 0->0, want two nodes"},
		{"0->1", "0->", `x:6: destination "", want a whole number from 0`},
		{"size 1000", "size 0", `x:6: size "0", want bytes from 1 to 1000000000000000`},
		{"size 1000", "sise 1000", `x:6: unknown word "sise", want id, start, size`},
		{"start 0", "start -1", `x:6: start "-1", want picoseconds from 0`},
		{"start 0", "start NaN", `x:6: start "NaN", want picoseconds from 0`},
		{"start 0 size", "size", "x:6: connection with neither start nor trigger, want one of them"},
		{"id 2 trigger 7", "id 2 start 1 trigger 7", "x:7: connection with both start and trigger, want one of them"},
		{"id 2", "id 1", "x:7: id 1 again, the first one is on line 6, want different ones"},
		{"id 2", "id 0", `x:7: id "0", want a whole number from 1`},
		{" send_done_trigger 7", "", "x:10: trigger 7: no connection activates it, want one"},
		{"send_done_trigger 7", "send_done_trigger 8", "x:6: trigger 8 is not in the file, want it"},
		{"id 7 oneshot", "id 7", "x:10: trigger 7 without a kind, want oneshot, multishot or barrier"},
		{"id 7 oneshot", "oneshot", "x:10: trigger without an id, want one"},
		{"id 7 oneshot", "id 7 oneshot barrier", "x:10: trigger of two kinds, want one"},
		{"id 9 barrier count 2", "id 9 barrier", "x:11: barrier 9 without a count, want one"},
		{"count 2", "count 3", "x:11: trigger 9: barrier of count 3 that is activated 2 times, want as many"},
		{"barrier count 2", "oneshot", "x:11: trigger 9: oneshot that 2 connections activate, want one"},
		{"id 9 barrier", "id 7 barrier", "x:11: trigger 7 again, the first one is on line 10, want it once"},
		{"trigger id 7", "failure switch_type CORE switch_id 1 link_id 1\ntrigger id 7", `x:10: switch_type "CORE", want TOR or AGG`},
		{"trigger id 7", "failure switch_id 1 link_id 1\ntrigger id 7", "x:10: failure, want switch_type, switch_id and link_id"},
		{"size 4000", "size", "x:9: size has no value, want one"},
	} {
		text := strings.Replace(small, tc.old, tc.new, 1)
		if text == small {
			t.Fatalf("the matrix has no %q", tc.old)
		}
		if _, err := Parse("x", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%q as %q: %v; want %s", tc.old, tc.new, err, tc.want)
		}
	}
	if _, err := Parse("x", nil); err == nil || err.Error() != "x:1: file ends without Nodes, want it" {
		t.Errorf("Parse of nothing = %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(small))
	for _, name := range []string{"permutation.cm", "allgather.cm"} {
		in, err := os.ReadFile("../../examples/htsim/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		m, err := Parse("in", in)
		if err != nil {
			var e *fileerror.Error
			if !errors.As(err, &e) || e.Line == 0 {
				t.Fatalf("Parse(%q) = %T %v; want an error with a line", in, err, err)
			}
			return
		}
		if m.Nodes > 1000 {
			return
		}
		hosts := make([]model.NodeID, m.Nodes)
		for i := range hosts {
			hosts[i] = model.NodeID(i)
		}
		flows, err := m.Flows(hosts)
		if err != nil || len(flows) != len(m.Connections) {
			t.Fatalf("Flows of %q = %d, %v; want %d", in, len(flows), err, len(m.Connections))
		}
		for i := range flows {
			if (len(flows[i].After) > 0) != (m.Connections[i].Trigger != 0) {
				t.Fatalf("%q: flow %d waits for %v; want some exactly if it has a trigger", in, i, flows[i].After)
			}
		}
	})
}
