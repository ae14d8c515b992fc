package erspan

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/dta"
	"github.com/weft-telemetry/weft/wire/erspan"
	"github.com/weft-telemetry/weft/wire/gre"
	"github.com/weft-telemetry/weft/wire/mirror"
	"github.com/weft-telemetry/weft/wire/packet"
	"github.com/weft-telemetry/weft/wire/roce"
)

const loopback = 127<<24 | 1

var (
	switch7 = model.Addr4(10<<24 | 7)
	switch6 = model.Addr{Hi: 0x2001_0db8 << 32, Lo: 7}
)

func config() Config {
	return Config{Debug: 1, WeftReports: true, Switch: func(a model.Addr) (model.NodeID, bool) {
		return 7, a == switch7 || a == switch6 || a == model.Addr4(loopback)
	}}
}

func newDecoder(t testing.TB, cfg Config) *Decoder {
	t.Helper()
	d, err := NewDecoder(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// tcp is the start of a frame that was 1500 bytes long.
func tcp(flags packet.TCPFlags, dscp uint8, port uint16) []byte {
	ip := packet.IPv4{TOS: dscp << 2, Length: 1486, ID: 5, TTL: 60, Proto: model.TCP, Src: 10<<24 | 1, Dst: 10<<24 | 2}
	b := ip.AppendTo(packet.Ethernet{Type: packet.TypeIPv4}.AppendTo(nil))
	b = packet.TCP{SrcPort: 4000, DstPort: port, Flags: uint16(flags)}.AppendTo(b)
	return append(b, make([]byte, 74)...)
}

var inside = tcp(packet.ACK, 0, 80)

func ipv4(proto model.Proto, src model.Addr, payload []byte) []byte {
	h := packet.IPv4{TOS: 8 << 2, Length: uint16(20 + len(payload)), TTL: 255, Proto: proto, Src: src.V4(), Dst: 10<<24 | 99}
	return append(h.AppendTo(nil), payload...)
}

func ethernet(typ uint16, payload []byte) []byte {
	return append(packet.Ethernet{Type: typ}.AppendTo(nil), payload...)
}

// around is a frame that carries a mirror.
func around(m erspan.Mirror) []byte {
	return ethernet(packet.TypeIPv4, ipv4(model.GRE, switch7, m.AppendTo(nil)))
}

func seq(n uint32) gre.Header { return gre.Header{HasSeq: true, Seq: n} }

// decode returns copies of the mirrors in one frame.
func decode(d *Decoder, at model.Time, frame []byte) (list []mirror.Mirror) {
	d.DecodeFrame(at, frame, func(m *mirror.Mirror) {
		c := *m
		c.Frame = bytes.Clone(m.Frame)
		list = append(list, c)
	})
	return list
}

// TestEveryVariantOfSONiC: the bytes between the GRE header and the frame differ by
// vendor; the decoded frame is the same.
func TestEveryVariantOfSONiC(t *testing.T) {
	pad := func(proto uint16, flags bool, n int) []byte {
		m := erspan.Mirror{Kind: erspan.Padded, GRE: gre.Header{Protocol: proto, HasSeq: flags}, Pad: make([]byte, n), Frame: inside}
		return around(m)
	}
	plain := erspan.Mirror{Kind: erspan.TypeII, GRE: seq(1), Index: 12, Frame: inside}
	for name, tc := range map[string]struct {
		frame []byte
		pad   int // of the switch; 0: as its header says
		in    model.PortID
	}{
		"Broadcom, type I":                 {around(erspan.Mirror{Kind: erspan.TypeI, Frame: inside}), 0, 0},
		"type II with a port":              {around(plain), 0, 12},
		"type III":                         {around(erspan.Mirror{Kind: erspan.TypeIII, GRE: seq(1), PDU: true, Granularity: erspan.PerDevice, Frame: inside}), 0, 0},
		"type III without sequence":        {around(erspan.Mirror{Kind: erspan.TypeIII, PDU: true, Granularity: erspan.PerDevice, Frame: inside}), 0, 0},
		"type III, platform header":        {around(erspan.Mirror{Kind: erspan.TypeIII, Granularity: erspan.PerDevice, HasPlatform: true, Platform: 3<<58 | 9<<32, Frame: inside}), 0, 9},
		"type III of an IP packet":         {around(erspan.Mirror{Kind: erspan.TypeIII, FrameType: erspan.FrameIP, Granularity: erspan.PerDevice, Frame: inside[14:]}), 0, 0},
		"Mellanox, 22 bytes":               {around(erspan.Mirror{Kind: erspan.Mellanox, Frame: inside}), 0, 0},
		"12 bytes, no sequence announced":  {pad(erspan.ProtoII, false, 12), 12, 0},
		"12 bytes, a sequence announced":   {pad(erspan.ProtoII, true, 12), 12, 0},
		"Barefoot, 12 bytes of type III":   {pad(erspan.ProtoIII, false, 12), 12, 0},
		"an unassigned protocol, no bytes": {pad(0x1234, false, 0), -1, 0},
		"Mellanox's, said to be 22":        {pad(erspan.ProtoMellanox, false, 22), 22, 0},
		"bridged, no bytes":                {pad(packet.TypeBridged, false, 0), -1, 0},
		"bridged, 8 bytes":                 {pad(packet.TypeBridged, false, 8), 8, 0},
		"with a VLAN tag":                  {ethernet(packet.TypeVLAN, append(packet.VLAN{ID: 5, Type: packet.TypeIPv4}.AppendTo(nil), around(plain)[14:]...)), 0, 12},
		"in a tunnel":                      {ethernet(packet.TypeIPv4, ipv4(model.IPIP, model.Addr4(1), around(plain)[14:])), 0, 12},
		"over IPv6": {ethernet(packet.TypeIPv6, append(packet.IPv6{
			Length: uint16(len(plain.AppendTo(nil))), NextHeader: model.GRE, HopLimit: 255, Src: switch6,
		}.AppendTo(nil), plain.AppendTo(nil)...)), 0, 12},
		"filled up to 60 bytes and more": {append(around(plain), make([]byte, 9)...), 0, 12},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config()
			if tc.pad != 0 {
				cfg.Pads = map[model.Addr]int{switch7: max(tc.pad, 0)}
			}
			d := newDecoder(t, cfg)
			got := decode(d, 1000, tc.frame)
			if len(got) != 1 || !bytes.Equal(got[0].Frame, inside) {
				t.Fatalf("%x\nis %+v, %+v; want the frame\n%x", tc.frame, got, d.Stats(), inside)
			}
			if m := got[0]; m.Switch != 7 || m.In != tc.in || m.Time != 1000 || m.Length != 1500 || m.Reasons != mirror.Rule {
				t.Errorf("%+v; want switch 7, in %d, time 1000, length 1500, a rule", m, tc.in)
			}
		})
	}
}

