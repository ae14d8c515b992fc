package postcard

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math/bits"
	"testing"

	"pgregory.net/rapid"
)

func open(t interface{ Fatal(...any) }, cfg Config) *Table {
	tab, err := Open("", cfg)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

func configs(t *rapid.T) Config {
	layout := rapid.SampledFrom([]Layout{Sealed, Plain, Prototype}).Draw(t, "layout")
	if layout == Prototype {
		return Config{Layout: Prototype, Chunks: 1 << rapid.IntRange(1, 8).Draw(t, "log chunks"), Hops: 5, Bits: 32}
	}
	if rapid.Bool().Draw(t, "usual") {
		return DefaultConfig(32 * rapid.Int64Range(1, 200).Draw(t, "chunks"))
	}
	return Config{
		Layout: layout,
		Chunks: rapid.Uint64Range(1, 200).Draw(t, "chunks"),
		Hops:   rapid.IntRange(1, MaxHops).Draw(t, "hops"),
		Bits:   rapid.IntRange(1, 32).Draw(t, "bits"),
		Seed:   rapid.Uint64().Draw(t, "seed"),
	}
}

func keyOf(t *rapid.T, cfg Config) []byte {
	low, high := 1, 37
	if cfg.Layout == Prototype {
		low, high = 4, 4
	}
	return rapid.SliceOfN(rapid.Byte(), low, high).Draw(t, "key")
}

func hopsOf(t *rapid.T, cfg Config) []uint32 {
	return rapid.SliceOfN(rapid.OneOf(rapid.Uint32(), rapid.Just[uint32](Blank)), 0, cfg.Hops).Draw(t, "hops")
}

func TestCodeIsInvertible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Uint32().Draw(t, "value")
		if encodeValue(Blank) != blankCode {
			t.Fatalf("code(Blank) = %#x; want %#x", encodeValue(Blank), blankCode)
		}
		if got := decodeValue(encodeValue(v)); got != v {
			t.Fatalf("value(code(%d)) = %d", v, got)
		}
	})
}

// TestWriterEqualsScheme checks that a local writer leaves the same bytes, one
// by one or in a run, as a translator that writes the scheme's chunks by RDMA.
func TestWriterEqualsScheme(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := configs(t)
		local, run, remote := open(t, cfg), open(t, cfg), open(t, cfg)
		defer run.Region().Close()
		defer local.Region().Close()
		defer remote.Region().Close()
		scheme, err := NewScheme(cfg)
		if err != nil {
			t.Fatal(err)
		}
		w := local.Writer(0)
		keyLen := len(keyOf(t, cfg))
		copies := rapid.IntRange(1, scheme.Copies()).Draw(t, "copies")
		n := rapid.IntRange(0, 150).Draw(t, "paths") // a run has groups of 64
		var rows []byte
		for range n {
			key := rapid.SliceOfN(rapid.Byte(), keyLen, keyLen).Draw(t, "key")
			hops := hopsOf(t, cfg)
			if rows, err = scheme.AppendRow(rows, key, hops); err != nil {
				t.Fatal(err)
			}
			if err := w.Write(key, hops, copies); err != nil {
				t.Fatal(err)
			}
			p, _ := scheme.HashKey(key)
			chunk, err := scheme.AppendChunk(nil, p, hops)
			if err != nil || len(chunk) != scheme.ChunkSize() {
				t.Fatalf("AppendChunk = %x, %v; want %d bytes", chunk, err, scheme.ChunkSize())
			}
			for n := range copies {
				if err := remote.Region().Write(scheme.Offset(p, n), chunk); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got, err := run.Writer(0).WriteRun(rows, keyLen, copies); got != n || err != nil {
			t.Fatalf("WriteRun = %d, %v; want %d", got, err, n)
		}
		a, b, c := make([]byte, cfg.Size()), make([]byte, cfg.Size()), make([]byte, cfg.Size())
		_ = local.Region().Read(0, a)
		_ = remote.Region().Read(0, b)
		_ = run.Region().Read(0, c)
		if !bytes.Equal(a, b) || !bytes.Equal(a, c) {
			t.Fatalf("writer left\n%x\nscheme\n%x\nrun\n%x", a, b, c)
		}
		if local.Region().Counts() != run.Region().Counts() {
			t.Fatalf("writer counted %+v, run %+v", local.Region().Counts(), run.Region().Counts())
		}
	})
}

