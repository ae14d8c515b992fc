package ipfix

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/netsampler/goflow2/v2/decoders/netflow"
	"github.com/weft-telemetry/weft/model"
	"pgregory.net/rapid"
)

// message appends sets to a header of either version.
func message(version uint16, h Header, sets ...[]byte) []byte {
	body := bytes.Join(sets, nil)
	b := binary.BigEndian.AppendUint16(nil, version)
	if version == NetFlow9 {
		b = binary.BigEndian.AppendUint16(b, uint16(len(sets)))
		b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, h.Uptime), h.Export)
	} else {
		b = binary.BigEndian.AppendUint16(b, uint16(headerLen10+len(body)))
		b = binary.BigEndian.AppendUint32(b, h.Export)
	}
	b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, h.Seq), h.Domain)
	return append(b, body...)
}

func set(id uint16, parts ...[]byte) []byte {
	body := bytes.Join(parts, nil)
	return append(words(id, uint16(4+len(body))), body...)
}

func words(list ...uint16) (b []byte) {
	for _, w := range list {
		b = binary.BigEndian.AppendUint16(b, w)
	}
	return b
}

func long(v uint32) []byte { return binary.BigEndian.AppendUint32(nil, v) }

// sets of templates, by version
var templateSet = map[uint16]uint16{NetFlow9: 0, IPFIX: 2}

var flow4 = words(256, 11, 8, 4, 12, 4, 7, 2, 11, 2, 4, 1, 10, 4, 14, 4, 1, 8, 2, 4, 22, 4, 21, 4)

func record4() []byte {
	return bytes.Join([][]byte{
		{10, 0, 0, 1}, {10, 0, 1, 2}, words(7000, 4791), {17}, long(3), long(4), long(0), long(123456), long(100), long(90_000), long(99_000),
	}, nil)
}

func wantFlow4() Record {
	return Record{
		Has:  HasCounts | HasFlow | HasTimes,
		Flow: model.FlowKey{Src: model.AddrOf(netip.MustParseAddr("10.0.0.1")), Dst: model.AddrOf(netip.MustParseAddr("10.0.1.2")), SrcPort: 7000, DstPort: 4791, Proto: 17},
		In:   3, Packets: 100, Bytes: 123456, Start: 10 * time.Second, End: time.Second,
	}
}

// all reads a message.
func all(t *Templates, b []byte) (list []Record, errs []error) {
	var r Reader
	if err := r.Reset(b); err != nil {
		return nil, []error{err}
	}
	for {
		var rec Record
		more, err := r.Next(t, &rec)
		if err != nil {
			errs = append(errs, err)
		} else if more {
			list = append(list, rec)
		}
		if !more {
			return list, errs
		}
	}
}

var sameRecord = cmpopts.IgnoreUnexported(Record{})

func TestFlowRecord(t *testing.T) {
	var ts Templates
	b := message(NetFlow9, Header{Uptime: 100_000, Export: 1e9, Seq: 7, Domain: 5}, set(0, flow4), set(256, record4(), record4(), []byte{0, 0}))
	got, errs := all(&ts, b)
	if diff := cmp.Diff([]Record{wantFlow4(), wantFlow4()}, got, sameRecord); diff != "" || errs != nil {
		t.Errorf("%v (-want +got):\n%s", errs, diff)
	}
	// The template is known from now on; another domain has its own.
	b = message(NetFlow9, Header{Uptime: 100_000}, set(256, record4()))
	if got, errs := all(&ts, b); len(got) != 1 || errs != nil {
		t.Errorf("%d records, %v; want 1", len(got), errs)
	}
	if got, errs := all(&Templates{}, b); len(got) != 0 || len(errs) != 1 || !errors.Is(errs[0], ErrNoTemplate) {
		t.Errorf("%d records, %v; want %v", len(got), errs, ErrNoTemplate)
	}
}

// TestTimes: all encodings of one interval, of which the export is a second after its end.
func TestTimes(t *testing.T) {
	const export = 1_700_000_000
	ms := func(ago uint64) []byte { return binary.BigEndian.AppendUint64(nil, export*1000-ago) }
	ntp := func(ago uint64) []byte {
		return binary.BigEndian.AppendUint64(nil, (export+2208988800-ago)<<32)
	}
	for name, one := range map[string]struct {
		template []byte
		data     [][]byte
	}{
		"seconds":      {words(150, 4, 151, 4), [][]byte{long(export - 10), long(export - 1)}},
		"milliseconds": {words(152, 8, 153, 8), [][]byte{ms(10_000), ms(1000)}},
		"microseconds": {words(154, 8, 155, 8), [][]byte{ntp(10), ntp(1)}},
		"nanoseconds":  {words(156, 8, 157, 8), [][]byte{ntp(10), ntp(1)}},
		"deltas":       {words(158, 4, 159, 4), [][]byte{long(10e6), long(1e6)}},
		"uptime":       {words(160, 8, 22, 4, 21, 4), [][]byte{ms(50_000), long(40_000), long(49_000)}},
	} {
		fields := uint16(len(one.template) / 4)
		got, errs := all(&Templates{}, message(IPFIX, Header{Export: export}, set(2, words(300, fields), one.template), set(300, one.data...)))
		if len(got) != 1 || errs != nil || !got[0].Has.All(HasTimes) || got[0].Start != 10*time.Second || got[0].End != time.Second {
			t.Errorf("%s: %+v, %v; want from 10 s to 1 s before the export", name, got, errs)
		}
	}
}