func TestMalformedAreCounted(t *testing.T) {
	whole := around(erspan.Mirror{Kind: erspan.TypeII, GRE: seq(1), Frame: inside})
	greBytes := func(b ...byte) []byte { return ethernet(packet.TypeIPv4, ipv4(model.GRE, switch7, b)) }
	fragment := bytes.Clone(whole)
	fragment[14+6] = 0x20
	stranger := bytes.Clone(whole)
	stranger[14+15] = 8
	for name, tc := range map[string]struct {
		frame []byte
		want  Stats
	}{
		"nothing":                  {nil, Stats{NotIP: 1}},
		"not IP":                   {ethernet(0x0806, make([]byte, 46)), Stats{NotIP: 1}},
		"half an IP header":        {whole[:30], Stats{NotIP: 1}},
		"TCP":                      {inside, Stats{Other: 1}},
		"a fragment":               {fragment, Stats{Fragment: 1}},
		"no GRE header":            {greBytes(), Stats{Truncated: 1}},
		"GRE with routing":         {greBytes(0x40, 0, 0x88, 0xbe, 0, 0, 0, 0), Stats{Unsupported: 1}},
		"GRE version 1":            {greBytes(0, 1, 0x88, 0xbe, 0, 0, 0, 0), Stats{Unsupported: 1}},
		"GRE of something else":    {greBytes(0, 0, 0x65, 0x59, 0, 0), Stats{NoMirror: 1}},
		"version of another type":  {greBytes(0, 0, 0x22, 0xeb, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), Stats{Version: 1}},
		"half an ERSPAN header":    {greBytes(0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 0), Stats{Truncated: 1}},
		"Mellanox's, too short":    {greBytes(0, 0, 0x89, 0x49, 0, 0), Stats{Truncated: 1}},
		"unknown sender":           {stranger, Stats{Unknown: 1}},
		"no frame":                 {greBytes(0, 0, 0x88, 0xbe), Stats{Empty: 1}},
		"half an Ethernet header":  {greBytes(0, 0, 0x88, 0xbe, 1, 2, 3), Stats{Empty: 1}},
		"no IP packet in type III": {around(erspan.Mirror{Kind: erspan.TypeIII, FrameType: erspan.FrameIP}), Stats{Empty: 1}},
		"no report": {
			ethernet(packet.TypeIPv4, ipv4(model.UDP, switch7, append(packet.UDP{DstPort: dta.Port, Length: 10}.AppendTo(nil), 1, 2))), Stats{Other: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDecoder(t, config())
			tc.want.Packets = 1
			if got := decode(d, 0, tc.frame); len(got) != 0 || d.Stats() != tc.want {
				t.Errorf("%x is %+v, %+v; want %+v", tc.frame, got, d.Stats(), tc.want)
			}
		})
	}
}