// plainCRC is a bitwise CRC-32, for a polynomial in its usual notation.
func plainCRC(poly uint32, b []byte) uint32 {
	c := ^uint32(0)
	for _, x := range b {
		c ^= uint32(bits.Reverse8(x)) << 24
		for range 8 {
			top := c >> 31
			c <<= 1
			if top == 1 {
				c ^= poly
			}
		}
	}
	return ^bits.Reverse32(c)
}

// TestPrototypeBytes writes a path and checks the prototype's bytes: values XORed
// with a CRC of the key, a different one for each hop, in network byte order.
func TestPrototypeBytes(t *testing.T) {
	if got, want := plainCRC(0x04c11db7, []byte("123456789")), crc32.ChecksumIEEE([]byte("123456789")); got != want {
		t.Fatalf("plain CRC = %08x; want %08x", got, want)
	}
	tab := open(t, Config{Layout: Prototype, Chunks: 256, Hops: 5, Bits: 32})
	defer tab.Region().Close()
	key := []byte{10, 0, 0, 1}
	hops := []uint32{7, 8, 9, 10, 0xdeadbeef}
	if err := tab.Writer(0).Write(key, hops, 1); err != nil {
		t.Fatal(err)
	}
	var want []byte
	for i, poly := range []uint32{0x1e12a700, 0x65b96595, 0x49cf878b, 0x36518f0d, 0x7a40a908} {
		want = binary.BigEndian.AppendUint32(want, hops[i]^plainCRC(poly, key))
	}
	want = append(want, make([]byte, 12)...)
	got := make([]byte, 32)
	_ = tab.Region().Read(uint64(crc32.ChecksumIEEE(key)&255)*32, got)
	if !bytes.Equal(got, want) {
		t.Errorf("chunk = %x; want %x", got, want)
	}
}

func TestChunkIsAPowerOfTwo(t *testing.T) {
	for _, tc := range []struct {
		layout Layout
		hops   int
		want   int
	}{{Sealed, 1, 8}, {Sealed, 5, 32}, {Sealed, 7, 32}, {Sealed, 8, 64}, {Sealed, 15, 64}, {Plain, 2, 8}, {Plain, 5, 32}, {Plain, 8, 32}, {Prototype, 5, 32}} {
		if got := (Config{Layout: tc.layout, Hops: tc.hops}).chunk(); got != tc.want {
			t.Errorf("%s chunk of %d hops has %d bytes; want %d", tc.layout, tc.hops, got, tc.want)
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	proto := open(t, Config{Layout: Prototype, Chunks: 256, Hops: 5, Bits: 32})
	weft := open(t, DefaultConfig(4096))
	defer proto.Region().Close()
	defer weft.Region().Close()
	for _, tc := range []struct {
		name              string
		tab               *Table
		key, hops, copies int
		want              error
	}{
		{"fine", weft, 13, 5, 4, nil},
		{"no key", weft, 0, 5, 1, ErrKeyLen},
		{"a flow key for the prototype", proto, 13, 5, 1, ErrKeyLen},
		{"a long path", weft, 13, 6, 1, ErrHops},
		{"five copies", weft, 13, 5, 5, ErrCopies},
		{"two copies for the prototype", proto, 4, 5, 2, ErrCopies},
	} {
		if err := tc.tab.Writer(0).Write(make([]byte, tc.key), make([]uint32, tc.hops), tc.copies); err != tc.want {
			t.Errorf("%s: Write = %v; want %v", tc.name, err, tc.want)
		}
	}
}

func TestWriteAllocs(t *testing.T) {
	tab := open(t, DefaultConfig(4096))
	defer tab.Region().Close()
	w, key, hops := tab.Writer(0), make([]byte, 13), make([]uint32, 5)
	if n := testing.AllocsPerRun(100, func() { _ = w.Write(key, hops, 2) }); n != 0 {
		t.Errorf("Write allocates %v times", n)
	}
}
