package list

import (
	"bytes"
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
	if rapid.Bool().Draw(t, "usual") { // batches of whole cache lines
		return DefaultConfig(rapid.IntRange(1, 3).Draw(t, "lists"), rapid.IntRange(17, 1000).Draw(t, "capacity"))
	}
	cfg := Config{Layout: Weft, Batch: rapid.IntRange(1, 5).Draw(t, "batch")}
	for range rapid.IntRange(1, 3).Draw(t, "classes") {
		cfg.Classes = append(cfg.Classes, Class{
			Lists:    rapid.IntRange(1, 4).Draw(t, "lists"),
			Entry:    rapid.IntRange(1, 20).Draw(t, "entry"),
			Capacity: cfg.Batch + rapid.IntRange(1, 12).Draw(t, "more than a batch"),
			Sized:    rapid.Bool().Draw(t, "sized"),
		})
	}
	return cfg
}

// TestRingsHoldTheNewest appends to several lists and checks the location of each
// entry: entry i of a list is at i modulo the capacity, and no list overwrites
// another.
func TestRingsHoldTheNewest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := configs(t)
		tab := open(t, cfg)
		defer tab.Region().Close()
		w := tab.Writer(0)
		all := make([][][]byte, cfg.Lists())
		for range rapid.IntRange(1, 30).Draw(t, "appends") {
			list := rapid.Uint32Range(0, uint32(cfg.Lists()-1)).Draw(t, "list")
			class, _ := tab.Class(list)
			var batch []byte
			for range rapid.OneOf(rapid.IntRange(0, 9), rapid.Just(cfg.Batch)).Draw(t, "entries") {
				data := rapid.SliceOfN(rapid.Byte(), 0, class.Entry).Draw(t, "data")
				before := len(batch)
				var err error
				if batch, err = tab.AppendEntry(batch, list, data); err != nil {
					t.Fatal(err)
				}
				all[list] = append(all[list], batch[before:])
			}
			if err := w.Append(list, batch); err != nil {
				t.Fatal(err)
			}
		}
		written := uint64(0)
		for list, entries := range all {
			class, base, _ := tab.ringOf(uint32(list))
			head, _ := tab.Head(uint32(list))
			if head != uint64(len(entries)) {
				t.Fatalf("list %d has a head of %d; want %d", list, head, len(entries))
			}
			written += head
			for i := max(0, len(entries)-class.Capacity); i < len(entries); i++ {
				got := make([]byte, class.stride)
				_ = tab.Region().Read(uint64(base)+uint64(i%class.Capacity*class.stride), got)
				if !bytes.Equal(got, entries[i]) {
					t.Fatalf("entry %d of list %d = %x; want %x", i, list, got, entries[i])
				}
			}
		}
		if got := tab.Region().Counts().Writes; got != written {
			t.Fatalf("%d entries counted; want %d", got, written)
		}
	})
}

// TestPrototypeBytes checks the prototype's ring: entries side by side from the
// start of the memory, and nothing else in it.
func TestPrototypeBytes(t *testing.T) {
	tab := open(t, Config{Layout: Prototype, Batch: 2, Classes: []Class{{Lists: 1, Entry: 4, Capacity: 4}}})
	defer tab.Region().Close()
	for i := byte(1); i <= 5; i++ { // the fifth overwrites the first
		if err := tab.Writer(0).Append(0, []byte{i, 0, 0, 0}); err != nil {
			t.Fatal(err)
		}
	}
	got := make([]byte, 16)
	_ = tab.Region().Read(0, got)
	want := []byte{5, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0}
	if !bytes.Equal(got, want) {
		t.Errorf("ring = %x; want %x", got, want)
	}
}

func TestManyLists(t *testing.T) {
	const lists = 131072
	tab := open(t, DefaultConfig(lists, 32))
	defer tab.Region().Close()
	w := tab.Writer(0)
	for list := range uint32(lists) {
		if err := w.Append(list, []byte{byte(list), byte(list >> 8), byte(list >> 16), 1}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Append(lists, make([]byte, 4)); err != ErrList {
		t.Errorf("Append to list %d = %v; want ErrList", lists, err)
	}
	for list := range uint32(lists) {
		_, base, _ := tab.ringOf(list)
		var got [4]byte
		_ = tab.Region().Read(uint64(base), got[:])
		if got != [4]byte{byte(list), byte(list >> 8), byte(list >> 16), 1} {
			t.Fatalf("list %d begins with %x", list, got)
		}
	}
}

func TestAppendRefuses(t *testing.T) {
	tab := open(t, DefaultConfig(2, 32))
	defer tab.Region().Close()
	if err := tab.Writer(0).Append(0, make([]byte, 5)); err != ErrBatch {
		t.Errorf("Append of 5 bytes to a list of 4-byte entries = %v; want ErrBatch", err)
	}
	if _, err := tab.AppendEntry(nil, 0, make([]byte, 5)); err != ErrDataLen {
		t.Errorf("AppendEntry of 5 bytes = %v; want ErrDataLen", err)
	}
	if _, err := tab.AppendEntry(nil, 2, make([]byte, 4)); err != ErrList {
		t.Errorf("AppendEntry to list 2 of 2 = %v; want ErrList", err)
	}
	if _, _, err := tab.BatchParts(0, 0, make([]byte, 4*17)); err != ErrBatch {
		t.Errorf("BatchParts of more than a batch = %v; want ErrBatch", err)
	}
}

func TestAppendAllocs(t *testing.T) {
	tab := open(t, DefaultConfig(2, 32))
	defer tab.Region().Close()
	w, batch := tab.Writer(0), make([]byte, 64)
	if n := testing.AllocsPerRun(100, func() { _ = w.Append(1, batch) }); n != 0 {
		t.Errorf("Append allocates %v times", n)
	}
}