func TestMirrorReasons(t *testing.T) {
	rdma := func(op roce.Opcode, qp roce.QPN, rest ...byte) []byte {
		b := append(roce.BTH{Opcode: op, DestQP: qp}.AppendTo(nil), rest...)
		b = append(packet.UDP{DstPort: roce.Port, Length: uint16(8 + len(b))}.AppendTo(nil), b...)
		return ethernet(packet.TypeIPv4, ipv4(model.UDP, model.Addr4(1), b))
	}
	for name, tc := range map[string]struct {
		frame []byte
		want  mirror.Reasons
	}{
		"data":           {inside, mirror.Rule},
		"SYN":            {tcp(packet.SYN, 0, 80), mirror.Flag},
		"marked RST":     {tcp(packet.RST, 1, 80), mirror.Flag | mirror.Debug},
		"BGP":            {tcp(packet.ACK, 48, 179), mirror.Protocol},
		"PFC":            {ethernet(packet.TypeMACControl, make([]byte, 46)), mirror.Protocol},
		"CNP":            {rdma(roce.CNP, 9, make([]byte, 20)...), mirror.Protocol},
		"RDMA CM":        {rdma(roce.UDSendOnly, 1, make([]byte, 40)...), mirror.Protocol},
		"NAK":            {rdma(roce.Acknowledge, 9, byte(roce.NakSequence), 0, 0, 0, 0, 0, 0, 0), mirror.Protocol},
		"ACK":            {rdma(roce.Acknowledge, 9, byte(roce.AckNoCredit), 0, 0, 0, 0, 0, 0, 0), mirror.Rule},
		"ACK, cut":       {rdma(roce.Acknowledge, 9), mirror.Rule},
		"something else": {ethernet(0x88cc, make([]byte, 20)), mirror.Rule},
	} {
		got := decode(newDecoder(t, config()), 0, around(erspan.Mirror{Kind: erspan.TypeI, Frame: tc.frame}))
		if len(got) != 1 || got[0].Reasons != tc.want {
			t.Errorf("%s: %+v; want %v", name, got, tc.want)
		}
	}
}

