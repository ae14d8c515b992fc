package pcap

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
)

// all reads a file to its end, with copies of the data.
func all(file []byte) (list []Packet, err error) {
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		return nil, err
	}
	for {
		var p Packet
		switch err := r.Next(&p); err {
		case nil:
			p.Data = bytes.Clone(p.Data)
			list = append(list, p)
		case io.EOF:
			return list, nil
		default:
			return list, err
		}
	}
}

// TestReadsWhatGopacketWrites: files of both formats, with many packets and
// interfaces, read as they were written; gopacket is the other side.
func TestReadsWhatGopacketWrites(t *testing.T) {
	links := []layers.LinkType{layers.LinkTypeEthernet, layers.LinkTypeRaw, layers.LinkTypeLinuxSLL}
	rapid.Check(t, func(t *rapid.T) {
		ng, nanos := rapid.Bool().Draw(t, "ng"), rapid.Bool().Draw(t, "nanos")
		var b bytes.Buffer
		var write func(gopacket.CaptureInfo, []byte) error
		flush := func() error { return nil }
		kinds := []layers.LinkType{rapid.SampledFrom(links).Draw(t, "link")}
		if ng {
			of := func(l layers.LinkType) pcapgo.NgInterface {
				return pcapgo.NgInterface{LinkType: l, TimestampResolution: 9, Comment: rapid.StringN(0, 9, 9).Draw(t, "comment")}
			}
			w, err := pcapgo.NewNgWriterInterface(&b, of(kinds[0]), pcapgo.NgWriterOptions{SectionInfo: pcapgo.NgSectionInfo{Application: "test"}})
			if err != nil {
				t.Fatal(err)
			}
			for range rapid.IntRange(0, 3).Draw(t, "interfaces") {
				kinds = append(kinds, rapid.SampledFrom(links).Draw(t, "link"))
				if _, err := w.AddInterface(of(kinds[len(kinds)-1])); err != nil {
					t.Fatal(err)
				}
			}
			write, flush = w.WritePacket, w.Flush
		} else {
			w := pcapgo.NewWriter(&b)
			if nanos {
				w = pcapgo.NewWriterNanos(&b)
			}
			if err := w.WriteFileHeader(65535, kinds[0]); err != nil {
				t.Fatal(err)
			}
			write = w.WritePacket
		}
		var want []Packet
		for range rapid.IntRange(0, 8).Draw(t, "packets") {
			data := rapid.SliceOfN(rapid.Byte(), 0, 70).Draw(t, "data")
			at := rapid.Int64Range(0, 4e18).Draw(t, "time")
			if !ng && !nanos {
				at -= at % 1000
			}
			i := rapid.IntRange(0, len(kinds)-1).Draw(t, "interface")
			length := len(data) + rapid.IntRange(0, 9).Draw(t, "cut")
			if err := write(gopacket.CaptureInfo{Timestamp: time.Unix(0, at), CaptureLength: len(data), Length: length, InterfaceIndex: i}, data); err != nil {
				t.Fatal(err)
			}
			want = append(want, Packet{Time: model.Time(at), Link: Link(kinds[i]), Data: data, Length: length})
		}
		if err := flush(); err != nil {
			t.Fatal(err)
		}
		got, err := all(b.Bytes())
		if err != nil || len(got) != len(want) {
			t.Fatalf("%d packets, %v; want %d", len(got), err, len(want))
		}
		for i := range got {
			if g, w := got[i], want[i]; g.Time != w.Time || g.Link != w.Link || g.Length != w.Length || !bytes.Equal(g.Data, w.Data) {
				t.Fatalf("packet %d: %+v; want %+v", i, g, w)
			}
		}
		// Truncated anywhere, the packets before are read, and the end is an error.
		if n := rapid.IntRange(0, b.Len()).Draw(t, "bytes"); n < b.Len() {
			part, err := all(b.Bytes()[:n])
			if len(part) > len(want) || err == nil && len(part) == len(want) && len(want) > 0 {
				t.Fatalf("%d of %d bytes give %d packets, %v", n, b.Len(), len(part), err)
			}
		}
	})
}

// ngFile builds a pcapng file of blocks, big-endian.
func ngFile(blocks ...[]byte) []byte {
	section := ngBlock(sectionHeader, 0x1a2b3c4d, 0x00010000, 0xffffffff, 0xffffffff)
	return append(section, bytes.Join(blocks, nil)...)
}

func ngBlock(kind uint32, words ...uint32) []byte {
	be := binary.BigEndian
	b := be.AppendUint32(nil, kind)
	b = be.AppendUint32(b, uint32(12+4*len(words)))
	for _, w := range words {
		b = be.AppendUint32(b, w)
	}
	return be.AppendUint32(b, uint32(12+4*len(words)))
}

