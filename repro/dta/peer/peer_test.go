package peer

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weft-telemetry/weft/model"
)

// keys draws from few, so that keys come again and fields are shared.
func keys(t *rapid.T) (k Key) {
	k[0], k[3] = 10, rapid.Byte().Draw(t, "source")%3
	k[4], k[7] = 10, rapid.Byte().Draw(t, "destination")%3
	k[8], k[9] = rapid.Byte().Draw(t, "port")%4, rapid.Byte().Draw(t, "low")%4
	k[12] = 6
	return k
}

func TestTablesEqualAMap(t *testing.T) {
	type table interface {
		Put(*Key, uint32) bool
		Get(*Key) (uint32, bool)
		Len() int
		Reset()
	}
	rapid.Check(t, func(t *rapid.T) {
		reference := map[Key]uint32{}
		tables := []table{NewHash(144), NewCuckoo(144)}
		for _, h := range tables {
			k := keys(t)
			h.Put(&k, 7)
			h.Reset()
		}
		for i := range rapid.Uint32Range(1, 300).Draw(t, "reports") {
			k := keys(t)
			reference[k] = i
			for _, h := range tables {
				if !h.Put(&k, i) {
					t.Fatalf("%T rejects key %x, the %d-th", h, k, len(reference))
				}
			}
		}
		probe := keys(t)
		want, known := reference[probe]
		for _, h := range tables {
			if got, ok := h.Get(&probe); got != want || ok != known || h.Len() != len(reference) {
				t.Fatalf("%T with %d keys: Get(%x) = %d, %v; want %d keys and %d, %v", h, h.Len(), probe, got, ok, len(reference), want, known)
			}
			for k, v := range reference {
				if got, ok := h.Get(&k); !ok || got != v {
					t.Fatalf("%T: Get(%x) = %d, %v; want %d", h, k, got, ok, v)
				}
			}
		}
	})
}

// A cuckoo table made for n keys takes n, which needs moving.
func TestCuckooTakesAsManyAsItWasMadeFor(t *testing.T) {
	const n = 13_000 // a load of 0.79
	c := NewCuckoo(n)
	for i := range uint32(n) {
		k := Key{byte(i), byte(i >> 8), byte(i >> 16)}
		if !c.Put(&k, i) {
			t.Fatalf("table full at key %d of %d", i, n)
		}
	}
	for i := range uint32(n) {
		k := Key{byte(i), byte(i >> 8), byte(i >> 16)}
		if got, ok := c.Get(&k); !ok || got != i {
			t.Fatalf("key %d has %d, %v", i, got, ok)
		}
	}
}

func TestTablesThatAreFullSaySo(t *testing.T) {
	h, c := NewHash(1), NewCuckoo(1)
	fullHash, fullCuckoo := false, false
	for i := range byte(20) {
		k := Key{i}
		fullHash = fullHash || !h.Put(&k, 1)
		fullCuckoo = fullCuckoo || !c.Put(&k, 1)
	}
	if !fullHash || !fullCuckoo {
		t.Errorf("20 keys in tables for one: hash table full %v, cuckoo table full %v; want both", fullHash, fullCuckoo)
	}
}

func TestLogEqualsASlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := NewLog(200, 144)
		for range rapid.IntRange(1, 2).Draw(t, "lives") {
			l.Reset()
			var all []Record
			for i := range rapid.Uint32Range(0, 200).Draw(t, "reports") {
				r := Record{Time: model.Time(i), Key: keys(t), Value: i}
				all = append(all, r)
				if !l.Put(r) {
					t.Fatalf("table full at record %d of 200", i)
				}
			}
			if l.Len() == 200 && l.Put(Record{}) {
				t.Fatal("a full log of 200 took another")
			}
			probe := keys(t)
			slices.Reverse(all)
			var from, flow []Record
			for _, r := range all {
				if [4]byte(r.Key[:4]) == [4]byte(probe[:4]) {
					from = append(from, r)
				}
				if r.Key == probe {
					flow = append(flow, r)
				}
			}
			if got := l.From([4]byte(probe[:4])); !slices.Equal(got, from) {
				t.Fatalf("From(%x) = %v; want %v", probe[:4], got, from)
			}
			if got := l.Flow(&probe); !slices.Equal(got, flow) {
				t.Fatalf("Flow(%x) = %v; want %v", probe, got, flow)
			}
		}
	})
}