func TestReportsOfWeft(t *testing.T) {
	m := mirror.Mirror{Reasons: mirror.Sample, Switch: 3, In: 1, Out: 2, Time: 55, Length: 1500, Frame: inside}
	w := dta.NewWriter(3, 1)
	w.Begin(make([]byte, 1400))
	for _, data := range [][]byte{m.AppendTo(nil), []byte("no mirror!!!"), m.AppendTo(nil)} {
		if err := w.AddReport(&dta.Report{Primitive: dta.Append, List: 1, Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	datagram := w.Finish()
	frame := ethernet(packet.TypeIPv4, ipv4(model.UDP, switch7, append(packet.UDP{DstPort: dta.Port, Length: uint16(8 + len(datagram))}.AppendTo(nil), datagram...)))
	d := newDecoder(t, config())
	got := decode(d, 1000, frame)
	if want := (Stats{Packets: 1, Mirrored: 1, Mirrors: 2}); len(got) != 2 || got[1].Switch != 3 || got[1].Out != 2 || got[1].Time != 55 || d.Stats() != want {
		t.Errorf("%+v, %+v; want the mirror twice", got, d.Stats())
	}
	cfg := config()
	cfg.WeftReports = false
	if d := newDecoder(t, cfg); len(decode(d, 0, frame)) != 0 || d.Stats().Other != 1 {
		t.Errorf("reports are decoded without WeftReports: %+v", d.Stats())
	}
}

func TestMissingBySequence(t *testing.T) {
	for name, tc := range map[string]struct {
		seqs          []uint32
		missing, late uint64
	}{
		"none":            {[]uint32{5, 6, 7}, 0, 0},
		"two":             {[]uint32{5, 8, 9}, 2, 0},
		"one late":        {[]uint32{5, 7, 6, 8}, 0, 1},
		"around the end":  {[]uint32{1<<32 - 1, 0, 2}, 1, 0},
		"restarts":        {[]uint32{1 << 20, 1, 2}, 0, 0},
		"very far ahead":  {[]uint32{1, 1 << 30}, 0, 0},
		"far, not absurd": {[]uint32{1, 1 << 16}, 1<<16 - 2, 0},
	} {
		d := newDecoder(t, config())
		for _, s := range tc.seqs {
			decode(d, 0, around(erspan.Mirror{Kind: erspan.TypeII, GRE: seq(s), Frame: inside}))
		}
		if s := d.Stats(); s.Missing != tc.missing || s.Late != tc.late || s.Mirrors != uint64(len(tc.seqs)) {
			t.Errorf("%s: %v gives %+v; want %d missing, %d late", name, tc.seqs, s, tc.missing, tc.late)
		}
	}
}

// TestTimestampOf: a timestamp of few bits is expanded to the original time, if the
// mirror took less than half of its range.
func TestTimestampOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := rapid.SampledFrom([]erspan.Granularity{erspan.Per100us, erspan.Per100ns, erspan.PerIEEE1588}).Draw(t, "granularity")
		when := model.Time(rapid.Int64Range(0, 2e18).Draw(t, "when"))
		late := time.Duration(rapid.Int64Range(-4e8, 4e8).Draw(t, "late"))
		ticks := uint32(int64(when) / int64(g.Unit()))
		if g == erspan.PerIEEE1588 {
			ticks = uint32(int64(when) % 1e9)
		}
		got := timestampOf(when.Add(late), ticks, g)
		if off := when.Sub(got); off < 0 || off >= g.Unit() {
			t.Fatalf("stamp(%v, %d) = %v; want %v less a tick's rest", when.Add(late), ticks, got, when)
		}
	})
	if got := timestampOf(77, 5, erspan.PerDevice); got != 77 {
		t.Errorf("a device's own unit gives %v; want the time of arrival", got)
	}
}

