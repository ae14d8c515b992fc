package list

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// TestCursorEqualsReference reads lists with cursors and compares the entries with
// all that were ever appended: in order, nothing twice, and every entry either
// returned or counted as lost.
func TestCursorEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := configs(t)
		tab := open(t, cfg)
		defer tab.Region().Close()
		w := tab.Writer(0)
		all := make([][][]byte, cfg.Lists())
		cursors := make([]Cursor, cfg.Lists())
		for i := range cursors {
			cursors[i].List = uint32(i)
		}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			list := rapid.Uint32Range(0, uint32(cfg.Lists()-1)).Draw(t, "list")
			class, _ := tab.Class(list)
			if rapid.Bool().Draw(t, "write") {
				var batch []byte
				for range rapid.IntRange(0, 9).Draw(t, "entries") {
					low := class.Entry
					if class.Sized {
						low = 0
					}
					data := rapid.SliceOfN(rapid.Byte(), low, class.Entry).Draw(t, "data")
					batch, _ = tab.AppendEntry(batch, list, data)
					all[list] = append(all[list], data)
				}
				if err := w.Append(list, batch); err != nil {
					t.Fatal(err)
				}
				continue
			}
			c := &cursors[list]
			before := *c
			limit := rapid.IntRange(0, 20).Draw(t, "limit")
			raw, err := tab.Read(nil, c, limit)
			if err != nil {
				t.Fatal(err)
			}
			got := slices.Collect(class.Entries(raw))
			kept := uint64(class.Capacity - cfg.Batch)
			first := before.Next
			if n := uint64(len(all[list])); n > kept {
				first = max(first, n-kept)
			}
			want := all[list][first:]
			want = want[:min(len(want), limit)]
			if !slices.EqualFunc(got, want, bytes.Equal) {
				t.Fatalf("list %d from %d: read %x; want %x", list, before.Next, got, want)
			}
			if lost := c.Lost - before.Lost; lost != first-before.Next || c.Next != first+uint64(len(want)) {
				t.Fatalf("cursor %+v became %+v; want %d lost and %d read", before, *c, first-before.Next, len(want))
			}
		}
	})
}

// TestReaderConcurrentWithWriter polls a small ring while a writer laps it, and
// checks that no entry is torn, repeated or out of order, and that lost and read
// entries add up. Batches of 4 entries of 2 words are whole cache lines, which
// have a separate code path.
func TestReaderConcurrentWithWriter(t *testing.T) {
	for _, words := range []int{3, 2} {
		t.Run(fmt.Sprintf("words=%d", words), func(t *testing.T) { readConcurrentWithWriter(t, words) })
	}
}

func readConcurrentWithWriter(t *testing.T, words int) {
	const total = 60_000
	size := 8 * words
	tab := open(t, Config{Layout: Weft, Batch: 4, Classes: []Class{{Lists: 1, Entry: size, Capacity: 64}}})
	defer tab.Region().Close()
	var done atomic.Bool
	go func() {
		w := tab.Writer(0)
		var batch []byte
		for i := uint64(1); i <= total; i++ {
			for range words {
				batch = binary.LittleEndian.AppendUint64(batch, i)
			}
			if i%4 == 0 || i == total {
				_ = w.Append(0, batch)
				batch = batch[:0]
			}
		}
		done.Store(true)
	}()
	class, _ := tab.Class(0)
	var c Cursor
	buf := make([]byte, 0, 64*size)
	read := uint64(0)
	for {
		last := done.Load()
		before := c.Next + 0
		raw, err := tab.Read(buf, &c, 64)
		if err != nil {
			t.Fatal(err)
		}
		next := c.Next - uint64(len(raw)/size)
		if next < before {
			t.Fatalf("cursor went from %d to %d", before, next)
		}
		for e := range class.Entries(raw) {
			next++
			for ; len(e) > 0; e = e[8:] {
				if got := binary.LittleEndian.Uint64(e); got != next {
					t.Fatalf("a word of entry %d holds %d", next, got)
				}
			}
			read++
		}
		if last && len(raw) == 0 {
			break
		}
	}
	if read+c.Lost != total {
		t.Errorf("%d read and %d lost; want %d in all", read, c.Lost, total)
	}
}

func TestCursorSurvivesRestart(t *testing.T) {
	path := t.TempDir() + "/list"
	cfg := DefaultConfig(2, 64)
	tab, err := Open(path, cfg)
	if err != nil {
		t.Fatal(err)
	}
	_ = tab.Writer(0).Append(1, []byte{1, 0, 0, 0, 2, 0, 0, 0})
	c, _ := tab.CursorAtOldest(1)
	if raw, err := tab.Read(nil, &c, 1); err != nil || len(raw) != 4 {
		t.Fatalf("Read = %x, %v; want one entry", raw, err)
	}
	_ = tab.Region().Close()
	if tab, err = Open(path, cfg); err != nil {
		t.Fatal(err)
	}
	defer tab.Region().Close()
	_ = tab.Writer(0).Append(1, []byte{3, 0, 0, 0})
	raw, err := tab.Read(nil, &c, 10)
	if want := []byte{2, 0, 0, 0, 3, 0, 0, 0}; err != nil || !bytes.Equal(raw, want) {
		t.Errorf("Read after a restart = %x, %v; want %x", raw, err, want)
	}
	if head, _ := tab.Head(1); head != 3 {
		t.Errorf("head = %d after a restart; want 3", head)
	}
	tab.Region().Reset()
	if raw, err := tab.Read(nil, &c, 10); err != nil || len(raw) != 0 || c.Next != 0 || c.Epoch != 1 {
		t.Errorf("Read after a reset = %x, %v with %+v; want an empty list", raw, err, c)
	}
	ahead := Cursor{List: 1, Next: 9, Epoch: 1}
	if _, err := tab.Read(nil, &ahead, 10); err != ErrAhead {
		t.Errorf("Read with a cursor of another memory = %v; want ErrAhead", err)
	}
}