func TestBlocksOfPcapng(t *testing.T) {
	ether := ngBlock(interfaceDesc, 1<<16, 0)
	for name, tc := range map[string]struct {
		file []byte
		time model.Time
		data string
	}{
		"microseconds":     {ngFile(ether, ngBlock(packetBlock, 0, 0, 5, 4, 4, 0x61626364)), 5000, "abcd"},
		"2^-10 s":          {ngFile(ngBlock(interfaceDesc, 1<<16, 0, optResolution<<16|1, 0x8a<<24, 0), ngBlock(packetBlock, 0, 0, 1<<10, 2, 2, 0x61620000)), 1e9, "ab"},
		"10^-12 s, offset": {ngFile(ngBlock(interfaceDesc, 1<<16, 0, optResolution<<16|1, 12<<24, optOffset<<16|8, 0, 7, 0), ngBlock(packetBlock, 0, 0, 5000, 0, 9)), 7e9 + 5, ""},
		"the older form":   {ngFile(ether, ngBlock(oldPacket, 0, 0, 6, 4, 4, 0x61626364)), 6000, "abcd"},
		"without a time":   {ngFile(ngBlock(interfaceDesc, 1<<16, 3), ngBlock(simplePacket, 9, 0x61626364)), 0, "abc"},
		"strange blocks":   {ngFile(ngBlock(0xbad, 1, 2, 3), ether, ngBlock(5, 0, 0, 0), ngBlock(packetBlock, 0, 0, 1, 1, 1, 0x61<<24)), 1000, "a"},
		"a second section": {append(ngFile(ether), ngFile(ether, ngBlock(packetBlock, 0, 0, 1, 1, 1, 0x61<<24))...), 1000, "a"},
		"time out of range": {
			ngFile(ether, ngBlock(packetBlock, 0, 0xffffffff, 0, 1, 1, 0x61<<24)), 1<<63 - 1, "a",
		},
	} {
		got, err := all(tc.file)
		if err != nil || len(got) != 1 || got[0].Time != tc.time || string(got[0].Data) != tc.data || got[0].Link != Ethernet {
			t.Errorf("%s: %+v, %v; want %q at %d", name, got, err, tc.data, tc.time)
		}
	}
}

func TestCorruptFiles(t *testing.T) {
	ether := ngBlock(interfaceDesc, 1<<16, 0)
	pcapHead := func(n uint32) []byte {
		b := binary.BigEndian.AppendUint32(nil, 0xa1b2c3d4)
		b = append(b, make([]byte, 19)...)
		b = append(b, 1)
		for _, w := range []uint32{0, 0, n, n} {
			b = binary.BigEndian.AppendUint32(b, w)
		}
		return b
	}
	wrong := ngBlock(packetBlock, 0, 0, 1, 0, 0)
	wrong[len(wrong)-1]++
	for want, file := range map[string][]byte{
		"too short":                            {1, 2, 3},
		"magic number 6e6f7065":                []byte("nope, no capture"),
		"ends after 9 of 24 bytes":             pcapHead(0)[:9],
		"ends after 8 of 16 bytes":             pcapHead(0)[:32],
		"ends where 5 more bytes are required": pcapHead(5),
		"packet of 4294967295 bytes":           pcapHead(1<<32 - 1),
		"byte-order magic 00000000":            ngFile()[:8:8],
		"block of 13 bytes":                    append(ngFile(), 0, 0, 0, 6, 0, 0, 0, 13),
		"block of 4294967280 bytes":            append(ngFile(), 0, 0, 0, 6, 0xff, 0xff, 0xff, 0xfc),
		"ends inside a block":                  append(ngFile(), 0, 0, 0, 9, 0xff, 0xff, 0xff, 0xfc),
		"trailing length of 33":                ngFile(ether, wrong),
		"interface 0 of 0":                     ngFile(ngBlock(packetBlock, 0, 0, 1, 0, 0)),
		"packet block of 4 bytes":              ngFile(ether, ngBlock(packetBlock, 0)),
		"packet of 9 bytes in":                 ngFile(ether, ngBlock(packetBlock, 0, 0, 1, 9, 9, 0)),
		"interface description of 4 bytes":     ngFile(ngBlock(interfaceDesc, 1)),
		"simple packet block of 0 bytes":       ngFile(ether, ngBlock(simplePacket)),
		"ends inside a section header":         ngFile()[:8],
	} {
		if want == "byte-order magic 00000000" {
			file = append(file, make([]byte, 20)...)
		}
		_, err := all(file)
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrFormat) {
			t.Errorf("%x: %v; want %q", file, err, want)
		}
	}
}

// FuzzReader: for every input packets are bounded and the reader ends.
func FuzzReader(f *testing.F) {
	f.Add(ngFile(ngBlock(interfaceDesc, 1<<16, 0), ngBlock(packetBlock, 0, 0, 5, 4, 4, 0x61626364)))
	f.Add([]byte{0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, file []byte) {
		list, _ := all(file)
		sum := 0
		for _, p := range list {
			sum += len(p.Data)
		}
		if sum > len(file) {
			t.Errorf("%d bytes of packets in a file of %d", sum, len(file))
		}
	})
}