// TestInitTimeOfOptions: softflowd says once since when its uptime counts.
func TestInitTimeOfOptions(t *testing.T) {
	const export = 1_700_000_000
	started := binary.BigEndian.AppendUint64(nil, (export-50)*1000)
	got, errs := all(&Templates{}, message(IPFIX, Header{Export: export},
		set(3, words(300, 2, 1, 149, 4, 160, 8)), set(300, long(0), started), set(2, words(301, 2, 22, 4, 21, 4)), set(301, long(40_000), long(49_000))))
	if len(got) != 2 || errs != nil || !got[1].Has.All(HasTimes) || got[1].Start != 10*time.Second || got[1].End != time.Second {
		t.Errorf("%+v, %v; want from 10 s to 1 s before the export", got, errs)
	}
}

func TestOptions(t *testing.T) {
	for name, one := range map[string]struct {
		version  uint16
		template []byte
		data     []byte
		want     Record
	}{
		"NetFlow's sampling": {
			NetFlow9, set(1, words(300, 4, 8), words(1, 4, 34, 4, 35, 1)), append(append(long(0), long(1024)...), 2),
			Record{Options: true, Has: HasSampling, Sampling: 1024},
		},
		"IPFIX's sampling": {
			IPFIX, set(3, words(300, 3, 1, 149, 4, 305, 4, 306, 4)), append(append(long(0), long(1)...), long(511)...),
			Record{Options: true, Has: HasSampling, Sampling: 512},
		},
		"probability": {
			IPFIX, set(3, words(300, 2, 1, 149, 4, 311, 8)), append(long(0), 0x3f, 0x50, 0, 0, 0, 0, 0, 0),
			Record{Options: true, Has: HasSampling, Sampling: 1024},
		},
		"name of an interface": {
			IPFIX, set(3, words(300, 2, 1, 10, 4, 82, 65535)), append(append(long(9), 11), "Ethernet4\x00\x00"...),
			Record{Options: true, Has: HasName, In: 9, Name: "Ethernet4"},
		},
	} {
		got, errs := all(&Templates{}, message(one.version, Header{}, one.template, set(300, one.data)))
		if diff := cmp.Diff([]Record{one.want}, got, sameRecord); diff != "" || errs != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, errs, diff)
		}
	}
}

// TestMalformed: each error is found, and what follows the set is read.
func TestMalformed(t *testing.T) {
	good := set(256, record4())
	many := []byte{}
	for i := range uint16(maxTemplates + 1) {
		many = append(many, words(1000+i, 1, 8, 4)...)
	}
	for name, one := range map[string]struct {
		set  []byte
		want error
		rest int // records that are read all the same
	}{
		"reserved set":       {set(99, long(1)), nil, 1},
		"no template":        {set(999, long(1)), ErrNoTemplate, 1},
		"set beyond the end": {words(256, 999), ErrLength, 0},
		"set of no length":   {words(256, 0), ErrLength, 0},
		"template cut":       {set(2, words(300, 9, 8, 4)), ErrShort, 1},
		"template of data":   {set(2, words(7, 1, 8, 4)), ErrTemplate, 1},
		"empty record":       {set(2, words(300, 1, 8, 0)), ErrTemplate, 1},
		"too many fields":    {set(2, words(300, maxFields+1)), ErrFull, 1},
		"too many templates": {set(2, many), ErrFull, 1},
		"variable cut":       {append(set(2, words(301, 2, 82, 65535, 82, 65535)), set(301, []byte{1, 'x', 200})...), ErrShort, 1},
	} {
		var ts Templates
		all(&ts, message(IPFIX, Header{}, set(2, flow4)))
		got, errs := all(&ts, message(IPFIX, Header{}, one.set, good))
		if len(got) != one.rest || (len(errs) == 0) != (one.want == nil) || len(errs) > 0 && !errors.Is(errs[0], one.want) {
			t.Errorf("%s: %d records, %v; want %d and %v", name, len(got), errs, one.rest, one.want)
		}
		if len(ts.byID) > maxTemplates {
			t.Errorf("%s: %d templates", name, len(ts.byID))
		}
	}
	for _, b := range [][]byte{nil, words(10, 4), append(words(10, 8), make([]byte, 12)...), append(words(10, 900), make([]byte, 12)...), append(words(5, 16), make([]byte, 12)...), append(words(9, 1), make([]byte, 12)...)} {
		if _, errs := all(&Templates{}, b); len(errs) != 1 {
			t.Errorf("% x: %v; want one error", b, errs)
		}
	}
}

