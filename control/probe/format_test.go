package probe

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/analyze/filter"
	"github.com/weft-telemetry/weft/inhost/prober"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/packet"
)

func TestParseFormat(t *testing.T) {
	a := func(s string) model.Addr { return model.AddrOf(netip.MustParseAddr(s)) }
	for text, want := range map[string]prober.Packet{
		"ip.src==10.0.0.1&&ip.dst==10.0.0.2": {Key: model.FlowKey{Src: a("10.0.0.1"), Dst: a("10.0.0.2"), Proto: model.UDP}},
		"ip.src == 10.0.0.1,10.0.0.3 && ip.dst == 10.0.0.2, 10.0.0.4 && ip.proto == 6": {
			Tunnels: []prober.Tunnel{{Src: a("10.0.0.1"), Dst: a("10.0.0.2")}},
			Key:     model.FlowKey{Src: a("10.0.0.3"), Dst: a("10.0.0.4"), Proto: model.TCP},
		},
		"ip.src == 10.0.0.1,2001:db8::1 && ip.dst == 10.0.0.2,2001:db8::2 && tcp.dstport == 80 && tcp.flags == 0x02 && ip.ttl == 9,3 && ip.dsfield.dscp == 26 && data.len == 100": {
			Tunnels: []prober.Tunnel{{Src: a("10.0.0.1"), Dst: a("10.0.0.2"), TTL: 9}},
			Key:     model.FlowKey{Src: a("2001:db8::1"), Dst: a("2001:db8::2"), DstPort: 80, Proto: model.TCP, V6: true},
			TTL:     3, DSCP: 26, TCPFlags: packet.SYN, Payload: 100,
		},
	} {
		got, err := ParseFormat(text, nil)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("ParseFormat(%q): %v\n%s", text, err, diff)
		}
	}
}

func TestFormatErrorsPoint(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    `column 1: "", want a condition such as ip.dst == 10.0.0.2`,
		"ip.src == 1.2.3.4 &&  nonsense":      `column 23: "nonsense", want a condition such as ip.dst == 10.0.0.2`,
		"ip.src == 1.2.3.4 && vlan.id == 3":   `column 22: unknown field "vlan.id", want one of data.len, ip.dsfield.dscp, ip.dsfield.ecn, ip.dst, ip.id, ip.proto, ip.src, ip.ttl, tcp.ack, tcp.dstport, tcp.flags, tcp.seq, tcp.srcport, udp.dstport, udp.srcport`,
		"ip.src == 1.2.3.4 && ip.dst == here": `column 32: ip.dst "here", want an address or the name of a node`,
		"ip.src == 1.2.3.4":                   `column 1: no ip.dst, want one, or a list from the outermost header to the innermost`,
		"ip.src == 1.2.3.4 && ip.dst == 1.1.1.1,2.2.2.2":                              `column 32: 2 destinations and 1 sources, want as many`,
		"ip.src == 1.2.3.4 && ip.dst == 1.1.1.1 && ip.src == 1.1.1.1":                 `column 43: ip.src again, want it once`,
		"ip.src == 1.2.3.4 && ip.dst == 1.1.1.1 && udp.dstport == 70000":              `column 58: udp.dstport "70000", want a number up to 65535`,
		"ip.src == 1.2.3.4 && ip.dst == 1.1.1.1 && udp.dstport == 1,2":                `column 58: 2 values of udp.dstport, want one: it is the innermost header's`,
		"ip.src == 1.2.3.4 && ip.dst == 1.1.1.1 && ip.proto == 6 && udp.dstport == 1": `column 75: a field of udp in a packet of protocol tcp, want that of its own`,
		"ip.src == 1.2.3.4 && ip.dst == ::1":                                          `column 1: probe from 1.2.3.4 to ::1, want addresses of one family`,
		"ip.src == 1.2.3.4 && ip.dst == 1.1.1.1 && ip.ttl == 0":                       `column 53: TTL "0", want 1 to 255`,
	} {
		_, err := ParseFormat(text, nil)
		var at *filter.Error
		if !errors.As(err, &at) || err.Error() != "filter: "+want {
			t.Errorf("ParseFormat(%q) = %v\nwant %s", text, err, want)
		}
	}
}

func FuzzParseFormat(f *testing.F) {
	f.Add("ip.src == 10.0.0.1,10.0.0.3 && ip.dst == 10.0.0.2, 10.0.0.4 && ip.proto == 6 && ip.ttl == 3")
	f.Add("ip.src == ::1 && ip.dst == ::2 && udp.srcport == 0x10 && data.len == 99")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParseFormat(text, nil)
		var at *filter.Error
		if err != nil {
			if !errors.As(err, &at) || at.Column() < 1 || at.Column() > len(text)+1 || at.Want == "" || at.Underline() == "" {
				t.Fatalf("ParseFormat(%q) = %v; want an error with a column of the text", text, err)
			}
			return
		}
		if err := p.Check(); err != nil {
			t.Fatalf("ParseFormat(%q) = %+v, which is %v", text, p, err)
		}
	})
}
