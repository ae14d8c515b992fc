package epoch

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
	"github.com/weft-telemetry/weft/wire/poll"
)

func header() Header {
	return Header{
		Flags: Truncated | Evictions, Switch: 5, Event: poll.Event{Host: 17, Number: 3},
		Snapshot: 90e6, EpochLength: 1 << 20, Dropped: 2,
	}
}

const (
	head = "5745 01 03 00000005 00000011 00000003 0001 0002" +
		"00000000055d4a80 0000000000100000 00000002"
	meterHex   = "05 18 00000055 0001 0002 03 00 00000064 0000000000001000"
	unknownHex = "c8 05 010203"
	chunkHex   = head + "0000001d" + unknownHex + meterHex
	emptyHex   = head + "00000000"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// sealed appends the checksum, computed apart from the encoder.
func sealed(b []byte) []byte {
	return binary.BigEndian.AppendUint32(bytes.Clone(b), crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// patch overwrites bytes of a sealed chunk and seals it again.
func patch(b []byte, at int, v ...byte) []byte {
	b = bytes.Clone(b[:len(b)-crcSize])
	copy(b[at:], v)
	return sealed(b)
}

func TestParse(t *testing.T) {
	chunk, empty := sealed(unhex(t, chunkHex)), sealed(unhex(t, emptyHex))
	flipped := bytes.Clone(chunk)
	flipped[HeaderSize+2] ^= 1
	full := Chunk{Header: header(), Index: 1, Total: 2, Records: unhex(t, unknownHex+meterHex)}
	for name, tc := range map[string]struct {
		in   []byte
		want Chunk
		err  error
	}{
		"an unknown kind is kept": {in: chunk, want: full},
		"bytes follow":            {in: append(bytes.Clone(chunk), 0, 0), want: full},
		"no records":              {in: empty, want: Chunk{Header: header(), Index: 1, Total: 2, Records: []byte{}}},

		"nothing":               {err: ErrShort},
		"header cut":            {in: chunk[:HeaderSize-1], err: ErrShort},
		"records cut":           {in: chunk[:len(chunk)-crcSize-1], err: ErrShort},
		"checksum cut":          {in: chunk[:len(chunk)-1], err: ErrShort},
		"magic":                 {in: patch(chunk, 0, 0x57, 0x46), err: ErrMagic},
		"version":               {in: patch(chunk, 2, 2), err: ErrVersion},
		"index equals total":    {in: patch(chunk, 16, 0, 2), err: ErrHeader},
		"no chunks":             {in: patch(chunk, 16, 0, 0, 0, 0), err: ErrHeader},
		"epochs of no length":   {in: patch(chunk, 28, 0, 0, 0, 0, 0, 0, 0, 0), err: ErrHeader},
		"epochs of less":        {in: patch(chunk, 28, 0x80), err: ErrHeader},
		"length past the end":   {in: patch(chunk, 40, 0xff, 0xff, 0xff, 0xff), err: ErrShort},
		"flipped bit":           {in: flipped, err: ErrChecksum},
		"record of no length":   {in: patch(chunk, HeaderSize+1, 0), err: ErrRecord},
		"record of one byte":    {in: patch(chunk, HeaderSize+1, 1), err: ErrRecord},
		"kind 0":                {in: patch(chunk, HeaderSize, 0), err: ErrRecord},
		"known kind, too short": {in: patch(chunk, HeaderSize, byte(KindMeter)), err: ErrRecord},
		"record past the end":   {in: patch(chunk, HeaderSize+1, 30), err: ErrShort},
		"half a record head":    {in: patch(chunk, HeaderSize+1, 28), err: ErrShort},
	} {
		t.Run(name, func(t *testing.T) {
			got := Chunk{Index: 9, Records: []byte{9}} // must be overwritten
			n, err := got.Parse(tc.in)
			if diff := cmp.Diff(tc.want, got); err != tc.err || diff != "" {
				t.Errorf("Parse(%x) = _, %v; want %v; chunk (-want +got):\n%s", tc.in, err, tc.err, diff)
			}
			if want := Overhead + len(tc.want.Records); err == nil && n != want {
				t.Errorf("Parse(%x) used %d bytes; want %d", tc.in, n, want)
			}
		})
	}
}

func TestReaderStepsOverUnknownKinds(t *testing.T) {
	var c Chunk
	if _, err := c.Parse(sealed(unhex(t, chunkHex))); err != nil {
		t.Fatal(err)
	}
	var kinds []Kind
	var m Meter
	for r := c.Reader(); r.Next(); {
		kinds = append(kinds, r.Kind())
		if r.Kind() == KindMeter {
			if _, err := m.Parse(r.Record()); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := Meter{Epoch: 0x55, In: 1, Out: 2, Priority: 3, Packets: 100, Bytes: 4096}
	if diff := cmp.Diff([]Kind{200, KindMeter}, kinds); diff != "" || m != want {
		t.Errorf("kinds (-want +got):\n%s; meter %+v; want %+v", diff, m, want)
	}
}

func TestEpochNumbers(t *testing.T) {
	h := Header{Snapshot: 5000, EpochLength: 1000}
	late := Header{Snapshot: (1<<32 + 3) * 1000, EpochLength: 1000}
	for name, tc := range map[string]struct {
		head  Header
		t     model.Time
		n     uint32
		start model.Time
	}{
		"first":               {h, 0, 0, 0},
		"inside":              {h, 3999, 3, 3000},
		"at the border":       {h, 4000, 4, 4000},
		"before zero":         {h, -1, 0xffffffff, -1000},
		"after the wrap":      {late, (1<<32 + 2) * 1000, 2, (1<<32 + 2) * 1000},
		"on the wrap's other": {late, (1<<32 - 1) * 1000, 0xffffffff, (1<<32 - 1) * 1000},
	} {
		t.Run(name, func(t *testing.T) {
			if n := tc.head.Number(tc.t); n != tc.n {
				t.Errorf("Number(%d) = %d; want %d", tc.t, n, tc.n)
			}
			if start := tc.head.Start(tc.n); start != tc.start {
				t.Errorf("Start(%d) = %d; want %d", tc.n, start, tc.start)
			}
		})
	}
}

func TestStartUndoesNumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := Header{EpochLength: time.Duration(rapid.Int64Range(1, 1e9).Draw(t, "length"))}
		h.Snapshot = model.Time(rapid.Int64Range(-1e18, 1e18).Draw(t, "snapshot"))
		ago := time.Duration(rapid.Int64Range(0, 1<<30).Draw(t, "epochs ago")) * h.EpochLength
		if ago < 0 || ago > 1e18 {
			t.Skip("past the clock")
		}
		at := h.Snapshot.Add(-ago)
		start := h.Start(h.Number(at))
		if into := at.Sub(start); into < 0 || into >= h.EpochLength || int64(start)%int64(h.EpochLength) != 0 {
			t.Fatalf("%d is %d ns into its epoch, which starts at %d; length %d", at, into, start, h.EpochLength)
		}
	})
}

func FuzzChunk(f *testing.F) {
	f.Add(sealed(unhex(f, chunkHex)))
	f.Add(sealed(unhex(f, emptyHex)))
	var b Builder
	if err := b.Reset(header(), 1400, 1); err != nil {
		f.Fatal(err)
	}
	b.AddPort(samplePort)
	b.AddPortEpoch(samplePortEpoch)
	b.AddFlow(&sampleFlow)
	b.AddMeter(sampleMeter)
	b.Finish()
	f.Add(b.Chunk(0))
	f.Fuzz(func(t *testing.T, in []byte) {
		// A fuzzer does not guess checksums: try the input with one, too.
		for _, in := range [][]byte{in, sealed(in)} {
			var c Chunk
			n, err := c.Parse(in)
			if err != nil {
				continue
			}
			if out := c.AppendTo(nil); !bytes.Equal(out, in[:n]) {
				t.Fatalf("round trip %x -> %x", in[:n], out)
			}
			var records []byte
			for r := c.Reader(); r.Next(); {
				records = append(records, r.Record()...)
			}
			if !bytes.Equal(records, c.Records) {
				t.Fatalf("Reader of %x finds %x", c.Records, records)
			}
		}
	})
}

func TestChunkAllocs(t *testing.T) {
	var c Chunk
	buf := sealed(unhex(t, chunkHex))
	if n := testing.AllocsPerRun(100, func() {
		c.Parse(buf)
		for r := c.Reader(); r.Next(); {
			_ = r.Record()
		}
	}); n != 0 {
		t.Errorf("Parse and Reader allocate %v times", n)
	}
	out := make([]byte, 0, len(buf))
	if n := testing.AllocsPerRun(100, func() { out = c.AppendTo(out[:0]) }); n != 0 {
		t.Errorf("AppendTo allocates %v times", n)
	}
}
