package ipfix

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/collect/translate"
	"github.com/weft-telemetry/weft/ingest/identity"
	"github.com/weft-telemetry/weft/ingest/source"
	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/model/portstat"
	"github.com/weft-telemetry/weft/wire/ipfix"
)

// bench receives what a decoder makes of the exporter at an address.
type bench struct {
	*decoder
	flows   []portstat.FlowRecord
	refused map[translate.Refusal]int
}

func newBench(t testing.TB, exporter netip.Addr) *bench {
	t.Helper()
	port := func(text string) (model.PortID, bool) { return 1, text == "Ethernet0" }
	f := &source.Fabric{Switches: []source.Switch{{Name: "tor0", Ports: 1, Port: port}}}
	var err error
	if f.Identity, err = identity.New([]identity.Switch{{Name: "tor0", Addrs: []netip.Addr{exporter}, Ports: 1, Port: port}}); err != nil {
		t.Fatal(err)
	}
	b := &bench{refused: map[translate.Refusal]int{}}
	d, err := (&Config{}).NewDecoder(f, source.Output{
		Flow:    func(r *portstat.FlowRecord) { b.flows = append(b.flows, *r) },
		Refused: func(_ netip.Addr, why translate.Refusal, _ int) { b.refused[why]++ },
	})
	if err != nil {
		t.Fatal(err)
	}
	b.decoder = d.(*decoder)
	return b
}

// lost returns the count of a reason.
func (b *bench) lost(reason string) uint64 {
	for _, l := range b.Counters().Losses {
		if l.Reason == reason {
			return l.Count
		}
	}
	panic("no reason " + reason)
}

var exporter = netip.MustParseAddr("10.0.0.9")

const t0 = model.Time(1_000_000 * time.Second)

func (b *bench) send(message []byte) bool {
	return b.Decode(t0, netip.AddrPortFrom(exporter, 50000), message)
}

// words appends numbers of 16 bits.
func words(list ...uint16) (b []byte) {
	for _, w := range list {
		b = binary.BigEndian.AppendUint16(b, w)
	}
	return b
}

func set(id uint16, parts ...[]byte) []byte {
	body := bytes.Join(parts, nil)
	return append(words(id, uint16(4+len(body))), body...)
}

// message is one of IPFIX, of a domain.
func message(domain, seq uint32, sets ...[]byte) []byte {
	body := bytes.Join(sets, nil)
	b := words(ipfix.IPFIX, uint16(16+len(body)))
	for _, v := range []uint32{1_700_000_000, seq, domain} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return append(b, body...)
}

var template = set(2, words(256, 9, 8, 4, 12, 4, 7, 2, 11, 2, 4, 1, 61, 1, 1, 4, 2, 4, 158, 4))

