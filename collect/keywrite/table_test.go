package keywrite

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
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
	if rapid.Bool().Draw(t, "prototype") {
		return Config{
			Layout: Prototype, Check: 32,
			Slots: 1 << rapid.IntRange(1, 8).Draw(t, "log slots"),
			Value: rapid.SampledFrom([]int{4, 12, 28}).Draw(t, "value"),
		}
	}
	if rapid.Bool().Draw(t, "usual") {
		return DefaultConfig(8 * rapid.Int64Range(1, 200).Draw(t, "slots"))
	}
	return Config{
		Layout: Weft,
		Slots:  rapid.Uint64Range(1, 200).Draw(t, "slots"),
		Value:  rapid.IntRange(1, 40).Draw(t, "value"),
		Check:  rapid.IntRange(1, 64).Draw(t, "check"),
		Seed:   rapid.Uint64().Draw(t, "seed"),
	}
}

// keyOf draws a key that the layout accepts.
func keyOf(t *rapid.T, cfg Config) []byte {
	low, high := 1, 37
	if cfg.Layout == Prototype {
		low, high = 4, 4
	}
	return rapid.SliceOfN(rapid.Byte(), low, high).Draw(t, "key")
}

// TestWriterEqualsScheme checks that a local writer leaves the same bytes as a
// translator that writes the scheme's slots by RDMA.
func TestWriterEqualsScheme(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := configs(t)
		local, remote := open(t, cfg), open(t, cfg)
		defer local.Region().Close()
		defer remote.Region().Close()
		scheme, err := NewScheme(cfg)
		if err != nil {
			t.Fatal(err)
		}
		w := local.Writer(0)
		for range rapid.IntRange(1, 20).Draw(t, "reports") {
			key := keyOf(t, cfg)
			value := rapid.SliceOfN(rapid.Byte(), cfg.Value, cfg.Value).Draw(t, "value")
			copies := rapid.IntRange(1, 4).Draw(t, "copies")
			if err := w.Write(key, value, copies); err != nil {
				t.Fatal(err)
			}
			p, _ := scheme.HashKey(key)
			slot, err := scheme.AppendSlot(nil, p, value)
			if err != nil || len(slot) != scheme.SlotSize() {
				t.Fatalf("AppendSlot = %x, %v; want %d bytes", slot, err, scheme.SlotSize())
			}
			for n := range copies {
				if err := remote.Region().Write(scheme.Offset(p, n), slot); err != nil {
					t.Fatal(err)
				}
			}
		}
		a, b := make([]byte, cfg.Size()), make([]byte, cfg.Size())
		_ = local.Region().Read(0, a)
		_ = remote.Region().Read(0, b)
		if !bytes.Equal(a, b) {
			t.Fatalf("writer left\n%x\nscheme\n%x", a, b)
		}
	})
}

// TestPrototypeBytes writes one report and checks the prototype's bytes at the
// offset where its collector reads: checksum of the host's key, little-endian,
// then the data as it was on the wire.
func TestPrototypeBytes(t *testing.T) {
	cfg := Config{Layout: Prototype, Slots: 256, Value: 4, Check: 32}
	tab := open(t, cfg)
	defer tab.Region().Close()
	const key = 0x0a000001
	wire := binary.BigEndian.AppendUint32(nil, key)
	if err := tab.Writer(0).Write(wire, []byte{0xde, 0xad, 0xbe, 0xef}, 2); err != nil {
		t.Fatal(err)
	}
	host := binary.LittleEndian.AppendUint32(nil, key)
	want := binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(host))
	want = append(want, 0xde, 0xad, 0xbe, 0xef)
	for n := range byte(2) {
		slot := crc32.ChecksumIEEE(append(host[:4:4], n)) & 255
		got := make([]byte, 8)
		_ = tab.Region().Read(uint64(slot)*8, got)
		if !bytes.Equal(got, want) {
			t.Errorf("copy %d in slot %d = %x; want %x", n, slot, got, want)
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	proto := open(t, Config{Layout: Prototype, Slots: 256, Value: 4, Check: 32})
	weft := open(t, DefaultConfig(4096))
	defer proto.Region().Close()
	defer weft.Region().Close()
	for _, tc := range []struct {
		name       string
		tab        *Table
		key, value int
		copies     int
		want       error
	}{
		{"fine", weft, 13, 4, 4, nil},
		{"no key", weft, 0, 4, 1, ErrKeyLen},
		{"a flow key for the prototype", proto, 13, 4, 1, ErrKeyLen},
		{"short value", weft, 13, 3, 1, ErrValueLen},
		{"long value", weft, 13, 5, 1, ErrValueLen},
		{"no copy", weft, 13, 4, 0, ErrCopies},
		{"five copies", weft, 13, 4, 5, ErrCopies},
	} {
		if err := tc.tab.Writer(0).Write(make([]byte, tc.key), make([]byte, tc.value), tc.copies); err != tc.want {
			t.Errorf("%s: Write = %v; want %v", tc.name, err, tc.want)
		}
	}
	if got := weft.Region().Counts().Writes; got != 4 {
		t.Errorf("%d slots counted; want 4, those of the one good write", got)
	}
}

func TestWriteAllocs(t *testing.T) {
	tab := open(t, Config{Layout: Weft, Slots: 1000, Value: 20, Check: 32})
	defer tab.Region().Close()
	w, key, value := tab.Writer(0), make([]byte, 13), make([]byte, 20)
	if n := testing.AllocsPerRun(100, func() { _ = w.Write(key, value, 2) }); n != 0 {
		t.Errorf("Write allocates %v times", n)
	}
}
