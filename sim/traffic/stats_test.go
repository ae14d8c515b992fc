package traffic

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/weft-telemetry/weft/model"
)

func TestSummarize(t *testing.T) {
	hosts := []Host{{0, 8 * model.Gbps}, {1, 16 * model.Gbps}, {2, 0}} // 1 and 2 bytes per ns
	flows := []Flow{
		{Src: 0, Dst: 1, Start: 100, Bytes: 250, Group: 1},
		{Src: 0, Dst: 2, Start: 100, Stop: 600, Rate: 4 * model.Gbps},   // half the link: 250 bytes
		{Src: 1, Dst: 0, Start: 500, Stop: 600, Rate: 100 * model.Gbps}, // the whole link: 200 bytes
		{Src: 1, Dst: 0, Start: 1100, Bytes: 300, Group: 2, After: []int{0}},
		{Src: 9, Dst: 1, Start: 1100, Stop: 1101, Rate: 8 * model.Gbps, Group: 2}, // of a host not asked about
	}
	want := Stats{
		Flows: 5, Groups: 2, Open: 3, Bytes: 550, First: 100, Last: 1101, Span: 1000,
		Hosts: []HostLoad{
			{hosts[0], Load{2, 500, 0.5}, Load{2, 500, 0.5}},
			{hosts[1], Load{2, 500, 0.25}, Load{2, 251, 0.1255}},
			{hosts[2], Load{}, Load{1, 250, 0}},
		},
	}
	near := cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })
	got := Summarize(flows, hosts, 1000)
	if d := cmp.Diff(want, got, near); d != "" {
		t.Errorf("Summarize differs (-want +got):\n%s", d)
	}
	if got := Summarize(flows, hosts, 0).Span; got != 1001 {
		t.Errorf("Summarize without a span takes %v; want 1.001µs", got)
	}
	text := "5 flows, 550 B and 3 without end, 2 groups, from +100 ns to +1.1 µs; " +
		"hosts send 25 % of their links (0 % to 50 %), receive 20.8 % of their links (0 % to 50 %)"
	if got.String() != text {
		t.Errorf("String() = %s; want %s", got, text)
	}
}

func TestSummarizeWithoutASpan(t *testing.T) {
	for want, flows := range map[string][]Flow{
		"0 flows, 0 B":                       nil,
		"1 flow, 500 B, from +7 ns to +7 ns": {{Src: 0, Dst: 1, Start: 7, Bytes: 500}},
	} {
		if got := Summarize(flows, hostsOf(2), 0).String(); got != want {
			t.Errorf("String() = %q; want %q", got, want)
		}
	}
}
