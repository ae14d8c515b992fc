package count

import (
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

// TestWritersAgree compares the methods to add: single writer, shared, in a run,
// and by fetch-and-add at the scheme's offsets.
func TestWritersAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{Layout: Weft, Cells: 4 * rapid.Uint64Range(1, 25).Draw(t, "rows"), Seed: rapid.Uint64().Draw(t, "seed")}
		low, high := 1, 37
		if rapid.Bool().Draw(t, "prototype") {
			cfg = Config{Layout: Prototype, Cells: 1 << rapid.IntRange(1, 7).Draw(t, "log cells")}
			low, high = 4, 4
		}
		alone, shared, run, remote := open(t, cfg), open(t, cfg), open(t, cfg), open(t, cfg)
		defer run.Region().Close()
		defer alone.Region().Close()
		defer shared.Region().Close()
		defer remote.Region().Close()
		scheme, err := NewScheme(cfg)
		if err != nil {
			t.Fatal(err)
		}
		keyLen := rapid.IntRange(low, high).Draw(t, "key length")
		copies := rapid.IntRange(1, 4).Draw(t, "copies")
		reports := []byte{}
		for range rapid.IntRange(1, 70).Draw(t, "reports") {
			key := rapid.SliceOfN(rapid.Byte(), keyLen, keyLen).Draw(t, "key")
			delta := rapid.Uint64().Draw(t, "delta")
			reports = append(reports, 0xee)
			reports = append(reports, key...)
			reports = binary.BigEndian.AppendUint64(reports, delta)
			if err := alone.Writer(0).Add(key, delta, copies); err != nil {
				t.Fatal(err)
			}
			if err := shared.Writer(0).AddShared(key, delta, copies); err != nil {
				t.Fatal(err)
			}
			p, _ := scheme.HashKey(key)
			for n := range copies {
				if _, err := remote.Region().FetchAdd(scheme.Offset(p, n), delta); err != nil {
					t.Fatal(err)
				}
			}
		}
		if n, err := run.Writer(0).AddRun(reports, 1, keyLen, copies); err != nil || n != len(reports)/(9+keyLen) {
			t.Fatalf("AddRun = %d, %v; want all", n, err)
		}
		for i, want := range alone.cells {
			if shared.cells[i] != want || run.cells[i] != want || remote.cells[i] != want {
				t.Fatalf("cell %d = %d alone, %d shared, %d in a run, %d by fetch-and-add", i, want, shared.cells[i], run.cells[i], remote.cells[i])
			}
		}
		a, b, c := alone.Region().Counts(), shared.Region().Counts(), run.Region().Counts()
		if a != b || a != c {
			t.Fatalf("counts %+v alone, %+v shared, %+v in a run", a, b, c)
		}
	})
}

// TestPrototypeCells checks the cells of the prototype: a 64-bit word in the
// slot of CRC-32 over key and copy number.
func TestPrototypeCells(t *testing.T) {
	tab := open(t, Config{Layout: Prototype, Cells: 256})
	defer tab.Region().Close()
	const key = 0x0a000001
	if err := tab.Writer(0).Add(binary.BigEndian.AppendUint32(nil, key), 5, 2); err != nil {
		t.Fatal(err)
	}
	host := binary.LittleEndian.AppendUint32(nil, key)
	for n := range byte(2) {
		slot := crc32.ChecksumIEEE(append(host[:4:4], n)) & 255
		if got := tab.cells[slot]; got != 5 {
			t.Errorf("cell %d of copy %d = %d; want 5", slot, n, got)
		}
	}
}

func TestAddRefuses(t *testing.T) {
	tab := open(t, DefaultConfig(4096))
	proto := open(t, Config{Layout: Prototype, Cells: 256})
	defer tab.Region().Close()
	defer proto.Region().Close()
	for _, tc := range []struct {
		name        string
		tab         *Table
		key, copies int
		want        error
	}{
		{"fine", tab, 13, 4, nil},
		{"no key", tab, 0, 1, ErrKeyLen},
		{"a flow key for the prototype", proto, 13, 1, ErrKeyLen},
		{"no copy", tab, 13, 0, ErrCopies},
		{"five copies", tab, 13, 5, ErrCopies},
	} {
		if err := tc.tab.Writer(0).Add(make([]byte, tc.key), 1, tc.copies); err != tc.want {
			t.Errorf("%s: Add = %v; want %v", tc.name, err, tc.want)
		}
	}
}

func TestAddAllocs(t *testing.T) {
	tab := open(t, DefaultConfig(4096))
	defer tab.Region().Close()
	w, key := tab.Writer(0), make([]byte, 13)
	if n := testing.AllocsPerRun(100, func() { _ = w.Add(key, 1, 2) }); n != 0 {
		t.Errorf("Add allocates %v times", n)
	}
}
