package convert

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/erspan"
	"github.com/weft-telemetry/weft/wire/intreport"
	"github.com/weft-telemetry/weft/wire/label"
	"github.com/weft-telemetry/weft/wire/mirror"
	"github.com/weft-telemetry/weft/wire/packet"
	"github.com/weft-telemetry/weft/wire/pfc"
)

const (
	labelList  = 7
	mirrorList = 9
	otherList  = 1
)

var (
	now   = model.TimeOf(time.Date(2026, 1, 2, 3, 4, 5, 678_900_000, time.UTC))
	lists = Config{Labels: Lists{First: labelList, Count: 1}, Mirrors: Lists{First: mirrorList, Count: 2}}
)

// sent is a packet as it left.
type sent struct {
	format Format
	from   model.NodeID
	packet []byte
}

// export converts datagrams of switch 5, whose first report has the number first.
func export(t *testing.T, cfg Config, datagrams ...[]byte) (out []sent) {
	t.Helper()
	e := NewExporter(cfg, func(f Format, at model.Time, from model.NodeID, b []byte) error {
		if at != now {
			t.Errorf("a packet at %v, want the time of its datagram, %v", at, now)
		}
		out = append(out, sent{f, from, append([]byte(nil), b...)})
		return nil
	})
	for _, d := range datagrams {
		if err := e.Datagram(now, 5, d); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// datagram is a datagram of Append reports from switch 5.
func datagram(t *testing.T, first dta.Seq, reports ...dta.Report) []byte {
	t.Helper()
	w := dta.NewWriter(5, first)
	w.Begin(make([]byte, 1400))
	for i := range reports {
		reports[i].Primitive = dta.Append
		if err := w.AddReport(&reports[i]); err != nil {
			t.Fatal(err)
		}
	}
	return w.Finish()
}

func labels(items ...label.Item) dta.Report {
	e := label.Export{Switch: 5, Time: now, Key: model.FlowKey{Src: model.Addr4(1), Dst: model.Addr4(2), Proto: model.UDP}}
	for _, it := range items[:len(items)-1] {
		data := e.AppendWithLabel(nil, it, label.Option{NextHeader: model.UDP, MaxHop: label.DefaultMaxHop})
		if _, err := e.Parse(data); err != nil {
			panic(err)
		}
	}
	return dta.Report{List: labelList, Data: e.AppendWithLabel(nil, items[len(items)-1], label.Option{NextHeader: model.UDP, MaxHop: label.DefaultMaxHop})}
}

// TestLabelsLeaveAsINT: every label of an export is a report of its own switch, with
// the state that the label had, in the units of ingest's defaults.
func TestLabelsLeaveAsINT(t *testing.T) {
	far := label.Item{Switch: 4, Ingress: 1, Egress: 3, Time: now - 5000, Latency: 1200, DequeueDepth: 64_000, Queue: 3, Utilisation: 32768}
	own := label.Item{Switch: 5, Ingress: 2, Egress: 4, Time: now, Latency: 700, DequeueDepth: 1500, Utilisation: 65535}
	got := export(t, lists, datagram(t, 100, labels(far, own)), datagram(t, 101, labels(own)))
	type report struct {
		From model.NodeID
		intreport.Group
		intreport.Metadata
	}
	var reports []report
	for _, s := range got {
		var r intreport.Reader
		var rep intreport.Report
		if s.format != INT || r.Reset(s.packet) != nil {
			t.Fatalf("format %d, packet %x; want INT reports alone", s.format, s.packet)
		}
		if more, err := r.Next(&rep); !more || err != nil || rep.Inner != intreport.InnerNone {
			t.Fatalf("report %+v, %v; want one without a packet", rep, err)
		}
		reports = append(reports, report{s.from, r.Group, rep.Metadata})
	}
	bits := intreport.BitPorts | intreport.BitHopLatency | intreport.BitQueue | intreport.BitEgressTime | intreport.BitUtilisation
	first := intreport.Metadata{Bits: bits, Ingress: 2, Egress: 4, HopLatency: 700, QueueDepth: 1500, EgressTime: uint64(now), Utilisation: 100}
	want := []report{
		{5, intreport.Group{Node: 5}, first},
		{4, intreport.Group{Node: 4}, intreport.Metadata{Bits: bits, Ingress: 1, Egress: 3, HopLatency: 1200, Queue: 3, QueueDepth: 64_000, EgressTime: uint64(now - 5000), Utilisation: 50}},
		{5, intreport.Group{Node: 5, Seq: 1}, first},
	}
	if diff := cmp.Diff(want, reports); diff != "" {
		t.Error(diff)
	}
}

// TestMirrorsLeaveAsERSPAN: an IP packet is an ERSPAN packet with the mirror's time and
// port; a PFC frame stays a report.
func TestMirrorsLeaveAsERSPAN(t *testing.T) {
	frame := packet.Ethernet{Type: packet.TypeIPv4}.AppendTo(nil)
	ip := packet.IPv4{Proto: model.UDP, TTL: 9, Src: 1, Dst: 2, Length: packet.IPv4Size + packet.UDPSize}
	ip.Checksum = ip.Sum()
	frame = packet.UDP{SrcPort: 1, DstPort: 2, Length: packet.UDPSize}.AppendTo(ip.AppendTo(frame))
	one := mirror.Mirror{Reasons: mirror.Sample, Switch: 5, In: 6, Out: 7, Time: now - 1234, Length: 900, Frame: frame}
	pause := mirror.Mirror{Reasons: mirror.Protocol, Switch: 5, In: 6, Time: now, Length: 64, Frame: pfc.Resume(model.MAC{}, 3).AppendTo(nil)}
	other := dta.Report{List: otherList, Data: []byte("flowset")}
	reports := []dta.Report{{List: mirrorList, Data: one.AppendTo(nil)}, other, {List: mirrorList + 1, Data: pause.AppendTo(nil)}}
	got := export(t, lists, datagram(t, 100, reports...))
	if len(got) != 2 || got[0].format != ERSPAN || got[1].format != DTA {
		t.Fatalf("%+v; want an ERSPAN packet and a DTA datagram", got)
	}
	var m erspan.Mirror
	if _, err := m.Parse(got[0].packet); err != nil {
		t.Fatal(err)
	}
	port, known := m.Port()
	ticks := m.Platform&0xffffffff<<32 | uint64(m.Timestamp)
	if m.Kind != erspan.TypeIII || !known || port != 6 || !m.Truncated || ticks != uint64(now-1234)/100 || !cmp.Equal(m.Frame, frame) {
		t.Errorf("%+v; want type III with port 6, the time and the frame", m)
	}
	var rest dta.Reader
	if err := rest.Reset(got[1].packet); err != nil {
		t.Fatal(err)
	}
	var left []dta.ListID
	for rep := (dta.Report{}); rest.Next(&rep); {
		left = append(left, rep.List)
	}
	if want := []dta.ListID{otherList, mirrorList + 1}; !cmp.Equal(left, want) || rest.Header().Seq != 100 {
		t.Errorf("reports to lists %v from number %d on stayed, want %v from 100 on", left, rest.Header().Seq, want)
	}
}

// TestNumbersShowWhatWasLost: datagrams are numbered without gaps as long as none was
// lost before, and a lost one leaves a gap of its reports.
func TestNumbersShowWhatWasLost(t *testing.T) {
	other := dta.Report{List: otherList, Data: []byte("x")}
	got := export(t, lists,
		datagram(t, 100, other, labels(label.Item{Switch: 5, Egress: 1})), // 100, 101: the label leaves
		datagram(t, 102, other),
		datagram(t, 106, other, other), // 103 to 105 were lost
		datagram(t, 104, other),        // one of them is late
		datagram(t, 108, other),
	)
	var seqs []dta.Seq
	for _, s := range got {
		var r dta.Reader
		if s.format == DTA {
			if err := r.Reset(s.packet); err != nil {
				t.Fatal(err)
			}
			seqs = append(seqs, r.Header().Seq)
		}
	}
	if want := []dta.Seq{100, 101, 105, 107, 108}; !cmp.Equal(seqs, want) {
		t.Errorf("datagrams begin with the numbers %v, want %v", seqs, want)
	}
}

// TestReportsStayAsTheyAre: without lists to convert, datagrams stay the same.
func TestReportsStayAsTheyAre(t *testing.T) {
	in := datagram(t, 100, labels(label.Item{Switch: 5, Egress: 1}), dta.Report{List: mirrorList, Data: []byte("no mirror")})
	if got := export(t, Config{}, in); len(got) != 1 || got[0].format != DTA || !cmp.Equal(got[0].packet, in) {
		t.Errorf("%+v, want the datagram %x", got, in)
	}
	e := NewExporter(lists, func(Format, model.Time, model.NodeID, []byte) error { return nil })
	if err := e.Datagram(now, 5, in); err == nil {
		t.Error("a report to the list of mirrors that is none has no error")
	}
}
