package region

import "testing"

// TestPrefetchChangesNothing checks that Prefetch may be called with any words,
// also none, and does not change them.
func TestPrefetchChangesNothing(t *testing.T) {
	r, err := Open(Config{Kind: "test", Size: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	words := r.Words()
	var at []uint64
	for i := range words {
		Store(&words[i], uint64(i))
		at = append(at, uint64(len(words)-1-i))
	}
	for n := range len(at) / 100 {
		Prefetch(words, at[:n])
	}
	Prefetch(words, at)
	Prefetch(nil, nil)
	for i, w := range words {
		if w != uint64(i) {
			t.Fatalf("word %d = %d after Prefetch; want %d", i, w, i)
		}
	}
	if n := testing.AllocsPerRun(100, func() { Prefetch(words, at) }); n != 0 {
		t.Errorf("Prefetch allocates %v times", n)
	}
}

func TestStoreLineEqualsCopy(t *testing.T) {
	var to, want [24]uint64
	var b [80]byte
	for i := range b {
		b[i] = byte(i + 1)
	}
	for at := range 16 {
		clear(to[:])
		clear(want[:])
		StoreLine((*[8]uint64)(to[at:]), (*[64]byte)(b[at:]), &to[23])
		Copy(want[at:at+8], b[at:at+64])
		if to != want {
			t.Fatalf("StoreLine at word %d left %x; want %x", at, to, want)
		}
	}
}