func TestCursorBeforeNewest(t *testing.T) {
	tab := open(t, Config{Layout: Weft, Batch: 2, Classes: []Class{{Lists: 1, Entry: 1, Capacity: 10}}})
	defer tab.Region().Close()
	for i := range byte(20) {
		_ = tab.Writer(0).Append(0, []byte{i})
	}
	for n, want := range map[uint64]uint64{0: 20, 3: 17, 8: 12, 9: 12, 100: 12} {
		if c, err := tab.CursorBeforeNewest(0, n); err != nil || c.Next != want {
			t.Errorf("CursorBeforeNewest(%d) = %+v, %v; want next %d", n, c, err, want)
		}
	}
}

func TestReadAllocs(t *testing.T) {
	tab := open(t, DefaultConfig(2, 64))
	defer tab.Region().Close()
	w, batch, buf := tab.Writer(0), make([]byte, 64), make([]byte, 0, 256)
	var c Cursor
	if n := testing.AllocsPerRun(100, func() {
		_ = w.Append(0, batch)
		_, _ = tab.Read(buf, &c, 16)
	}); n != 0 {
		t.Errorf("Read allocates %v times", n)
	}
}

// TestSizedEntriesAreReadAsWritten: long and short reports in entries of any size,
// with and without room to leave out their padding.
func TestSizedEntriesAreReadAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := Config{Layout: Weft, Batch: rapid.IntRange(1, 5).Draw(t, "batch"), Classes: []Class{
			{Lists: 1, Entry: rapid.IntRange(1, 20).Draw(t, "other"), Capacity: 9},
			{Lists: 2, Entry: rapid.IntRange(minSparse-10, 2*minSparse).Draw(t, "entry"), Capacity: 9, Sized: true},
			{Lists: 1, Entry: 8, Capacity: 9},
		}}
		tab := open(t, cfg)
		defer tab.Region().Close()
		w := tab.Writer(0)
		for _, neighbour := range []uint32{0, 3} { // that must stay as it is
			class, _ := tab.Class(neighbour)
			if err := w.Append(neighbour, bytes.Repeat([]byte{0xee}, 9*class.Entry)); err != nil {
				t.Fatal(err)
			}
		}
		class, _ := tab.Class(1)
		written := [2][][]byte{}
		var cursors [2]Cursor
		read := [2]int{}
		cursors[0].List, cursors[1].List = 1, 2
		var raw []byte
		for range rapid.IntRange(1, 30).Draw(t, "appends") {
			i := rapid.IntRange(0, 1).Draw(t, "list")
			var batch []byte
			for range rapid.IntRange(1, 7).Draw(t, "entries") {
				data := rapid.SliceOfN(rapid.Byte(), 0, class.Entry).Draw(t, "data")
				written[i] = append(written[i], data)
				batch, _ = tab.AppendEntry(batch, uint32(1+i), data)
			}
			if err := w.Append(uint32(1+i), batch); err != nil {
				t.Fatal(err)
			}
			if rapid.Bool().Draw(t, "read") {
				var err error
				if raw, err = tab.Read(raw[:0], &cursors[i], 9); err != nil {
					t.Fatal(err)
				}
				n := len(raw) / (2 + class.Entry)
				first := int(cursors[i].Next) - n
				for data := range class.Entries(raw) {
					if !bytes.Equal(data, written[i][first]) {
						t.Fatalf("entry %d of list %d = %x; want %x", first, 1+i, data, written[i][first])
					}
					first++
				}
				if read[i] += n; uint64(read[i])+cursors[i].Lost != uint64(len(written[i])) {
					t.Fatalf("list %d: %d entries read and %d lost; want %d", 1+i, read[i], cursors[i].Lost, len(written[i]))
				}
			}
		}
		for _, neighbour := range []uint32{0, 3} {
			class, _ := tab.Class(neighbour)
			got, base := make([]byte, 9*class.Entry), int64(0)
			_, base, _ = tab.ringOf(neighbour)
			if _ = tab.Region().Read(uint64(base), got); !bytes.Equal(got, bytes.Repeat([]byte{0xee}, 9*class.Entry)) {
				t.Fatalf("list %d was overwritten by another: %x", neighbour, got)
			}
		}
	})
}
