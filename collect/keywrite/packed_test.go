package keywrite

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// TestRunEqualsWrites checks that a run writes the same as its reports one by
// one, and that LookupAll answers as Lookup does.
func TestRunEqualsWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := configs(t)
		if rapid.Bool().Draw(t, "quick") {
			cfg = Config{Layout: Weft, Slots: cfg.Slots, Value: 4, Check: rapid.IntRange(1, 32).Draw(t, "check"), Seed: cfg.Seed}
		}
		one, run := open(t, cfg), open(t, cfg)
		defer one.Region().Close()
		defer run.Region().Close()
		keyLen := len(keyOf(t, cfg))
		head := rapid.IntRange(0, 5).Draw(t, "head")
		copies := rapid.IntRange(1, 4).Draw(t, "copies")
		size := head + keyLen + cfg.Value
		var reports, keys []byte
		n := rapid.IntRange(0, 100).Draw(t, "reports")
		for range n {
			r := rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, "report")
			if err := one.Writer(0).Write(r[head:head+keyLen], r[head+keyLen:], copies); err != nil {
				t.Fatal(err)
			}
			reports = append(reports, r...)
			keys = append(keys, r[head:head+keyLen]...)
		}
		if got, err := run.Writer(0).WriteRun(reports, head, keyLen, copies); got != n || err != nil {
			t.Fatalf("WriteRun = %d, %v; want %d", got, err, n)
		}
		a, b := make([]byte, cfg.Size()), make([]byte, cfg.Size())
		_ = one.Region().Read(0, a)
		_ = run.Region().Read(0, b)
		if !bytes.Equal(a, b) || one.Region().Counts() != run.Region().Counts() {
			t.Fatalf("one by one\n%x\nrun\n%x", a, b)
		}
		next := 0
		err := run.LookupAll(nil, keys, keyLen, Query{}, func(i int, got Answer) {
			want, _ := run.Lookup(nil, keys[i*keyLen:][:keyLen], Query{})
			if i != next || got.Outcome != want.Outcome || !bytes.Equal(got.Value, want.Value) || got.Votes != want.Votes {
				t.Fatalf("answer %d of LookupAll is %+v, number %d; want %+v", next, got, i, want)
			}
			next++
		})
		if err != nil || next != n {
			t.Fatalf("LookupAll gave %d answers, %v; want %d", next, err, n)
		}
	})
}

func TestRunRefuses(t *testing.T) {
	tab := open(t, DefaultConfig(4096))
	proto := open(t, Config{Layout: Prototype, Slots: 16, Value: 4, Check: 32})
	defer tab.Region().Close()
	defer proto.Region().Close()
	for _, tc := range []struct {
		name                      string
		tab                       *Table
		bytes, head, keyLen, copy int
		want                      error
	}{
		{"half a report", tab, 30, 4, 13, 2, ErrValueLen},
		{"no key", tab, 8, 4, 0, 2, ErrKeyLen},
		{"a long key for the prototype", proto, 21, 4, 13, 2, ErrKeyLen},
		{"no copies", tab, 21, 4, 13, 0, ErrCopies},
	} {
		if n, err := tc.tab.Writer(0).WriteRun(make([]byte, tc.bytes), tc.head, tc.keyLen, tc.copy); n != 0 || err != tc.want {
			t.Errorf("%s: WriteRun = %d, %v; want %v", tc.name, n, err, tc.want)
		}
	}
	if err := tab.LookupAll(nil, make([]byte, 14), 13, Query{}, nil); err != ErrKeyLen {
		t.Errorf("LookupAll of a key and a byte = %v; want ErrKeyLen", err)
	}
}
