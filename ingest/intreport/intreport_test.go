package intreport

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/intreport"
	"github.com/weft-telemetry/weft/wire/keyed"
	"github.com/weft-telemetry/weft/wire/label"
	"github.com/weft-telemetry/weft/wire/mirror"
	"github.com/weft-telemetry/weft/wire/packet"
)

var sender = netip.MustParseAddr("10.9.0.1")

func decoder(t testing.TB, out Output) *Decoder {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Cell = 80
	cfg.Switch = func(n uint32) (model.NodeID, bool) { return model.NodeID(n - 100), n >= 100 && n < 110 }
	d, err := NewDecoder(cfg, out)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// sample is a report of one hop with the packet it is about.
func sample(at model.Time) intreport.Report {
	frame := packet.Ethernet{Type: packet.TypeIPv4}.AppendTo(nil)
	ip := packet.IPv4{Length: 28, TTL: 60, Proto: model.UDP, Src: 0x0a000001, Dst: 0x0a000002}
	ip.Checksum = ip.Sum()
	frame = packet.UDP{SrcPort: 7, DstPort: 9, Length: 8}.AppendTo(ip.AppendTo(frame))
	r := intreport.Report{Type: intreport.INT, Inner: intreport.InnerEthernet, Flags: intreport.Tracked, Contents: frame}
	r.Metadata = intreport.Metadata{
		Bits:    intreport.BitPorts | intreport.BitQueue | intreport.BitHopLatency | intreport.BitEgressTime | intreport.BitUtilisation,
		Ingress: 3, Egress: 4, QueueDepth: 10, HopLatency: 1500, EgressTime: uint64(at), Utilisation: 50,
	}
	return r
}

func datagram(node, seq uint32, reports ...intreport.Report) []byte {
	b := intreport.Group{Node: node, Seq: seq}.AppendTo(nil)
	for i := range reports {
		b = reports[i].AppendTo(b)
	}
	return b
}

func TestReportsBecomeLabelsAndMirrors(t *testing.T) {
	now := model.TimeOf(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	var items []label.Item
	var mirrors []mirror.Mirror
	d := decoder(t, Output{
		Label: func(_ model.Time, data []byte) {
			var e label.Export
			if _, err := e.Parse(data); err != nil {
				t.Errorf("label is no export: %v", err)
				return
			}
			items = append(items, e.Labels.Item(0))
		},
		Mirror: func(_ model.Time, m *mirror.Mirror) { mirrors = append(mirrors, *m) },
	})
	at := now.Add(-time.Millisecond)
	dropped := sample(at)
	dropped.Flags = intreport.Dropped
	adrift := sample(12345) // counts from its boot
	d.HandleDatagram(now, sender, datagram(102, 5, sample(at), dropped))
	d.HandleDatagram(now, sender, datagram(102, 8, adrift))
	d.HandleDatagram(now, sender, datagram(7, 0, sample(at)))
	d.HandleDatagram(now, sender, []byte("no report"))
	want := label.Item{Switch: 2, Ingress: 3, Egress: 4, Time: at, Latency: 1500, EnqueueDepth: 800, DequeueDepth: 800, Utilisation: 32767}
	if len(items) != 3 || items[0] != want || items[2].Time != now {
		t.Errorf("labels %+v; want three, the first %+v, the last of %v", items, want, now)
	}
	if len(mirrors) != 3 || mirrors[0].Out != 4 || mirrors[1].Out != 0 || mirrors[0].Switch != 2 || mirrors[0].Time != at {
		t.Errorf("mirrors %+v; want three of switch 2, the dropped one without an out port", mirrors)
	}
	got := d.Stats()
	if got.Datagrams != 4 || got.Malformed != 1 || got.Missing != 2 || got.Reports != 4 || got.Used != 3 || got.Unknown != 1 || got.Drops != 1 || got.Unsynced == 0 {
		t.Errorf("stats %+v", got)
	}
}

// FuzzDatagram: nothing panics, and every report is counted.
func FuzzDatagram(f *testing.F) {
	f.Add(datagram(102, 1, sample(5), sample(6)))
	f.Fuzz(func(t *testing.T, b []byte) {
		d := decoder(t, Output{
			Label: func(_ model.Time, data []byte) {
				var e label.Export
				if n, err := e.Parse(data); err != nil || n != len(data) {
					t.Fatalf("label %x: %d, %v", data, n, err)
				}
			},
			Mirror: func(_ model.Time, m *mirror.Mirror) {
				var back mirror.Mirror
				if _, err := back.Parse(m.AppendTo(nil)); err != nil {
					t.Fatalf("mirror %+v: %v", m, err)
				}
			},
		})
		d.HandleDatagram(1, sender, b)
		if s := d.Stats(); s.Reports != s.Used+s.Other+s.Unknown+s.UnknownPort+s.Empty {
			t.Fatalf("stats %+v do not add up", s)
		}
	})
}

// TestReportsBecomePostcards: a hop's latency and queue are found by the key of the flow,
// at the place on the path that the TTL says. Reports that do not say it have no postcard.
func TestReportsBecomePostcards(t *testing.T) {
	now := model.TimeOf(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	var words [keyed.Parts]uint32
	var got []dta.Report
	d := decoder(t, Output{
		Label: func(model.Time, []byte) {}, Mirror: func(model.Time, *mirror.Mirror) {},
		Keyed: func(_ model.Time, reports []dta.Report) {
			got = append(got, reports...)
			for i := range reports {
				words[i] = binary.BigEndian.Uint32(reports[i].Data)
			}
		},
	})
	at := now.Add(-time.Millisecond)
	noLatency := sample(at)
	noLatency.Bits &^= intreport.BitHopLatency
	dropped := sample(at)
	dropped.Flags = intreport.Dropped
	far := sample(at)
	far.Contents = append([]byte(nil), far.Contents...)
	far.Contents[packet.EthernetSize+8] = 30 // more hops than a path of postcards has
	d.HandleDatagram(now, sender, datagram(102, 5, sample(at), noLatency, dropped, far))
	if len(got) != int(keyed.Parts) || d.Stats().Postcards != 1 {
		t.Fatalf("%d reports of %d postcards, want %d of 1", len(got), d.Stats().Postcards, keyed.Parts)
	}
	flow := model.FlowKey{Src: model.Addr4(0x0a000001), Dst: model.Addr4(0x0a000002), SrcPort: 7, DstPort: 9, Proto: model.UDP}
	var key keyed.PostcardKey
	if err := key.Parse(got[0].Key); err != nil || key != keyed.NewPostcardKey(&flow, key.Lane) || got[0].Hop != 3 {
		t.Errorf("key %+v of hop %d, %v; want one of %v, hop 3 for a TTL of 60", key, got[0].Hop, err, &flow)
	}
	card, ok := keyed.ParsePostcard(words, now)
	if !ok || card.Switch != 2 || (card.Latency-1500).Abs() > 15 || card.Queue != 800 || at.Sub(card.Time).Abs() > keyed.TimeUnit {
		t.Errorf("postcard %+v, %v; want switch 2, 1.5 µs, 800 bytes", card, ok)
	}
}
