package flowfields

import (
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// TestFieldsAreThoseOfTheSums evaluates filters with every kind of field.
func TestFieldsAreThoseOfTheSums(t *testing.T) {
	begin := time.Unix(1000, 0)
	sum := record.FlowSum{
		Flow: model.NewFlowKey(netip.MustParseAddrPort("10.0.0.2:1024"), netip.MustParseAddrPort("10.0.1.2:4791"), model.UDP),
		Src:  "h0", Dst: "h1", First: begin, Last: begin.Add(2 * time.Second),
		Slots: 200, Packets: 1000, Bytes: 1_000_000, Lost: 10, Exact: true,
		Switches: []string{"tor0", "leaf0", "tor1"}, Hops: 3, Paths: 2,
	}
	six := sum
	six.Flow = model.NewFlowKey(netip.MustParseAddrPort("[2001:db8::1]:1"), netip.MustParseAddrPort("[2001:db8::2]:2"), model.TCP)
	outside := sum
	outside.Src, outside.Switches = "", nil
	huge := sum
	huge.Packets, huge.Bytes, huge.Last = math.MaxUint64, math.MaxUint64, begin.Add(1)
	schema := Schema(Names{
		Hosts: map[string]int64{"h0": 0, "h1": 0, "h2": 0}, Switches: map[string]int64{"tor0": 0, "leaf0": 0, "tor1": 0, "tor9": 0},
		Jobs: map[string]int64{"training": 0, "storage": 0},
		Job: func(s *record.FlowSum) string {
			if s.Src == "h0" {
				return "training"
			}
			return ""
		},
	})
	for _, tc := range []struct {
		sum    *record.FlowSum
		filter string
		want   bool
	}{
		{&sum, "flow.packets == 1000 && flow.lost == 10 && flow.slots == 200", true},
		{&sum, "flow.lost_share == 0.01", true},
		{&sum, "flow.bytes >= 1MB && flow.bytes < 2MB", true},
		{&sum, "flow.rate == 4Mb/s", true},
		{&sum, "flow.duration == 2s", true},
		{&sum, "flow.exact && flow.hops == 3 && flow.paths == 2", true},
		{&sum, "flow.src == h0 && flow.dst == h1", true},
		{&sum, "flow.src == h1 || flow.dst == h0", false},
		{&sum, "flow.host == h0 && flow.host == h1", true},
		{&sum, "flow.host == h2", false},
		{&sum, "flow.job == training", true},
		{&sum, "flow.job == storage", false},
		{&outside, "flow.job == training", false},
		{&outside, `flow.src == h0`, false},
		{&sum, "hop.switch == tor1", true},
		{&sum, "hop.switch == tor9", false},
		{&outside, "hop.switch == tor0", false},
		{&sum, "ip && udp && !tcp && !ipv6", true},
		{&sum, "ip.src == 10.0.0.2 && ip.addr == 10.0.1.2 && ip.proto == udp", true},
		{&sum, "udp.srcport == 1024 && udp.port == 4791 && udp.dstport == 4791", true},
		{&sum, "udp.srcport == 4791 || tcp.port == 1024", false},
		{&six, "ipv6.src == 2001:db8::1 && ipv6.nxt == tcp && tcp.dstport == 2", true},
		{&six, "ip || ip.proto == tcp || udp.port == 1", false},
		{&huge, "flow.packets == 9223372036854775807", true}, // the largest that a filter can name
		{&huge, "flow.rate > 1Tb/s", true},
	} {
		f, err := schema.Parse(tc.filter)
		if err != nil {
			t.Errorf("%s: %v", tc.filter, err)
			continue
		}
		if got := f.Match(tc.sum); got != tc.want {
			t.Errorf("%s is %v of %+v; want %v", tc.filter, got, *tc.sum, tc.want)
		}
	}
	// Without jobs no flow is of one.
	f, err := Schema(Names{Jobs: map[string]int64{"training": 0}}).Parse("flow.job == training")
	if err != nil {
		t.Fatal(err)
	}
	if f.Match(&sum) {
		t.Error("a flow is of a job where there are none")
	}
}