func writePcap(t *testing.T, link layers.LinkType, packets ...[]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := pcapgo.NewWriterNanos(&b)
	if err := w.WriteFileHeader(65535, link); err != nil {
		t.Fatal(err)
	}
	for i, p := range packets {
		if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: time.Unix(0, int64(1000+i)), CaptureLength: len(p), Length: len(p)}, p); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func TestCaptureFiles(t *testing.T) {
	frame := around(erspan.Mirror{Kind: erspan.TypeII, GRE: seq(1), Frame: inside})
	var ng bytes.Buffer
	w, err := pcapgo.NewNgWriter(&ng, layers.LinkTypeEthernet)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := w.AddInterface(pcapgo.NgInterface{LinkType: layers.LinkTypeRaw, TimestampResolution: 9})
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range [][]byte{frame, frame[14:]} {
		if err := w.WritePacket(gopacket.CaptureInfo{Timestamp: time.Unix(0, int64(1000+i)), CaptureLength: len(p), Length: len(p), InterfaceIndex: i * raw}, p); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	cooked := append(make([]byte, 14), append([]byte{8, 0}, frame[14:]...)...)
	for name, tc := range map[string]struct {
		file []byte
		n    int
		err  string
	}{
		"pcap":            {writePcap(t, layers.LinkTypeEthernet, frame, frame), 2, ""},
		"pcap of raw IP":  {writePcap(t, layers.LinkTypeRaw, frame[14:]), 1, ""},
		"cooked":          {writePcap(t, layers.LinkTypeLinuxSLL, cooked, cooked[:9]), 1, ""},
		"pcapng, 2 links": {ng.Bytes(), 2, ""},
		"no packet":       {writePcap(t, layers.LinkTypeEthernet), 0, ""},
		"another link":    {writePcap(t, layers.LinkTypePPP, frame), 0, "packet 1: link type 9, want Ethernet, raw IP or Linux cooked capture"},
		"cut":             {writePcap(t, layers.LinkTypeEthernet, frame, frame)[:300], 1, "packet 2: "},
		"empty":           {nil, 0, "too short"},
		"nonsense":        {[]byte("this is no capture file at all"), 0, "neither pcap nor pcapng"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDecoder(t, config())
			path := t.TempDir() + "/file"
			if err := os.WriteFile(path, tc.file, 0o666); err != nil {
				t.Fatal(err)
			}
			n := 0
			err := d.DecodeFile(path, func(at model.Time, m *mirror.Mirror) {
				if at != model.Time(1000+n) || !bytes.Equal(m.Frame, inside) {
					t.Errorf("mirror %d at %d: %+v", n, at, m)
				}
				n++
			})
			if n != tc.n || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%d mirrors, %v; want %d, %q", n, err, tc.n, tc.err)
			}
		})
	}
}

func TestAllocatesNothing(t *testing.T) {
	d := newDecoder(t, config())
	frame := around(erspan.Mirror{Kind: erspan.TypeIII, GRE: seq(1), FrameType: erspan.FrameIP, Frame: inside[14:]})
	emit := func(*mirror.Mirror) {}
	d.DecodeFrame(0, frame, emit)
	if n := testing.AllocsPerRun(100, func() { d.DecodeFrame(0, frame, emit) }); n != 0 {
		t.Errorf("%v allocations; want none", n)
	}
}

// FuzzFrame: every input is counted once.
func FuzzFrame(f *testing.F) {
	for _, k := range []erspan.Kind{erspan.TypeI, erspan.TypeII, erspan.TypeIII, erspan.Mellanox} {
		f.Add(around(erspan.Mirror{Kind: k, GRE: seq(1), Frame: inside}), int64(5), 0)
	}
	f.Fuzz(func(t *testing.T, frame []byte, at int64, pad int) {
		cfg := config()
		if pad != 0 {
			cfg.Pads = map[model.Addr]int{switch7: pad}
		}
		d := newDecoder(t, cfg)
		n := 0
		d.DecodeFrame(model.Time(at), frame, func(m *mirror.Mirror) {
			n++
			if int(m.Length) < min(len(m.Frame), 65535) {
				t.Errorf("%+v is longer than it was", m)
			}
		})
		s := d.Stats()
		if sum := s.Mirrored + s.Other + s.NotIP + s.Fragment + s.Unsupported + s.NoMirror + s.Version + s.Truncated + s.Unknown + s.Empty; s.Packets != 1 || sum != 1 || s.Mirrors != uint64(n) {
			t.Errorf("%+v after %x", s, frame)
		}
	})
}
