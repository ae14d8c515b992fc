package clickhouse

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/analyze/filter/flowfields"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/record"
)

// TestFiltersOfTheServer compares flows that the server selects with those that match, and
// says which filters it decides.
func TestFiltersOfTheServer(t *testing.T) {
	cfg := testConfig(t)
	cfg.MaxPage = 1000 // all flows
	s := open(t, cfg)
	defer s.Close() //nolint:errcheck // nothing is left
	b := &record.Batch{}
	addresses := []string{"10.0.0.1", "10.0.1.255", "10.3.0.9", "0.0.0.0", "2001:db8::1", "2001:db8::2"}
	to := []string{"10.3.0.9", "0.0.0.0", "10.0.0.1", "10.0.1.255", "2001:db8::2", "2001:db8::1"}
	hosts := []string{"h1", "h2", "", `o'hara"\`}
	for i, src := range addresses {
		for k, host := range hosts {
			for _, proto := range []model.Proto{model.TCP, model.UDP, 1} {
				b.Flows = append(b.Flows, record.FlowSlot{
					Time: base, Slot: time.Second, Src: host, Dst: hosts[(i+k)%len(hosts)], Packets: uint64(i + k), Bytes: uint64(100 * len(b.Flows)), // all different
					Flow: model.FlowKey{
						Src: model.AddrOf(netip.MustParseAddr(src)), Dst: model.AddrOf(netip.MustParseAddr(to[i])),
						SrcPort: uint16(40000 + i), DstPort: uint16(79 + k), Proto: proto, V6: i > 3,
					},
				})
			}
		}
	}
	b.Flows = append(b.Flows, record.FlowSlot{Time: base, Slot: time.Second, Src: "none", Bytes: 1e6})
	if err := s.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	all, err := s.FlowSums(t.Context(), record.FlowSumQuery{Sort: record.ByBytes, Limit: 1000})
	if err != nil || len(all.Items) != len(b.Flows) {
		t.Fatalf("%d flows, %v; want %d", len(all.Items), err, len(b.Flows))
	}
	schema := flowfields.Schema(flowfields.Names{})
	for text, decides := range map[string]bool{
		"ip": true, "ipv6": true, "!ip": true, "tcp": true, "!udp": true, "tcp == false": true, "tcp != true": true,
		"ip.src == 10.0.0.1": true, "ip.src != 10.0.0.1": true, "ip.addr == 10.3.0.9": true, "ip.addr != 10.3.0.9": true, "ipv6.src == 2001:db8::1": true,
		"tcp.port == 80": true, "tcp.dstport > 80": true, "udp.srcport in {1, 40000..40002}": true, "tcp.port != 80": true, "ip.proto == tcp": true, "ipv6.nxt != udp": true,
		"flow.src == h1": true, "flow.src != h1": true, "flow.host contains h": true, "flow.host != h1": true, "flow.src": true, `flow.dst == "o'hara\"\\"`: true,
		"flow.dst in {h1, h2}": true, "flow.src == h1 && tcp": true, "flow.src == h1 || tcp": true, "!(flow.src == h1 || tcp)": true,
		// The sums of what the server selects decide these.
		"ip.src == 10.0.0.0/16": false, "ip.src != 10.0.0.0/16": false, "!(ip.src == 10.0.0.0/16)": false, "ip.src == 0.0.0.0/8": false, "ip.src < 10.0.1.0": false, "ipv6.src == ::/0": false,
		"flow.bytes > 2000": false, "tcp && flow.bytes > 2000": false, "tcp || flow.bytes > 2000": false, "!(tcp && flow.bytes > 2000)": false, "hop.switch == e1": false, "!flow.job": false,
	} {
		f, err := schema.Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if sql, exact := s.candidates(f.Condition()); exact != decides {
			t.Errorf("%s is %s: the server decides it: %v; want %v", text, sql, exact, decides)
		}
		want := []record.FlowSum{}
		for i := range all.Items {
			if f.Match(&all.Items[i]) {
				want = append(want, all.Items[i])
			}
		}
		got, err := s.FlowSums(t.Context(), record.FlowSumQuery{
			Sort: record.ByBytes, Limit: 1000, Filter: record.FlowFilter{Text: text, Where: f.Condition(), Match: f.Match},
		})
		if d := cmp.Diff(want, append([]record.FlowSum{}, got.Items...)); err != nil || d != "" {
			t.Errorf("%s: %v (- matching, + answer):\n%s", text, err, d)
		}
		if got.Totals.Flows != uint64(len(want)) {
			t.Errorf("%s: %d flows; want %d", text, got.Totals.Flows, len(want))
		}
	}
}
