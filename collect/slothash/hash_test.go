package slothash

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// TestPrototypeEqualsPlainCRC compares the fast CRC and its one-step slots
// with the plain one over the bytes.
func TestPrototypeEqualsPlainCRC(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.Uint32().Draw(t, "key")
		slots := uint64(1) << rapid.IntRange(1, 31).Draw(t, "log slots")
		var wire [4]byte
		binary.BigEndian.PutUint32(wire[:], key)
		host := binary.LittleEndian.AppendUint32(nil, key)
		c := HashPrototype(wire)
		if want := crc32.ChecksumIEEE(host); uint32(c) != want {
			t.Fatalf("Prototype(%08x) = %08x; want %08x", key, c, want)
		}
		for n := range MaxCopies {
			want := uint64(crc32.ChecksumIEEE(append(host[:4:4], byte(n)))) & (slots - 1)
			if got := c.Slot(n, slots); got != want {
				t.Fatalf("slot %d of %08x among %d = %d; want %d", n, key, slots, got, want)
			}
		}
	})
}

// TestKnownCRC pins the CRC to a value computed elsewhere (zlib).
func TestKnownCRC(t *testing.T) {
	if got := HashPrototype([4]byte{0x04, 0x03, 0x02, 0x01}); got != 0xb63cfbcd { // crc32 of 01 02 03 04
		t.Errorf("Prototype(04030201) = %08x; want b63cfbcd", got)
	}
}

// keysets are keys as networks have them: counters, flows of a subnet that
// differ in a few bits. A hash must spread all of them evenly.
var keysets = map[string]func(i uint32) []byte{
	"counter of 4 bytes":   func(i uint32) []byte { return binary.BigEndian.AppendUint32(nil, i) },
	"counter of 8 bytes":   func(i uint32) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(i)) },
	"high bits of 8":       func(i uint32) []byte { return binary.BigEndian.AppendUint64(nil, uint64(i)<<40) },
	"ports of a flow":      func(i uint32) []byte { return flow(0x0a000001, 0x0a000002, uint16(i), uint16(i>>16)) },
	"hosts of a subnet":    func(i uint32) []byte { return flow(0x0a000000|i&0xfff, 0x0a010000|i>>12, 40000, 80) },
	"37 bytes, one varies": func(i uint32) []byte { return binary.BigEndian.AppendUint32(make([]byte, 33), i) },
}

func flow(src, dst uint32, sport, dport uint16) []byte {
	b := binary.BigEndian.AppendUint32(nil, src)
	b = binary.BigEndian.AppendUint32(b, dst)
	b = binary.BigEndian.AppendUint16(b, sport)
	b = binary.BigEndian.AppendUint16(b, dport)
	return append(b, 6)
}

// TestSlotsAreEven hashes as many keys as slots and checks that the share of
// empty slots is near 1/e, for each copy, and for pairs of copies.
func TestSlotsAreEven(t *testing.T) {
	const slots = 1<<16 - 15
	for name, key := range keysets {
		var hit [MaxCopies][slots]bool
		both := make(map[uint64]bool)
		for i := range uint32(slots) {
			h := HashKey(key(i), 7)
			for n := range MaxCopies {
				hit[n][h.Slot(n, slots)] = true
			}
			both[h.Slot(0, 256)<<8|h.Slot(1, 256)] = true
		}
		want := slots * (1 - 1/math.E)
		for n := range hit {
			got := 0
			for _, h := range hit[n] {
				if h {
					got++
				}
			}
			if math.Abs(float64(got)-want) > 0.01*want {
				t.Errorf("%s: copy %d reaches %d slots; want about %.0f", name, n, got, want)
			}
		}
		if math.Abs(float64(len(both))-want) > 0.01*want {
			t.Errorf("%s: copies 0 and 1 reach %d pairs of slots; want about %.0f", name, len(both), want)
		}
	}
}

// TestChecksumsAreEven checks that checksums of few bits of different values, or
// different keys, are equal about as often as random ones.
func TestChecksumsAreEven(t *testing.T) {
	const n, mask = 1 << 18, 0xff
	values, keys := 0, 0
	for i := range uint32(n) {
		h := HashKey(keysets["counter of 4 bytes"](i), 0)
		if h.Checksum().AddWord(uint64(i)).Bits(mask) == h.Checksum().AddWord(uint64(i+1)).Bits(mask) {
			values++
		}
		if h.Checksum().AddWord(1).Bits(mask) == HashKey(keysets["counter of 4 bytes"](i+1), 0).Checksum().AddWord(1).Bits(mask) {
			keys++
		}
	}
	// 0 becomes 1: two values in 256 are one.
	want := float64(n) * (254.0/256/256 + 4.0/256/256)
	for name, got := range map[string]int{"values": values, "keys": keys} {
		if math.Abs(float64(got)-want) > 6*math.Sqrt(want) {
			t.Errorf("%d of %d checksums of other %s are equal; want about %.0f", got, n, name, want)
		}
	}
}

func TestLengthsAreDifferentKeys(t *testing.T) {
	seen := make(map[Hash]int)
	for n := range 40 {
		h := HashKey(make([]byte, n), 0)
		if m, ok := seen[h]; ok {
			t.Errorf("%d and %d zero bytes have the same hash", m, n)
		}
		seen[h] = n
	}
	// Every byte counts, at every length.
	r := rand.New(rand.NewPCG(1, 2))
	for n := 1; n <= 64; n++ {
		key := make([]byte, n)
		for i := range key {
			key[i] = byte(r.Uint32())
		}
		h := HashKey(key, 0)
		for i := range key {
			key[i] ^= 1 << r.IntN(8)
			if HashKey(key, 0) == h {
				t.Errorf("byte %d of %d does not matter", i, n)
			}
		}
	}
}

// TestCellsAreDistinct checks that the cells of a key differ, and that all cells
// are used evenly.
func TestCellsAreDistinct(t *testing.T) {
	const cells, n = 64, 64_000
	var used [cells]int
	for i := range uint32(n) {
		h := HashKey(keysets["counter of 4 bytes"](i), 0)
		var seen uint64
		for c := range MaxCopies {
			seen |= 1 << h.Cell(c, cells)
		}
		if bits.OnesCount64(seen) != MaxCopies {
			t.Fatalf("key %d has cells %b; want %d", i, seen, MaxCopies)
		}
		used[h.Cell(0, cells)]++
	}
	for i, got := range used {
		if math.Abs(float64(got)-n/cells) > 6*math.Sqrt(n/cells) {
			t.Errorf("cell %d has %d keys; want about %d", i, got, n/cells)
		}
	}
}

func TestChecksumIsNeverZero(t *testing.T) {
	for i := range uint64(4096) {
		if (Hash{check: i}).Checksum().AddWord(i).Bits(15) == 0 {
			t.Fatalf("checksum of %d is 0", i)
		}
	}
	if got := Checksum(1<<63 | 5).Bits(^uint64(0)); got == 0 {
		t.Errorf("64 bits of a checksum = 0")
	}
}