// flow is a record of the template: it began a second before the export.
func flow(n byte, direction byte, packets uint32) []byte {
	b := append([]byte{10, 0, 0, n, 10, 0, 1, n}, words(1000, 80)...)
	b = append(b, 6, direction)
	for _, v := range []uint32{packets * 500, packets, 1e6} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

func TestFlows(t *testing.T) {
	b := newBench(t, exporter)
	if b.send(message(1, 0, set(256, flow(1, 0, 3)))) || b.lost("no template") != 1 {
		t.Errorf("a record without template is used, or not counted: %d", b.lost("no template"))
	}
	if !b.send(message(1, 10, template, set(256, flow(1, 0, 3), flow(2, 1, 4), flow(3, 0, 0)))) {
		t.Error("no record is used")
	}
	want := portstat.FlowRecord{
		From: t0.Add(-time.Second), To: t0, Source: portstat.IPFIX, Packets: 3, Bytes: 1500, Sampling: 1,
		Flow: model.FlowKey{Src: model.Addr4(0x0a000001), Dst: model.Addr4(0x0a000101), SrcPort: 1000, DstPort: 80, Proto: model.TCP},
	}
	if len(b.flows) != 1 || b.flows[0] != want {
		t.Errorf("flows %+v; want %+v", b.flows, want)
	}
	// From now on the exporter says that it samples, and how port 7 is called.
	b.send(message(1, 13, set(3, words(300, 4, 1, 149, 4, 34, 4, 10, 4, 82, 9)), set(300, make([]byte, 4), []byte{0, 0, 1, 0, 0, 0, 0, 7}, []byte("Ethernet0"))))
	b.send(message(1, 14, set(256, flow(1, 0, 3))))
	if got := b.flows[len(b.flows)-1]; got.Sampling != 256 || got.Packets != 3*256 || got.Bytes != 1500*256 {
		t.Errorf("%+v; want 256 times the packets", got)
	}
	if p, ok := b.names.PortByIndex(0, 7); !ok || p != 1 {
		t.Errorf("ifIndex 7 is port %d, %v; want 1", p, ok)
	}
	if b.lost("missing") != 0 || b.lost("egress") != 1 || b.lost("other record") != 2 {
		t.Errorf("%+v; want one egress record, one of no packets and one of options", b.Counters())
	}
}

// TestMissing: records are counted by their numbers, restarts are not.
func TestMissing(t *testing.T) {
	b := newBench(t, exporter)
	b.send(message(1, 100, template, set(256, flow(1, 0, 1), flow(2, 0, 1))))
	for i, step := range []struct {
		domain, seq uint32
		want        uint64
	}{{1, 102, 0}, {1, 107, 4}, {1, 104, 4}, {1, 108, 4}, {2, 900, 4}, {1, 3_000_000_000, 4}, {1, 3_000_000_002, 5}} {
		b.send(message(step.domain, step.seq, template, set(256, flow(1, 0, 1))))
		if got := b.lost("missing"); got != step.want {
			t.Errorf("step %d: %d missing; want %d", i, got, step.want)
		}
	}
}

// TestHostile: strangers, too many domains and broken messages are counted, and make no flow.
func TestHostile(t *testing.T) {
	b := newBench(t, exporter)
	if b.Decode(t0, netip.MustParseAddrPort("10.9.9.9:1"), message(1, 0, template, set(256, flow(1, 0, 1)))) || b.lost("unknown exporter") != 1 || b.refused[translate.UnknownReporter] != 1 {
		t.Errorf("a stranger's message: %+v", b.Counters())
	}
	for _, broken := range [][]byte{nil, {0, 10}, message(1, 0, words(256, 2)), message(1, 0, set(2, words(256, 200)))} {
		b.send(broken)
	}
	if got := b.lost("malformed"); got != 4 {
		t.Errorf("%d malformed; want 4", got)
	}
	for i := range uint32(1000) {
		b.send(message(i, 0, template))
	}
	if got := b.lost("too many domains"); got != 1000-maxDomains || len(b.domains) != maxDomains {
		t.Errorf("%d messages of too many domains, %d domains; want %d", got, len(b.domains), maxDomains)
	}
	long := bytes.Clone(flow(1, 0, 1))
	binary.BigEndian.PutUint32(long[len(long)-4:], 0xffffffff)
	b.send(message(1, 0, set(256, long)))
	if b.lost("clock") != 1 || len(b.flows) != 0 {
		t.Errorf("a flow of 71 minutes: %+v, %d flows; want none", b.Counters(), len(b.flows))
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(message(1, 0, template, set(256, flow(1, 0, 3))))
	f.Add(message(1, 13, set(3, words(300, 2, 1, 149, 4, 34, 4)), set(300, make([]byte, 8))))
	b := newBench(f, exporter)
	f.Fuzz(func(t *testing.T, data []byte) {
		b.flows = b.flows[:0]
		b.send(data)
		for _, r := range b.flows {
			if r.Interval() < 0 || r.Packets == 0 || r.Sampling == 0 || r.Interval() > longest {
				t.Errorf("flow %+v", r)
			}
		}
		c := b.Counters()
		if c.In != c.Out+b.stats.other+b.stats.egress+b.stats.clock {
			t.Errorf("%d records, %d used: %+v", c.In, c.Out, b.stats)
		}
	})
}
