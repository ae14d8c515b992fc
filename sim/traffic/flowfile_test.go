package traffic

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/weft-telemetry/weft/model"
)

// hostsOf makes hosts of 100 Gb/s with ids from 0.
func hostsOf(n int) []Host {
	hosts := make([]Host, n)
	for i := range hosts {
		hosts[i] = Host{model.NodeID(i), 100 * model.Gbps}
	}
	return hosts
}

func TestParseFlows(t *testing.T) {
	const in = "3\n2 1 3 100 200000000 2\n\n  3 1 5 0 1 2.000000003\r\n1 2 0 65535 5000 0.5e-3\n\nFirst line: # of flows\nsrc0 dst0 3\n"
	want := []Flow{
		{Src: 2, Dst: 1, Priority: 3, DstPort: 100, Bytes: 200_000_000, Start: 2e9},
		{Src: 3, Dst: 1, Priority: 5, Bytes: 1, Start: 2_000_000_003},
		{Src: 1, Dst: 2, DstPort: 65535, Bytes: 5000, Start: 500_000},
	}
	path := filepath.Join(t.TempDir(), "flow.txt")
	if err := os.WriteFile(path, []byte(in), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := ReadFlows(path, hostsOf(4))
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("ReadFlows = %v; want no error; and the flows differ (-want +got):\n%s", err, d)
	}
	sorted, err := Generate(1, hostsOf(4), List(got))
	if d := cmp.Diff([]Flow{want[2], want[0], want[1]}, sorted); err != nil || d != "" {
		t.Errorf("Generate = %v; want no error; and the flows differ (-want +got):\n%s", err, d)
	}
	if got, err := ParseFlows("in", []byte("0\nnothing to see\n"), nil); err != nil || len(got) != 0 {
		t.Errorf("ParseFlows of no flows = %v, %v; want none", got, err)
	}
}

var flowComplaints = map[string]struct{ in, want string }{
	"empty":       {"", "in:1: file ends here, want the number of flows"},
	"blank":       {"\n\n", "in:2: file ends here, want the number of flows"},
	"count":       {"two\n", `in:1: number of flows "two", want a number from 0 to 16777216 alone`},
	"no count":    {"\n2 1 3 100 5 2\n", `in:2: number of flows "2 1 3 100 5 2", want a number from 0 to 16777216 alone`},
	"huge count":  {"16777217\n", `in:1: number of flows "16777217", want a number from 0 to 16777216 alone`},
	"too few":     {"2\n2 1 3 100 5 2\n", "in:2: file ends after 1 flows, want 2"},
	"claim":       {"16777216\n2 1 3 100 5 2\n", "in:2: file ends after 1 flows, want 16777216"},
	"words":       {"1\n2 1 3 100 5\n", "in:2: flow 1 of 1: 5 words, want source, destination, priority, destination port, bytes and start"},
	"source":      {"1\nx 1 3 100 5 2\n", `in:2: flow 1 of 1: source "x", want a number from 0 to 4294967295`},
	"no host":     {"1\n9 1 3 100 5 2\n", "in:2: flow 1 of 1: source 9 is not a host of the fabric"},
	"to no host":  {"1\n1 4 3 100 5 2\n", "in:2: flow 1 of 1: destination 4 is not a host of the fabric"},
	"to itself":   {"1\n1 1 3 100 5 2\n", "in:2: flow 1 of 1: source and destination 1, want two hosts"},
	"priority":    {"2\n1 2 3 100 5 2\n2 1 8 100 5 2\n", `in:3: flow 2 of 2: priority "8", want a number from 0 to 7`},
	"port":        {"1\n2 1 3 65536 5 2\n", `in:2: flow 1 of 1: destination port "65536", want a number from 0 to 65535`},
	"no bytes":    {"1\n2 1 3 100 0 2\n", `in:2: flow 1 of 1: bytes "0", want a number from 1 to 1000000000000000`},
	"many bytes":  {"1\n2 1 3 100 1000000000000001 2\n", `in:2: flow 1 of 1: bytes "1000000000000001", want a number from 1 to 1000000000000000`},
	"start":       {"1\n2 1 3 100 5 2s\n", `in:2: flow 1 of 1: start "2s", want seconds from 0 to 1e+06`},
	"start early": {"1\n2 1 3 100 5 -1\n", `in:2: flow 1 of 1: start "-1", want seconds from 0 to 1e+06`},
	"start late":  {"1\n2 1 3 100 5 1e7\n", `in:2: flow 1 of 1: start "1e7", want seconds from 0 to 1e+06`},
	"start inf":   {"1\n2 1 3 100 5 inf\n", `in:2: flow 1 of 1: start "inf", want seconds from 0 to 1e+06`},
	"start huge":  {"1\n2 1 3 100 5 1e999\n", `in:2: flow 1 of 1: start "1e999", want seconds from 0 to 1e+06`},
}

func TestParseFlowsErrors(t *testing.T) {
	for name, tc := range flowComplaints {
		t.Run(name, func(t *testing.T) {
			if _, err := ParseFlows("in", []byte(tc.in), hostsOf(4)); err == nil || err.Error() != tc.want {
				t.Errorf("ParseFlows(%q) = %v; want %s", tc.in, err, tc.want)
			}
		})
	}
}

// writeFlows is the format's other direction.
func writeFlows(flows []Flow) string {
	var b strings.Builder
	fmt.Fprintln(&b, len(flows))
	for _, f := range flows {
		fmt.Fprintf(&b, "%d %d %d %d %d %d.%09d\n", f.Src, f.Dst, f.Priority, f.DstPort, f.Bytes, f.Start/1e9, f.Start%1e9)
	}
	return b.String() + "commentary\n"
}

func FuzzParseFlows(f *testing.F) {
	for _, tc := range flowComplaints {
		f.Add([]byte(tc.in))
	}
	f.Add([]byte("2\n2 1 3 100 200000000 2\n3 1 3 100 5000 2.000000001\nFirst line: # of flows\n"))
	hosts := hostsOf(4)
	f.Fuzz(func(t *testing.T, in []byte) {
		flows, err := ParseFlows("in", in, hosts)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Line < 1 || e.Line > strings.Count(string(in), "\n")+1 {
				t.Fatalf("ParseFlows(%q) = %v; want an *Error with a line of the file", in, err)
			}
			return
		}
		if err := Check(flows, hosts); err != nil && !strings.Contains(err.Error(), "carry more than") {
			t.Fatalf("Check(ParseFlows(%q)) = %v; want no error", in, err)
		}
		again, err := ParseFlows("out", []byte(writeFlows(flows)), hosts)
		if d := cmp.Diff(flows, again); err != nil || d != "" {
			t.Fatalf("ParseFlows(%q) = %v after writing; want the same flows (-want +got):\n%s", in, err, d)
		}
	})
}