func TestWithdrawal(t *testing.T) {
	var ts Templates
	all(&ts, message(IPFIX, Header{}, set(2, flow4, words(300, 1, 8, 4))))
	all(&ts, message(IPFIX, Header{}, set(2, words(256, 0))))
	if len(ts.byID) != 1 || ts.byID[300] == nil {
		t.Errorf("%d templates; want 300 alone", len(ts.byID))
	}
	all(&ts, message(IPFIX, Header{}, set(2, words(2, 0))))
	if len(ts.byID) != 0 {
		t.Errorf("%d templates after all were withdrawn", len(ts.byID))
	}
}

// TestTwoDecodersAgree: goflow2 finds the same records, with the same bytes in each field.
// What the bytes mean is compared by the tests above.
func TestTwoDecodersAgree(t *testing.T) {
	elements := []uint16{1, 2, 4, 7, 8, 10, 11, 12, 14, 27, 28, 61, 34, 82, 150, 151, 40_000 & 0x7fff, 999}
	rapid.Check(t, func(t *rapid.T) {
		version := rapid.SampledFrom([]uint16{NetFlow9, IPFIX}).Draw(t, "version")
		n := rapid.IntRange(1, 12).Draw(t, "fields")
		template := words(256, uint16(n))
		var lengths []int
		for range n {
			id := rapid.SampledFrom(elements).Draw(t, "element")
			length := rapid.IntRange(1, 16).Draw(t, "length")
			template = append(template, words(id, uint16(length))...)
			lengths = append(lengths, length)
		}
		var data []byte
		records := rapid.IntRange(1, 4).Draw(t, "records")
		for range records {
			for _, l := range lengths {
				data = append(data, rapid.SliceOfN(rapid.Byte(), l, l).Draw(t, "value")...)
			}
		}
		h := Header{Export: 1_700_000_000, Uptime: 5000, Domain: 3}
		b := message(version, h, set(templateSet[version], template), set(256, data))
		got, errs := all(&Templates{}, b)
		if errs != nil || len(got) != records {
			t.Fatalf("%d records, %v; want %d", len(got), errs, records)
		}
		theirs := peerRecords(t, b)
		if len(theirs) != records {
			t.Fatalf("goflow2 finds %d records; want %d", len(theirs), records)
		}
		for i, r := range got {
			var want Record
			for _, v := range theirs[i] {
				want.set(&h, element(v.Type), v.Value.([]byte))
			}
			want.finish(&h)
			if diff := cmp.Diff(want, r, sameRecord); diff != "" {
				t.Fatalf("record %d (-goflow2 +here):\n%s", i, diff)
			}
		}
	})
}

// peerRecords are the fields of all records that goflow2 finds.
func peerRecords(t interface{ Fatalf(string, ...any) }, b []byte) (list [][]netflow.DataField) {
	var v9 netflow.NFv9Packet
	var v10 netflow.IPFIXPacket
	if err := netflow.DecodeMessageVersion(bytes.NewBuffer(b), netflow.CreateTemplateSystem(), &v9, &v10); err != nil {
		t.Fatalf("goflow2: %v", err)
	}
	for _, s := range append(v9.FlowSets, v10.FlowSets...) {
		if d, ok := s.(netflow.DataFlowSet); ok {
			for _, r := range d.Records {
				list = append(list, r.Values)
			}
		}
	}
	return list
}

// FuzzMessages: nothing panics, templates stay bounded, and every message ends.
func FuzzMessages(f *testing.F) {
	f.Add(message(NetFlow9, Header{}, set(0, flow4), set(256, record4())), []byte{})
	f.Add(message(IPFIX, Header{}, set(2, flow4)), message(IPFIX, Header{}, set(256, record4()), set(2, words(256, 0))))
	f.Add(message(IPFIX, Header{}, set(3, words(300, 2, 1, 10, 4, 82, 65535)), set(300, long(9), []byte{3, 'a', 'b', 'c'})), []byte{0, 9})
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var ts Templates
		for _, b := range [][]byte{first, second} {
			got, errs := all(&ts, b)
			if len(got)+len(errs) > len(b)+1 {
				t.Errorf("%d records and %d errors of %d bytes", len(got), len(errs), len(b))
			}
		}
		if len(ts.byID) > maxTemplates {
			t.Errorf("%d templates", len(ts.byID))
		}
	})
}

func BenchmarkMessage(b *testing.B) {
	var ts Templates
	all(&ts, message(IPFIX, Header{}, set(2, flow4)))
	var data []byte
	for range 24 {
		data = append(data, record4()...)
	}
	m := message(IPFIX, Header{}, set(256, data))
	b.ReportAllocs()
	var r Reader
	var rec Record
	for b.Loop() {
		if r.Reset(m) != nil {
			b.Fatal("no message")
		}
		for more := true; more; more, _ = r.Next(&ts, &rec) {
		}
	}
}
